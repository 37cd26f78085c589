"""Rate limiter shared by all clients of a run: a token bucket, Retry-After, and the rate that a service accepts."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from lmsconf.model.progress import RateLimit

_REMEMBERED: Final = 64
_USUAL: Final = 20.0
"""Requests a second: the first learnt rate after too few responses."""
_TELLING: Final = 8
"""Responses needed to measure a rate; one refusal among the first requests of a run says little about it."""
_ENOUGH: Final = 100
"""Responses that measure a rate to about a hundredth."""
_SLOWEST: Final = 0.2
"""Minimum learnt rate in requests a second; with less a run would hardly progress."""
_BELOW: Final = 0.97
"""Factor on a measured rate: sent exactly as fast as the service accepts, an early request would be refused."""
_GROWTH: Final = 1.008
"""Factor on a learnt rate with each response, so that a rate that is too low is found out."""
_BACK: Final = 1.5
"""The same until a rate is measured, and up to the rate before refusals without a response between them."""
_SETTLED: Final = 3.0
"""Seconds after the first wait before responses count for the average: some requests were sent before it."""
_NOTICED: Final = 1.0
"""Seconds of sleep after which a waiting request looks, at the earliest, whether its turn comes sooner."""
_TOLD_EVERY: Final = 60.0
"""Maximum seconds of one sleep, so that a waiting run can report its state in between."""


class _Refusal(NamedTuple):
    """The time of a refusal, and the number of responses before it."""

    at: float
    responses: int


class RateLimiter:
    """Token bucket of one token. Thread-safe.

    Without `limit`, nothing waits until the service refuses a request as too many. Then nothing is sent before the time
    in Retry-After, and afterwards at the rate that was accepted between refusals; refusals without a response between
    them halve it. Refusals of requests in flight at that moment count as one.

    limit: maximum rate in requests a second, whatever rate is learnt. wall_clock: since the epoch.
    on_wait: called before each sleep; a sleep takes at most a minute.
    """

    def __init__(
        self,
        limit: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._limit, self._clock, self._sleep, self._wall_clock = limit, clock, sleep, wall_clock
        self._lock = threading.Lock()
        self._learnt: float | None = None
        self._before_refusals = math.inf
        self._last = self._since = self._slept = -math.inf
        self._responses = 0
        self._answered: deque[float] = deque(maxlen=_REMEMBERED)
        self._refusals: deque[_Refusal] = deque()
        self._begun: _Refusal | None = None
        self._limited_since: float | None = None
        self.on_wait: Callable[[], None] = lambda: None

    def wait_turn(self, seconds_left: Callable[[], float]) -> bool:
        """Wait for the caller's turn. Return False once no time is left, at once if a Retry-After takes it all."""
        while True:
            left = seconds_left()
            if self._learnt is None and self._limit is None:
                return left > 0
            with self._lock:
                now = self._clock()
                if left <= 0 or self._since - now >= left:
                    return False
                self._begun = self._begun or _Refusal(now, self._responses)
                at = max(self._last + self._gap(), self._since)
                if at <= now:
                    self._last = now
                    return True
            # A refusal of another request during the sleep postpones the turn, and responses bring it forward.
            self._nap(min(at - now, left, _TOLD_EVERY, max(self._since - now, (at - now) / 2, _NOTICED)))
            self._slept = self._clock()

    def pause(self, seconds: float, seconds_left: Callable[[], float]) -> None:
        """Sleep for so long, before a retry, or until no time is left."""
        while seconds > 0 and seconds_left() > 0:
            self._nap(min(seconds, _TOLD_EVERY))
            seconds -= _TOLD_EVERY

    def record_response(self) -> None:
        """Record a response that is not transient."""
        if self._learnt is None:
            self._answered.append(self._clock())
        if self._begun is None:
            return
        with self._lock:
            self._responses += 1
            now = self._clock()
            self._limited_since = self._limited_since or now
            if now - self._limited_since < _SETTLED:
                self._begun = _Refusal(now, self._responses)
            if self._learnt is None:
                return
            self._learnt = min(self._learnt * _BACK, max(self._learnt, self._before_refusals) * _GROWTH)
            self._before_refusals = max(self._before_refusals, self._learnt)

    def record_rate_limited(self, sent_at: float, retry_after: float | None) -> None:
        """Record that a request sent at that time was refused as too many.

        retry_after: the seconds in Retry-After, if given.
        """
        with self._lock:
            now = self._clock()
            resumed = now + (retry_after or 0.0)
            if sent_at >= self._since:
                self._learn(now)
            elif resumed <= max(self._since, now):
                return
            self._since = max(resumed, self._since)
            # Without Retry-After, a request sent at once would be refused too.
            self._last = self._since - (0.0 if retry_after is None else self._gap())

    def rate(self) -> float | None:
        """Return the current rate in requests a second; None: unlimited."""
        return self._limit if self._learnt is None else min(self._learnt, self._limit or math.inf)

    def status(self) -> RateLimit | None:
        """Return what limits the run now; None if no request had to wait in the last minute."""
        now = self._clock()
        if self._begun is None or now - max(self._slept, self._since) > _TOLD_EVERY:
            return None
        accepted, seconds = self._responses - self._begun.responses, now - self._begun.at
        average = accepted / seconds if accepted and seconds > 0 else None
        return RateLimit(at=now, rate=average, resumes_in=max(self._since - now, 0.0), wall=self._wall_clock())

    def _nap(self, seconds: float) -> None:
        self.on_wait()
        self._sleep(seconds)

    def _learn(self, now: float) -> None:
        """Learn a rate from a refusal, and forget refusals that are not needed to measure any more."""
        if self._learnt is None:
            self._learnt = self._first_rate(now)
        elif self._responses == self._refusals[-1].responses:
            self._learnt = max(self._learnt / 2, _SLOWEST)
        else:
            first = self._refusals[0]
            measured = (self._responses - first.responses) / max(now - first.at, 0.001)
            # The service accepts at least what it accepted, and less than what it has just refused.
            mean = math.sqrt(measured * min(self._learnt, 2 * measured))
            self._learnt = self._before_refusals = max(mean * _BELOW, _SLOWEST)
        self._refusals.append(_Refusal(now, self._responses))
        self._begun = self._begun or self._refusals[0]
        while len(self._refusals) > 1 and self._responses - self._refusals[1].responses >= _ENOUGH:
            self._refusals.popleft()

    def _gap(self) -> float:
        """Return the seconds between two turns."""
        rate = self.rate()
        return 1 / rate if rate else 0.0

    def _first_rate(self, now: float) -> float:
        """Return half of the recent rate of responses, at most the limit."""
        answers = len(self._answered)
        measured = 2 * _USUAL if answers < _TELLING else answers / max(now - self._answered[0], 0.001)
        return min(measured, self._limit or math.inf) / 2
