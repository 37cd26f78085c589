"""Retry policy: which requests are retried, and after how long. Clock, sleep and randomness are injected."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

TOO_MANY, UNAVAILABLE = 429, 503
_PASSING = frozenset({TOO_MANY, 500, 502, UNAVAILABLE, 504})
"""Transient statuses, after which a read is retried."""
NOT_NOW = frozenset({TOO_MANY, UNAVAILABLE})
"""Statuses that slow the rate limiter down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Retry policy of a client, and limits of the circuit breaker that the clients of a run share.

    A service that is down, hangs, or returns only transient statuses ends a run at most two minutes (`enough`) after
    the first request that failed so; only the system's DNS lookup cannot be bounded. Durations are in seconds.

    tries         maximum attempts of one call; while rate-limited or given a Retry-After, only `patience` limits them
    first         maximum wait before the second attempt; doubles with each further one
    longest       upper bound of that maximum
    longest_ask   upper bound of a Retry-After
    patience      maximum total wait of one call between its attempts
    enough        outage after which the circuit breaker opens
    straight      consecutive failures after which it opens
    now           wall clock since the epoch, for a Retry-After that is a date
    clock         monotonic clock
    chance        random number from 0 to 1
    """

    tries: int = 4
    first: float = 0.5
    longest: float = 10.0
    longest_ask: float = 60.0
    patience: float = 90.0
    enough: float = 120.0
    straight: int = 20
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.time
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random

    def is_alive(self, status: int) -> bool:
        """Return whether a status is not transient."""
        return status not in _PASSING

    def is_too_much(self, status: int, *, lives: bool, retry_after: str | None) -> bool:
        """Return whether a response means rate limiting rather than failure.

        lives: the service has answered before. Some services limit the rate with a 503 without Retry-After; from one
        that has never answered, it may as well mean that it is down.
        """
        return status == TOO_MANY or (status == UNAVAILABLE and (lives or retry_after is not None))

    def heeds(self, status: int, *, writes: bool, retry_after: str | None) -> bool:
        """Return whether a request with this response may be retried.

        A write only after 429, or 503 with Retry-After: statuses that say that it was not carried out.
        """
        if not writes:
            return status in _PASSING
        return status == TOO_MANY or (status == UNAVAILABLE and retry_after is not None)

    def pause(
        self, tried: int, waited: float, retry_after: str | None = None, *, too_much: bool = False
    ) -> float | None:
        """Return the seconds until the next attempt, after `tried` attempts and `waited` seconds; None: give up.

        too_much: the service is up and limits the rate.
        """
        left, requested = self.patience - waited, self.retry_after_seconds(retry_after)
        if left <= 0 or (tried >= self.tries and not too_much and requested is None):
            return None
        if requested is not None:
            # A retry before Retry-After would be refused again. After a second refusal, back off further than asked.
            pause = max(requested, self._half_jitter(tried - 1))
            return pause if pause <= left else None
        if too_much:
            return min(self._half_jitter(tried), left)
        # Full jitter: clients that failed together should not retry together.
        return min(self.chance() * self._longest(tried), left)

    def _half_jitter(self, tried: int) -> float:
        """Return at least half of the longest wait: many retries at once would be refused at once."""
        return (0.5 + self.chance() / 2) * self._longest(tried) if tried else 0.0

    def _longest(self, tried: int) -> float:
        return min(self.first * 2.0 ** min(tried - 1, 30), self.longest)

    def retry_after_seconds(self, retry_after: str | None) -> float | None:
        """Return a Retry-After header in seconds, at most `longest_ask`; None if missing or malformed."""
        text = (retry_after or "").strip()
        if text.isascii() and text.isdigit():
            return min(float(text[:9]), self.longest_ask)
        from email.utils import parsedate_to_datetime  # slow to import

        try:
            date = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        until = (date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.fromtimestamp(self.now(), UTC)
        return min(max(until.total_seconds(), 0.0), self.longest_ask)
