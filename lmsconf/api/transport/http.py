"""HTTP transport: one request, one response, within a deadline and a size limit.

No redirects, no cookies, only the headers set here. A wire carries the bytes and classifies its errors.
"""

from __future__ import annotations

import io
import math
import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from lmsconf import __version__
from lmsconf.api.transport.deadline import Deadline
from lmsconf.api.transport.in_process_wire import InProcessService, InProcessWire
from lmsconf.api.transport.wire import DeliveryStatus, RawHeaders, Wire, WireRequest, WireResponse
from lmsconf.errors import LmsconfError
from lmsconf.support.redaction import HIDDEN, escaped_forms, redact_secrets, register_secret
from lmsconf.support.url_rules import strip_final_newline, token_problem, url_problem

if TYPE_CHECKING:
    import httpx

URL_NAME = "the workspace's url"
_CONNECT_SECONDS = 10.0
_SILENT_SECONDS = 30.0
_RESERVED: Final = str.maketrans({char: f"%{ord(char):02X}" for char in '"<>`{}'})
"""Characters that a path may hold in lmsconf's arguments and not in a request."""
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})


_NUMBERS = re.compile(r"^\[Errno -?\d+\] |\s*\(_ssl\.c:\d+\)")
"""What Python adds to the messages of the system and of OpenSSL."""


class RequestNotSent(Exception):
    """The request was not sent. final: a retry would fail the same. hint: replaces the default hint."""

    def __init__(self, reason: str, *, final: bool = False, hint: str | None = None) -> None:
        super().__init__(reason)
        self.final, self.hint = final, hint


class ResponseLost(Exception):
    """The request may have been sent, and no complete response arrived."""


class HttpResponse(Struct, frozen=True):
    """A response. unreadable: why the body could not be read, if so. date: the Date header, the service's clock."""

    status: int
    body: bytes
    retry_after: str | None
    location: str | None
    unreadable: str | None
    date: str | None = None


class HttpTransport:
    """One connection to one service, with its credential. Raises LmsconfError for an unsafe URL or token.

    seconds: time limit of one request, from connecting to the last byte of the response. max_bytes: size limit of a
    body, decompressed too. url_name: what messages call the URL. clock: monotonic, in seconds.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | InProcessService | None,
        seconds: float,
        max_bytes: int,
        url_name: str = URL_NAME,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = _checked(base_url, in_process=transport is not None)
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.url, self.host, self.url_name = self._base, parts.netloc, url_name
        self._token = _checked_token(token)
        register_secret(self._token)
        self._headers: RawHeaders = [
            (b"Host", parts.netloc.encode("ascii")),
            (b"Authorization", f"Bearer {self._token}".encode("ascii")),
            (b"Accept", b"application/json"),
            (b"Accept-Encoding", b"gzip"),
            (b"User-Agent", f"lmsconf/{__version__}".encode("ascii")),
        ]
        self._deadline = Deadline(clock)
        self._wire = _wire(transport, parts, self._deadline, max_bytes)
        self._seconds = seconds
        self._max_bytes = max_bytes

    def close(self) -> None:
        """Close the connections. A transport that was passed in stays open."""
        self._wire.close()

    def redact(self, text: str) -> str:
        """Redact the token, which a service may echo, and other secrets from a text."""
        for form in escaped_forms(self._token):
            text = text.replace(form, HIDDEN)
        return redact_secrets(text)

    def send(
        self,
        method: str,
        target: str,
        body: bytes | None,
        extra_headers: Mapping[str, str] | None = None,
        *,
        writes: bool,
        max_seconds: float = math.inf,
    ) -> HttpResponse:
        """Send one request, once. Raises RequestNotSent or ResponseLost.

        target: path and query below the service's URL. max_seconds: time limit, if less than the default.
        """
        seconds = min(self._seconds, max_seconds)
        self._deadline.start(seconds)
        request = WireRequest(
            method,
            target.translate(_RESERVED),
            self._headers_of(method, body, extra_headers),
            body,
            _timeouts(seconds),
        )
        try:
            response = self._wire.send(request, fresh=writes)
            try:
                return self._answer(response)
            finally:
                response.close()
        except self._wire.failures as error:
            raise self._failure(error) from error

    def _headers_of(self, method: str, body: bytes | None, extra: Mapping[str, str] | None) -> RawHeaders:
        """Return the headers of one request."""
        length = [] if method in _WITHOUT_BODY and body is None else [(b"Content-Length", b"%d" % len(body or b""))]
        kind = [] if body is None else [(b"Content-Type", b"application/json")]
        more = [(name.encode("ascii"), value.encode("ascii")) for name, value in (extra or {}).items()]
        return [*self._headers, *length, *kind, *more]

    def _failure(self, error: Exception) -> RequestNotSent | ResponseLost:
        """Map an error of the wire to ours; one without a message is described by its class name."""
        from lmsconf.api.transport.certificates import certificate_hint  # imports ssl

        text = _NUMBERS.sub("", self.redact(str(error)))
        reason, status = text or type(error).__name__, self._wire.delivery_status(error)
        if status is DeliveryStatus.AMBIGUOUS:
            return ResponseLost(reason)
        hint = certificate_hint(error, self.host)
        if hint is None and (proxy := self._wire.proxy_variable):
            hint = f"Check the proxy that {proxy} names, or set NO_PROXY={self.host} to go there without a proxy."
        return RequestNotSent(reason, final=status is DeliveryStatus.FINAL, hint=hint)

    def _answer(self, response: WireResponse) -> HttpResponse:
        """Read the response to its end. Raises ResponseLost at the deadline."""
        headers = response.headers
        body, unreadable = b"", None
        try:
            body = self._body(response, headers.get("content-encoding", "").strip().lower())
        except (ValueError, zlib.error) as error:
            unreadable = str(error)
        after, location, date = (headers.get(name) for name in ("retry-after", "location", "date"))
        return HttpResponse(response.status, body, after, location, unreadable, date)

    def _body(self, response: WireResponse, encoding: str) -> bytes:
        """Return the decompressed body. Raises ValueError if too long or malformed, ResponseLost at the deadline."""
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise ValueError(f"it is encoded as {encoding[:40]!r}, which was not asked for")
        return self._gather(self._until(response.chunks), unzip=encoding.endswith("gzip"))

    def _until(self, chunks: Iterable[bytes]) -> Iterable[bytes]:
        """Yield chunks until the deadline: per-read timeouts would let one byte a second go on without an end."""
        for chunk in chunks:
            if self._deadline.has_passed:
                raise ResponseLost(self._deadline.missed_message)
            yield chunk

    def _gather(self, chunks: Iterable[bytes], *, unzip: bool) -> bytes:
        """Join the chunks, never holding more than the limit, however high the compression ratio."""
        inflate = zlib.decompressobj(wbits=31) if unzip else None
        first, parts = b"", io.BytesIO()
        room = packed_room = self._max_bytes
        for chunk in chunks:
            part = inflate.decompress(chunk, room + 1) if inflate else chunk
            # Compressed chunks may decompress to nothing without end, so their size is limited too.
            packed_room -= len(chunk)
            room -= len(part)
            if room < 0 or packed_room < 0:
                raise ValueError(f"it is longer than {self._max_bytes:,} bytes")
            if inflate and inflate.unused_data:
                raise ValueError("more follows after the end of its compressed text")
            if not first:
                first = part  # the whole of most bodies, which is not copied
                continue
            if not parts.tell():
                parts.write(first)
            parts.write(part)
        if inflate and first and not inflate.eof:
            raise ValueError("its compressed text ends too early")
        return parts.getvalue() if parts.tell() else first


def _checked(base_url: str, *, in_process: bool) -> SplitResult:
    """Split a URL. Raises LmsconfError if it is not safe to send a token to."""
    if wrong := url_problem(base_url, in_process="sandbox" if in_process else None):
        raise LmsconfError(f"the workspace's url cannot be used: {wrong[0]}", hint=wrong[1])
    return urlsplit(base_url)


def _checked_token(text: str) -> str:
    """Return the token without a final newline. Raises LmsconfError, without the token in its message."""
    token = strip_final_newline(text)
    if wrong := token_problem(token):
        hint = "Set LMSCONF_TOKEN, or `token:` of the workspace, to the token, in one line."
        raise LmsconfError(f"the token cannot be used: {wrong}", hint=hint)
    return token


def _timeouts(seconds: float) -> dict[str, float]:
    """Return httpx's timeouts for a request with that many seconds in all."""
    silent = min(_SILENT_SECONDS, seconds)
    return {"connect": min(_CONNECT_SECONDS, seconds), "read": silent, "write": silent, "pool": seconds}


def _wire(
    transport: httpx.BaseTransport | InProcessService | None, parts: SplitResult, deadline: Deadline, max_bytes: int
) -> Wire:
    """Return the wire of a transport. The libraries of each kind are imported only for it: they take long to import."""
    if transport is None:
        from lmsconf.api.transport.network_wire import NetworkWire

        return NetworkWire(parts, deadline, silent=_SILENT_SECONDS, max_bytes=max_bytes)
    if hasattr(transport, "handle_request"):
        from lmsconf.api.transport.httpx_wire import HttpxWire

        return HttpxWire(
            cast("httpx.BaseTransport", transport), f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        )
    return InProcessWire(transport)
