"""What is tried again, and after how long."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

import httpx
import pytest
from texts import listed_cases

from lmsconf.api.client import Client
from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.api.transport import FAILURES, NEVER_SENT, NOT_SENT
from lmsconf.errors import ApiError, LmsconfError, Unreachable, WriteOutcomeUnknown

from .network import CANARY, Clock, Network, client, one_call, raw, said

FINE = said(200, {"userIds": []})


def times(*script: httpx.Response | Exception, writes: bool = False, clock: Clock | None = None) -> int:
    """How many times a read or a write was sent."""
    network = Network(*script)
    with suppress(ApiError):
        one_call(client(network=network, clock=clock), writes=writes)
    return len(network.requests)


LATER = (None, "0", "1", "Tue, 14 Nov 2023 22:13:25 GMT")


@pytest.mark.parametrize(
    ("statuses", "retry_after", "reads", "writes"),
    [
        ((500, 502, 504), LATER, 2, 1),  # behind a gateway that failed, the write may have arrived
        ((503,), (None,), 2, 1),
        ((503,), LATER[1:], 2, 2),
        ((429,), LATER, 2, 2),
        ((301, 400, 401, 403, 404, 501), LATER, 1, 1),
    ],
    ids=["failed", "perhaps done", "not done", "too many", "refused"],
)
def test_a_write_that_may_have_been_done_is_never_repeated(
    statuses: tuple[int, ...], retry_after: tuple[str | None, ...], reads: int, writes: int
) -> None:
    """A read is sent again after what passes; a write only after 429, or 503 with a Retry-After: later, not perhaps."""
    for status, asked in product(statuses, retry_after):
        answer = said(status, None, **({} if asked is None else {"Retry_After": asked}))
        assert (times(answer, FINE), times(answer, FINE, writes=True)) == (reads, writes), (status, asked)


def test_too_many_is_tried_again_as_long_as_patience_lasts() -> None:
    """A service that says 429 lives: bad luck in the jitter uses up nothing, and it ends within two minutes."""
    for luck in (0.0, 0.5, 1.0):
        clock, network = Clock(), Network(said(429))
        by = Client(
            "http://sandbox", CANARY, transport=network, retry=clock.retry(random_number=lambda luck=luck: luck)
        )
        with pytest.raises(Unreachable, match="answered 429") as caught:
            by.call("manual-groups.members", path={"groupId": "g"})
        assert "--max-rate" in str(caught.value.hint)
        assert 85.0 <= clock.time - 1_000.0 <= 120.0
        assert len(network.requests) <= 25
    assert times(*[said(429)] * 12, FINE, writes=True) == 13


def test_at_once_is_believed_once() -> None:
    """Who came back at once as it was told and was refused again comes later each time."""
    retry = Clock().retry()
    assert [retry.wait_before_retry(tried, 0.0, "0", rate_limited=True) for tried in (1, 2, 3, 9)] == [
        0.0,
        0.5,
        1.0,
        10.0,
    ]


def test_waits_grow_with_jitter() -> None:
    """A read is tried four times; the longest wait doubles with each try, and chance takes up to half of it."""
    clock = Clock()
    assert [times(said(status), clock=clock) for status in (500, 502, 503, 504)] == [4] * 4
    assert clock.waits[:3] == [0.5, 1.0, 2.0]
    assert RetryPolicy(random_number=lambda: 0.25).wait_before_retry(3, 0.0) == 1.25


@listed_cases("header", "seconds")
def test_retry_after_is_heeded_within_reason(header: str | None, seconds: float) -> None:
    """Seconds or a date, up to an hour; longer is taken for a minute, and what cannot be read for nothing."""
    assert Clock().retry(max_total_wait=100.0).wait_before_retry(1, 0.0, header) == seconds


@pytest.mark.parametrize(("asked", "waits"), [("30", 3), ("40", 2), ("45", 2), ("46", 1)])
def test_patience_is_bounded(asked: str, waits: int) -> None:
    """However long the service asks to wait, a minute and a half in all is the end, and the end is Unreachable."""
    clock = Clock()
    with pytest.raises(Unreachable, match=rf"tried {waits + 1} times"):
        client(said(429, None, Retry_After=asked), clock=clock).call("users.list")
    assert clock.waits == [float(asked)] * waits


@pytest.mark.parametrize(
    ("status", "has_responded", "retry_after", "is_limited"),
    [
        (429, False, None, True),
        (503, False, None, False),
        (503, True, None, True),
        (503, False, "5", True),
        (502, True, "5", False),
    ],
)
def test_what_limits_the_rate(status: int, has_responded: bool, retry_after: str | None, is_limited: bool) -> None:
    """429, and 503 from a service that has answered before or says when it will again."""
    policy = RetryPolicy()
    assert policy.is_rate_limited(status, has_ever_responded=has_responded, retry_after=retry_after) is is_limited


def test_a_long_wait_that_the_service_asks_for_is_waited() -> None:
    """Five minutes, and then ten: the answer after them counts, whatever a run without such a word would wait."""
    clock = Clock()
    assert times(said(429, None, Retry_After="300"), said(503, None, Retry_After="600"), FINE, clock=clock) == 3
    assert clock.time - 1_000.0 == pytest.approx(900.0)


def test_an_hour_is_the_end_of_long_waits() -> None:
    """A service that asks for twenty minutes again and again is waited for three times, and then the run ends."""
    clock = Clock()
    with pytest.raises(Unreachable, match=r"tried \d times\) and asks to wait 20 minutes"):
        client(said(429, None, Retry_After="1200"), clock=clock).call("users.list")
    assert clock.time - 1_000.0 == pytest.approx(3_600.0)


@pytest.mark.parametrize(("asked", "checks"), [("30", 0), ("300", 1)])
def test_before_a_call_goes_out_after_a_long_wait_it_can_be_stopped(asked: str, checks: int) -> None:
    """A lock may have been lost within minutes: who sends is asked once more, and may say no."""
    for stops in (False, True):
        network, asked_again = Network(said(429, None, Retry_After=asked), raw(200)), list[str]()

        def resume(stops: bool = stops, asked_again: list[str] = asked_again) -> None:
            asked_again.append("again")
            if stops:
                raise LmsconfError("the lock is lost")

        by = client(network=network)
        deletes = by.spec["manual-groups.delete"]
        with suppress(LmsconfError):
            by.send("DELETE", deletes.fill_path({"groupId": "g"}), operation=deletes.id, on_resume=resume)
        assert len(asked_again) == checks
        assert len(network.requests) == (1 if stops and checks else 2)


# What an error of httpx means for a request: not sent, final, or open.


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


def sent(error: Exception, *, writes: bool) -> tuple[ApiError, int]:
    """The error that a read or a write ends in, and how often it was sent."""
    network = Network(error)
    with pytest.raises(ApiError) as caught:
        one_call(client(network=network), writes=writes)
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
    (read, reads), (write, writes) = sent(made(kind), writes=False), sent(made(kind), writes=True)
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

    error, times = sent(NewConnectError("new"), writes=True)
    assert (type(error), times) == (WriteOutcomeUnknown, 1)
