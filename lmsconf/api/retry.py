"""Which calls are tried again, and after how long. Clock, sleep and chance are passed in."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

TOO_MANY, UNAVAILABLE = 429, 503
_PASSING = frozenset({TOO_MANY, 500, 502, UNAVAILABLE, 504})
"""Statuses after which a read may do better."""
NOT_NOW = frozenset({TOO_MANY, UNAVAILABLE})
"""Statuses of a service that is asked too much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How patient a client is, and all clients of a run together.

    A service that is gone, hangs, or only says "later" ends a run at most two minutes (`enough`) after the first
    request that it left without an answer. Only the look-up of its name by the system is not within our hands.

    tries         how often one call is sent at most to a service that fails; one that is asked too much, or says when
                  to come again, is asked as long as patience lasts
    first         the longest wait before the second try, in seconds; it doubles with each further try
    longest       what it grows to at most
    longest_ask   what of a Retry-After is heeded at most
    patience      how long one call waits between its tries, all waits together
    enough        seconds without an answer to anybody after which a run gives up
    straight      failures in a row after which it does
    now           seconds since the epoch, for a Retry-After that is a date
    clock         seconds that only ever pass
    chance        a random number from 0 to 1
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
        """Whether an answer says anything but "later"."""
        return status not in _PASSING

    def is_too_much(self, status: int, *, lives: bool, retry_after: str | None) -> bool:
        """Whether an answer says that the service is asked too much, rather than that it fails.

        lives: whether it has answered before. Some limit the rate with a bare 503, which from a service that was never
        heard may as well mean that nobody is there.
        """
        return status == TOO_MANY or (status == UNAVAILABLE and (lives or retry_after is not None))

    def heeds(self, status: int, *, writes: bool, retry_after: str | None) -> bool:
        """Whether a call that got this answer may be sent again.

        A write may only where the service says that it did nothing: "too many", or "unavailable until".
        """
        if not writes:
            return status in _PASSING
        return status == TOO_MANY or (status == UNAVAILABLE and retry_after is not None)

    def pause(
        self, tried: int, waited: float, retry_after: str | None = None, *, too_much: bool = False
    ) -> float | None:
        """Seconds until the next try, after `tried` of them and `waited` seconds; None: enough.

        too_much: the service lives and is asked too much.
        """
        left, asked = self.patience - waited, self.asked(retry_after)
        if left <= 0 or (tried >= self.tries and not too_much and asked is None):
            return None
        if asked is not None:
            # Coming earlier than asked would only be refused again. Who came then and was refused comes later still.
            pause = max(asked, self._half_jitter(tried - 1))
            return pause if pause <= left else None
        if too_much:
            return min(self._half_jitter(tried), left)
        # Full jitter: clients that failed together should not come back together.
        return min(self.chance() * self._longest(tried), left)

    def _half_jitter(self, tried: int) -> float:
        """At least half of the longest wait: many tries that come at once would only be refused at once."""
        return (0.5 + self.chance() / 2) * self._longest(tried) if tried else 0.0

    def _longest(self, tried: int) -> float:
        return min(self.first * 2.0 ** min(tried - 1, 30), self.longest)

    def asked(self, retry_after: str | None) -> float | None:
        """The seconds that a Retry-After header asks for, bounded; None where it says nothing readable."""
        text = (retry_after or "").strip()
        if text.isascii() and text.isdigit():
            return min(float(text[:9]), self.longest_ask)
        from email.utils import parsedate_to_datetime  # e-mail's reader of dates takes a while to import

        try:
            date = parsedate_to_datetime(text)
        except (ValueError, OverflowError):
            return None
        until = (date if date.tzinfo else date.replace(tzinfo=UTC)) - datetime.fromtimestamp(self.now(), UTC)
        return min(max(until.total_seconds(), 0.0), self.longest_ask)
