"""A sandbox behind a rate limit on a clock of its own, for commands and programs that run in this process."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import Sandbox

NOON: Final = 1_767_268_800.0
"""When the clock starts, since the epoch."""
_QUIET: Final = 0.0005
"""Seconds of the real clock in which no thread goes to sleep: then all of them sleep or wait for those that do."""
_TRIES: Final = 4


class IdleClock:
    """A clock for all threads of a run: time passes to the next that wakes, when nobody works any more."""

    def __init__(self) -> None:
        self.now = 0.0
        self._changed = threading.Condition()
        self._asleep: list[float] = []
        self._events = 0
        self._closed = False
        self._driver = threading.Thread(target=self._drive, daemon=True)

    def __enter__(self) -> IdleClock:
        self._driver.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._driver.join()

    def __call__(self) -> float:
        return self.now

    def wall(self) -> float:
        """Seconds since the epoch."""
        return NOON + self.now

    def sleep(self, seconds: float) -> None:
        """Wait until so many seconds have passed."""
        with self._changed:
            until = self.now + seconds
            self._asleep.append(until)
            self._events += 1
            self._changed.wait_for(lambda: self.now >= until)
            self._asleep.remove(until)
            self._events += 1

    def work(self) -> None:
        """Say that a thread is at work."""
        self._events += 1

    def _drive(self) -> None:
        while not self._closed:
            for _ in range(_TRIES):
                seen = self._events
                time.sleep(_QUIET)
                if self._events != seen:
                    break
            else:
                if not _is_any_other_thread_running():
                    self._pass_time()

    def _pass_time(self) -> None:
        with self._changed:
            if self._asleep:
                self.now = max(self.now, min(self._asleep))
                self._changed.notify_all()


def _is_any_other_thread_running() -> bool:
    """Whether a thread works, or waits for a processor that others have; False where the system does not say."""
    own = threading.get_native_id()
    for stat in Path("/proc/self/task").glob("*/stat"):
        with suppress(OSError):  # the thread has ended
            if int(stat.parent.name) != own and stat.read_text().rpartition(")")[2].split()[0] in "RD":
                return True
    return False


class RateLimitFaults(FaultScript):
    """Refuses requests with 429: `limit` returns the seconds until one is let through, 0 for at once.

    tells: with Retry-After, in whole seconds.
    """

    def __init__(self, clock: IdleClock, limit: Callable[[], float], *, tells: bool = True) -> None:
        super().__init__()
        self._clock, self._limit, self._tells = clock, limit, tells
        self._one_at_a_time = threading.Lock()
        self.answered = self.refused = 0

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Return the refusal of a request beyond the limit."""
        self._clock.work()
        with self._one_at_a_time:
            wait = self._limit()
            self.answered += not wait
            self.refused += bool(wait)
        if not wait:
            return None
        return Fault(status=429, headers={"retry-after": str(math.ceil(wait))} if self._tells else {})


def bucket(clock: Callable[[], float], rate: float, burst: float) -> Callable[[], float]:
    """So many requests a second, and so many at once after a rest: how long one more has to wait, 0 for not at all."""
    held = [burst, clock()]

    def wait() -> float:
        held[:] = [min(burst, held[0] + (clock() - held[1]) * rate), clock()]
        if held[0] < 1:
            return (1 - held[0]) / rate
        held[0] -= 1
        return 0.0

    return wait


def limit_sandboxes(monkeypatch: pytest.MonkeyPatch, clock: IdleClock, faults: FaultScript) -> None:
    """Let commands that run in this process open embedded workspaces with these faults, and wait on this clock."""
    policy = partial(RetryPolicy, clock=clock, sleep=clock.sleep, wall_clock=clock.wall)
    monkeypatch.setattr("lmsconf.workspace.connection.RetryPolicy", policy)
    monkeypatch.setattr("lmsconf.sandbox.service.Sandbox", partial(Sandbox, faults=faults))
