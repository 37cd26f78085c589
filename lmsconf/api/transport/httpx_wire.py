"""The wire over a transport of httpx that was passed in, and what httpx's errors say of a request.

It uses the transport without httpx's client: no redirects, no cookies, only the headers set here.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from lmsconf.api.transport.certificates import is_tls_refused
from lmsconf.api.transport.wire import DeliveryStatus, WireRequest, WireResponse
from lmsconf.support.httpx_import import httpx
from lmsconf.support.redaction import redact_secrets

DELIVERY_BY_ERROR: Final[Mapping[type[Exception], DeliveryStatus]] = {
    httpx.ConnectError: DeliveryStatus.NOT_SENT,
    httpx.ConnectTimeout: DeliveryStatus.NOT_SENT,
    httpx.PoolTimeout: DeliveryStatus.NOT_SENT,
    httpx.UnsupportedProtocol: DeliveryStatus.FINAL,
    httpx.InvalidURL: DeliveryStatus.FINAL,
    httpx.HTTPError: DeliveryStatus.AMBIGUOUS,
    httpx.RequestError: DeliveryStatus.AMBIGUOUS,
    httpx.TransportError: DeliveryStatus.AMBIGUOUS,
    httpx.TimeoutException: DeliveryStatus.AMBIGUOUS,
    httpx.ReadTimeout: DeliveryStatus.AMBIGUOUS,
    httpx.WriteTimeout: DeliveryStatus.AMBIGUOUS,
    httpx.NetworkError: DeliveryStatus.AMBIGUOUS,
    httpx.ReadError: DeliveryStatus.AMBIGUOUS,
    httpx.WriteError: DeliveryStatus.AMBIGUOUS,
    httpx.CloseError: DeliveryStatus.AMBIGUOUS,
    httpx.ProxyError: DeliveryStatus.AMBIGUOUS,
    httpx.ProtocolError: DeliveryStatus.AMBIGUOUS,
    httpx.LocalProtocolError: DeliveryStatus.AMBIGUOUS,
    httpx.RemoteProtocolError: DeliveryStatus.AMBIGUOUS,
    httpx.DecodingError: DeliveryStatus.AMBIGUOUS,
    httpx.TooManyRedirects: DeliveryStatus.AMBIGUOUS,
    httpx.HTTPStatusError: DeliveryStatus.AMBIGUOUS,
    httpx.CookieConflict: DeliveryStatus.AMBIGUOUS,
    httpx.StreamError: DeliveryStatus.AMBIGUOUS,
    httpx.StreamConsumed: DeliveryStatus.AMBIGUOUS,
    httpx.StreamClosed: DeliveryStatus.AMBIGUOUS,
    httpx.ResponseNotRead: DeliveryStatus.AMBIGUOUS,
    httpx.RequestNotRead: DeliveryStatus.AMBIGUOUS,
}
"""An error missing from the table, as of a later httpx, is ambiguous."""
FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict, OSError)
"""All that a transport may raise: the base classes of httpx's errors, and the OSErrors that it does not wrap."""


class _Redacting(logging.Filter):
    """Redact secrets from the log records of httpx and httpcore, which include response headers."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact_secrets(record.getMessage()), ()
        return True


_REDACTING: Final = _Redacting()
for _name in ("httpx", *(f"httpcore.{part}" for part in ("connection", "http11", "proxy"))):
    logging.getLogger(_name).addFilter(_REDACTING)


class HttpxWire:
    """Sends requests through a transport of httpx, which it does not close. base: the service's URL."""

    failures: tuple[type[Exception], ...] = FAILURES
    proxy_variable: str | None = None

    def __init__(self, transport: httpx.BaseTransport, base: str) -> None:
        self._transport, self._base = transport, base

    def send(self, request: WireRequest, *, fresh: bool) -> WireResponse:
        """Send one request; return once the headers have arrived. Raises `failures`."""
        asked = httpx.Request(
            request.method,
            _url(self._base + request.target),
            headers=list(request.headers),
            stream=httpx.ByteStream(request.body or b""),
            extensions={"timeout": dict(request.timeouts)},
        )
        asked.read()  # gives `content` to transports that read it
        response = self._transport.handle_request(asked)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers.raw}
        return WireResponse(response.status_code, headers, _chunks(response), response.close)

    def delivery_status(self, error: Exception) -> DeliveryStatus:
        """Return the delivery status of the request that raised the error."""
        return classify_delivery(error)

    def close(self) -> None:
        """Do nothing: the transport belongs to the one that made it."""


def classify_delivery(error: Exception) -> DeliveryStatus:
    """Return the delivery status of the request that raised the error."""
    status = DELIVERY_BY_ERROR.get(type(error), DeliveryStatus.AMBIGUOUS)
    # A retry would get the same certificate.
    return DeliveryStatus.FINAL if status is DeliveryStatus.NOT_SENT and is_tls_refused(error) else status


@lru_cache(maxsize=2048)
def _url(text: str) -> httpx.URL:
    """Parse a URL, cached: most are requested again, before and after a write and by the next plan."""
    return httpx.URL(text)


def _chunks(response: httpx.Response) -> Iterator[bytes]:
    """Yield the body as it arrives. Raises ValueError for a response that can only be awaited."""
    if not isinstance(response.stream, httpx.SyncByteStream):
        raise ValueError("it comes from a transport that is not synchronous")
    yield from response.stream
