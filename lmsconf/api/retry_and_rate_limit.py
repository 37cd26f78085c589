"""When requests are sent: which are retried, after how long, when a run ends, and at which rate.

The rate limiter is a token bucket, shared by all clients of a run; it heeds Retry-After, and learns the rate that a
service accepts. Clock, sleep and randomness are injected.
"""

from __future__ import annotations

import math
import random
import threading
import time
from calendar import timegm
from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from lmsconf.model.calls import RateLimit

TOO_MANY, UNAVAILABLE = 429, 503
TRANSIENT = frozenset({TOO_MANY, 500, 502, UNAVAILABLE, 504})
"""Statuses after which a read is retried."""
NOT_NOW = frozenset({TOO_MANY, UNAVAILABLE})
"""Statuses that slow the rate limiter down."""


def is_not_carried_out(status: int, retry_after: str | None) -> bool:
    """Whether a response says that nothing was done with the request: 429, or 503 with a Retry-After."""
    return status == TOO_MANY or (status == UNAVAILABLE and retry_after is not None)


def seconds_of(retry_after: str | None) -> float | None:
    """Return the number of a Retry-After, of which nine digits count; None without one, as for a date."""
    text = (retry_after or "").strip()
    return float(text[:9]) if text.isascii() and text.isdigit() else None


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """Retry policy of a client, and limits of an outage.

    A service that is down, hangs, or returns only transient statuses ends a run at most two minutes (`max_outage`)
    after the first request that failed so; only the system's DNS lookup cannot be bounded. If it asks with Retry-After
    to wait for more than a minute, that is waited for, at most an hour (`patience`) after that request. Durations are
    in seconds.

    max_attempts     of one call; while rate-limited or given a Retry-After, only `max_total_wait` limits them
    short_retry_after  a Retry-After up to this counts for `max_total_wait` and `max_outage`; one beyond `patience` is
                     taken for this
    patience         maximum outage while the service asks to wait for longer than `short_retry_after`
    max_total_wait   of one call between its attempts
    max_outage       outage after which nothing is sent any more
    wall_clock       since the epoch, for a Retry-After that is a date
    clock            monotonic clock
    random_number    from 0 to 1
    """

    max_attempts: int = 4
    short_retry_after: float = 60.0
    patience: float = 3600.0
    max_total_wait: float = 90.0
    max_outage: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    wall_clock: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    random_number: Callable[[], float] = random.random

    def is_rate_limited(self, status: int | None, *, has_ever_responded: bool, retry_after: str | None) -> bool:
        """Return whether a response means rate limiting rather than failure. status: None without a response.

        A 503 without Retry-After does only from a service that has answered before: else it may be down.
        """
        return status == TOO_MANY or (status == UNAVAILABLE and (has_ever_responded or retry_after is not None))

    def wait_before_retry(
        self,
        attempts: int,
        waited: float,
        retry_after: str | None = None,
        *,
        rate_limited: bool = False,
        status: int | None = TOO_MANY,
    ) -> float | None:
        """Return the seconds until the next attempt, after `attempts` and `waited` seconds; None: give up.

        rate_limited: the service is up and limits the rate. status: with one that is not in `NOT_NOW`, a
        Retry-After counts as a short one.
        """
        left, requested = self.max_total_wait - waited, self.parse_retry_after(retry_after)
        if requested is not None and self.is_long(requested) and status in NOT_NOW:
            # The limits of an outage bound these waits.
            return requested
        if left <= 0 or (attempts >= self.max_attempts and not rate_limited and requested is None):
            return None
        if requested is not None:
            # A retry before Retry-After would be refused again. After a second refusal, back off further than asked.
            pause = max(min(requested, self.short_retry_after), self._backoff(attempts - 1))
            return pause if pause <= left else None
        return min(self._backoff(attempts), left)

    def _backoff(self, tried: int) -> float:
        """Return a wait of up to half a second, then twice as long, at most ten; at least half of that.

        Clients that failed together should not retry together, and retries at once would be refused at once.
        """
        longest = min(0.5 * 2.0 ** min(tried - 1, 30), 10.0)
        return (0.5 + self.random_number() / 2) * longest if tried else 0.0

    def is_long(self, pause: float) -> bool:
        """Return whether a Retry-After extends an outage."""
        return pause > self.short_retry_after

    def parse_retry_after(self, retry_after: str | None) -> float | None:
        """Return a Retry-After header in seconds, one beyond `patience` shortened; None if missing or malformed."""
        seconds = seconds_of(retry_after)
        if seconds is None:
            from email.utils import parsedate_to_datetime  # slow to import

            try:
                # A date without a zone is in UTC.
                until = timegm(parsedate_to_datetime((retry_after or "").strip()).utctimetuple())
            except (ValueError, OverflowError):
                return None
            seconds = max(until - self.wall_clock(), 0.0)
        # One that nobody would wait for is tried sooner, within the usual outage.
        return seconds if seconds <= self.patience else self.short_retry_after


class Outage:
    """Whether the service of a run answers, shared by all its clients. Thread-safe.

    An outage starts when a request is sent that gets no response or a transient status, and ends with the next response
    of any other status. It ends the run, so that nothing more is sent, `max_outage` seconds after it started (later if
    the service asked to wait for more than a minute), or when a call stops retrying. A program that goes on, as one
    that waits until its writes are visible, may send again `max_outage` seconds later.

    responses: how many requests were answered. is_rate_limited: the last failure was rate limiting. is_stopped: the run
    has ended.
    """

    def __init__(self, retry: RetryPolicy) -> None:
        self._retry, self._lock = retry, threading.Lock()
        self.responses = 0
        self.is_rate_limited = self.is_stopped = False
        self._reset()

    def _reset(self) -> None:
        self._started = self._limit = self._over = math.inf

    def seconds_left(self) -> float:
        """Return the seconds until the outage ends the run: 0 once it has, infinity without an outage."""
        if self.is_stopped:
            return 0.0
        with self._lock:
            now = self._retry.clock()
            # A second is too short for a response: a write sent with less would only end with an unknown result.
            if now > self._limit - 1.0:
                self._over = min(self._over, now)
            if self._over == math.inf:
                return self._limit - now
            if now - self._over < self._retry.max_outage:
                return 0.0
            self._reset()
            return math.inf

    def stop(self) -> None:
        """Send nothing more: the run has ended, and nobody waits for what its threads still ask for."""
        self.is_stopped = True

    def record_response(self) -> None:
        """Record a response that is not transient; it ends the outage."""
        with self._lock:
            self.responses += 1
            self._reset()

    def record_failure(self, sent_at: float, *, rate_limited: bool = False, retry_after: float | None = None) -> None:
        """Record a failed request.

        sent_at: on the clock of `RetryPolicy`. rate_limited: it was refused as too many. retry_after: in seconds.
        """
        with self._lock:
            now, retry = self._retry.clock(), self._retry
            if self._started == math.inf:
                self._started, self._limit = sent_at, sent_at + retry.max_outage
            if retry_after is not None and retry.is_long(retry_after):
                # A minute after the pause, within the patience.
                self._limit = max(
                    self._limit,
                    min(now + retry_after, self._started + retry.patience) + retry.short_retry_after,
                )
            self.is_rate_limited = rate_limited

    def record_give_up(self, responses: int) -> None:
        """Record that a call stops retrying. responses: how many there were when it first failed."""
        with self._lock:
            if responses == self.responses:
                self._over = min(self._over, self._retry.clock())


_FIRST_RATE: Final = 20.0
"""The rate after the first refusal, in requests a second: nothing is measured yet."""
_LOWEST_RATE: Final = 0.2
"""Minimum learnt rate in requests a second; with less a run would hardly progress."""
_TOLD_EVERY: Final = 60.0
"""Maximum seconds of one sleep, so that a waiting run can report its state in between."""


class _Refusal(Struct, frozen=True):
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
        self._ceiling = self._resumed = math.inf
        self._last = self._since = self._slept = -math.inf
        self._responses = 0
        self._refusals: deque[_Refusal] = deque()
        self.on_wait: Callable[[], None] = lambda: None

    def wait_turn(self, seconds_left: Callable[[], float]) -> bool:
        """Wait for the caller's turn. Return False once no time is left, at once if a Retry-After takes it all."""
        while True:
            left = seconds_left()
            if self.rate() is None:
                return left > 0
            with self._lock:
                now = self._clock()
                if left <= 0 or self._since - now >= left:
                    return False
                at = max(self._last + self._gap(), self._since)
                if at <= now:
                    self._last = now
                    return True
            # A refusal of another request during the sleep postpones the turn, and responses bring it forward:
            # look again after a second at the earliest.
            self._nap(min(at - now, left, _TOLD_EVERY, max(self._since - now, (at - now) / 2, 1.0)))
            self._slept = self._clock()

    def pause(self, seconds: float, seconds_left: Callable[[], float]) -> None:
        """Sleep for so long, before a retry, or until no time is left."""
        while seconds > 0 and seconds_left() > 0:
            self._nap(min(seconds, _TOLD_EVERY))
            seconds -= _TOLD_EVERY

    def record_response(self, sent_at: float) -> None:
        """Record a response to a request sent at that time that is not transient."""
        if self._learnt is None:
            return
        with self._lock:
            if sent_at <= self._refusals[0].at:
                return
            self._resumed = min(self._resumed, sent_at)
            self._responses += 1
            # A rate that is too low is found out: it grows by 0.8 % with each response, and by half until a rate
            # is measured and up to that before refusals without a response between them.
            self._learnt = min(self._learnt * 1.5, max(self._learnt, self._ceiling) * 1.008)
            self._ceiling = max(self._ceiling, self._learnt)

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
        if self.rate() is None or now - max(self._slept, self._since) > _TOLD_EVERY:
            return None
        return RateLimit(
            at=now,
            # The pause that the first refusal asked for is no time in which anything was accepted.
            rate=(self._accepted_rate(now, self._resumed) or None) if self._refusals else self._limit,
            resumes_in=max(self._since - now, 0.0),
            wall=self._wall_clock(),
        )

    def _nap(self, seconds: float) -> None:
        self.on_wait()
        self._sleep(seconds)

    def _learn(self, now: float) -> None:
        """Learn a rate from a refusal, and forget refusals that are not needed to measure any more."""
        if self._learnt is None:
            self._learnt = min(_FIRST_RATE, (self._limit or math.inf) / 2)
        elif self._responses == self._refusals[-1].responses:
            self._learnt = max(self._learnt / 2, _LOWEST_RATE)
        else:
            accepted = self._accepted_rate(now)
            refused = min(self._learnt, 2 * accepted)
            # What the service takes is between the two. Exactly as fast, an early request would be refused.
            self._learnt = self._ceiling = max(0.97 * math.sqrt(accepted * refused), _LOWEST_RATE)
        self._refusals.append(_Refusal(now, self._responses))
        # A hundred responses measure a rate to about a hundredth.
        while len(self._refusals) > 1 and self._responses - self._refusals[1].responses >= 100:
            self._refusals.popleft()

    def _accepted_rate(self, now: float, since: float = -math.inf) -> float:
        """Return the requests a second that were accepted since the first refusal that is kept, or since then."""
        first = self._refusals[0]
        return (self._responses - first.responses) / max(now - max(first.at, since), 0.001)

    def _gap(self) -> float:
        """Return the seconds between two turns."""
        rate = self.rate()
        return 1 / rate if rate else 0.0
