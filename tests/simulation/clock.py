"""Time that passes only when somebody waits for it, and not for ever."""

from __future__ import annotations

from typing import Final

BEGIN: Final = 1_767_225_600.0  # 2026-01-01T00:00:00Z
BOUND: Final = 4 * 3600.0


class HungRun(AssertionError):
    """A run that waits longer, or asks more often, than any run should."""


class Clock:
    """Virtual seconds since the beginning of a schedule."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def reset(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        """Seconds since the epoch."""
        return BEGIN + self.seconds

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Lets time pass. Raises Hung when a schedule takes hours."""
        self.seconds += seconds
        if self.seconds > BOUND:
            raise HungRun(f"{self.seconds:.0f} virtual seconds have passed")
