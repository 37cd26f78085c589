"""A service that is gone ends a run, within two minutes and with few requests more than were wanted."""

import math
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest
from waiting import HANGS

from lmsconf.api.client import Client, Exchange
from lmsconf.api.concurrent_requests import WorkerPool
from lmsconf.api.retry_and_rate_limit import Outage, RateLimiter, RetryPolicy
from lmsconf.errors import ApiError, ExitCode, Unreachable
from lmsconf.support.files import read_guide_page

from .network import Answering, Clock, Network, Scripted, VirtualThreads, client, one_call, said

MINUTES_2 = 120.0
Death = Callable[[Clock], Answering]


class Group:
    """Some clients of one run, on a clock of their own. death: how the service answers them, if not by script."""

    def __init__(self, *script: Scripted, death: Death | None = None) -> None:
        self.clock = Clock()
        self.network = Network(*script, answering=death(self.clock) if death else None)
        self.retry = self.clock.retry()
        self.outage = Outage(self.retry)

    def client(self, **options: Any) -> Client:
        return client(network=self.network, retry=self.retry, outage=self.outage, **options)

    def read(self) -> object:
        return one_call(self.client())


def silent(patience: str, most: float = math.inf) -> Death:
    """Says nothing until the client's patience with silence, or with the whole request, is over."""

    def death(clock: Clock) -> Answering:
        def answer(request: httpx.Request) -> httpx.Response:
            clock.time += min(most, request.extensions["timeout"][patience])
            raise httpx.ReadTimeout("timed out")

        return answer

    return death


def refuses(_: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


def says(status: int, **headers: str) -> Death:
    return lambda _: lambda _: said(status, None, **headers)


DEATHS: dict[str, Death] = {
    "hanging": silent("read"),
    "dripping": silent("pool", 60.0),
    "refusing": lambda _: refuses,
    "503 for ever": says(503),
    "503 for ever, come back in a second": says(503, Retry_After="1"),
    "429 for ever": says(429),
    "429 for ever, come back at once": says(429, Retry_After="0"),
    "429 for ever, come back in a minute": says(429, Retry_After="60"),
    "429 for ever, come back tomorrow": says(429, Retry_After="86400"),
    "500 for ever": says(500),
}


@pytest.mark.parametrize("name", DEATHS)
def test_a_dead_service_ends_a_run_in_two_minutes(name: str) -> None:
    """However it is dead, forty reads one after the other end as Unreachable, exit 8, and hardly any of them is sent.

    The one sent first fails as it does alone; the others, if at all, while there is still hope.
    """
    group = Group(death=DEATHS[name])
    start = group.clock.time
    for _ in range(40):
        with pytest.raises(Unreachable) as caught:
            group.read()
        assert caught.value.exit == ExitCode.UNREACHABLE
    assert group.clock.time - start <= MINUTES_2
    assert len(group.network.requests) <= 20


@pytest.mark.parametrize("name", ["refusing", "503 for ever"])
def test_many_clients_send_little_more_than_one(name: str) -> None:
    """Eight clients side by side stop together: at most each one's usual tries, whatever is waiting."""
    group = Group(death=DEATHS[name])
    gate = threading.Barrier(8, timeout=HANGS)

    def job(by: Client) -> None:
        with suppress(threading.BrokenBarrierError):
            gate.wait()
        with suppress(Unreachable):
            one_call(by)

    with WorkerPool(group.client, parallelism=8) as pool:
        for one in [pool.submit(job) for _ in range(8)]:
            one.result()
        gate.abort()
        for one in [pool.submit(job) for _ in range(200)]:
            one.result()
    assert len(group.network.requests) <= 8 * 4 + 8


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("luck", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    ("status", "headers"), [(429, {}), (429, {"Retry_After": "0"}), (429, {"Retry_After": "60"}), (503, {})]
)
def test_nothing_but_too_many_ends_many_clients_in_two_minutes(
    status: int, headers: dict[str, str], luck: float
) -> None:
    """Sixteen side by side, of a service that answered before, end after one to two minutes and some tries each."""
    clock = VirtualThreads()
    network = Network(said(200, {"userIds": []}), said(status, None, **headers))
    start = clock.time
    errors = clock.read(network, times=100, width=16, random_number=lambda: luck)
    assert 59.0 <= clock.time - start <= MINUTES_2
    assert len(errors) == 99
    assert all("--max-rate" in str(error.hint) for error in errors)
    assert any("rejected earlier requests as too many" in error.message for error in errors)
    assert len(network.requests) <= 16 * 24


def test_what_was_not_sent_says_so() -> None:
    """The error of a call that was never sent tells why, and claims no tries."""
    group = Group(httpx.ConnectError("refused"))
    with pytest.raises(Unreachable, match="refused"):
        group.read()
    with pytest.raises(Unreachable, match="GET /groups/g/members at sandbox: not sent: the service") as caught:
        group.read()
    assert "tried" not in caught.value.message
    with pytest.raises(Unreachable, match="not sent"):
        group.client().call("manual-groups.rename", path={"groupId": "g"}, body={"name": "A"})
    assert len(group.network.requests) == 4


@pytest.mark.parametrize("failure", [500, 503])
@pytest.mark.parametrize("alive", [200, 400, 403, 404, 409])
def test_any_answer_is_a_sign_of_life(alive: int, failure: int) -> None:
    """Trouble is over with the first answer that is about the request, be it a refusal: then it counts from nothing."""
    trouble, life = said(failure), said(alive, {"userIds": []})
    group = Group(*([trouble] * 3 + [life]) * 20)
    for _ in range(20):
        with suppress(ApiError):
            group.read()
    assert len(group.network.requests) == 80


def test_calls_under_way_have_what_is_left() -> None:
    """Each try may take no longer than the run has left, so that the last one ends in time."""
    group = Group(death=DEATHS["dripping"])
    with pytest.raises(Unreachable):
        group.read()
    given = [request.extensions["timeout"]["pool"] for request in group.network.requests]
    assert given[0] == 60.0
    assert given[1] == pytest.approx(MINUTES_2 - 60.0 - 0.5)
    assert len(given) == 2


def test_a_run_that_has_ended_waits_for_nothing() -> None:
    """A thread that it leaves behind stops to wait for a service that asked for it, and sends nothing more."""
    group = Group(said(429, None, Retry_After="3000"))
    waited, told = list[float](), list[Exchange]()

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        group.outage.stop()

    with pytest.raises(Unreachable):
        one_call(group.client(told=told, rate_limiter=RateLimiter(clock=group.clock, sleep=sleep)))
    assert (waited, len(group.network.requests), len(told)) == ([60.0], 1, 1)


def test_after_as_long_again_a_program_may_begin_anew() -> None:
    """A script that runs on tries again later, and finds the service back."""
    group = Group(*[httpx.ConnectError("refused")] * 4, said(200, {"userIds": []}))
    with pytest.raises(Unreachable):
        group.read()
    group.clock.time += MINUTES_2
    assert group.read() == {"userIds": []}


def test_the_bound_is_the_one_that_is_told() -> None:
    """The guide speaks of two minutes, and so does the class that holds the number."""
    assert RetryPolicy().max_outage == MINUTES_2
    assert "two minutes" in str(RetryPolicy.__doc__)
    assert "two minutes after" in read_guide_page("limits")


def test_a_shorter_pause_ends_no_outage_sooner() -> None:
    """The service asked for ten minutes, and a second call for one: the run has what the longer pause gave it."""
    clock = Clock()
    outage = Outage(clock.retry())
    outage.record_failure(clock.time, retry_after=600.0)
    left = outage.seconds_left()
    outage.record_failure(clock.time, retry_after=61.0)
    assert outage.seconds_left() == left
