"""Wait for the writes of an earlier run: calls in flight may still take effect, new resources may not be listed yet.

A plan that is made earlier would repeat them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from math import ceil
from pathlib import Path

from msgspec import Struct

from lmsconf.journal.journal_reader import read_runs
from lmsconf.model.recorded_run import RecordedRun


class PendingWrites(Struct, frozen=True, kw_only=True):
    """The calls in flight and unverified creations of a run, and the seconds until all of them are visible."""

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
        unread = f"The run {self.run} made {things} that it could not read back afterwards."
        return f"{unread} {wait} created may not be readable yet."


def find_pending_writes(root: Path, url: str, *, now: datetime, settle_seconds: float) -> PendingWrites | None:
    """Return the pending writes to the workspace with that url; None if there is nothing to wait for.

    settle_seconds: how long after sending a call may take effect, and how long after its creation a resource may be
    missing from listings. Raises LmsconfError if a journal cannot be read.
    """
    for run in read_runs(root, url):
        writes = _pending(run, now, settle_seconds)
        # Each run waits for earlier ones, so runs older than a readable one have nothing pending.
        if writes is not None or run.opening is not None:
            return writes
    return None


def wait_for_pending_writes(
    root: Path,
    url: str,
    settle_seconds: float,
    *,
    notify: Callable[[PendingWrites], None],
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Sleep until no write of an earlier run can be pending any more.

    notify: called before that with how long and why.
    """
    writes = find_pending_writes(root, url, now=clock(), settle_seconds=settle_seconds)
    if writes is not None:
        notify(writes)
        sleep(writes.seconds)


def _pending(run: RecordedRun, now: datetime, settle: float) -> PendingWrites | None:
    sent = [call.begun for call in run.in_flight if call.begun is not None]
    made = [call.ended for call in run.unconfirmed_creations if call.ended is not None]
    # If the clock was set back, a call seems to lie in the future: never wait longer than `settle`.
    last = max([*sent, *made], default=None)
    seconds = min(settle, settle - (now - last).total_seconds()) if last is not None else 0.0
    return PendingWrites(run=run.name, calls=len(sent), made=len(made), seconds=seconds) if seconds > 0 else None
