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


class Fate(Enum):
    """What an error says of the request: NOT_SENT may be tried again, FINAL was not sent and never will be."""

    NOT_SENT = "not sent"
    FINAL = "final"
    AMBIGUOUS = "ambiguous"


FATES: Final[Mapping[type[Exception], Fate]] = {
    httpx.ConnectError: Fate.NOT_SENT,
    httpx.ConnectTimeout: Fate.NOT_SENT,
    httpx.PoolTimeout: Fate.NOT_SENT,
    httpx.UnsupportedProtocol: Fate.FINAL,
    httpx.InvalidURL: Fate.FINAL,
    httpx.HTTPError: Fate.AMBIGUOUS,
    httpx.RequestError: Fate.AMBIGUOUS,
    httpx.TransportError: Fate.AMBIGUOUS,
    httpx.TimeoutException: Fate.AMBIGUOUS,
    httpx.ReadTimeout: Fate.AMBIGUOUS,
    httpx.WriteTimeout: Fate.AMBIGUOUS,
    httpx.NetworkError: Fate.AMBIGUOUS,
    httpx.ReadError: Fate.AMBIGUOUS,
    httpx.WriteError: Fate.AMBIGUOUS,
    httpx.CloseError: Fate.AMBIGUOUS,
    httpx.ProxyError: Fate.AMBIGUOUS,
    httpx.ProtocolError: Fate.AMBIGUOUS,
    httpx.LocalProtocolError: Fate.AMBIGUOUS,
    httpx.RemoteProtocolError: Fate.AMBIGUOUS,
    httpx.DecodingError: Fate.AMBIGUOUS,
    httpx.TooManyRedirects: Fate.AMBIGUOUS,
    httpx.HTTPStatusError: Fate.AMBIGUOUS,
    httpx.CookieConflict: Fate.AMBIGUOUS,
    httpx.StreamError: Fate.AMBIGUOUS,
    httpx.StreamConsumed: Fate.AMBIGUOUS,
    httpx.StreamClosed: Fate.AMBIGUOUS,
    httpx.ResponseNotRead: Fate.AMBIGUOUS,
    httpx.RequestNotRead: Fate.AMBIGUOUS,
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


def fate_of(error: Exception) -> Fate:
    """What an error says of the request."""
    fate = FATES.get(type(error), Fate.AMBIGUOUS)
    # A certificate does not change by asking again.
    return Fate.FINAL if fate is Fate.NOT_SENT and _certificate(error) else fate


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
