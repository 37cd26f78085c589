"""The wire over the network: connections of the standard library's HTTP client, through the proxy of the environment.

httpx's and httpcore's connections take three times the computing.
"""

from __future__ import annotations

import os
import re
import socket
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Final, NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

from lmsconf.api.transport.certificates import is_tls_refused, load_trust
from lmsconf.api.transport.deadline import Deadline
from lmsconf.api.transport.deadline_socket import DeadlineSocket
from lmsconf.api.transport.wire import DeliveryStatus, WireRequest, WireResponse
from lmsconf.errors import LmsconfError
from lmsconf.support.redaction import redact_secrets
from lmsconf.support.url_rules import is_loopback

_KEPT_SECONDS: Final = 4.0
_PART: Final = 1024 * 1024
"""How many bytes of a body are read at once, at most."""
_OVERHEAD: Final = 1024 * 1024
_MOST_FIELDS: Final = 100
_LONGEST_LINE: Final = 65_536
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?\r?\n")
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*\r?\n")
_LENGTH: Final = re.compile("[0-9]{1,15}")
_WITHOUT_BODY: Final = frozenset({204, 304})
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_PLAIN_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_~%-]+(?:\.[A-Za-z0-9_~%-]+)*)*")
_CUT_OFF: Final = "the connection was closed in the middle of the response"


class NotConnected(OSError):
    """No connection, so nothing was sent."""


class _Proxy(NamedTuple):
    """A proxy that tunnels connections. variable: the environment variable that names it."""

    host: str
    port: int
    headers: Mapping[str, str]
    variable: str


class _Response(HTTPResponse):
    """A response on a connection whose header is whole and unambiguous. fields: lower-case name → value.

    The library's header parser is made for e-mail: it takes longer than the rest of most requests, and takes a header
    that is cut off for a whole one. The body is read by the library.
    """

    def __init__(self, source: DeadlineSocket, method: str) -> None:
        super().__init__(cast(socket.socket, source), method=method)
        self.fields: dict[str, str] = {}
        self._has_no_body = method == "HEAD"

    def begin(self) -> None:
        """Read the header, after those of interim responses (1xx), which may come before it. Raises OSError."""
        while True:
            first = _STATUS_LINE.fullmatch(self._line())
            if first is None:
                raise OSError("the response does not begin as HTTP/1.1 does")
            self.status, self.fields = int(first[2]), self._read_fields()
            if self.status >= 200:
                break
        length, connection = self.fields.get("content-length"), self.fields.get("connection", "").lower()
        coding = self.fields.get("transfer-encoding", "identity").lower()
        if coding not in ("identity", "chunked"):
            raise OSError("the response has a transfer coding that was not asked for")
        self.chunked = coding == "chunked"
        self.chunk_left = None
        self.length = int(length) if length is not None and not self.chunked else None
        if self._has_no_body or self.status in _WITHOUT_BODY:
            self.length, self.chunked = 0, False
        is_kept = first[1] == b"1" or "keep-alive" in connection
        self.will_close = not is_kept or "close" in connection or (self.length is None and not self.chunked)

    def _read_fields(self) -> dict[str, str]:
        """Return the header fields up to the empty line. Raises OSError for one that is malformed."""
        fields: dict[str, str] = {}
        for _ in range(_MOST_FIELDS):
            line = self._line()
            if line in (b"\r\n", b"\n"):
                return fields
            field = _FIELD.fullmatch(line)
            if field is None:
                raise OSError("the header of the response is malformed")
            name, value = field[1].decode("ascii").lower(), field[2].decode("latin-1")
            if name == "content-length" and (fields.get(name, value) != value or not _LENGTH.fullmatch(value)):
                raise OSError("the response has no unambiguous length")
            fields[name] = value
        raise OSError(f"the response has more than {_MOST_FIELDS} header fields")

    def _line(self) -> bytes:
        """Return the next line. Raises OSError if it is cut off, or too long."""
        line = self.fp.readline(_LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise OSError("the header of the response is too long" if len(line) == _LONGEST_LINE else _CUT_OFF)
        return line

    def parts(self) -> Iterator[bytes]:
        """Yield the body as it arrives. Raises OSError for one that is cut off."""
        length, received = self.length, 0
        try:
            while part := self.read(_PART):
                received += len(part)
                yield part
        except HTTPException as error:
            raise OSError(_CUT_OFF) from error
        if length is not None and received < length:  # `read` ends there as if it were whole
            raise OSError(_CUT_OFF)


class NetworkWire:
    """Sends requests to one service. Reads share a connection that is kept alive; a fresh one is closed at its end.

    silent: the most seconds between two parts of a response. max_bytes: limit of a response body. Raises LmsconfError
    for a proxy that cannot be used.
    """

    failures: tuple[type[Exception], ...] = (OSError,)

    def __init__(self, parts: SplitResult, deadline: Deadline, *, silent: float, max_bytes: int) -> None:
        self._host, self._port = parts.hostname or "", parts.port or _DEFAULT_PORTS[parts.scheme]
        self._path = _base_path(parts)
        self._proxy = _proxy_of_environment(parts)
        self.proxy_variable = None if self._proxy is None else self._proxy.variable
        self._trust = load_trust() if parts.scheme == "https" else None
        self._deadline, self._silent = deadline, silent
        # A chunked body has a length before each chunk.
        self._max_bytes = 2 * max_bytes + _OVERHEAD
        self._kept: DeadlineSocket | None = None
        self._idle_since = 0.0

    def send(self, request: WireRequest, *, fresh: bool) -> WireResponse:
        """Send one request; return once the headers have arrived. Raises `failures`."""
        # A service may close a kept-alive connection just as it is reused, which makes a write ambiguous. So each write
        # gets a new connection; a read is simply retried.
        connection = (None if fresh else self._take_kept()) or self._connect(request.timeouts["connect"])
        response = _Response(connection, request.method)

        def close() -> None:
            can_be_kept = not fresh and response.isclosed() and not response.will_close
            response.close()
            if can_be_kept:
                self._kept, self._idle_since = connection, self._deadline.now()
            else:
                connection.close()

        try:
            connection.sendall(self._encode(request))
            response.begin()
        except BaseException:
            close()
            raise

        return WireResponse(response.status, response.fields, response.parts(), close)

    def _encode(self, request: WireRequest) -> bytes:
        """Return a request as it is sent. Its parts hold no line break: `prepare_request` has checked them."""
        line = f"{request.method} {self._path}{request.target} HTTP/1.1\r\n".encode("ascii")
        fields = [b"%s: %s\r\n" % field for field in request.headers]
        return b"".join([line, *fields, b"\r\n", request.body or b""])

    def _take_kept(self) -> DeadlineSocket | None:
        """Return the connection that was kept alive, if it can be used again."""
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        if self._deadline.now() - self._idle_since < _KEPT_SECONDS and not kept.has_input():
            return kept
        kept.close()
        return None

    def _connect(self, seconds: float) -> DeadlineSocket:
        """Return a new connection. Raises NotConnected."""
        host, port = (self._host, self._port) if self._proxy is None else (self._proxy.host, self._proxy.port)
        connection = (
            HTTPConnection(host, port, timeout=seconds)
            if self._trust is None
            else HTTPSConnection(host, port, timeout=seconds, context=self._trust)
        )
        if self._proxy is not None:
            connection.set_tunnel(self._host, self._port, self._proxy.headers)
        try:
            connection.connect()
        except (OSError, HTTPException, UnicodeError) as error:
            connection.close()
            raise NotConnected(str(error) or type(error).__name__) from error
        return DeadlineSocket(connection.sock, self._deadline, silent=self._silent, max_bytes=self._max_bytes)

    def delivery_status(self, error: Exception) -> DeliveryStatus:
        """Return the delivery status of the request that raised the error."""
        if not isinstance(error, NotConnected):
            return DeliveryStatus.AMBIGUOUS
        # A retry would get the same certificate.
        return DeliveryStatus.FINAL if is_tls_refused(error) else DeliveryStatus.NOT_SENT

    def close(self) -> None:
        """Close all connections."""
        if self._kept is not None:
            self._kept.close()


def _base_path(parts: SplitResult) -> str:
    """Return the path of the service's URL without its last slash, normalised as httpx does."""
    path = parts.path.rstrip("/")
    if _PLAIN_PATH.fullmatch(path):
        return path
    from lmsconf.support.httpx_import import httpx  # takes long, and few paths need it

    return httpx.URL(f"{parts.scheme}://{parts.netloc}{path}").raw_path.decode("ascii").rstrip("/")


def _proxy_of_environment(parts: SplitResult) -> _Proxy | None:
    """Return the proxy for a URL; None without one. Raises LmsconfError for one that is not an HTTP proxy."""
    url, variable = _proxy_url(parts)
    if url is None:
        return None
    reason = "it is not a URL"
    with suppress(ValueError):
        proxy = urlsplit(url)
        if proxy.scheme == "http" and proxy.hostname:
            user = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}"
            is_named = proxy.username is not None
            headers = {"Proxy-Authorization": f"Basic {b64encode(user.encode()).decode()}"} if is_named else {}
            return _Proxy(proxy.hostname, proxy.port or _DEFAULT_PORTS["http"], headers, variable)
        reason = f"{proxy.scheme} is not a supported type of proxy"
    # The URL may contain the proxy's password.
    raise LmsconfError(
        f"the proxy that {variable} names cannot be used: {redact_secrets(reason)}",
        hint=f"Set {variable} to http://HOST:PORT, or NO_PROXY={parts.hostname} to go there without a proxy.",
    )


def _proxy_url(parts: SplitResult) -> tuple[str | None, str]:
    """Return the proxy for a URL, None without one, and the name of the variable that sets it."""
    host = parts.hostname or ""
    if is_loopback(host):
        return None, ""
    from urllib.request import getproxies, proxy_bypass  # takes long

    proxies = {} if proxy_bypass(host) else getproxies()
    for scheme in (parts.scheme, "all"):
        if proxy := proxies.get(scheme):
            names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY")
            variable = next((name for name in names if os.environ.get(name)), "the system")
            # As in other programs, a bare host and port in these variables means plain http.
            return (proxy if "://" in proxy else f"http://{proxy}"), variable
    return None, ""
