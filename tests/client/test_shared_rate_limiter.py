"""One rate for several processes: what one of them is told holds for all. Here each limiter is as a process of its own.

How fast a limited service is read by several processes is in test_rate_limited_service.
"""

from __future__ import annotations

import threading
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest

from lmsconf.api.shared_rate_limiter import SharedRateLimiter, rate_file

from .network import Clock
from .virtual_threads import VirtualThreads


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rate"


def process(file: Path, clock: Clock | VirtualThreads, limit: float | None = None) -> SharedRateLimiter:
    return SharedRateLimiter(file, limit, clock=clock, sleep=clock.sleep)


def answered(limiter: SharedRateLimiter, clock: Clock, rate: float, times: int) -> None:
    for _ in range(times):
        limiter.record_response()
        clock.time += 1 / rate


def test_a_limit_is_that_of_all_processes(file: Path) -> None:
    """Whoever asks, and however many ask at once, two requests are never closer than the limit allows."""
    clock = VirtualThreads()
    times: list[float] = []

    def work(limiter: SharedRateLimiter, rest: float) -> None:
        for _ in range(10):
            assert limiter.wait_turn(lambda: 600.0)
            times.append(clock.time)
            clock.sleep(rest)

    limiters = [process(file, clock, 5.0) for _ in range(4)]
    clock.run([partial(work, limiter, rest) for limiter in limiters for rest in (0.0, 0.1, 3.0)])
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) == 120
    assert min(gaps) == pytest.approx(0.2)
    assert max(gaps[:60]) == pytest.approx(0.2)


def test_what_one_process_is_told_holds_for_all(file: Path) -> None:
    """After a Retry-After that one was told nobody sends before, and then all together at the rate that it learnt."""
    clock = Clock()
    told, other = process(file, clock), process(file, clock)
    answered(told, clock, 40.0, 200)
    assert other.wait_turn(lambda: 60.0)
    assert clock.waits == []
    start = clock.time
    told.record_rate_limited(start, 7.0)
    times = []
    for limiter in (other, told, other):
        assert limiter.wait_turn(lambda: 60.0)
        times.append(clock.time - start)
    assert times == pytest.approx([7.0, 7.05, 7.1], rel=0.01)
    assert other.rate() == told.rate() == pytest.approx(20.0, rel=0.05)


def test_refusals_of_requests_under_way_count_once(file: Path) -> None:
    """Eight processes that are refused in the same moment are one lesson, at the rate of all their answers."""
    clock = Clock()
    limiters = [process(file, clock) for _ in range(8)]
    for number in range(200):
        limiters[number % 8].record_response()
        clock.time += 1 / 40
    sent = clock.time - 0.01
    for limiter in limiters:
        limiter.record_rate_limited(sent, None)
        clock.time += 0.001
    assert process(file, clock, 100.0).wait_turn(lambda: 60.0)
    assert [limiter.rate() for limiter in limiters[-1:]] == pytest.approx([20.0], rel=0.05)


def test_answers_to_any_process_bring_the_rate_back(file: Path) -> None:
    """A process that waits at a rate of once in five seconds goes sooner once answers to another show more."""
    clock = Clock()
    other = process(file, clock)
    left = [5]

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        while left[0]:
            left[0] -= 1
            other.record_response()

    slow = SharedRateLimiter(file, clock=clock, sleep=sleep)
    for _ in range(9):
        other.record_rate_limited(clock.time, None)
        clock.time += 0.01
    assert slow.wait_turn(lambda: 60.0)
    start = clock.time
    left[0] = 5
    assert slow.wait_turn(lambda: 60.0)
    assert clock.time - start < 3.0


def test_a_process_that_ends_holds_up_no_other(file: Path) -> None:
    """A turn that a process waited for is not kept for it, and the lock of a file ends with its process."""
    clock = VirtualThreads()
    times: list[float] = []

    def give_up(limiter: SharedRateLimiter) -> None:
        end = clock.time + 0.5
        assert not limiter.wait_turn(lambda: end - clock.time)
        limiter.close()

    def go_on(limiter: SharedRateLimiter) -> None:
        clock.sleep(0.1)
        for _ in range(3):
            assert limiter.wait_turn(lambda: 60.0)
            times.append(clock.time)

    first = process(file, clock, 1.0)
    clock.run([lambda: first.wait_turn(lambda: 60.0)])
    start = clock.time
    clock.run([partial(give_up, process(file, clock, 1.0)), partial(go_on, process(file, clock, 1.0))])
    assert [time - start for time in times] == pytest.approx([1.0, 2.0, 3.0])


def test_who_waits_in_a_process_is_served_in_turn(file: Path) -> None:
    """A refusal puts off all who wait, in the order in which they came."""
    clock = VirtualThreads()
    limiter, other = process(file, clock, 1.0), process(file, clock, 1.0)
    served: list[int] = []

    def worker(number: int) -> None:
        clock.sleep(number / 100)
        assert limiter.wait_turn(lambda: 60.0)
        served.append(number)
        if number in (2, 4):
            other.record_rate_limited(clock.time, None)

    clock.run([partial(worker, number) for number in range(8)])
    assert served == list(range(8))


def test_a_closed_limiter_limits_its_process_alone(file: Path) -> None:
    """A thread of a run that was given up may still answer; its file may be another one's by then."""
    clock = Clock()
    closed, other = process(file, clock), process(file, clock)
    closed.close()
    closed.close()
    closed.record_response()
    closed.record_rate_limited(clock.time, 5.0)
    assert other.wait_turn(lambda: 60.0)
    assert clock.waits == []
    assert closed.wait_turn(lambda: 60.0)
    assert clock.waits == [5.0]


def test_threads_and_processes_lose_no_answer(file: Path) -> None:
    """However they meet, each answer is counted once: a rate that is measured is that of all."""
    limiters = [SharedRateLimiter(file) for _ in range(3)]
    limiters[0].record_rate_limited(0.0, None)

    def answer(limiter: SharedRateLimiter) -> None:
        for _ in range(50):
            limiter.record_response()

    threads = [threading.Thread(target=answer, args=(limiter,)) for limiter in limiters for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with limiters[0]._locked():
        assert limiters[0]._accepted.since_refusal == 300


def test_a_host_is_a_name_and_a_port(tmp_path: Path) -> None:
    """Paths, and a port that is written or not, make no difference; another port is another service."""
    same = ("https://lms.example/api", "https://lms.example:443/other", "https://LMS.example./x")
    assert len({rate_file(tmp_path, url) for url in same}) == 1
    other = ("https://lms.example:8443", "http://localhost", "https://lms2.example", "https://[::1]:443")
    assert len({rate_file(tmp_path, url) for url in (*same, *other)}) == 5


def test_the_file_is_private_and_no_link(tmp_path: Path) -> None:
    """It is made readable by its owner only, and a link in its place is refused."""
    SharedRateLimiter(tmp_path / "rate").record_response()
    assert (tmp_path / "rate").stat().st_mode & 0o077 == 0
    (tmp_path / "link").symlink_to(tmp_path / "rate")
    with pytest.raises(OSError, match="link"):
        SharedRateLimiter(tmp_path / "link")


def test_the_rate_that_is_shown_counts_from_the_first_request(file: Path) -> None:
    """One answer in the four seconds since a process began to send is a quarter of a request a second."""
    clock = Clock()
    limiter = process(file, clock, 10.0)
    assert limiter.wait_turn(lambda: 60.0)
    clock.time += 4.0
    limiter.record_response()
    limiter.record_rate_limited(clock.time, None)
    status = limiter.status()
    assert status is not None
    assert status.rate == pytest.approx(0.25)
