"""One rate for all clients: none until the service says "too many", then learnt from what it answered."""

import json
import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
from flow.shell import lmsconf as run
from rate_limited import bucket
from waiting import HANGS, awaited

import lmsconf
from lmsconf.api.client import Client
from lmsconf.api.concurrent_requests import ConcurrentReader, WorkerPool
from lmsconf.api.response_limits import (
    FACTOR,
    ListingLimit,
    fan_out_memory_limit,
    listing_limit,
    refuse_oversized_body,
)
from lmsconf.api.retry_and_rate_limit import RateLimiter
from lmsconf.api.spec.operations import USERS
from lmsconf.errors import Rejected
from lmsconf.model.calls import ListOperation, ReadArguments, RunProgress

from .network import Answering, Clock, Network, VirtualThreads, client, one_call, pages, raw, said

FINE = said(200, {"userIds": []})


def rate_limiter(clock: Clock, limit: float | None = None) -> RateLimiter:
    return RateLimiter(limit, clock=clock, sleep=clock.sleep)


def answered(limiter: RateLimiter, clock: Clock, rate: float, times: int) -> None:
    """The service answers so many requests, so many a second."""
    for _ in range(times):
        limiter.record_response(clock.time)
        clock.time += 1 / rate


def test_a_pause_that_was_asked_for_is_no_slow_rate() -> None:
    """After ten minutes of Retry-After, the rate that is told is the one at which requests are answered since."""
    clock = Clock()
    limited = rate_limiter(clock)
    limited.record_rate_limited(clock.time, 600.0)
    clock.time += 600.0
    answered(limited, clock, 10.0, 50)
    status = limited.status()
    assert status is not None
    assert status.rate == pytest.approx(10.0, rel=0.1)


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


@pytest.mark.parametrize("answers", [0, 3])
@pytest.mark.parametrize(("told", "waited"), [(None, 1 / 20), (0.0, 0.0), (3.0, 3.0)])
def test_after_a_refusal_the_next_request_waits(told: float | None, waited: float, answers: int) -> None:
    """As long as the service says; else for one turn at 20 a second, if too little was answered to halve its rate."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 1.0, answers)
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
        learning.record_response(clock.time)
    assert times == pytest.approx([7.0, 7.05, 7.1], rel=0.01)


@pytest.mark.parametrize("left", [3.0, 7.0])
def test_nobody_waits_in_vain_for_a_time_that_the_service_named(left: float) -> None:
    """A Retry-After that takes all that is left of the run's budget, or more, is not waited for."""
    clock = Clock()
    told = rate_limiter(clock)
    told.record_rate_limited(clock.time, 7.0)
    assert not told.wait_turn(lambda: left)
    assert clock.waits == []


@pytest.mark.parametrize(
    ("answer", "waits"),
    [
        (said(429, None, Retry_After="4"), [4.0, pytest.approx(1 / 30, rel=0.05)]),
        (said(503, None, Retry_After="4"), [4.0, pytest.approx(1 / 30, rel=0.05)]),
        (said(500), [0.5]),
    ],
    ids=[429, 503, 500],
)
def test_clients_report_to_their_rate_limiter(answer: httpx.Response, waits: list[float]) -> None:
    """A client that is refused as too many slows the others of its run down; an error of one call slows nobody."""
    clock = Clock()
    shared = rate_limiter(clock)
    one_call(client(answer, FINE, clock=clock, rate_limiter=shared))
    one_call(client(FINE, clock=clock, rate_limiter=shared))
    assert clock.waits == waits


# A service that limits the rate and never says when to come again is read to the end, nearly as fast as it lets.


CALLS = 300
Limit = Callable[[VirtualThreads], Callable[[], float]]
"""How long one more request has to wait now: 0 where it is let through."""


def window(clock: VirtualThreads, rate: float, seconds: float) -> Callable[[], float]:
    """At most so many in any stretch of so many seconds; what was refused does not count."""
    times: deque[float] = deque()

    def wait() -> float:
        while times and clock.time - times[0] >= seconds:
            times.popleft()
        if len(times) >= rate * seconds:
            return seconds - (clock.time - times[0])
        times.append(clock.time)
        return 0.0

    return wait


LIMITS: dict[str, Callable[[VirtualThreads, float], Callable[[], float]]] = {
    "a bucket of one": lambda clock, rate: bucket(clock, rate, 1.0),
    "a bucket of a second": lambda clock, rate: bucket(clock, rate, rate),
    "a window of a second": lambda clock, rate: window(clock, rate, 1.0),
    "a window of ten seconds": lambda clock, rate: window(clock, rate, 10.0),
}


@pytest.mark.sampled(day=72, gate=4)
@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("rate", [4.0, 10.0])
@pytest.mark.parametrize("width", [4, 16])
@pytest.mark.parametrize(("status", "seed"), [(429, 1), (429, 2), (503, 3)])
def test_a_limit_without_a_word_on_when_is_kept_to(name: str, rate: float, width: int, status: int, seed: int) -> None:
    """Three hundred reads and no failure, in at most 1.6 times as long as the limit needs, with few refusals."""
    took, refused = read_behind(lambda clock: LIMITS[name](clock, rate), width=width, status=status, seed=seed)
    assert took <= 1.6 * CALLS / rate
    assert refused <= CALLS / 5


@pytest.mark.sampled(daily=False)
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
    limit: Limit, *, width: int, status: int = 429, seed: int = 1, rate: float | None = None
) -> tuple[float, int]:
    """The seconds that all reads take, and how many are refused. rate: in a Retry-After, in whole seconds."""
    clock = VirtualThreads(seed)
    wait, start, refused = limit(clock), clock.time, list[float]()
    headers = {} if rate is None else {"Retry_After": str(math.ceil(1 / rate))}

    def answer(_: httpx.Request) -> httpx.Response:
        is_refused = wait() > 0
        clock.sleep(0.02)
        if is_refused:
            refused.append(clock.time)
        return said(status, None, **headers) if is_refused else FINE

    assert clock.read(Network(answering=answer), times=CALLS, width=width) == []
    return clock.time - start, len(refused)


# The worker pool and the reader over it: side by side, and never a write.


def echo(request: httpx.Request) -> httpx.Response:
    """Answers with the path that was asked for."""
    return said(200, {"userIds": [request.url.path]})


def members(*groups: str) -> list[ReadArguments]:
    """Requests for the members of these groups."""
    return [({"groupId": group}, {}) for group in groups]


@pytest.mark.parametrize("operation", [one.id for one in client(raw(200)).spec.operations.values() if one.writes])
def test_nothing_can_be_written_through_a_reader(operation: str) -> None:
    """Every operation that writes is refused by every way of reading, before anything is sent."""
    network = Network(raw(200))
    with WorkerPool(lambda: client(network=network), parallelism=8) as pool:
        reader = ConcurrentReader(pool)
        for attempt in (
            lambda: reader.get(operation),
            lambda: reader.each(operation, [({}, {})]),
            lambda: reader.rows(ListOperation(operation, "users", "userId")),
        ):
            with pytest.raises(ValueError, match="is a write, and this client is read-only"):
                attempt()
    assert network.requests == []


def test_after_a_failure_no_more_of_a_fan_out_is_sent() -> None:
    """The error is raised at once, and what has not begun never begins."""
    network = Network(answering=lambda request: said(404) if "/3/" in request.url.path else echo(request))
    pool = WorkerPool(lambda: client(network=network), parallelism=1)
    with pool, pytest.raises(Rejected, match="/groups/3/members"):
        ConcurrentReader(pool).each("manual-groups.members", members(*map(str, range(2_000))))
    assert len(network.requests) < 2_000


def test_a_failure_of_a_fan_out_is_raised_while_others_are_under_way() -> None:
    """Nobody waits for an answer that is not wanted any more."""
    begun, raised, waited = threading.Event(), threading.Event(), list[bool]()

    def answering(request: httpx.Request) -> httpx.Response:
        if "/1/" in request.url.path:
            awaited(begun)
            return said(404)
        begun.set()
        waited.append(raised.wait(HANGS))
        return echo(request)

    with WorkerPool(lambda: client(network=Network(answering=answering)), parallelism=2) as pool:
        with pytest.raises(Rejected, match="/groups/1/members"):
            ConcurrentReader(pool).each("manual-groups.members", members("0", "1"))
        raised.set()
    assert waited == [True]


def test_a_page_waits_for_few_of_a_fan_out() -> None:
    """Of a fan-out at most two requests for each worker are queued, and what else is asked for comes after those."""
    order: list[str] = []
    asked, opened = threading.Event(), threading.Event()

    def answering(request: httpx.Request) -> httpx.Response:
        order.append(request.url.path)
        asked.set()
        awaited(opened)
        return echo(request)

    with WorkerPool(lambda: client(network=Network(answering=answering)), parallelism=1) as pool:
        reader = ConcurrentReader(pool)
        fan_out = threading.Thread(
            target=reader.each, args=("manual-groups.members", members(*map(str, range(20)))), daemon=True
        )
        fan_out.start()
        awaited(asked)
        page = pool.submit(lambda by: by.call("manual-groups.members", path={"groupId": "page"}))
        opened.set()
        page.result(HANGS)
        fan_out.join(HANGS)
    assert order.index("/groups/page/members") <= 3
    assert len(order) == 21


def test_the_total_counts_pages_before_they_are_asked_for_and_never_falls() -> None:
    """A first page that counts 2,500 rows makes 25 requests known; none are taken back where the listing ends early."""
    for rows in (2_500, 700):
        told: list[RunProgress] = []
        answer = pages("users", "userId", map(str, range(rows)), total="matchCount")

        def counted(request: httpx.Request, answer: Answering = answer) -> httpx.Response:
            return said(200, json.loads(answer(request).content) | {"matchCount": 2_500})

        with WorkerPool(
            lambda: client(network=Network(answering=counted)), parallelism=8, progress=told.append
        ) as pool:
            ConcurrentReader(pool).rows(USERS)
        totals = [now.total for now in told]
        assert totals == sorted(totals)
        assert 25 in totals[:2]
        assert told[-1].done == told[-1].total


def test_a_crew_that_is_abandoned_ends_at_once() -> None:
    """After an interrupt, what has not begun is cancelled and nobody waits for what runs."""
    begun, opened, waiting = threading.Event(), threading.Event(), list[Future[None]]()

    def job(_: Client) -> None:
        begun.set()
        awaited(opened)

    def interrupted() -> None:
        with WorkerPool(lambda: client(raw(200)), parallelism=1) as pool:
            pool.submit(job)
            awaited(begun)
            waiting.append(pool.submit(lambda _: None))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    opened.set()  # the job that it leaves waits for what is set only now
    with pytest.raises(CancelledError):
        waiting[0].result(HANGS)


# The pool for a service in this process: each job runs at once, in the thread that submits it.


def test_an_embedded_workspace_is_read_without_workers(tmp_path: Path) -> None:
    """The thread that plans asks for all kinds, one after the other."""
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {main: {url: "sandbox:"}}\ndefault_workspace: main\n')
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: Sales, members: []}]\n")
    threads: set[str] = set()
    lmsconf.open(tmp_path).plan(progress=lambda _: threads.add(threading.current_thread().name))
    assert threads == {threading.current_thread().name}


# How much memory answers may take: an estimate that grows with what is kept, and one quota for a fan-out.


MIB = 2**20


@pytest.mark.parametrize(("sign", "size"), [(b",", 100), (b"[", 100), (b"{", 400)], ids=str)
@pytest.mark.parametrize(("paged", "mib"), [(True, 32), (False, 64)])
def test_a_body_may_hold_so_many_values(sign: bytes, size: int, paged: bool, mib: int) -> None:
    """32 MiB of values in a page of a listing, 64 MiB in any other response; with one value more it is refused."""
    fits = mib * MIB // size
    refuse_oversized_body((sign * fits).ljust(MIB), paged=paged)
    with pytest.raises(ValueError, match=f"more values than fit in {mib} MiB of memory"):
        refuse_oversized_body((sign * (fits + 1)).ljust(MIB), paged=paged)


@pytest.mark.parametrize(("value", "factor"), [("3", 3), ("", 1), ("999", 999)])
def test_the_environment_raises_the_limits(value: str, factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a whole number, for a workspace that is larger; an empty one counts as unset."""
    monkeypatch.setenv(FACTOR, value)
    assert listing_limit("users.list", whole_rows=False) == ListingLimit(factor * 250_000, factor * 128 * MIB)
    assert fan_out_memory_limit(whole_responses=False) == factor * 96 * MIB


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "nan", "many", "1000"])
def test_what_is_no_number_of_times_is_a_usage_error(value: str, tmp_path: Path) -> None:
    """Nothing is read with another limit than the one that was meant."""
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {w: {url: "sandbox:"}}')
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: A}]")
    for command in ("plan", "doctor"):
        ran = run(tmp_path, command, env={FACTOR: value})
        assert (ran.code, ran.out) == (64, ""), command
        assert f"{FACTOR} is not a whole number from 1 to 999: {value} [usage]" in ran.err
