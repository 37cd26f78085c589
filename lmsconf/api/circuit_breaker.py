"""Circuit breaker, shared by all clients of a run: stops sending to a service that does not answer."""

from __future__ import annotations

import math
import threading
from typing import Final

from lmsconf.api.retry import Retry

_WELL: Final = 0
_TOO_LITTLE: Final = 1.0
"""Seconds too short for a response: a write sent with less time left would only end with an unknown result."""


class CircuitBreaker:
    """Opens after N consecutive failures or T seconds of outage. Thread-safe.

    An outage starts when a request is sent that gets no response or a transient status (429, 500, 502, 503, 504), and
    ends with the next response of any other status. The breaker opens when one call stops retrying, after
    `Retry.straight` consecutive failures (or clients times `Retry.tries`, if more), or `Retry.enough` seconds after the
    outage started. A rate-limited request is not counted as a failure, since the service is up.
    While open, nothing is sent. It closes again after `Retry.enough` seconds, for long-running programs.
    """

    def __init__(self, retry: Retry) -> None:
        self._retry = retry
        self._most = retry.straight
        self._lock = threading.Lock()
        self._failed = 0
        self._lives = self._too_much = False
        self._trouble = _WELL
        self._troubles = 0
        self._end = math.inf
        self._spent_at: float | None = None

    def side_by_side(self, clients: int) -> None:
        """Set the number of concurrent clients: a short outage fails requests of all of them at once."""
        self._most = max(self._most, clients * self._retry.tries)

    @property
    def trouble(self) -> int:
        """The number of the current outage, counted from 1; 0 if there is none."""
        return self._trouble

    @property
    def lives(self) -> bool:
        """Whether the service has ever sent a response that is not transient."""
        return self._lives

    @property
    def too_much(self) -> bool:
        """Whether the last failure reported was rate limiting."""
        return self._too_much

    def left(self) -> float:
        """Return the seconds until the breaker opens: 0 if it is open, infinity without an outage."""
        if self._trouble == _WELL:
            return math.inf
        with self._lock:
            return self._left(self._retry.clock())

    def answered(self) -> None:
        """Record a response that is not transient; it ends the outage and closes the breaker."""
        self._lives = True
        if self._trouble != _WELL:
            with self._lock:
                self._calm()

    def failed(self, sent: float, *, too_much: bool = False) -> None:
        """Record a failed request. sent: when it was sent, on the clock of `Retry`. too_much: it was rate-limited."""
        with self._lock:
            if self._trouble == _WELL:
                self._troubles += 1
                self._trouble = self._troubles
                self._end = sent + self._retry.enough
            self._too_much = too_much
            if too_much:
                return
            self._failed += 1
            if self._failed >= self._most:
                self._spend()

    def gave_up(self, trouble: int) -> None:
        """Record that a call whose first failure was in that outage stopped retrying."""
        with self._lock:
            if trouble == self._trouble != _WELL:
                self._spend()

    def _left(self, now: float) -> float:
        if self._spent_at is None and now > self._end - _TOO_LITTLE:
            self._spend()
        if self._spent_at is None:
            return self._end - now
        if now - self._spent_at < self._retry.enough:
            return 0.0
        self._calm()
        return math.inf

    def _spend(self) -> None:
        if self._spent_at is None:
            self._spent_at = self._retry.clock()

    def _calm(self) -> None:
        self._trouble, self._failed, self._end, self._spent_at = _WELL, 0, math.inf, None
