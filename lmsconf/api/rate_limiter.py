"""Rate limiter shared by all clients of a run; it learns the rate from rate-limited responses."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from lmsconf.api.accepted_rate import AcceptedRate, LearntRate
from lmsconf.model.progress import RateLimit

_REMEMBERED: Final = 64
_USUAL: Final = 20.0
"""Requests a second: the first learnt rate after too few responses."""
_TELLING: Final = 8
"""Responses needed to measure a rate; one refusal among the first requests of a run says little about it."""
_NOTICED: Final = 1.0
"""Seconds of sleep after which a waiting request looks, at the earliest, whether its turn comes sooner."""
_TOLD_EVERY: Final = 60.0
"""Maximum seconds of one sleep, so that a waiting run can report its state in between."""


class _Turn(Struct, eq=False):
    """When a waiting request may be sent, on the limiter's clock."""

    at: float = math.inf


class RateLimiter:
    """Token bucket of one token, with an adaptive rate. Thread-safe, FIFO.

    Without `limit`, nothing waits until the service refuses a request as too many. Then nothing is sent before the time
    in Retry-After, and afterwards at the rate that `LearntRate` learns from refusals and responses. Refusals of
    requests in flight at that moment count as one.

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
        self._answered: deque[float] = deque(maxlen=_REMEMBERED)
        self._accepted = AcceptedRate()
        self._learnt: LearntRate | None = None
        self._since = self._last = self._slept = -math.inf
        self._waiting: deque[_Turn] = deque()
        self._free = limit is None
        self.on_wait: Callable[[], None] = lambda: None

    def wait_turn(self, seconds_left: Callable[[], float]) -> bool:
        """Wait for the caller's turn. Return False once no time is left, at once if a Retry-After takes it all."""
        if self._free:
            return True
        turn = self._taken(self._clock())
        try:
            while True:
                at, now, left = turn.at, self._clock(), seconds_left()
                if left <= 0 or self._since - now >= left:
                    return False
                if at <= now:
                    return True
                # A refusal of another request during the sleep postpones the turn, and responses bring it forward.
                self._nap(min(at - now, left, _TOLD_EVERY, max(self._since - now, (at - now) / 2, _NOTICED)))
                self._slept = self._clock()
        finally:
            with self._lock:
                self._waiting.remove(turn)
                self._last = max(self._last, min(turn.at, self._clock()))

    def pause(self, seconds: float) -> None:
        """Sleep for so long, before a retry."""
        while seconds > 0:
            self._nap(min(seconds, _TOLD_EVERY))
            seconds -= _TOLD_EVERY

    def record_response(self) -> None:
        """Record a response that is not transient."""
        self._answered.append(self._clock())
        if not self._free:
            with self._lock:
                self._accepted.add(self._clock())
                self._schedule(self._clock())

    def record_rate_limited(self, sent_at: float, retry_after: float | None) -> None:
        """Record that a request sent at that time was refused as too many.

        retry_after: the seconds in Retry-After, if given.
        """
        again = retry_after or 0.0
        with self._lock:
            now = self._clock()
            if sent_at >= self._since:
                self._learn(now)
            elif again <= 0 or now + again <= self._since:
                return
            resumed = max(now + again, self._since)
            if again > _TOLD_EVERY:
                self._accepted.skip(resumed - max(self._since, now))
            self._since = resumed
            # Without Retry-After, a request sent at once would be refused too.
            self._last = resumed if retry_after is None else resumed - self._gap()
            # Turns already assigned are postponed in their order, so that none waits for ever.
            for turn in self._waiting:
                turn.at = math.inf
            self._schedule(now)

    def rate(self) -> float | None:
        """Return the current rate in requests a second; None: unlimited."""
        learnt = None if self._learnt is None else self._learnt.rate(self._accepted.since_refusal)
        return self._limit if learnt is None else min(learnt, self._limit or math.inf)

    def status(self) -> RateLimit | None:
        """Return what limits the run now; None if no request had to wait in the last minute."""
        now = self._clock()
        if self._free or now - max(self._slept, self._since) > _TOLD_EVERY:
            return None
        pause = max(self._since - now, 0.0)
        return RateLimit(at=now, rate=self._accepted.average(now), resumes_in=pause, wall=self._wall_clock())

    def _nap(self, seconds: float) -> None:
        self.on_wait()
        self._sleep(seconds)

    def _learn(self, now: float) -> None:
        """Learn a rate from a refusal."""
        if self._learnt is None:
            self._learnt = LearntRate(self._first_rate(now))
        else:
            self._learnt.refuse(self._accepted.since_refusal, self._accepted.measure(now))
        self._accepted.refuse(now)
        self._free = False

    def _taken(self, now: float) -> _Turn:
        """Assign the next turn and add it to the waiting ones."""
        with self._lock:
            self._accepted.begin(now)
            if not self._waiting and now > (free := self._last + self._gap()) > -math.inf:
                # Nobody waited: what the service would have accepted meanwhile is not known.
                self._accepted.skip(now - free)
            turn = _Turn()
            self._waiting.append(turn)
            self._schedule(now)
            return turn

    def _schedule(self, now: float) -> None:
        """Assign the turns that have not come yet, in their order, and none later than before."""
        last, gap = self._last, self._gap()
        for turn in self._waiting:
            if turn.at > now:
                turn.at = max(min(last + gap, turn.at), now, self._since)
            last = turn.at

    def _gap(self) -> float:
        """Return the seconds between two turns."""
        rate = self.rate()
        return 1 / rate if rate else 0.0

    def _first_rate(self, now: float) -> float:
        """Return half of the recent rate of responses, at most the limit."""
        answers = len(self._answered)
        measured = 2 * _USUAL if answers < _TELLING else answers / max(now - self._answered[0], 0.001)
        return min(measured, self._limit or math.inf) / 2
