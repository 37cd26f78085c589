"""Pace: one rate for all clients of a run, learnt from a service that says "too many"."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

_REMEMBERED: Final = 64
_SLOWEST: Final = 1.0
"""Requests a second; below that a run would hardly go on."""
_USUAL: Final = 20.0
"""Requests a second where too little was answered to tell, and at least where the service says when to come again."""
_TELLING: Final = 8
"""Answers that tell a rate; one refusal among the first requests of a run says little of it."""
_REGAINED: Final = 20.0
"""Seconds until what was given up is regained."""
_LEAST_REGAINED: Final = 0.5
"""Requests a second that every second gives back, at least."""


class Pace:
    """A token bucket that holds one token. Safe to use from many threads.

    Nothing waits until the service says that it is too much, unless there is a limit from the start. Then the rate at
    which it answered until now is halved, nobody sends anything before the time that it named, and from there the rate
    grows again, evenly: in twenty seconds by as much as it is. What was under way at that moment counts as one.

    limit: the most requests a second, whatever was learnt.
    """

    def __init__(
        self,
        limit: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._limit, self._clock, self._sleep = limit, clock, sleep
        self._lock = threading.Lock()
        self._answered: deque[float] = deque(maxlen=_REMEMBERED)
        self._learnt: float | None = None
        self._since = self._next = -math.inf
        self._lessons = 0
        self._free = limit is None

    def wait(self, at_most: float) -> bool:
        """Waits for the caller's turn. False, and at once, where that is further away than so many seconds."""
        if self._free:
            return True
        end = self._clock() + at_most
        while True:
            now, lessons = self._clock(), self._lessons
            turn = self._turn(now)
            if turn > end:
                return False
            if turn > now:
                self._sleep(turn - now)
            # Who slept while the service said "too many" has lost the turn.
            if lessons == self._lessons:
                return True

    def answered(self) -> None:
        """Hears that the service did what it was asked."""
        self._answered.append(self._clock())

    def too_many(self, sent: float, told: float | None) -> None:
        """Hears that a request sent at that time was too much.

        told: for how many seconds the service wants none. Where it says so, the pause does what the rate need not.
        """
        again = told or 0.0
        with self._lock:
            now = self._clock()
            if sent >= self._since:
                self._learnt = max(self._rate_seen(now) / 2, _SLOWEST if told is None else _USUAL)
                self._free = False
            elif again <= 0 or now + again <= self._since:
                return
            # Turns that were given out are void: everybody comes again, one after the other.
            self._since = self._next = max(now + again, self._since)
            self._lessons += 1

    def rate(self) -> float | None:
        """Requests a second that may be sent now; None: as many as there are."""
        return self._rate(self._clock())

    def _turn(self, now: float) -> float:
        """Takes the next turn there is, and says when it is."""
        with self._lock:
            turn = max(now, self._next)
            rate = self._rate(turn)
            self._next = turn if rate is None else turn + 1 / rate
            return turn

    def _rate(self, now: float) -> float | None:
        if self._learnt is None:
            return self._limit
        gained = max(self._learnt / _REGAINED, _LEAST_REGAINED) * max(now - self._since, 0.0)
        return min(self._learnt + gained, self._limit or math.inf)

    def _rate_seen(self, now: float) -> float:
        """How many requests a second were answered lately, and never more than were allowed."""
        answers = len(self._answered)
        seen = 2 * _USUAL if answers < _TELLING else answers / max(now - self._answered[0], 0.001)
        allowed = self._rate(now)
        return seen if allowed is None else min(seen, allowed)
