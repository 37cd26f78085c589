"""One rate for all clients: none until the service says "too many", then learnt from what it answered."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise

import httpx
import pytest

from lmsconf.api.client import Client
from lmsconf.api.retry import Outage, RateLimiter
from lmsconf.errors import ApiError

from .network import CANARY, Clock, Network, VirtualThreads, client, said

FINE = said(200, {"userIds": []})


def rate_limiter(clock: Clock, limit: float | None = None) -> RateLimiter:
    return RateLimiter(limit, clock=clock, sleep=clock.sleep)


def answered(limiter: RateLimiter, clock: Clock, rate: float, times: int) -> None:
    """The service answers so many requests, so many a second."""
    for _ in range(times):
        limiter.record_response()
        clock.time += 1 / rate


@pytest.mark.parametrize("limit", [0.5, 5.0, 200.0])
def test_a_limit_holds_from_the_first_request(limit: float) -> None:
    """No two requests are closer than the limit allows, also after an idle while."""
    clock = Clock()
    limited = rate_limiter(clock, limit)
    times = []
    for number in range(20):
        limited.wait_turn(lambda: 60.0)
        times.append(clock.time)
        if number == 10:
            clock.time += 30.0
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) == pytest.approx(1 / limit)
    assert len([gap for gap in gaps if gap > 1 / limit + 1e-9]) == 1


@pytest.mark.parametrize(("told", "waited"), [(None, 1 / 20), (0.0, 0.0), (3.0, 3.0)])
def test_after_a_refusal_the_next_request_waits(told: float | None, waited: float) -> None:
    """As long as the service says; where it says nothing, for one turn at the rate that was learnt."""
    clock = Clock()
    learning = rate_limiter(clock)
    learning.record_rate_limited(clock.time, told)
    start = clock.time
    assert learning.rate() == 20.0
    assert learning.wait_turn(lambda: 60.0)
    assert clock.time - start == pytest.approx(waited)


def test_all_wait_for_the_time_that_one_was_told() -> None:
    """After a Retry-After of seven seconds nobody sends before, and then one after the other."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 40.0, 200)
    start = clock.time
    learning.record_rate_limited(start, 7.0)
    times = []
    for _ in range(3):
        learning.wait_turn(lambda: 60.0)
        times.append(clock.time - start)
        learning.record_response()
    assert times == pytest.approx([7.0, 7.05, 7.1], rel=0.01)


@pytest.mark.parametrize("answers", [0, 3])
def test_a_refusal_among_the_first_requests_does_not_stall_a_run(answers: int) -> None:
    """Where too little was answered to halve its rate, twenty a second is where it begins, not one."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 1.0, answers)
    learning.record_rate_limited(clock.time, None)
    assert learning.rate() == 20.0


@pytest.mark.parametrize("left", [3.0, 7.0])
def test_nobody_waits_in_vain_for_a_time_that_the_service_named(left: float) -> None:
    """A Retry-After that takes all that is left of the run's budget, or more, is not waited for."""
    clock = Clock()
    told = rate_limiter(clock)
    told.record_rate_limited(clock.time, 7.0)
    assert not told.wait_turn(lambda: left)
    assert clock.waits == []


@pytest.mark.parametrize("status", [429, 503])
def test_clients_report_to_their_rate_limiter(status: int) -> None:
    """A client that is refused slows the others of its run down."""
    clock = Clock()
    shared = rate_limiter(clock)
    told = Client("http://sandbox", CANARY, transport=Network(said(status, None, Retry_After="4"), FINE),
                  retry=clock.retry(), rate_limiter=shared)  # fmt: skip
    once = clock.retry(max_attempts=1)
    other = Client("http://sandbox", CANARY, transport=Network(FINE), retry=once, rate_limiter=shared)
    told.call("manual-groups.members", path={"groupId": "g"})
    other.call("manual-groups.members", path={"groupId": "g"})
    assert clock.waits == [4.0, pytest.approx(1 / 30, rel=0.05)]


def test_an_error_of_one_call_slows_nobody() -> None:
    """A 500 is about one call; only "too many" and "unavailable" are about the rate."""
    clock = Clock()
    shared = rate_limiter(clock)
    with suppress(ApiError):
        client(said(500), clock=clock).call("manual-groups.members", path={"groupId": "g"})
    assert shared.rate() is None


# A service that limits the rate and never says when to come again is read to the end, nearly as fast as it lets.


CALLS = 300
Limiter = Callable[[], bool]
"""Whether one more request is let through now."""


def bucket(clock: VirtualThreads, rate: float, burst: float) -> Limiter:
    """A token bucket."""
    held = [burst, clock.time]

    def let() -> bool:
        held[:] = [min(burst, held[0] + (clock.time - held[1]) * rate), clock.time]
        if held[0] < 1:
            return False
        held[0] -= 1
        return True

    return let


def window(clock: VirtualThreads, rate: float, seconds: float) -> Limiter:
    """At most so many in any stretch of so many seconds; what was refused does not count."""
    times: deque[float] = deque()

    def let() -> bool:
        while times and clock.time - times[0] >= seconds:
            times.popleft()
        if len(times) >= rate * seconds:
            return False
        times.append(clock.time)
        return True

    return let


LIMITERS: dict[str, Callable[[VirtualThreads, float], Limiter]] = {
    "a bucket of one": lambda clock, rate: bucket(clock, rate, 1.0),
    "a bucket of a second": lambda clock, rate: bucket(clock, rate, rate),
    "a window of a second": lambda clock, rate: window(clock, rate, 1.0),
    "a window of ten seconds": lambda clock, rate: window(clock, rate, 10.0),
}


@pytest.mark.sampled(day=24, gate=4)
@pytest.mark.parametrize("name", LIMITERS)
@pytest.mark.parametrize("rate", [4.0, 10.0])
@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize(("status", "seed"), [(429, 1), (429, 2), (503, 3)])
def test_a_limit_without_a_word_on_when_is_kept_to(name: str, rate: float, width: int, status: int, seed: int) -> None:
    """Three hundred reads and no failure, in at most 1.6 times as long as the limit needs, with few refusals."""
    took, refused = read_behind(lambda clock: LIMITERS[name](clock, rate), width=width, status=status, seed=seed)
    assert took <= 1.6 * CALLS / rate
    assert refused <= CALLS / 5


@pytest.mark.sampled
@pytest.mark.parametrize("asks", [True, False], ids=["with Retry-After", "without"])
@pytest.mark.parametrize(
    ("rate", "seconds"), [(10.0, 1.0), (2_000 / 3_600, 180.0)], ids=["10 a second", "2,000 an hour"]
)
def test_a_bucket_is_emptied_as_fast_as_it_fills(rate: float, seconds: float, asks: bool) -> None:
    """Of a bucket that holds what comes in so long: at most 1.1 times as long as the limit needs, and few refused."""
    took, refused = read_behind(lambda clock: bucket(clock, rate, rate * seconds), width=8, rate=rate if asks else None)
    assert took <= 1.1 * CALLS / rate
    assert refused <= CALLS / 6


def read_behind(
    limiter: Callable[[VirtualThreads], Limiter],
    *,
    width: int,
    status: int = 429,
    seed: int = 1,
    rate: float | None = None,
) -> tuple[float, int]:
    """The seconds that all reads take, and how many are refused. rate: in a Retry-After, in whole seconds."""
    clock = VirtualThreads(seed)
    let = limiter(clock)
    refused: list[float] = []
    headers = {} if rate is None else {"Retry_After": str(math.ceil(1 / rate))}

    def answer(_: httpx.Request) -> httpx.Response:
        fine = let()
        clock.sleep(0.02)
        if not fine:
            refused.append(clock.time)
        return said(200, {"userIds": []}) if fine else said(status, None, **headers)

    network, retry = Network(answering=answer), clock.retry()
    todo = iter(range(CALLS))

    def worker(rate_limiter: RateLimiter, outage: Outage) -> None:
        with Client(
            "http://sandbox",
            CANARY,
            transport=network,
            retry=retry,
            rate_limiter=rate_limiter,
            outage=outage,
        ) as by:
            for _ in todo:
                assert by.call("manual-groups.members", path={"groupId": "g"}) == {"userIds": []}

    outage = Outage(retry)
    outage.set_concurrency(width)
    jobs = [partial(worker, RateLimiter(clock=clock, sleep=clock.sleep), outage)] * width
    start = clock.time
    clock.run(jobs)
    return clock.time - start, len(refused)
