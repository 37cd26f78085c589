"""Budget: what all clients of a run together spend on a service that does not answer, before they give it up."""

from __future__ import annotations

import math
import threading
from typing import Final

from lmsconf.api.retry import Retry

_WELL: Final = 0
_TOO_LITTLE: Final = 1.0
"""Seconds in which no answer is to be expected; a write sent with so little left would only be lost."""


class CircuitBreaker:
    """How much trouble in a row is enough. Safe to use from many threads.

    Trouble begins when a request is sent that ends in no answer, or in one that only says "later", and is over with
    the next answer of any other kind. It is enough when one call has used up its tries, when `straight` requests have
    failed (or each client's usual number of tries, where there are many), or when the seconds of the budget are over.
    A request that was only too much is no failure, since the service lives: then time and patience alone are the end.
    Once it is enough, nothing more is sent; after as long again, a program that still runs may begin anew.
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
        """Hears how many clients there are: a moment of trouble meets all of them at once."""
        self._most = max(self._most, clients * self._retry.tries)

    @property
    def trouble(self) -> int:
        """Which trouble this is; 0 while all is well."""
        return self._trouble

    @property
    def lives(self) -> bool:
        """Whether the service has ever answered."""
        return self._lives

    @property
    def too_much(self) -> bool:
        """Whether the trouble is, as far as was heard last, that the service is asked too much."""
        return self._too_much

    def left(self) -> float:
        """Seconds until it is enough; 0 when it is, and no end while all is well."""
        if self._trouble == _WELL:
            return math.inf
        with self._lock:
            return self._left(self._retry.clock())

    def answered(self) -> None:
        """Hears that the service lives."""
        self._lives = True
        if self._trouble != _WELL:
            with self._lock:
                self._calm()

    def failed(self, sent: float, *, too_much: bool = False) -> None:
        """Hears that a request sent at that time brought nothing, be it that it was only too much."""
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
        """Hears that a call which began in that trouble has used up its tries."""
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
