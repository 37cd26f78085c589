"""After a run that nobody saw the end of: what it has sent may still arrive, what it has made may not show yet.

A plan that is made too early would do either twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from lmsconf.journal.reading import runs
from lmsconf.model.recorded_run import RecordedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """What a run had in flight, and made unseen, and the seconds until all of it has arrived and shows."""

    run: str
    calls: int
    made: int
    seconds: float

    def __str__(self) -> str:
        wait = f"Waiting {ceil(self.seconds)} s before looking at the workspace, because what was"
        if self.calls:
            calls = "1 call" if self.calls == 1 else f"{self.calls} calls"
            return f"The run {self.run} ended with {calls} in flight. {wait} sent may still arrive."
        things = "1 thing" if self.made == 1 else f"{self.made} things"
        return f"The run {self.run} made {things} that it did not see afterwards. {wait} made may not show yet."


def pending(root: Path, url: str, *, now: datetime, settle: float) -> Pending | None:
    """What may still arrive at the workspace with that url, or show there; None when there is nothing to wait for.

    settle: for how many seconds after it was sent a call may arrive, and after it was made something may not show.
    """
    for run in runs(root):
        if run.opening is None or run.opening.url == url:
            found = _pending(run, now, settle)
            # A run waits for those before it, so none that is older than a readable one can matter.
            if found is not None or run.opening is not None:
                return found
    return None


def let_arrive(
    root: Path,
    url: str,
    settle: float,
    *,
    tell: Callable[[str], None],
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Waits, and tells for how long and why, until nothing that an earlier run has sent can arrive any more."""
    found = pending(root, url, now=clock(), settle=settle)
    if found is not None:
        tell(str(found))
        sleep(found.seconds)


def _pending(run: RecordedRun, now: datetime, settle: float) -> Pending | None:
    sent = [call.begun for call in run.in_flight if call.begun is not None]
    made = [call.ended for call in run.unseen if call.ended is not None]
    # A clock that was set back makes a call look as if it were sent tomorrow; that is no reason to wait until then.
    last = max([*sent, *made], default=None)
    seconds = min(settle, settle - (now - last).total_seconds()) if last is not None else 0.0
    return Pending(run=run.name, calls=len(sent), made=len(made), seconds=seconds) if seconds > 0 else None
