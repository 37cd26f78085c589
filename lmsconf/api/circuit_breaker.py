"""Circuit breaker, shared by all clients of a run: stops sending to a service that does not answer."""

from __future__ import annotations

import math
import threading
from typing import Final

from lmsconf.api.retry import RetryPolicy

_WELL: Final = 0
_TOO_LITTLE: Final = 1.0
"""Seconds too short for a response: a write sent with less time left would only end with an unknown result."""


class CircuitBreaker:
    """Opens after N consecutive failures or T seconds of outage. Thread-safe.

    An outage starts when a request is sent that gets no response or a transient status (429, 500, 502, 503, 504), and
    ends with the next response of any other status. The breaker opens when one call stops retrying, after
    `RetryPolicy.max_consecutive_failures` (or clients times `RetryPolicy.max_attempts`, if more), or
    `RetryPolicy.max_outage` seconds after the outage started; later if the service asked to wait for more than a
    minute, at most `RetryPolicy.patience` seconds after it started. A rate-limited request is not counted as a failure,
    since the service is up. While open, nothing is sent. It closes again after `RetryPolicy.max_outage` seconds, for
    long-running programs.
    """

    def __init__(self, retry: RetryPolicy) -> None:
        self._retry = retry
        self._most = retry.max_consecutive_failures
        self._lock = threading.Lock()
        self._failed = 0
        self._lives = self._too_much = False
        self._trouble = _WELL
        self._troubles = 0
        self._begun = self._end = math.inf
        self._spent_at: float | None = None

    def set_concurrency(self, clients: int) -> None:
        """Set the number of concurrent clients: a short outage fails requests of all of them at once."""
        self._most = max(self._most, clients * self._retry.max_attempts)

    @property
    def outage_number(self) -> int:
        """The number of the current outage, counted from 1; 0 if there is none."""
        return self._trouble

    @property
    def has_ever_responded(self) -> bool:
        """Whether the service has ever sent a response that is not transient."""
        return self._lives

    @property
    def is_rate_limited(self) -> bool:
        """Whether the last failure reported was rate limiting."""
        return self._too_much

    def seconds_until_open(self) -> float:
        """Return the seconds until the breaker opens: 0 if it is open, infinity without an outage."""
        if self._trouble == _WELL:
            return math.inf
        with self._lock:
            return self._left(self._retry.clock())

    def record_response(self) -> None:
        """Record a response that is not transient; it ends the outage and closes the breaker."""
        self._lives = True
        if self._trouble != _WELL:
            with self._lock:
                self._calm()

    def record_failure(self, sent_at: float, *, rate_limited: bool = False, retry_after: float | None = None) -> None:
        """Record a failed request.

        sent_at: on the clock of `RetryPolicy`. rate_limited: it was refused as too many. retry_after: in seconds.
        """
        with self._lock:
            if self._trouble == _WELL:
                self._troubles += 1
                self._trouble = self._troubles
                self._begun, self._end = sent_at, sent_at + self._retry.max_outage
            if retry_after is not None and self._retry.is_long(retry_after):
                self._end = max(self._end, self._end_of_pause(retry_after))
            self._too_much = rate_limited
            if rate_limited:
                return
            self._failed += 1
            if self._failed >= self._most:
                self._spend()

    def record_give_up(self, outage_number: int) -> None:
        """Record that a call whose first failure was in that outage stopped retrying."""
        with self._lock:
            if outage_number == self._trouble != _WELL:
                self._spend()

    def _end_of_pause(self, retry_after: float) -> float:
        """Return the end of an outage with a pause that the service asked for: a minute later, within the patience."""
        resumed = self._retry.clock() + retry_after
        latest = self._begun + self._retry.patience + self._retry.short_retry_after
        return min(resumed + self._retry.short_retry_after, latest)

    def _left(self, now: float) -> float:
        if self._spent_at is None and now > self._end - _TOO_LITTLE:
            self._spend()
        if self._spent_at is None:
            return self._end - now
        if now - self._spent_at < self._retry.max_outage:
            return 0.0
        self._calm()
        return math.inf

    def _spend(self) -> None:
        if self._spent_at is None:
            self._spent_at = self._retry.clock()

    def _calm(self) -> None:
        self._trouble, self._failed, self._end, self._spent_at = _WELL, 0, math.inf, None
