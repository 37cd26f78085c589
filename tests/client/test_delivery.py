"""What an error of httpx means for a request: not sent, final, or open."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from lmsconf.api.transport import FAILURES, NEVER_SENT, NOT_SENT
from lmsconf.errors import ApiError, Unreachable, WriteOutcomeUnknown

from .network import Network, client, one_call

BEFORE_THE_FIRST_BYTE = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"}
NEVER = {"UnsupportedProtocol"}
OPEN = {
    *("HTTPError", "RequestError", "TransportError", "TimeoutException", "ReadTimeout", "WriteTimeout"),
    *("NetworkError", "ReadError", "WriteError", "CloseError"),
    *("ProtocolError", "LocalProtocolError", "RemoteProtocolError", "DecodingError", "TooManyRedirects"),
    *("HTTPStatusError", "CookieConflict", "InvalidURL"),  # an invalid URL, of where a response redirects to
    *("StreamError", "StreamConsumed", "StreamClosed", "ResponseNotRead", "RequestNotRead"),
}
"""After these the service may have carried the request out."""


def below(kind: type[Exception]) -> Iterator[type[Exception]]:
    """An exception class and all that derive from it, of httpx alone."""
    if kind.__module__.startswith("httpx"):
        yield kind
    for child in kind.__subclasses__():
        yield from below(child)


def all_of_httpx() -> list[type[Exception]]:
    """Every exception class of httpx, exported or derived from one that is."""
    named = [kind for kind in vars(httpx).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    return sorted({child for kind in named for child in below(kind)}, key=lambda kind: kind.__name__)


def made(kind: type[Exception]) -> Exception:
    """An instance; some of httpx's take no text, and some want a request."""
    error = kind.__new__(kind)
    Exception.__init__(error, "gone")
    if isinstance(error, httpx.HTTPError):
        error._request = None
    return error


def sent(what: str, error: Exception) -> tuple[ApiError, int]:
    """The error that a read or a write ends in, and how often it was sent."""
    network = Network(error)
    with pytest.raises(ApiError) as caught:
        one_call(client(network=network), writes=what == "write")
    return caught.value, len(network.requests)


def test_every_error_of_httpx_is_looked_at() -> None:
    """Each of httpx's exception classes is listed here, so that a new one is looked at by somebody."""
    assert {kind.__name__ for kind in all_of_httpx()} == BEFORE_THE_FIRST_BYTE | NEVER | OPEN
    assert {kind.__name__ for kind in NOT_SENT} == BEFORE_THE_FIRST_BYTE
    assert {kind.__name__ for kind in NEVER_SENT} == NEVER
    assert all(issubclass(kind, FAILURES) for kind in all_of_httpx())


@pytest.mark.parametrize("kind", [*all_of_httpx(), OSError, ConnectionResetError], ids=lambda kind: kind.__name__)
def test_no_error_of_a_transport_slips_by(kind: type[Exception]) -> None:
    """A write is repeated only where it was surely not sent; elsewhere it is WriteOutcomeUnknown. The cause is kept."""
    (read, reads), (write, writes) = sent("read", made(kind)), sent("write", made(kind))
    ambiguous = kind.__name__ not in BEFORE_THE_FIRST_BYTE | NEVER
    assert type(read) is Unreachable
    assert type(write) is (WriteOutcomeUnknown if ambiguous else Unreachable)
    assert (reads, writes) == (1 if kind.__name__ in NEVER else 4, 4 if kind.__name__ in BEFORE_THE_FIRST_BYTE else 1)
    assert type(write.__cause__) is kind
    assert "POST /groups at sandbox: gone" in write.message


def test_an_error_that_is_not_listed_is_open() -> None:
    """An error of a later httpx may mean that the request was carried out, whatever it derives from."""

    class NewConnectError(httpx.ConnectError):
        pass

    error, times = sent("write", NewConnectError("new"))
    assert (type(error), times) == (WriteOutcomeUnknown, 1)


def test_a_certificate_is_final() -> None:
    """A certificate that does not fit will not fit the next time either."""
    error, times = sent("write", httpx.ConnectError("certificate verify failed: self-signed certificate"))
    assert (type(error), times) == (Unreachable, 1)
