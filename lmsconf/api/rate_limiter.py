"""Pace: one rate for all clients of a run, learnt from a service that says "too many"."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
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


_KEPT_AT_FIRST: Final = 0.5
_KEPT: Final = 0.7
"""What of the rate is kept after a refusal. Once a rate was learnt, the right one is not far away."""


@dataclass(slots=True, eq=False)
class _Turn:
    """When somebody may send."""

    at: float


class RateLimiter:
    """A token bucket that holds one token. Safe to use from many threads.

    Nothing waits until the service says that it is too much, unless there is a limit from the start. Then the rate at
    which it answered until now is halved, nobody sends anything before the time that it named, and from there the rate
    grows again, evenly: in twenty seconds by as much as it is. What was under way at that moment counts as one. Each
    later refusal takes less than a third. Who waits is served in the order in which they came.

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
        self._waiting: deque[_Turn] = deque()
        self._free = limit is None

    def wait(self, at_most: float) -> bool:
        """Waits for the caller's turn. False, and at once, where that is further away than so many seconds."""
        if self._free:
            return True
        now = self._clock()
        end = now + at_most
        turn = self._taken(now)
        try:
            # Who sleeps while the service says "too many" finds the turn put off.
            while (at := turn.at) <= end:
                if at > now:
                    self._sleep(at - now)
                if at == turn.at:
                    return True
                now = self._clock()
            return False
        finally:
            with self._lock:
                self._waiting.remove(turn)

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
                kept = _KEPT_AT_FIRST if self._learnt is None else _KEPT
                self._learnt = max(self._rate_seen(now) * kept, _SLOWEST if told is None else _USUAL)
                self._free = False
            elif again <= 0 or now + again <= self._since:
                return
            self._since = self._next = max(now + again, self._since)
            if told is None and self._learnt:
                # Where no time is named, whoever came at once would be the next to be refused.
                self._next += 1 / self._learnt
            # Turns that were given out are put off, in their order: whoever waits longest must not wait for ever.
            for turn in self._waiting:
                turn.at = self._given(now)

    def rate(self) -> float | None:
        """Requests a second that may be sent now; None: as many as there are."""
        return self._rate(self._clock())

    def _taken(self, now: float) -> _Turn:
        """The next turn there is, as one that somebody waits for."""
        with self._lock:
            turn = _Turn(self._given(now))
            self._waiting.append(turn)
            return turn

    def _given(self, now: float) -> float:
        """When the next turn is that nobody has."""
        at = max(now, self._next)
        rate = self._rate(at)
        self._next = at if rate is None else at + 1 / rate
        return at

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
