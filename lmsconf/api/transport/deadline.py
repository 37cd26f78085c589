"""The deadline of one request, from connecting to the last byte of the response."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Deadline:
    """The deadline of the current request, reset for each."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.until = math.inf
        self._seconds = math.inf

    def start(self, seconds: float) -> None:
        """Start the deadline, that many seconds from now."""
        self._seconds = seconds
        self.until = self._clock() + seconds

    @property
    def has_passed(self) -> bool:
        """Whether the deadline has passed."""
        return self._clock() > self.until

    @property
    def missed_message(self) -> str:
        """The message for a missed deadline."""
        return f"no complete response within {self._seconds:.3g} s"

    def cap_timeout(self, timeout: float) -> float:
        """Return the timeout or the seconds left, whichever is less. Raises TimeoutError after the deadline."""
        left = self.until - self._clock()
        if left <= 0:
            raise TimeoutError(self.missed_message)
        return min(timeout, left)

    def now(self) -> float:
        """Return the time on the clock of the deadline, in seconds."""
        return self._clock()
