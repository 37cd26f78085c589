"""Words for progress: how many requests are done, and how long the rest takes under a rate limit."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from lmsconf.model.progress import RateLimit, RunProgress
from lmsconf.model.time_formats import duration_in_words

_EVERY: Final = 60.0
"""Seconds between two lines about the same limit; a pause up to this long is not reported."""
_FIRST: Final = 15.0
"""Seconds under a limit before the first line: sooner, an estimate would say little."""
_TELLING: Final = 10
"""Requests needed for an estimate."""
_SETTLED: Final = 3.0
"""Seconds under a limit before requests count: responses to those sent before it still come in."""
_SAME: Final = 2.0
"""Seconds by which the end of one pause may differ from call to call."""


def count_text(progress: RunProgress) -> str:
    """Return such as `158 of at least 1,576`; without `at least` once the total is known."""
    return f"{progress.done:,} of {'' if progress.is_final else 'at least '}{progress.total:,}"


class LimitWording:
    """Words what limits the rate of one phase: a pause at once, the rate and what is left once a minute."""

    def __init__(self) -> None:
        self._told_at: float | None = None
        self._begun: tuple[float, int] | None = None
        self._seen_at = 0.0
        self._resumes_at = 0.0

    def due_line(self, progress: RunProgress) -> str | None:
        """Return the line to show now, if one is due."""
        limit = progress.limit
        if limit is None:
            self._begun = None
            return None
        line = self._pause(limit) if limit.resumes_in > _EVERY or limit.at < self._resumes_at else None
        if line is None and limit.at >= self._resumes_at:
            line = self._rate(progress, limit)
        if line is not None:
            self._told_at = limit.at
        return line

    def _pause(self, limit: RateLimit) -> str | None:
        """Return the line for a pause of more than a minute that the service asks for: at once, then each minute."""
        resumes_at = limit.at + limit.resumes_in
        time = datetime.fromtimestamp(limit.wall + limit.resumes_in).astimezone().strftime("%H:%M")
        if resumes_at > self._resumes_at + _SAME:
            self._resumes_at, self._begun = resumes_at, None
            return f"the service asks to wait {duration_in_words(limit.resumes_in)}; resuming at {time}"
        if self._is_due(limit.at):
            return f"still waiting for the service, {duration_in_words(limit.resumes_in)} more; resuming at {time}"
        return None

    def _rate(self, progress: RunProgress, limit: RateLimit) -> str | None:
        if self._begun is None:
            self._seen_at = limit.at
        if self._begun is None or limit.at < self._seen_at + _SETTLED:
            self._begun = (limit.at, progress.done)
        begun, done_before = self._begun
        seconds, done, left = limit.at - begun, progress.done - done_before, progress.total - progress.done
        if limit.rate is None or seconds < _FIRST or done < _TELLING or not left or not self._is_due(limit.at):
            return None
        rate, time = _rate_text(limit.rate), duration_in_words(left * seconds / done)
        if progress.is_final:
            return f"limited to {rate} requests a second; {left:,} left, about {time}"
        return f"limited to {rate} requests a second; at least {left:,} left, about {time} or more"

    def _is_due(self, now: float) -> bool:
        return self._told_at is None or now - self._told_at >= _EVERY


def _rate_text(rate: float) -> str:
    """Return two significant digits, or a whole number."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
