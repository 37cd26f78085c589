"""The door to httpx: one request out, one answer in, within a time and a size. What its errors mean is in `fate`.

A transport is used without httpx's own client around it: no redirects, no cookies, no headers but those set here.
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
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from lmsconf import __version__
from lmsconf.api.transport.deadline import Deadline, keep
from lmsconf.api.transport.delivery import FAILURES, DeliveryStatus, certificate_hint, fate_of
from lmsconf.errors import LmsconfError
from lmsconf.support.redaction import HIDDEN, forms, keep_secret, redacted
from lmsconf.support.url_rules import bare_token, is_loopback, token_problem, url_problem

URL_SAID = "the workspace's url"
_CONNECT_SECONDS = 10.0
_SILENT_SECONDS = 30.0
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})


class _Redacting(logging.Filter):
    """Takes secrets out of what the libraries below log, headers of answers among it, whoever listens to that."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redacted(record.getMessage()), ()
        return True


_REDACTING: Final = _Redacting()
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(_REDACTING)


class RequestNotSent(Exception):
    """The request never left. `final`: another try would end the same. `hint`: a way out that is not the usual one."""

    def __init__(self, reason: str, *, final: bool = False, hint: str | None = None) -> None:
        super().__init__(reason)
        self.final, self.hint = final, hint


class ResponseLost(Exception):
    """The request may have left, and no whole answer came."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `unreadable` says why there is no body where there should be one; `date`: the service's clock."""

    status: int
    body: bytes
    retry_after: str | None
    location: str | None
    unreadable: str | None
    date: str | None = None


class HttpTransport:
    """One connection to one service, with its credential. Raises LmsconfError for a URL or a token that is not safe.

    seconds: how long one request may take from its first to its last byte. said: where the URL was said, in words.
    clock: seconds that only ever pass.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        transport: httpx.BaseTransport | None,
        seconds: float,
        max_bytes: int,
        said: str = URL_SAID,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = _checked(base_url, in_process=transport is not None)
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.url, self.host, self.said = self._base, parts.netloc, said
        self._token = _checked_token(token)
        keep_secret(self._token)
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
        # A service may hang up on a connection just as it is used again, and then nobody knows whether a write was
        # carried out. So each write has a connection of its own; a read is simply asked again.
        self._fresh = _transport(parts, self._deadline, kept=0) if transport is None else transport
        self._owns_transport = transport is None
        self._seconds = seconds
        self._max_bytes = max_bytes
        self._timeouts = _timeouts(seconds)

    def close(self) -> None:
        """Hangs up. A transport that was passed in stays open."""
        if self._owns_transport:
            self._transport.close()
            self._fresh.close()

    def clean(self, text: str) -> str:
        """The text without the token, which a service may have echoed, and without anything else that is a key."""
        for form in forms(self._token):
            text = text.replace(form, HIDDEN)
        return redacted(text)

    def ask(
        self,
        method: str,
        target: str,
        body: bytes | None,
        extra: Mapping[str, str] | None = None,
        *,
        writes: bool = False,
        within: float = math.inf,
    ) -> Answer:
        """Sends one request, once. Raises RequestNotSent or Lost.

        within: how many seconds it may take, where that is less than what is usual.
        """
        self._deadline.set(min(self._seconds, within))
        timeouts = self._timeouts if within >= self._seconds else _timeouts(within)
        try:
            request = httpx.Request(
                method,
                _url(self._base + target),
                headers=self._headers_of(method, body, extra),
                stream=httpx.ByteStream(body or b""),
                extensions={"timeout": timeouts},
            )
            request.read()  # so that a transport may look at `content`
            response = (self._fresh if writes else self._transport).handle_request(request)
            try:
                return self._answer(response)
            finally:
                response.close()
        except FAILURES as error:
            raise self._failure(error) from error

    def _headers_of(self, method: str, body: bytes | None, extra: Mapping[str, str] | None) -> httpx.Headers:
        """The headers of one request. Those that all have are made once: httpx takes long to look at each."""
        if method in _WITHOUT_BODY and body is None and not extra:
            return self._headers
        length = {} if method in _WITHOUT_BODY and body is None else {"Content-Length": str(len(body or b""))}
        kind = {} if body is None else {"Content-Type": "application/json"}
        return httpx.Headers({**self._headers, **length, **kind, **(extra or {})})

    def _failure(self, error: Exception) -> RequestNotSent | ResponseLost:
        """What an error of httpx means, in words; some have no text of their own."""
        reason, fate = self.clean(str(error)) or type(error).__name__, fate_of(error)
        if fate is DeliveryStatus.AMBIGUOUS:
            return ResponseLost(reason)
        return RequestNotSent(reason, final=fate is DeliveryStatus.FINAL, hint=certificate_hint(error, self.host))

    def _answer(self, response: httpx.Response) -> Answer:
        """The whole answer, once all of it is here."""
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers.raw}
        body, unreadable = b"", None
        try:
            body = self._body(response, headers.get(b"content-encoding", "").strip().lower())
        except (ValueError, zlib.error) as error:
            unreadable = str(error)
        after, location, date = (headers.get(name) for name in (b"retry-after", b"location", b"date"))
        return Answer(response.status_code, body, after, location, unreadable, date)

    def _body(self, response: httpx.Response, encoding: str) -> bytes:
        """The decoded body. Raises ValueError where it is too long or encoded otherwise, Lost when time is up."""
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise ValueError(f"it is encoded as {encoding[:40]!r}, which was not asked for")
        if not isinstance(response.stream, httpx.SyncByteStream):
            raise ValueError("it comes from a transport that is not synchronous")
        return self._gather(self._until(response.stream), unzip=encoding.endswith("gzip"))

    def _until(self, chunks: Iterable[bytes]) -> Iterable[bytes]:
        """The chunks that arrive in time. A timeout alone would let a byte a second go on for ever."""
        for chunk in chunks:
            if self._deadline.is_over:
                raise ResponseLost(self._deadline.missed)
            yield chunk

    def _gather(self, chunks: Iterable[bytes], *, unzip: bool) -> bytes:
        """The chunks as one, never holding more than the limit, however well a small answer was packed."""
        inflate = zlib.decompressobj(wbits=31) if unzip else None
        parts = io.BytesIO()
        room = packed_room = self._max_bytes
        for chunk in chunks:
            part = inflate.decompress(chunk, room + 1) if inflate else chunk
            # A packed text may come to nothing, chunk after chunk, and has no end then either.
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
    """A URL taken apart. Most are asked for again: before a call, after it, and by the next plan."""
    return httpx.URL(text)


def _checked(base_url: str, *, in_process: bool) -> SplitResult:
    """The parts of a URL that is safe to send a token to. Raises LmsconfError."""
    if wrong := url_problem(base_url, in_process="sandbox" if in_process else None):
        raise LmsconfError(f"the workspace's url cannot be used: {wrong[0]}", hint=wrong[1])
    return urlsplit(base_url)


def _checked_token(text: str) -> str:
    """The token without the newline that files end with. It is never shown, whatever is wrong with it."""
    token = bare_token(text)
    if wrong := token_problem(token):
        hint = "Set LMSCONF_TOKEN, or `token:` of the workspace, to the token alone, in one line."
        raise LmsconfError(f"the token cannot be used: {wrong}", hint=hint)
    return token


def _timeouts(seconds: float) -> dict[str, float]:
    """How long each step of a request may take that has so many seconds in all."""
    silent = min(_SILENT_SECONDS, seconds)
    return {"connect": min(_CONNECT_SECONDS, seconds), "read": silent, "write": silent, "pool": seconds}


def _transport(parts: SplitResult, deadline: Deadline, *, kept: int) -> httpx.HTTPTransport:
    """A transport of one connection, kept for the next request or not, through the environment's proxy."""
    proxy, said = _proxy(parts)
    trust = _trust() if parts.scheme == "https" else _no_trust()
    limits = httpx.Limits(max_connections=1, max_keepalive_connections=kept, keepalive_expiry=4.0)
    try:
        transport = httpx.HTTPTransport(verify=trust, limits=limits, proxy=proxy)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        # What httpx says of it may repeat the proxy's password.
        kind = (proxy or "").partition("://")[0]
        reason = "socks needs the package socksio" if isinstance(error, ImportError) else f"{kind} is no kind of proxy"
        raise LmsconfError(
            f"the proxy that {said} names cannot be used: {redacted(reason)}",
            hint=f"Set {said} to http://HOST:PORT, or NO_PROXY={parts.hostname} to go there without a proxy.",
        ) from error
    return keep(transport, deadline)


def _proxy(parts: SplitResult) -> tuple[str | None, str]:
    """The proxy on the way to a host, and where it is named; None: there is none."""
    host, proxies = parts.hostname or "", getproxies()
    if is_loopback(host) or proxy_bypass(host):
        return None, ""
    for scheme in (parts.scheme, "all"):
        if found := proxies.get(scheme):
            names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
            said = next((name for name in names if os.environ.get(name)), "the system")
            # Others who read these variables take a bare host and port for plain http.
            return (found if "://" in found else f"http://{found}"), said
    return None, ""


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that are trusted, read once: that takes longer than a request. Raises LmsconfError."""
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
    """For plain http, where no certificate is ever looked at: trusts none, and costs nothing to make."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
