"""How many requests a second a service accepts: measured between refusals, and the rate to send at that follows."""

from __future__ import annotations

import math
from collections import deque
from typing import Final, NamedTuple

_ENOUGH: Final = 100
"""Responses that measure a rate to about a hundredth."""
_SLOWEST: Final = 0.2
"""Minimum learnt rate in requests a second; with less a run would hardly progress."""
_BELOW: Final = 0.97
"""Factor on a learnt rate: sent exactly as fast as the service accepts, an early request would be refused."""
_TRUSTED: Final = 2.0
"""A refused rate says something about the right one up to this factor above the measured one."""
_LEAST_CERTAIN: Final = 4
_MOST_CERTAIN: Final = 200
_BACK: Final = 8.0
"""Factor by which the rate grows with each response, back to the rate before refusals without any response between."""
_UNCERTAIN: Final = 0.5
_MOST_REFUSALS: Final = 64
"""Refusals that are remembered; after so many among so few responses, the older ones measure nothing."""
_SETTLED: Final = 3.0
"""Seconds after the first refusal before responses count for the average: some requests were sent before it."""


class MeasuredRate(NamedTuple):
    """Requests a second, and the number of responses that it was measured with."""

    rate: float
    responses: int


class _Refusal(NamedTuple):
    """A refusal: its time, without the time that was skipped, and the number of responses before it."""

    at: float
    responses: int


class AcceptedRate:
    """Counts responses, and remembers refusals: at each of them the service has accepted all that it allows."""

    def __init__(self) -> None:
        self._responses = self._refused_after = 0
        self._skipped = 0.0
        self._refusals: deque[_Refusal] = deque(maxlen=_MOST_REFUSALS)
        self._begun: float | None = None
        self._first = _Refusal(0.0, 0)

    @property
    def since_refusal(self) -> int:
        """The number of responses since the last refusal."""
        return self._responses - self._refused_after

    def begin(self, now: float) -> None:
        """Begin to measure, unless that has begun."""
        if self._begun is None:
            self._begun = now - self._skipped
            self._first = _Refusal(self._begun, self._responses)

    def add(self, now: float) -> None:
        """Count a response."""
        self._responses += 1
        if self._begun is not None and now - self._skipped < self._begun + _SETTLED:
            self._first = _Refusal(now - self._skipped, self._responses)

    def skip(self, seconds: float) -> None:
        """Leave out a time in which nothing was asked of the service."""
        self._skipped += seconds

    def refuse(self, now: float) -> None:
        """Remember a refusal, and forget those that are not needed to measure any more."""
        self.begin(now)
        self._refusals.append(_Refusal(now - self._skipped, self._responses))
        self._refused_after = self._responses
        while len(self._refusals) > 1 and self._responses - self._refusals[1].responses >= _ENOUGH:
            self._refusals.popleft()

    def measure(self, now: float) -> MeasuredRate | None:
        """Return the rate since an earlier refusal, the last one with enough responses since; None without any."""
        if not self._refusals or self._responses == self._refusals[0].responses:
            return None
        first = self._refusals[0]
        accepted = self._responses - first.responses
        # A rate that is too low takes long to be found out, one that is too high the time of one refusal.
        return MeasuredRate((accepted + 1) / max(now - self._skipped - first.at, 0.001), accepted)

    def average(self, now: float) -> float | None:
        """Return the rate since measuring began; None if nothing was accepted since."""
        accepted, seconds = self._responses - self._first.responses, now - self._skipped - self._first.at
        return accepted / seconds if accepted and seconds > 0 else None


class LearntRate:
    """The rate to send at, learnt from refusals and responses.

    The right rate is at least the one measured between refusals, and where it was reached slowly, near the one that was
    refused: from their geometric mean it grows with the square of the responses, so slowly at first that few requests
    are refused, and the slower the more responses it was measured with. A refusal without a response since the last one
    halves the rate; responses then bring it back quickly.
    """

    def __init__(self, rate: float) -> None:
        self._target = self._reduced = rate
        self._certainty: float = _LEAST_CERTAIN

    def rate(self, responses: int) -> float:
        """Return the rate after so many responses since the last refusal."""
        back = self._reduced * _BACK ** min(responses, _ENOUGH)
        return min(back, self._target * (1 + (responses / (2 * self._certainty)) ** 2))

    def refuse(self, responses: int, measured: MeasuredRate | None) -> None:
        """Learn from a refusal after so many responses since the last one."""
        refused = self.rate(responses)
        if responses and measured is not None:
            mean = math.sqrt(measured.rate * min(refused, _TRUSTED * measured.rate))
            self._target = self._reduced = max(mean * _BELOW, _SLOWEST)
            self._certainty = min(max(measured.responses, _LEAST_CERTAIN), _MOST_CERTAIN)
            return
        self._reduced = max(refused / 2, _SLOWEST)
        if measured is None:
            self._target, self._certainty = self._reduced, _UNCERTAIN
