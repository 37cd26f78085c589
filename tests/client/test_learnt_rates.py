"""What a run learns of a service, step by step: the rate, the average, the pauses and each turn, to the millisecond."""

from __future__ import annotations

import stat
from hashlib import sha256
from itertools import cycle
from pathlib import Path

import pytest

from lmsconf.api.rate_limiter import RateLimiter
from lmsconf.api.shared_rate_limiter import SharedRateLimiter, rate_file

from .network import Clock

FEW = """
turn
answers 3 at 1
"""
MANY = """
turn
answers 40 at 2
answers 50 at 100
"""
STEPS = """
refused
turn
answers 12 at 30
refused
refused
refused late 2
turn
answers 1 at 5
turn
answers 150 at 8
refused 4
turn
answers 40 at 6
idle 20
turn
answers 30 at 6
refused 90
turn
answers 260 at 3
refused 0
turn
turn
refused
refused
answers 2 at 1
refused 60
turn
idle 59
idle 1
idle 1
refused 61
turn
refused 20 times at 1
refused 60 times at 20
turn
answers 1 at 10
refused
turn
answers 2 at 10
turn
"""
"""What happens: a turn is waited for, so many answers come at so many a second, or a request is refused.

refused: as too many, with a Retry-After of so many seconds. late: it was sent before the last refusal. times: an answer
comes before each, at so many a second.
"""


UNLIMITED = """
turn: 0.000 s, rate None
answers 3 at 1: 3.000 s, rate None
refused: 0.001 s, rate 20.000, average None, resumes in 0.000
turn: 0.050 s, rate 20.000, average None, resumes in 0.000
answers 12 at 30: 0.400 s, rate 65.000, average None, resumes in 0.000
refused: 0.001 s, rate 39.542, average None, resumes in 0.000
refused: 0.001 s, rate 19.771, average None, resumes in 0.000
refused late 2: 0.000 s, rate 19.771, average None, resumes in 2.000
turn: 2.000 s, rate 19.771, average None, resumes in 0.000
answers 1 at 5: 0.200 s, rate 39.610, average None, resumes in 0.000
turn: 0.000 s, rate 39.610, average None, resumes in 0.000
answers 150 at 8: 18.750 s, rate 1604.796, average 8.000, resumes in 0.000
refused 4: 0.001 s, rate 10.598, average 8.000, resumes in 4.000
turn: 4.000 s, rate 10.598, average 6.562, resumes in 0.000
answers 40 at 6: 6.667 s, rate 10.757, average 6.432, resumes in 0.000
idle 20: 20.000 s, rate 10.757, average 3.802, resumes in 0.000
turn: 0.000 s, rate 10.757, average 8.324, resumes in 0.000
answers 30 at 6: 5.000 s, rate 11.086, average 7.899, resumes in 0.000
refused 90: 0.001 s, rate 8.805, average None, resumes in 90.000
turn: 90.000 s, rate 8.805, average 7.899, resumes in 0.000
answers 260 at 3: 86.667 s, rate 12.525
refused 0: 0.001 s, rate 5.674, average 4.175, resumes in 0.000
turn: 0.000 s, rate 5.674, average 4.175, resumes in 0.000
turn: 0.176 s, rate 5.674, average 4.169, resumes in 0.000
refused: 0.001 s, rate 2.837, average 4.168, resumes in 0.000
refused: 0.001 s, rate 1.418, average 4.168, resumes in 0.000
answers 2 at 1: 2.000 s, rate 5.674, average 4.114, resumes in 0.000
refused 60: 0.001 s, rate 3.975, average 4.114, resumes in 60.000
turn: 60.000 s, rate 3.975, average 2.713, resumes in 0.000
idle 59: 59.000 s, rate 3.975, average 2.032, resumes in 0.000
idle 1: 1.000 s, rate 3.975, average 2.024, resumes in 0.000
idle 1: 1.000 s, rate 3.975
refused 61: 0.001 s, rate 1.988, average 2.713, resumes in 61.000
turn: 61.000 s, rate 1.988, average 2.015, resumes in 0.000
refused 20 times at 1: 20.000 s, rate 1.159, average 1.936, resumes in 0.000
refused 60 times at 20: 3.000 s, rate 7.787, average 2.145, resumes in 0.000
turn: 0.128 s, rate 7.787, average 2.144, resumes in 0.000
answers 1 at 10: 0.100 s, rate 7.787, average 2.147, resumes in 0.000
refused: 0.001 s, rate 8.744, average 2.147, resumes in 0.000
turn: 0.114 s, rate 8.744, average 2.146, resumes in 0.000
answers 2 at 10: 0.200 s, rate 8.746, average 2.152, resumes in 0.000
turn: 0.000 s, rate 8.746, average 2.152, resumes in 0.000
"""
LIMITED = """
turn: 0.000 s, rate 12.000
answers 40 at 2: 20.000 s, rate 12.000
answers 50 at 100: 0.500 s, rate 12.000
refused: 0.001 s, rate 4.571, average 4.722, resumes in 0.000
turn: 0.219 s, rate 4.571, average 4.665, resumes in 0.000
answers 12 at 30: 0.400 s, rate 12.000, average 5.210, resumes in 0.000
refused: 0.001 s, rate 12.000, average 5.209, resumes in 0.000
refused: 0.001 s, rate 8.561, average 5.209, resumes in 0.000
refused late 2: 0.000 s, rate 8.561, average 5.209, resumes in 2.000
turn: 2.000 s, rate 8.561, average 4.704, resumes in 0.000
answers 1 at 5: 0.200 s, rate 12.000, average 4.707, resumes in 0.000
turn: 0.000 s, rate 12.000, average 4.733, resumes in 0.000
answers 150 at 8: 18.750 s, rate 12.000, average 6.286, resumes in 0.000
refused 4: 0.001 s, rate 10.486, average 6.285, resumes in 4.000
turn: 4.000 s, rate 10.486, average 5.707, resumes in 0.000
answers 40 at 6: 6.667 s, rate 10.644, average 5.746, resumes in 0.000
idle 20: 20.000 s, rate 10.644, average 4.107, resumes in 0.000
turn: 0.000 s, rate 10.644, average 6.613, resumes in 0.000
answers 30 at 6: 5.000 s, rate 10.969, average 6.550, resumes in 0.000
refused 90: 0.001 s, rate 8.750, average None, resumes in 90.000
turn: 90.000 s, rate 8.750, average 6.550, resumes in 0.000
answers 260 at 3: 86.667 s, rate 12.000
refused 0: 0.001 s, rate 5.671, average 4.275, resumes in 0.000
turn: 0.000 s, rate 5.671, average 4.275, resumes in 0.000
turn: 0.176 s, rate 5.671, average 4.269, resumes in 0.000
refused: 0.001 s, rate 2.835, average 4.269, resumes in 0.000
refused: 0.001 s, rate 1.418, average 4.269, resumes in 0.000
answers 2 at 1: 2.000 s, rate 5.671, average 4.221, resumes in 0.000
refused 60: 0.001 s, rate 3.974, average 4.221, resumes in 60.000
turn: 60.000 s, rate 3.974, average 2.938, resumes in 0.000
idle 59: 59.000 s, rate 3.974, average 2.262, resumes in 0.000
idle 1: 1.000 s, rate 3.974, average 2.253, resumes in 0.000
idle 1: 1.000 s, rate 3.974
refused 61: 0.001 s, rate 1.987, average 2.938, resumes in 61.000
turn: 61.000 s, rate 1.987, average 2.245, resumes in 0.000
refused 20 times at 1: 20.000 s, rate 1.159, average 2.155, resumes in 0.000
refused 60 times at 20: 3.000 s, rate 7.787, average 2.345, resumes in 0.000
turn: 0.128 s, rate 7.787, average 2.344, resumes in 0.000
answers 1 at 10: 0.100 s, rate 7.787, average 2.347, resumes in 0.000
refused: 0.001 s, rate 8.744, average 2.347, resumes in 0.000
turn: 0.114 s, rate 8.744, average 2.346, resumes in 0.000
answers 2 at 10: 0.200 s, rate 8.746, average 2.352, resumes in 0.000
turn: 0.000 s, rate 8.746, average 2.352, resumes in 0.000
"""


def told(limiters: list[RateLimiter], clock: Clock, steps: str) -> list[str]:
    """What is known after each step; each step is another limiter's, but for those in which nothing happens."""
    lines, last, limiter, turns = [], clock.time, limiters[-1], cycle(limiters)
    for step in filter(None, steps.split("\n")):
        start, limiter = clock.time, limiter if step.startswith("idle") else next(turns)
        match step.split():
            case ["turn"]:
                assert limiter.wait_turn(lambda: 600.0)
            case ["answers", number, "at", rate]:
                for _ in range(int(number)):
                    clock.time += 1 / float(rate)
                    limiter.record_response()
            case ["idle", seconds]:
                clock.time += float(seconds)
            case ["refused", number, "times", "at", rate]:
                for _ in range(int(number)):
                    clock.time += 1 / float(rate)
                    limiter.record_response()
                    limiter.record_rate_limited(clock.time, None)
            case ["refused", "late", again]:
                limiter.record_rate_limited(last - 0.001, float(again))
            case ["refused", *again]:
                last = clock.time = clock.time + 0.001
                limiter.record_rate_limited(last, float(again[0]) if again else None)
        rate, status = limiter.rate(), limiter.status()
        line = f"{step}: {clock.time - start:.3f} s, rate {rate and f'{rate:.3f}'}"
        if status is not None:
            line += f", average {status.rate and f'{status.rate:.3f}'}, resumes in {status.resumes_in:.3f}"
        lines.append(line)
    return lines


ALONE, SHARED, IN_TURNS = "alone", "through a file", "two through a file, in turns"


@pytest.mark.parametrize("which", [ALONE, SHARED, IN_TURNS])
@pytest.mark.parametrize(
    ("limit", "before", "expected"), [(None, FEW, UNLIMITED), (12.0, MANY, LIMITED)], ids=["unlimited", "limited"]
)
def test_what_is_learnt_step_by_step(
    tmp_path: Path, which: str, limit: float | None, before: str, expected: str
) -> None:
    """The same, to the millisecond, by one process alone and by processes that share what they have learnt."""
    clock = Clock()
    limiters: list[RateLimiter] = [
        SharedRateLimiter(tmp_path / "rate", limit, clock=clock, sleep=clock.sleep, wall_clock=clock)
        for _ in range({ALONE: 0, SHARED: 1, IN_TURNS: 2}[which])
    ]
    alone = RateLimiter(limit, clock=clock, sleep=clock.sleep, wall_clock=clock)
    lines = told(limiters or [alone], clock, before + STEPS)
    for limiter in limiters:
        limiter.close()
    assert lines == expected.strip().split("\n")


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://lms.example/api", "lms.example:443"),
        ("https://LMS.example.", "lms.example:443"),
        ("https://lms.example:8443", "lms.example:8443"),
        ("http://localhost", "localhost:80"),
    ],
)
def test_a_service_has_one_file_for_its_rate(tmp_path: Path, url: str, place: str) -> None:
    """Whatever path a URL has, and in whatever case its host is written; other users cannot read it."""
    path = rate_file(tmp_path, url)
    assert path == tmp_path / sha256(place.encode()).hexdigest()[:32]
    SharedRateLimiter(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("left", "waits"), [(0.0, False), (6.9, False), (7.0, False), (7.1, True)])
def test_processes_do_not_wait_in_vain_for_a_time_that_the_service_named(
    tmp_path: Path, left: float, waits: bool
) -> None:
    """A Retry-After that takes all that is left of the run's budget, or more, is not waited for."""
    clock = Clock()
    told = SharedRateLimiter(tmp_path / "rate", clock=clock, sleep=clock.sleep)
    told.record_rate_limited(clock.time, 7.0)
    end = clock.time + left
    assert told.wait_turn(lambda: end - clock.time) is waits
    assert clock.time == (1_007.0 if waits else 1_000.0)
    told.close()
