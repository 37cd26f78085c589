"""A service that limits the rate and never says when to come again is read to the end, nearly as fast as it lets."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from functools import partial

import httpx
import pytest

from lmsconf.api.client import Client
from lmsconf.api.retry import Outage, RateLimiter

from .network import CANARY, Network, VirtualThreads, said

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


@pytest.mark.sampled
@pytest.mark.parametrize("name", LIMITERS)
@pytest.mark.parametrize("rate", [4.0, 10.0])
@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize(("status", "seed"), [(429, 1), (429, 2), (503, 3)])
def test_a_limit_without_a_word_on_when_is_kept_to(name: str, rate: float, width: int, status: int, seed: int) -> None:
    """Three hundred reads and no failure, in at most 1.6 times as long as the limit needs, with few refusals."""
    took, refused = read_behind(lambda clock: LIMITERS[name](clock, rate), width=width, status=status, seed=seed)
    assert took <= 1.6 * CALLS / rate
    assert refused <= CALLS / 5


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
