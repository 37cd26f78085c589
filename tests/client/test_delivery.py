"""What an error of httpx means for a request: not sent, final, or open."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from lmsconf.api.client import Client
from lmsconf.api.transport.deadline import Deadline
from lmsconf.api.transport.httpx_wire import DELIVERY_BY_ERROR, FAILURES, classify_delivery
from lmsconf.api.transport.in_process_wire import InProcessResponse
from lmsconf.api.transport.network_wire import NetworkWire, NotConnected
from lmsconf.api.transport.wire import DeliveryStatus
from lmsconf.errors import ApiError, Unreachable, WriteOutcomeUnknown

from .network import CANARY, Network, client, one_call

BEFORE_THE_FIRST_BYTE = {"ConnectError", "ConnectTimeout", "PoolTimeout"}
NEVER = {"UnsupportedProtocol", "InvalidURL"}


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


def test_the_table_is_whole() -> None:
    """Each of httpx's exception classes is in the table, so that a new one is looked at by somebody."""
    assert set(all_of_httpx()) == set(DELIVERY_BY_ERROR)
    assert {
        kind.__name__ for kind, fate in DELIVERY_BY_ERROR.items() if fate is DeliveryStatus.NOT_SENT
    } == BEFORE_THE_FIRST_BYTE
    assert {kind.__name__ for kind, fate in DELIVERY_BY_ERROR.items() if fate is DeliveryStatus.FINAL} == NEVER
    assert all(issubclass(kind, FAILURES) for kind in DELIVERY_BY_ERROR)


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


def test_what_the_table_lacks_is_open() -> None:
    """An error of a later httpx may mean that the request was carried out, whatever it derives from."""

    class NewConnectError(httpx.ConnectError):
        pass

    assert classify_delivery(NewConnectError("new")) is DeliveryStatus.AMBIGUOUS


def test_a_certificate_is_final() -> None:
    """A certificate that does not fit will not fit the next time either, however deep the error hides it."""
    wrong, between = httpx.ConnectError("bad certificate"), OSError("tls")
    between.__context__ = ssl.SSLCertVerificationError("bad certificate")
    wrong.__cause__ = between
    assert classify_delivery(wrong) is DeliveryStatus.FINAL
    wire = NetworkWire(urlsplit("http://localhost"), Deadline(), silent=1.0, max_bytes=1)
    refused = NotConnected("refused")
    assert wire.delivery_status(refused) is DeliveryStatus.NOT_SENT
    refused.__cause__ = between
    assert wire.delivery_status(refused) is DeliveryStatus.FINAL
    assert sent("write", wrong)[1] == 1


@pytest.mark.parametrize(
    "kind", [OSError, TimeoutError, ConnectionResetError, ssl.SSLError], ids=lambda kind: kind.__name__
)
def test_every_error_after_the_connection_is_open(kind: type[Exception]) -> None:
    """Once there is a connection, the service may have carried the request out."""
    wire = NetworkWire(urlsplit("http://localhost"), Deadline(), silent=1.0, max_bytes=1)
    assert issubclass(kind, wire.failures)
    assert wire.delivery_status(kind("gone")) is DeliveryStatus.AMBIGUOUS


class Silent:
    """A service in this process whose answer is lost."""

    def answer(self, *_: object) -> InProcessResponse:
        raise ConnectionError("the answer is lost")


def test_a_lost_answer_of_a_service_in_this_process_is_open() -> None:
    """It may have done the write, which is neither repeated nor told as not sent."""
    with pytest.raises(WriteOutcomeUnknown):
        Client("http://sandbox", CANARY, transport=Silent()).call("manual-groups.create", body={"name": "A"})
