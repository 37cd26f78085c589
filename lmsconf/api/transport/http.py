"""HTTP transport over httpx: one request, one response, within a deadline and a size limit.

It uses a transport of httpx without its client: no redirects, no cookies, only the headers set here. The module
`delivery_status` classifies their errors.
"""

from __future__ import annotations

import io
import logging
import math
import os
import ssl
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

from lmsconf import __version__
from lmsconf.api.transport.deadline import Deadline, DeadlineNetwork
from lmsconf.api.transport.delivery_status import FAILURES, DeliveryStatus, certificate_hint, classify_delivery
from lmsconf.api.transport.pool_transport import PoolTransport, connection_pool
from lmsconf.errors import LmsconfError
from lmsconf.lazy_dataclass import dataclass
from lmsconf.support.httpx_import import httpx
from lmsconf.support.redaction import HIDDEN, escaped_forms, redact_secrets, register_secret
from lmsconf.support.url_rules import is_loopback, strip_final_newline, token_problem, url_problem

URL_NAME = "the workspace's url"
_CONNECT_SECONDS = 10.0
_SILENT_SECONDS = 30.0
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})


class _Redacting(logging.Filter):
    """Redact secrets from the log records of httpx and httpcore, which include response headers."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact_secrets(record.getMessage()), ()
        return True


_REDACTING: Final = _Redacting()
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(_REDACTING)


class RequestNotSent(Exception):
    """The request was not sent. final: a retry would fail the same. hint: replaces the default hint."""

    def __init__(self, reason: str, *, final: bool = False, hint: str | None = None) -> None:
        super().__init__(reason)
        self.final, self.hint = final, hint


class ResponseLost(Exception):
    """The request may have been sent, and no complete response arrived."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
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
        transport: httpx.BaseTransport | None,
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
        self._headers = httpx.Headers(
            {
                "Host": parts.netloc,
                "Authorization": f"Bearer {self._token}",
                "Accept": "application/json",
                "Accept-Encoding": "gzip",
                "User-Agent": f"lmsconf/{__version__}",
            }
        )
        self._deadline = Deadline(clock)
        self._transport = _transport(parts, self._deadline, kept=1) if transport is None else transport
        # A service may close a kept-alive connection just as it is reused, which makes a write ambiguous. So each write
        # gets a new connection; a read is simply retried.
        self._fresh = _transport(parts, self._deadline, kept=0) if transport is None else transport
        self._owns_transport = transport is None
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._timeouts = _timeouts(seconds)

    def close(self) -> None:
        """Close the connections. A transport that was passed in stays open."""
        if self._owns_transport:
            self._transport.close()
            self._fresh.close()

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
        writes: bool = False,
        max_seconds: float = math.inf,
    ) -> HttpResponse:
        """Send one request, once. Raises RequestNotSent or ResponseLost.

        target: path and query below the service's URL. max_seconds: time limit, if less than the default.
        """
        self._deadline.start(min(self._seconds, max_seconds))
        timeouts = self._timeouts if max_seconds >= self._seconds else _timeouts(max_seconds)
        try:
            request = httpx.Request(
                method,
                _url(self._base + target),
                headers=self._headers_of(method, body, extra_headers),
                stream=httpx.ByteStream(body or b""),
                extensions={"timeout": timeouts},
            )
            request.read()  # gives `content` to transports that read it
            response = (self._fresh if writes else self._transport).handle_request(request)
            try:
                return self._answer(response)
            finally:
                response.close()
        except FAILURES as error:
            raise self._failure(error) from error

    def _headers_of(self, method: str, body: bytes | None, extra: Mapping[str, str] | None) -> httpx.Headers:
        """Return the headers of one request; the common ones are built once, since httpx parses headers slowly."""
        if method in _WITHOUT_BODY and body is None and not extra:
            return self._headers
        length = {} if method in _WITHOUT_BODY and body is None else {"Content-Length": str(len(body or b""))}
        kind = {} if body is None else {"Content-Type": "application/json"}
        return httpx.Headers({**self._headers, **length, **kind, **(extra or {})})

    def _failure(self, error: Exception) -> RequestNotSent | ResponseLost:
        """Map an httpx error to ours; one without a message is described by its class name."""
        reason, fate = self.redact(str(error)) or type(error).__name__, classify_delivery(error)
        if fate is DeliveryStatus.AMBIGUOUS:
            return ResponseLost(reason)
        return RequestNotSent(reason, final=fate is DeliveryStatus.FINAL, hint=certificate_hint(error, self.host))

    def _answer(self, response: httpx.Response) -> HttpResponse:
        """Read the response to its end. Raises ResponseLost at the deadline."""
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers.raw}
        body, unreadable = b"", None
        try:
            body = self._body(response, headers.get(b"content-encoding", "").strip().lower())
        except (ValueError, zlib.error) as error:
            unreadable = str(error)
        after, location, date = (headers.get(name) for name in (b"retry-after", b"location", b"date"))
        return HttpResponse(response.status_code, body, after, location, unreadable, date)

    def _body(self, response: httpx.Response, encoding: str) -> bytes:
        """Return the decompressed body. Raises ValueError if too long or malformed, ResponseLost at the deadline."""
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise ValueError(f"it is encoded as {encoding[:40]!r}, which was not asked for")
        if not isinstance(response.stream, httpx.SyncByteStream):
            raise ValueError("it comes from a transport that is not synchronous")
        return self._gather(self._until(response.stream), unzip=encoding.endswith("gzip"))

    def _until(self, chunks: Iterable[bytes]) -> Iterable[bytes]:
        """Yield chunks until the deadline: per-read timeouts would let one byte a second go on for ever."""
        for chunk in chunks:
            if self._deadline.has_passed:
                raise ResponseLost(self._deadline.missed_message)
            yield chunk

    def _gather(self, chunks: Iterable[bytes], *, unzip: bool) -> bytes:
        """Join the chunks, never holding more than the limit, however high the compression ratio."""
        inflate = zlib.decompressobj(wbits=31) if unzip else None
        parts = io.BytesIO()
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
            parts.write(part)
        if inflate and parts.tell() and not inflate.eof:
            raise ValueError("its compressed text ends too early")
        return parts.getvalue()


@lru_cache(maxsize=2048)
def _url(text: str) -> httpx.URL:
    """Parse a URL, cached: most are requested again, before and after a write and by the next plan."""
    return httpx.URL(text)


def _checked(base_url: str, *, in_process: bool) -> SplitResult:
    """Split a URL. Raises LmsconfError if it is not safe to send a token to."""
    if wrong := url_problem(base_url, in_process="sandbox" if in_process else None):
        raise LmsconfError(f"the workspace's url cannot be used: {wrong[0]}", hint=wrong[1])
    return urlsplit(base_url)


def _checked_token(text: str) -> str:
    """Return the token without a final newline. Raises LmsconfError, without the token in its message."""
    token = strip_final_newline(text)
    if wrong := token_problem(token):
        hint = "Set LMSCONF_TOKEN, or `token:` of the workspace, to the token alone, in one line."
        raise LmsconfError(f"the token cannot be used: {wrong}", hint=hint)
    return token


def _timeouts(seconds: float) -> dict[str, float]:
    """Return httpx's timeouts for a request with that many seconds in all."""
    silent = min(_SILENT_SECONDS, seconds)
    return {"connect": min(_CONNECT_SECONDS, seconds), "read": silent, "write": silent, "pool": seconds}


def _transport(parts: SplitResult, deadline: Deadline, *, kept: int) -> httpx.BaseTransport:
    """Return a transport of one connection, through the proxy of the environment. kept: 1 for keep-alive, else 0."""
    proxy, variable = _proxy(parts)
    trust = _trust() if parts.scheme == "https" else _no_trust()
    try:
        return PoolTransport(connection_pool(proxy, trust, DeadlineNetwork(deadline), keepalive_connections=kept))
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # The message of httpx may contain the proxy's password.
        kind = (proxy or "").partition("://")[0]
        reason = "socks needs the package socksio" if isinstance(error, ImportError) else f"{kind} is no kind of proxy"
        raise LmsconfError(
            f"the proxy that {variable} names cannot be used: {redact_secrets(reason)}",
            hint=f"Set {variable} to http://HOST:PORT, or NO_PROXY={parts.hostname} to go there without a proxy.",
        ) from error


def _proxy(parts: SplitResult) -> tuple[str | None, str]:
    """Return the proxy for a host, None without one, and the name of the variable that sets it."""
    host, proxies = parts.hostname or "", getproxies()
    if is_loopback(host) or proxy_bypass(host):
        return None, ""
    for scheme in (parts.scheme, "all"):
        if proxy := proxies.get(scheme):
            names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
            variable = next((name for name in names if os.environ.get(name)), "the system")
            # As in other programs, a bare host and port in these variables means plain http.
            return (proxy if "://" in proxy else f"http://{proxy}"), variable
    return None, ""


@cache
def _trust() -> ssl.SSLContext:
    """Load the trusted certificates, once: it takes longer than a request. Raises LmsconfError."""
    try:
        return httpx.create_ssl_context()
    except OSError as error:
        name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), None)
        missing = "no certificates in PEM format are in it" if isinstance(error, ssl.SSLError) else error.strerror
        of = f"{name}={os.environ[name]}" if name else "the certificates that come with Python's certifi"
        raise LmsconfError(
            f"the certificates to trust cannot be read from {of}: {missing}",
            hint=f"Set {name or 'SSL_CERT_FILE'} to a PEM file of the authorities to trust"
            f"{', or unset it to trust the usual ones' if name else ''}.",
        ) from error


@cache
def _no_trust() -> ssl.SSLContext:
    """Return an SSL context for plain http, which is never used: it trusts nothing and is cheap to make."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
