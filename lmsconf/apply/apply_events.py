"""What an apply reports while it runs: its phases, what it reads, waits for and sends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

from lmsconf.model.calls import Call, CallStatus, RateLimit, Report, RunProgress
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot

if TYPE_CHECKING:
    from lmsconf.documents.journal.journal_reader import PendingWrites

Phase: TypeAlias = Callable[[str], AbstractContextManager[Report]]
"""A phase with this label begins. The context's value receives its progress."""


def unreported(label: str) -> AbstractContextManager[Report]:
    """A phase whose progress nobody receives."""
    return nullcontext(lambda progress: None)


class ApplyProgress:
    """What an apply reports while it runs. Every method does nothing here; override those that you need."""

    def phase(self, label: str) -> AbstractContextManager[Report]:
        """A phase begins: Reading, Checking, Applying or Verifying. The context's value receives the progress."""
        return unreported(label)

    def planned(self, plan: Plan) -> None:
        """The plan is made or loaded, and nothing has been checked yet."""

    def workspace_read(self, snapshot: Snapshot) -> None:
        """The workspace, or the part that is needed, was read: for the plan, to check it, or to verify the result."""

    def waiting(self, seconds: float) -> None:
        """A write is not visible yet; the run waits at most so many seconds for it."""

    def waiting_for_lock(self, seconds: float) -> None:
        """The run's own lock is not listed yet; the run waits at most so many seconds for it."""

    def waiting_for_earlier_run(self, writes: PendingWrites) -> None:
        """Writes of an earlier run may still take effect; the run waits `writes.seconds` before it reads."""
        self.note(str(writes))

    def call_started(self, call: Call) -> None:
        """A call is about to be sent, or sent again. Several threads may call this at a time."""

    def call_ended(self, outcome: CallOutcome) -> None:
        """A call has ended, or is not sent because an earlier one failed or the run stopped."""

    def note(self, text: str) -> None:
        """A sentence for people, such as why the start is delayed or that a lock could not be removed."""

    def stopped(self, report: ApplyReport) -> None:
        """The run ends before its first call with an error, which is raised next."""

    def interrupted(self, error: KeyboardInterrupt) -> None:
        """Ctrl-C or SIGTERM before the first call."""


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
