"""Classify httpx's errors by whether the request was sent.

An ambiguous write is never retried blindly, so only errors that occur before the first byte count as not sent. An error
missing from the table, as of a later httpx, is ambiguous.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from enum import Enum
from typing import Final

from lmsconf.support.httpx_import import httpx


class DeliveryStatus(Enum):
    """NOT_SENT: a retry is safe. FINAL: not sent, and a retry would fail the same. AMBIGUOUS: may have been sent."""

    NOT_SENT = "not sent"
    FINAL = "final"
    AMBIGUOUS = "ambiguous"


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
_WAYS_OUT: Final = (
    ((9, 10), "Whoever runs the service must renew it; see also whether the clock of this machine is right."),
    ((62, 64), "It is made out to another name: check the workspace's url."),
    (
        (2, 18, 19, 20, 21),
        "If a company's own authority made it, set SSL_CERT_FILE to a PEM file with that authority's certificate.",
    ),
)
"""OpenSSL's verify codes and the hint for each: validity dates, host name, issuer."""
FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict, OSError)
"""All that a transport may raise: the base classes of httpx's errors, and the OSErrors that it does not wrap."""


def classify_delivery(error: Exception) -> DeliveryStatus:
    """Return the delivery status of the request that raised the error."""
    fate = DELIVERY_BY_ERROR.get(type(error), DeliveryStatus.AMBIGUOUS)
    # A retry would get the same certificate.
    return DeliveryStatus.FINAL if fate is DeliveryStatus.NOT_SENT and _certificate(error) else fate


def certificate_hint(error: Exception, host: str) -> str | None:
    """Return which check the certificate of a host failed, and what to do; None if no certificate caused the error."""
    certificate_error = _certificate(error)
    if certificate_error is None:
        return None
    code = getattr(certificate_error, "verify_code", None)
    checked = getattr(certificate_error, "verify_message", None) or "it is not valid"
    way_out = next((way for codes, way in _WAYS_OUT if code in codes), "Whoever runs the service must mend it.")
    return f"The certificate of {host} was refused: {checked.rstrip('.')}. {way_out}"


def _certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return the certificate error in the chain of causes, if any."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None
