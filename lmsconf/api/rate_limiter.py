"""Rate limiter shared by all clients of a run; it learns the rate from rate-limited responses."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from lmsconf.lazy_dataclass import dataclass

_REMEMBERED: Final = 64
_SLOWEST: Final = 1.0
"""Minimum learnt rate in requests a second; with less a run would hardly progress."""
_USUAL: Final = 20.0
"""Requests a second: the first learnt rate after too few responses, and the minimum one if Retry-After is given."""
_TELLING: Final = 8
"""Responses needed to measure a rate; one refusal among the first requests of a run says little about it."""
_REGAINED: Final = 20.0
"""Seconds in which the rate grows by the learnt rate."""
_LEAST_REGAINED: Final = 0.5
"""Minimum growth of the rate per second, in requests a second."""


_KEPT_AT_FIRST: Final = 0.5
_KEPT: Final = 0.7
"""Factor on the rate after a later refusal: milder, since a learnt rate is close to the right one."""


@dataclass(slots=True, eq=False)
class _Turn:
    """When a waiting request may be sent, on the limiter's clock."""

    at: float


class RateLimiter:
    """Token bucket of one token, with an adaptive rate. Thread-safe, FIFO.

    Without `limit`, nothing waits until the service refuses a request as too many. Then the rate of responses so far is
    halved, nothing is sent before the time in Retry-After, and from then on the rate grows linearly: in twenty seconds
    by the learnt rate. Refusals of requests in flight at that moment count as one. Each later refusal takes 30 % off.

    limit: maximum rate in requests a second, whatever rate is learnt.
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

    def wait_turn(self, max_seconds: float) -> bool:
        """Wait for the caller's turn. Return False, at once, if that is more than `max_seconds` away."""
        if self._free:
            return True
        now = self._clock()
        end = now + max_seconds
        turn = self._taken(now)
        try:
            # A refusal of another request during the sleep postpones the turn.
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

    def record_response(self) -> None:
        """Record a response that is not transient."""
        self._answered.append(self._clock())

    def record_rate_limited(self, sent_at: float, retry_after: float | None) -> None:
        """Record that a request sent at that time was refused as too many.

        retry_after: the seconds in Retry-After, if given. The learnt rate is then at least 20: the pause helps too.
        """
        again = retry_after or 0.0
        with self._lock:
            now = self._clock()
            if sent_at >= self._since:
                kept = _KEPT_AT_FIRST if self._learnt is None else _KEPT
                self._learnt = max(self._measured_rate(now) * kept, _SLOWEST if retry_after is None else _USUAL)
                self._free = False
            elif again <= 0 or now + again <= self._since:
                return
            self._since = self._next = max(now + again, self._since)
            if retry_after is None and self._learnt:
                # Without Retry-After, a request sent at once would be refused too.
                self._next += 1 / self._learnt
            # Turns already assigned are postponed in their order, so that none waits for ever.
            for turn in self._waiting:
                turn.at = self._given(now)

    def rate(self) -> float | None:
        """Return the current rate in requests a second; None: unlimited."""
        return self._rate(self._clock())

    def _taken(self, now: float) -> _Turn:
        """Assign the next turn and add it to the waiting ones."""
        with self._lock:
            turn = _Turn(self._given(now))
            self._waiting.append(turn)
            return turn

    def _given(self, now: float) -> float:
        """Reserve the next free turn and return its time."""
        at = max(now, self._next)
        rate = self._rate(at)
        self._next = at if rate is None else at + 1 / rate
        return at

    def _rate(self, now: float) -> float | None:
        if self._learnt is None:
            return self._limit
        gained = max(self._learnt / _REGAINED, _LEAST_REGAINED) * max(now - self._since, 0.0)
        return min(self._learnt + gained, self._limit or math.inf)

    def _measured_rate(self, now: float) -> float:
        """Return the recent rate of responses, at most the current rate."""
        answers = len(self._answered)
        measured = 2 * _USUAL if answers < _TELLING else answers / max(now - self._answered[0], 0.001)
        allowed = self._rate(now)
        return measured if allowed is None else min(measured, allowed)
