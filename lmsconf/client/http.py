"""The door to httpx: one request out, one answer in, within a time and a size. What its errors mean is in `fate`.

A transport is used without httpx's own client around it: no redirects, no cookies, no headers but those set here.
"""

from __future__ import annotations

import math
import re
import ssl
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from lmsconf import __version__
from lmsconf.client.deadline import Deadline, keep
from lmsconf.client.fate import FAILURES, Fate, fate_of
from lmsconf.errors import LmsconfError
from lmsconf.redact import HIDDEN, forms, keep_secret, redacted

MAX_BYTES = 32 * 1024 * 1024
_CONNECT_SECONDS = 10.0
_SILENT_SECONDS = 30.0
_WITHOUT_BODY = frozenset({"GET", "HEAD", "DELETE"})
_UNFIT_URL = re.compile(r"[^\x21-\x7e]|[\\@?#]")
_UNFIT_TOKEN = re.compile(r"[^\x21-\x7e]")


class NotSent(Exception):
    """The request never left. `final`: another try would end the same."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class Lost(Exception):
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


class Door:
    """One connection to one service, with its credential. Raises LmsconfError for a URL or a token that is not safe.

    seconds: how long one request may take from its first to its last byte.
    """

    def __init__(
        self, base_url: str, token: str, *, transport: httpx.BaseTransport | None, seconds: float, max_bytes: int
    ) -> None:
        parts = _checked(base_url, in_process=transport is not None)
        self._base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.host = parts.netloc
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
        self._deadline = Deadline()
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
        """Sends one request, once. Raises NotSent or Lost.

        within: how many seconds it may take, where that is less than what is usual.
        """
        until = self._deadline.set(min(self._seconds, within))
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
                return self._answer(response, until)
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

    def _failure(self, error: Exception) -> NotSent | Lost:
        """What an error of httpx means, in words; some have no text of their own."""
        reason, fate = self.clean(str(error)) or type(error).__name__, fate_of(error)
        return Lost(reason) if fate is Fate.AMBIGUOUS else NotSent(reason, final=fate is Fate.FINAL)

    def _answer(self, response: httpx.Response, until: float) -> Answer:
        """The whole answer, once all of it is here."""
        headers = {name.lower(): value.decode("latin-1") for name, value in response.headers.raw}
        body, unreadable = b"", None
        try:
            body = self._body(response, headers.get(b"content-encoding", "").strip().lower(), until)
        except (ValueError, zlib.error) as error:
            unreadable = str(error)
        after, location, date = (headers.get(name) for name in (b"retry-after", b"location", b"date"))
        return Answer(response.status_code, body, after, location, unreadable, date)

    def _body(self, response: httpx.Response, encoding: str, until: float) -> bytes:
        """The decoded body. Raises ValueError where it is too long or encoded otherwise, Lost when time is up."""
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise ValueError(f"it is encoded as {encoding[:40]!r}, which was not asked for")
        if not isinstance(response.stream, httpx.SyncByteStream):
            raise ValueError("it comes from a transport that is not synchronous")
        return self._gather(self._until(response.stream, until), unzip=encoding.endswith("gzip"))

    def _until(self, chunks: Iterable[bytes], until: float) -> Iterable[bytes]:
        """The chunks that arrive in time. A timeout alone would let a byte a second go on for ever."""
        for chunk in chunks:
            if time.monotonic() > until:
                raise Lost(self._deadline.missed)
            yield chunk

    def _gather(self, chunks: Iterable[bytes], *, unzip: bool) -> bytes:
        """The chunks as one, never holding more than the limit, however well a small answer was packed."""
        inflate = zlib.decompressobj(wbits=31) if unzip else None
        parts: list[bytes] = []
        room = self._max_bytes
        for chunk in chunks:
            part = inflate.decompress(chunk, room + 1) if inflate else chunk
            room -= len(part)
            if room < 0:
                raise ValueError(f"it is longer than {self._max_bytes:,} bytes")
            parts.append(part)
        if inflate and parts and not inflate.eof:
            raise ValueError("its compressed text ends too early")
        return b"".join(parts)


@lru_cache(maxsize=2048)
def _url(text: str) -> httpx.URL:
    """A URL taken apart. Most are asked for again: before a call, after it, and by the next plan."""
    return httpx.URL(text)


def _checked(base_url: str, *, in_process: bool) -> SplitResult:
    """The parts of a URL that is safe to send a token to. What it says is shown only where it holds no password."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _bad_url("it is not a URL") from None
    if _UNFIT_URL.search(base_url):
        raise _bad_url("it holds a character that has no place in it, or a user, a query or a fragment")
    if not host or port == 0:
        raise _bad_url("it names no host")
    stays_here = _is_loopback(host) or (in_process and host == "sandbox")
    if parts.scheme == "https" or (parts.scheme == "http" and stays_here):
        return parts
    raise _bad_url(f"{parts.scheme or 'no scheme'} to {host} would show the token to everybody on the way")


def _bad_url(reason: str) -> LmsconfError:
    return LmsconfError(
        f"the workspace's url cannot be used: {reason}",
        hint="Write https://host/path; plain http goes only to this machine; a host beyond ASCII is written as xn--….",
    )


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _checked_token(token: str) -> str:
    """The token without the newline that files end with. It is never shown, whatever is wrong with it."""
    stripped = token.removesuffix("\n").removesuffix("\r")
    if not stripped:
        raise LmsconfError("the token is empty", hint="Set LMSCONF_TOKEN, or `token:` of the workspace.")
    if unfit := _UNFIT_TOKEN.search(stripped):
        raise LmsconfError(
            f"character {unfit.start() + 1} of the token cannot be part of one",
            hint="A token is one line of letters, digits and punctuation, without blanks.",
        )
    return stripped


def _timeouts(seconds: float) -> dict[str, float]:
    """How long each step of a request may take that has so many seconds in all."""
    silent = min(_SILENT_SECONDS, seconds)
    return {"connect": min(_CONNECT_SECONDS, seconds), "read": silent, "write": silent, "pool": seconds}


def _transport(parts: SplitResult, deadline: Deadline, *, kept: int) -> httpx.HTTPTransport:
    """A transport of one connection, kept for the next request or not, through the environment's proxy."""
    host = parts.hostname or ""
    proxies = {} if _is_loopback(host) or proxy_bypass(host) else getproxies()
    transport = httpx.HTTPTransport(
        verify=_trust() if parts.scheme == "https" else _no_trust(),
        limits=httpx.Limits(max_connections=1, max_keepalive_connections=kept, keepalive_expiry=4.0),
        proxy=proxies.get(parts.scheme) or proxies.get("all"),
    )
    return keep(transport, deadline)


@cache
def _trust() -> ssl.SSLContext:
    """The certificates that are trusted, read once: that takes longer than a request."""
    return httpx.create_ssl_context()


@cache
def _no_trust() -> ssl.SSLContext:
    """For plain http, where no certificate is ever looked at: trusts none, and costs nothing to make."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
