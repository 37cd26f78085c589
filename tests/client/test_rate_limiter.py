"""One rate for all clients: none until the service says "too many", then learnt from what it answered."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from itertools import pairwise

import httpx
import pytest
from call_count import Effort

from lmsconf.api.client import Client
from lmsconf.api.retry import RateLimiter
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


def test_nothing_waits_while_all_is_well() -> None:
    """Without a limit and without a refusal, no turn costs any time."""
    clock = Clock()
    free = rate_limiter(clock)
    for _ in range(1_000):
        free.wait_turn(lambda: 60.0)
        free.record_response()
    assert (clock.waits, free.rate()) == ([], None)


def test_a_free_turn_costs_next_to_nothing() -> None:
    """A plan sends thousands of reads: waiting for nothing and counting an answer take a few calls of functions."""
    free = RateLimiter()
    with Effort() as effort:
        for _ in range(1_000):
            free.wait_turn(lambda: 60.0)
            free.record_response()
    assert effort.calls <= 6 * 1_000


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


def test_too_many_halves_the_rate_that_was_seen() -> None:
    """A service that answered forty a second and then says 429 gets twenty."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 40.0, 200)
    learning.record_rate_limited(clock.time, None)
    assert learning.rate() == pytest.approx(20.0, rel=0.05)


@pytest.mark.parametrize("accepted", [0.25, 0.56, 10.0])
def test_what_is_accepted_between_refusals_is_the_rate(accepted: float) -> None:
    """Whatever was sent before: from the second refusal on it is what was accepted since the first, or little more."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 40.0, 200)
    for _ in range(12):
        learning.record_rate_limited(clock.time, None)
        clock.time += 0.001
        answered(learning, clock, accepted, 30)
    learning.record_rate_limited(clock.time, None)
    assert 0.95 <= (learning.rate() or 0.0) / accepted <= 1.45


def test_nothing_accepted_between_refusals_halves_the_rate() -> None:
    """It is tried half as often each time, down to once in five seconds; what is accepted then brings it back soon."""
    clock = Clock()
    learning = rate_limiter(clock)
    for expected in (20.0, 10.0, 5.0, 2.5, 1.25, 0.625, 0.3125, 0.2, 0.2):
        learning.record_rate_limited(clock.time, None)
        clock.time += 0.01
        assert learning.rate() == pytest.approx(expected)
    answered(learning, clock, 0.1, 6)
    assert (learning.rate() or 0.0) > 2.0


def test_answers_bring_a_halved_rate_back() -> None:
    """Three refusals in a row leave an eighth of the measured rate, each answer gives half of it more, up to all."""
    clock = Clock()
    learning = rate_limiter(clock)
    learning.record_rate_limited(clock.time, None)
    clock.time += 0.001
    answered(learning, clock, 50.0, 100)
    learning.record_rate_limited(clock.time, None)
    measured = learning.rate() or 0.0
    for _ in range(3):
        clock.time += 0.001
        learning.record_rate_limited(clock.time, None)
    for part in (8, 16 / 3, 32 / 9, 64 / 27, 128 / 81, 256 / 243, 1):
        assert learning.rate() == pytest.approx(measured / part, rel=0.01)
        answered(learning, clock, 50.0, 1)


def test_who_waits_is_served_in_turn() -> None:
    """A refusal puts off all who wait, in the order in which they came: nobody is overtaken by a later one."""
    clock = VirtualThreads()
    shared = RateLimiter(1.0, clock=clock, sleep=clock.sleep)
    served: list[int] = []

    def worker(number: int) -> None:
        clock.sleep(number / 100)
        assert shared.wait_turn(lambda: 60.0)
        served.append(number)
        if number in (2, 4):
            shared.record_rate_limited(clock.time, None)

    clock.run([partial(worker, number) for number in range(8)])
    assert served == list(range(8))


def test_what_was_under_way_counts_once() -> None:
    """Four clients that are refused in the same moment are one lesson, not four."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 40.0, 200)
    sent = clock.time - 0.01
    for _ in range(4):
        learning.record_rate_limited(sent, 0.0)
        clock.time += 0.001
    assert learning.rate() == pytest.approx(20.0, rel=0.05)


@pytest.mark.parametrize("late", [None, 0.0, 3.0])
def test_a_refusal_from_before_the_last_one_teaches_nothing(late: float | None) -> None:
    """The rate goes on growing from the last refusal, and a turn that is far away is not put off by a nearer time."""
    clock = Clock()
    learning, untouched = rate_limiter(clock), rate_limiter(clock)
    for limiter in (learning, untouched):
        limiter.record_rate_limited(clock.time, 10.0)
    sent = clock.time - 0.01
    clock.time += 12.0 if late is None else 5.0
    learning.record_rate_limited(sent, late)
    assert learning.rate() == untouched.rate()
    start = clock.time
    assert learning.wait_turn(lambda: 60.0)
    waited = clock.time - start
    clock.time = start
    assert untouched.wait_turn(lambda: 60.0)
    assert clock.time - start == waited


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


@pytest.mark.parametrize("told", [0.5, 1.0, 4.0])
def test_a_late_refusal_still_says_when_to_come_back(told: float) -> None:
    """A request that was under way when the rate was learnt: its Retry-After holds, and the rate stays."""
    clock = Clock()
    learning = rate_limiter(clock)
    sent = clock.time
    clock.time += 1.0
    learning.record_rate_limited(clock.time, 2.0)
    clock.time += 2.5
    start = clock.time
    learning.record_rate_limited(sent, told)
    assert learning.wait_turn(lambda: 60.0)
    assert clock.time - start == told
    assert learning.rate() == 20.0


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


def test_a_later_time_told_to_another_holds() -> None:
    """What one that was under way is told lengthens the pause for all, and never shortens it."""
    clock = Clock()
    learning = rate_limiter(clock)
    sent = clock.time
    clock.time += 0.1
    learning.record_rate_limited(sent, 5.0)
    learning.record_rate_limited(sent, 9.0)
    learning.record_rate_limited(sent, 1.0)
    start = clock.time
    learning.wait_turn(lambda: 60.0)
    assert clock.time - start == pytest.approx(9.0)


def test_the_rate_grows_slowly_where_it_is_known_and_never_beyond_the_limit() -> None:
    """Less than a hundredth with each response: twice as much after 87."""
    clock = Clock()
    learning = rate_limiter(clock, 15.0)
    learning.record_rate_limited(clock.time, None)
    clock.time += 0.001
    answered(learning, clock, 5.0, 100)
    learning.record_rate_limited(clock.time, None)
    start = learning.rate() or 0.0
    clock.time += 0.001
    answered(learning, clock, 5.0, 1)
    assert learning.rate() == pytest.approx(1.008 * start)
    answered(learning, clock, 5.0, 86)
    assert learning.rate() == pytest.approx(2.0 * start, rel=0.02)
    answered(learning, clock, 5.0, 400)
    assert learning.rate() == 15.0


@pytest.mark.parametrize("answers", [0, 3])
def test_a_refusal_among_the_first_requests_does_not_stall_a_run(answers: int) -> None:
    """Where too little was answered to halve its rate, twenty a second is where it begins, not one."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 1.0, answers)
    learning.record_rate_limited(clock.time, None)
    assert learning.rate() == 20.0


@pytest.mark.parametrize(("answers", "rate"), [(7, 20.0), (8, 10.0), (9, 10.0)])
def test_eight_answers_are_enough_to_measure_a_rate(answers: int, rate: float) -> None:
    """Half of what they came at; with fewer a run goes on with the usual rate."""
    clock = Clock()
    learning = rate_limiter(clock)
    answered(learning, clock, 20.0, answers)
    learning.record_rate_limited(clock.time, None)
    assert learning.rate() == pytest.approx(rate)


@pytest.mark.parametrize("left", [3.0, 7.0])
def test_nobody_waits_in_vain_for_a_time_that_the_service_named(left: float) -> None:
    """A Retry-After that takes all that is left of the run's budget, or more, is not waited for."""
    clock = Clock()
    told = rate_limiter(clock)
    told.record_rate_limited(clock.time, 7.0)
    assert not told.wait_turn(lambda: left)
    assert clock.waits == []


def test_an_answer_brings_a_turn_forward() -> None:
    """Who waits at a rate of once in five seconds goes sooner once answers to others show that more is accepted."""
    clock = Clock()
    answers = iter([5])

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        for _ in range(next(answers, 0)):
            slow.record_response()

    slow = RateLimiter(clock=clock, sleep=sleep)
    for _ in range(9):
        slow.record_rate_limited(clock.time, None)
        clock.time += 0.01
    assert slow.rate() == 0.2
    start = clock.time
    assert slow.wait_turn(lambda: 60.0)
    assert clock.time - start == pytest.approx(2.5, abs=0.1)


def test_the_average_is_that_since_the_service_first_refused() -> None:
    """Answers before it do not count; none at all are no rate."""
    clock = Clock()
    refused = rate_limiter(clock)
    answered(refused, clock, 40.0, 200)
    refused.record_rate_limited(clock.time, None)
    status = refused.status()
    assert status is not None
    assert status.rate is None
    answered(refused, clock, 10.0, 200)
    status = refused.status()
    assert status is not None
    assert status.rate == pytest.approx(10.0, rel=0.02)


def test_the_average_with_a_limit_is_that_since_the_first_request() -> None:
    """A limit makes requests wait from the start, so what was accepted is told without any refusal."""
    clock = Clock()
    limited = rate_limiter(clock, 10.0)
    for _ in range(200):
        limited.wait_turn(lambda: 60.0)
        limited.record_response()
    status = limited.status()
    assert status is not None
    assert status.rate == pytest.approx(10.0, rel=0.02)


def test_a_turn_far_away_ends_no_run() -> None:
    """Where many wait for a slow service, the last one waits as long as the run does, and looks again meanwhile."""
    clock = Clock()
    slow = rate_limiter(clock, 0.1)
    assert slow.wait_turn(lambda: 60.0)
    left = iter([3.0, 3.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0, 60.0])
    assert slow.wait_turn(lambda: next(left))
    assert clock.time == pytest.approx(1_010.0)
    end = clock.time + 3.0
    assert not slow.wait_turn(lambda: end - clock.time)
    assert clock.time == pytest.approx(end)


def test_who_sleeps_while_a_lesson_is_learnt_waits_again() -> None:
    """A turn that was given out before the service said "too many" is void."""
    clock = Clock()
    limited = rate_limiter(clock, 1.0)
    lessons = [5.0]

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if lessons:
            limited.record_rate_limited(clock.time, lessons.pop())

    limited._sleep = sleep
    limited.wait_turn(lambda: 60.0)
    limited.wait_turn(lambda: 60.0)
    assert clock.time == pytest.approx(1_006.0)


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


def test_a_service_with_a_limit_is_served_to_the_end() -> None:
    """Two hundred reads against four hundred a second and a bucket of ten all come through, with few refusals."""
    clock, refused, answers = VirtualThreads(), [0], []
    bucket = [10.0, clock.time]

    def answer(_: httpx.Request) -> httpx.Response:
        clock.sleep(0.001)
        bucket[:] = [min(10.0, bucket[0] + 400.0 * (clock.time - bucket[1])), clock.time]
        if bucket[0] < 1:
            refused[0] += 1
            return said(429)
        bucket[0] -= 1
        return FINE

    shared, network, todo = RateLimiter(clock=clock, sleep=clock.sleep), Network(answering=answer), iter(range(200))

    def worker() -> None:
        with Client("http://sandbox", CANARY, transport=network, retry=clock.retry(), rate_limiter=shared) as by:
            answers.extend(by.call("manual-groups.members", path={"groupId": "g"}) for _ in todo)

    clock.run([worker] * 4)
    assert answers == [{"userIds": []}] * 200
    assert 0 < refused[0] < 40


def test_an_error_of_one_call_slows_nobody() -> None:
    """A 500 is about one call; only "too many" and "unavailable" are about the rate."""
    clock = Clock()
    shared = rate_limiter(clock)
    with suppress(ApiError):
        client(said(500), clock=clock).call("manual-groups.members", path={"groupId": "g"})
    assert shared.rate() is None
