"""Which of httpx's errors mean that a request never left, and which leave it open.

A write whose fate is open is never repeated blindly, so "not sent" is said only of errors that come before the first
byte. An error that the table lacks, as a later httpx may bring, leaves it open.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from enum import Enum
from typing import Final

import httpx


class DeliveryStatus(Enum):
    """What an error says of the request: NOT_SENT may be tried again, FINAL was not sent and never will be."""

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
"""OpenSSL's codes of the checks a certificate fails, and the way out: its dates, its name, who stands for it."""
FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict, OSError)
"""What a transport may raise: the roots of httpx's errors, and what it lets through of the system's."""


def fate_of(error: Exception) -> DeliveryStatus:
    """What an error says of the request."""
    fate = DELIVERY_BY_ERROR.get(type(error), DeliveryStatus.AMBIGUOUS)
    # A certificate does not change by asking again.
    return DeliveryStatus.FINAL if fate is DeliveryStatus.NOT_SENT and _certificate(error) else fate


def certificate_hint(error: Exception, host: str) -> str | None:
    """Which check the certificate of a host failed, and the way out; None where none stands behind the error."""
    found = _certificate(error)
    if found is None:
        return None
    code = getattr(found, "verify_code", None)
    checked = getattr(found, "verify_message", None) or "it is not valid"
    way_out = next((way for codes, way in _WAYS_OUT if code in codes), "Whoever runs the service must mend it.")
    return f"The certificate of {host} was refused: {checked.rstrip('.')}. {way_out}"


def _certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """The refused certificate that stands behind an error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None
