"""The phases of an apply (Reading, Checking, Applying, Verifying), and the progress of each."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import CallOutcome
from lmsconf.model.progress import RateLimit, Report, RunProgress

Phase: TypeAlias = Callable[[str], AbstractContextManager[Report]]
"""A phase with this label begins. The context's value receives its progress."""


def unreported(label: str) -> AbstractContextManager[Report]:
    """A phase whose progress nobody receives."""
    return nullcontext(lambda progress: None)


class CallCounter:
    """Progress of Applying, in calls: all of them are known from the start. Thread-safe."""

    def __init__(self, calls: int, report: Report) -> None:
        self._calls, self._report = calls, report
        self._done = 0
        self._limit: RateLimit | None = None
        self._lock = threading.Lock()

    def count(self, outcome: CallOutcome) -> None:
        """Report one more call, unless it was not attempted."""
        with self._lock:
            self._done += outcome.status is not CallStatus.NOT_ATTEMPTED
            self._tell()

    def report(self, progress: RunProgress) -> None:
        """Report what limits the rate of requests. Their number is not shown: one call can take several."""
        with self._lock:
            self._limit = progress.limit
            if self._limit is not None:
                self._tell()

    def _tell(self) -> None:
        self._report(RunProgress(done=self._done, total=self._calls, is_final=True, limit=self._limit))
