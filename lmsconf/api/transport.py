"""HTTP: send one request through httpx, within a deadline and a size limit, and tell whether it was delivered.

No redirects, no cookies, only the headers set here; the credential goes to the checked URL alone.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from types import MappingProxyType
from typing import Final, cast
from urllib.parse import SplitResult, urlsplit

import httpx
from msgspec import Struct

from lmsconf import __version__
from lmsconf.errors import LmsconfError
from lmsconf.support.secrets import HIDDEN, escaped_forms, redact_secrets, register_secret
from lmsconf.support.url_rules import is_loopback, strip_final_newline, token_problem, url_problem

URL_NAME: Final = "the workspace's url"
REQUEST_TIMEOUT: Final = 60.0
"""Seconds from connecting to the last byte of a response; at most 10 to connect, and 30 without a byte."""
NOT_SENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
"""Errors before the first byte of a request: a retry is safe. A proxy refuses a connection, not a request."""
NEVER_SENT: Final = (httpx.UnsupportedProtocol,)
"""Errors before the first byte that a retry would meet again. After any other error, a write may have been done."""
FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict, OSError)
"""All that sending may raise: the base classes of httpx's errors, and OSErrors of a transport that was passed in."""
_WAYS_OUT: Final = (
    (("expired", "not yet valid"), "Ask the operator of the service to renew it, and check the clock of this machine."),
    (("mismatch",), "It is issued for another host name: check the workspace's url."),
    (
        ("issuer", "self-signed", "self signed", "first certificate"),
        "If it was issued by your company's own authority, set SSL_CERT_FILE to a PEM file with that authority's "
        "certificate.",
    ),
)
"""Words in OpenSSL's name for the check that a certificate failed, and the hint for each."""
_UNWANTED: Final = re.compile(r"^\[Errno -?\d+\] |\s*\(_ssl\.c:\d+\)|(?<=^Invalid URL in location header): (?s:.*)")
"""Numbers that Python adds to messages, and the part of a Location, perhaps a password, that httpx quotes."""


class NoResponse(Exception):
    """No complete response arrived.

    is_sent: the request may have been sent. final: a retry would fail the same. hint: replaces the default hint.
    """

    status = None
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(self, reason: str, *, is_sent: bool, final: bool = False, hint: str | None = None) -> None:
        super().__init__(reason)
        self.is_sent, self.final, self.hint = is_sent, final, hint


class HttpResponse(Struct, frozen=True):
    """A response. headers: by lower-case name. unreadable: why the body could not be read, if so."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    unreadable: str | None


def _redact_record(record: logging.LogRecord) -> bool:
    """Redact secrets from a log record of httpx or httpcore, which includes headers."""
    record.msg, record.args = redact_secrets(record.getMessage()), ()
    return True


for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy", "socks"))):
    logging.getLogger(_name).addFilter(_redact_record)


class HttpTransport:
    """Connections to one service, with its credential. Thread-safe. Raises LmsconfError for an unsafe URL or token.

    transport: replaces the network, and is not closed. seconds: time limit of one request, from connecting to the last
    byte of the response. max_bytes: size limit of a body, compressed and decompressed. url_name: what messages call the
    URL. clock: monotonic, in seconds.
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
        if wrong := url_problem(base_url, in_process=None if transport is None else "sandbox"):
            raise LmsconfError(f"the workspace's url cannot be used: {wrong[0]}", hint=wrong[1])
        parts = urlsplit(base_url)
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self.host, self.url_name = parts.netloc, url_name
        self._token = strip_final_newline(token)
        if reason := token_problem(self._token):
            raise LmsconfError(
                f"the token cannot be used: {reason}",
                hint="Set LMSCONF_TOKEN, or `token:` of the workspace, to the token, in one line.",
            )
        register_secret(self._token)
        self._headers = {
            "Host": self.host,
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "Accept-Encoding": "gzip",
            "User-Agent": f"lmsconf/{__version__}",
        }
        self._seconds, self._max_bytes, self._clock = seconds, max_bytes, clock
        self._is_own = transport is None
        self._client = _open_client(parts, transport)

    def close(self) -> None:
        """Close the connections. A transport that was passed in stays open."""
        if self._is_own:
            self._client.close()

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
        max_seconds: float = math.inf,
    ) -> HttpResponse:
        """Send one request, once. Raises NoResponse.

        target: path and query below the service's URL. max_seconds: time limit, if less than the default.
        """
        seconds = min(self._seconds, max_seconds)
        until = self._clock() + seconds
        try:
            url = httpx.URL(self.url + target)
        except httpx.InvalidURL as error:
            raise NoResponse(self.redact(str(error)), is_sent=False, final=True) from error
        silent = min(30.0, seconds)
        timeouts = {"connect": min(10.0, seconds), "read": silent, "write": silent, "pool": seconds}
        request = httpx.Request(
            method,
            url,
            headers={
                **self._headers,
                **({} if body is None else {"Content-Type": "application/json"}),
                **(extra_headers or {}),
            },
            content=body,
            extensions={"timeout": timeouts},
        )
        try:
            with closing(self._client.send(request, stream=True)) as response:
                body, unreadable = self._read(response, until, seconds)
                return HttpResponse(response.status_code, body, response.headers, unreadable)
        except FAILURES as error:
            raise self._failure(error) from error

    def _read(self, response: httpx.Response, until: float, seconds: float) -> tuple[bytes, str | None]:
        """Return the decompressed body, or why it cannot be read. Raises NoResponse at the deadline."""
        body = bytearray()

        def check(chunk: bytes) -> None:
            if max(response.num_bytes_downloaded + len(chunk), len(body)) > self._max_bytes:
                raise ValueError(f"it is longer than {self._max_bytes:,} bytes")
            if self._clock() > until:
                raise NoResponse(f"no complete response within {seconds:.3g} s", is_sent=True)

        response.stream = _CheckedStream(cast("httpx.SyncByteStream", response.stream), check)
        try:
            for part in response.iter_bytes():
                body += part
                check(b"")
            return bytes(body), None
        except (ValueError, httpx.DecodingError) as error:
            return b"", str(error)
        finally:
            body.clear()  # `check` is in a cycle of httpx's response and its stream, and would keep it

    def _failure(self, error: Exception) -> NoResponse:
        """Map an error of httpx to ours; one without a message is described by its class name."""
        text = str(error)
        reason = _UNWANTED.sub("", self.redact(text)) or type(error).__name__
        if type(error) in NEVER_SENT:
            return NoResponse(reason, is_sent=False, final=True)
        if type(error) not in NOT_SENT:
            return NoResponse(reason, is_sent=True)
        if hint := _tls_hint(text, self.host):
            # A retry would get the same certificate.
            return NoResponse(reason, is_sent=False, final=True, hint=hint)
        variable = _proxy_variable(urlsplit(self.url)) if self._is_own else None
        return NoResponse(
            reason,
            is_sent=False,
            hint=f"Check the proxy that {variable} names, or set NO_PROXY={self.host} to go there without a proxy."
            if variable
            else None,
        )


class _CheckedStream(httpx.SyncByteStream):
    """A body as it is received. check: called with each chunk.

    Compressed chunks may decompress to nothing without end, and one byte a second never times out.
    """

    def __init__(self, stream: httpx.SyncByteStream, check: Callable[[bytes], None]) -> None:
        self._stream, self._check = stream, check

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._check(chunk)
            yield chunk

    def close(self) -> None:
        self._stream.close()


class _NoCookies(httpx.Cookies):
    """Keeps no cookie, and parses none: a jar that refuses all takes a tenth of a request's time."""

    def extract_cookies(self, response: httpx.Response) -> None:
        """Keep none."""


class _Client(httpx.Client):
    cookies = _NoCookies()  # type: ignore[override]  # nobody sets others


def _open_client(parts: SplitResult, transport: httpx.BaseTransport | None) -> httpx.Client:
    """Return a client for one service. Raises LmsconfError for certificates or a proxy that cannot be used."""
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    pattern = f"https://[{host}]" if ":" in host else f"https://{host}"
    try:
        return _Client(
            transport=transport,
            # Plain http is only for this machine, which is reached without the environment's proxy.
            trust_env=is_secure,
            verify=is_secure,
            mounts={pattern: None} if is_secure and is_loopback(host) else None,
            # Services close idle connections after a few seconds, perhaps just as a write goes out, of which nobody
            # then knows whether it was done.
            limits=httpx.Limits(keepalive_expiry=1.5),
        )
    except OSError as error:
        raise _certificates_error(error) from error
    except (ValueError, ImportError, httpx.InvalidURL) as error:
        variable = _proxy_variable(parts) or "the environment"
        scheme = urlsplit(os.environ.get(variable, "")).scheme
        is_known = scheme in ("", "http", "https", "socks5", "socks5h")
        # The URL may contain the proxy's password.
        why = redact_secrets(str(error)) if is_known else f"{scheme} is not a supported type of proxy"
        raise LmsconfError(
            f"the proxy that {variable} names cannot be used: {why}",
            hint=f"Set {variable} to http://HOST:PORT, or NO_PROXY={host} to go there without a proxy.",
        ) from error


def _certificates_error(error: OSError) -> LmsconfError:
    """Return the error for trusted certificates that cannot be read."""
    name = next((name for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)), None)
    is_of_system = type(error).__module__ == "builtins"
    missing = error.strerror if is_of_system else "it contains no certificates in PEM format"
    of = f"{name}={os.environ[name]}" if name else "the certificates that come with Python's certifi"
    return LmsconfError(
        f"the certificates to trust cannot be read from {of}: {missing}",
        hint=f"Set {name or 'SSL_CERT_FILE'} to a PEM file of the authorities to trust"
        f"{', or unset it to trust the usual ones' if name else ''}.",
    )


def _tls_hint(message: str, host: str) -> str | None:
    """Return which check the certificate of a host failed, and what to do; None if TLS did not cause the error."""
    if "WRONG_VERSION_NUMBER" in message:  # OpenSSL's name for an answer that is not TLS
        return (
            f"No TLS at this port of {host}: check the port of the url, or write http:// for a service on this machine."
        )
    refused = re.search(r"certificate verify failed: (?P<check>.*?)\.?\s*(?:\(_ssl\.c:\d+\))?$", message)
    if refused is None:
        return None
    way_out = next(
        (way for words, way in _WAYS_OUT if any(word in refused["check"] for word in words)),
        "Ask the operator of the service to fix it.",
    )
    return f"The certificate of {host} was refused: {refused['check']}. {way_out}"


def _proxy_variable(parts: SplitResult) -> str | None:
    """Return the environment variable whose proxy requests to a URL go through; None without one."""
    from urllib.request import proxy_bypass

    host = parts.hostname or ""
    if is_loopback(host) or proxy_bypass(host):
        return None
    scheme = f"{parts.scheme}_proxy"
    return next(filter(os.environ.get, (scheme, scheme.upper(), "all_proxy", "ALL_PROXY")), None)
