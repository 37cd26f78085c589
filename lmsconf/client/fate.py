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
FAILURES: Final = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, httpx.CookieConflict, OSError)
"""What a transport may raise: the roots of httpx's errors, and what it lets through of the system's."""


def fate_of(error: Exception) -> Fate:
    """What an error says of the request."""
    fate = FATES.get(type(error), Fate.AMBIGUOUS)
    return Fate.FINAL if fate is Fate.NOT_SENT and _is_certificate(error) else fate


def _is_certificate(error: BaseException | None) -> bool:
    """Whether a certificate stands behind an error: it does not change by asking again."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
