"""What a run learns of a service, step by step: the rate, the average, the pauses and each turn, to the millisecond."""

from __future__ import annotations

import pytest

from lmsconf.api.rate_limiter import RateLimiter

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


def told(limiter: RateLimiter, clock: Clock, steps: str) -> list[str]:
    """What is known after each step."""
    lines, last = [], clock.time
    for step in filter(None, steps.split("\n")):
        start = clock.time
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


@pytest.mark.parametrize(
    ("limit", "before", "expected"), [(None, FEW, UNLIMITED), (12.0, MANY, LIMITED)], ids=["unlimited", "limited"]
)
def test_what_is_learnt_step_by_step(limit: float | None, before: str, expected: str) -> None:
    """The same, to the millisecond."""
    clock = Clock()
    limiter = RateLimiter(limit, clock=clock, sleep=clock.sleep, wall_clock=clock)
    assert told(limiter, clock, before + STEPS) == expected.strip().split("\n")


@pytest.mark.parametrize(("left", "waits"), [(0.0, False), (6.9, False), (7.0, False), (7.1, True)])
def test_nobody_waits_in_vain_for_a_time_that_the_service_named(left: float, waits: bool) -> None:
    """A Retry-After that takes all that is left of the run's budget, or more, is not waited for."""
    clock = Clock()
    limiter = RateLimiter(clock=clock, sleep=clock.sleep)
    limiter.record_rate_limited(clock.time, 7.0)
    end = clock.time + left
    assert limiter.wait_turn(lambda: end - clock.time) is waits
    assert clock.time == (1_007.0 if waits else 1_000.0)
