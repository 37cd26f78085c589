"""A twin: an embedded workspace in memory, filled from a snapshot, under the same dialect and at the same time."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Final

from msgspec import Struct

from lmsconf.api.retry import RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.apply.ambiguous_writes import WaitClock
from lmsconf.apply.applier import Applier
from lmsconf.documents.snapshot_file import snapshot_json
from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.model.names import escape_invisible
from lmsconf.model.snapshot import Snapshot
from lmsconf.project.settings import Settings
from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.service import Sandbox
from lmsconf.sandbox.snapshot_seed import REDACTED
from lmsconf.workspace.connection import Connection

_TIME_FORMAT: Final = "content-targets.time-format"
_SHOWN: Final = 5
"""How many reasons are shown why a snapshot cannot be loaded; the others are counted."""


class CannotRehearse(LmsconfError):
    """A snapshot of which no twin can be made, or a twin that does not read as the workspace."""

    code = "rehearsal/no-twin"


class RehearsalClock:
    """A clock that passes only by waiting, so that retries of a rehearsal take no time. Thread-safe.

    start: when it starts, as ISO 8601.
    """

    def __init__(self, start: str) -> None:
        self._start = datetime.fromisoformat(start)
        self._passed = 0.0
        self._lock = threading.Lock()

    def passed(self) -> float:
        """Seconds that somebody waited."""
        return self._passed

    def wait(self, seconds: float, stop: threading.Event | None = None) -> None:
        """Let so many seconds pass."""
        with self._lock:
            self._passed += seconds

    def now(self) -> datetime:
        """The time in UTC."""
        return (self._start + timedelta(seconds=self._passed)).astimezone(UTC)

    def epoch(self) -> float:
        """The time in seconds since the epoch."""
        return self.now().timestamp()


class Twin(Struct, frozen=True, kw_only=True):
    """An open twin. applier: reads, plans and applies on it, one request at a time, so that a run can be repeated."""

    service: Sandbox
    applier: Applier

    @property
    def requests(self) -> int:
        """How many requests it was sent so far."""
        return len(self.service.log)


@contextmanager
def open_twin(snapshot: Snapshot, settings: Settings, at: str) -> Iterator[Twin]:
    """Open a twin of a workspace for the length of a block. at: the time on its clock.

    Raises CannotRehearse for a snapshot that cannot be loaded: one that is redacted or incomplete, or that refers to
    what it does not hold.
    """
    if snapshot.redaction is not None:
        hint = "Save one without --redact, or rehearse on the workspace itself, without --snapshot."
        raise CannotRehearse(f"the plan cannot be rehearsed: {REDACTED}", hint=hint)
    clock = RehearsalClock(at)
    service = Sandbox(
        spec=ApiSpec(_service_dialect(snapshot, settings), settings.dialect_at),
        clock=clock.epoch,
        ids=partial(_new_id, count(1)),
    )
    try:
        _fill(service, snapshot)
        yield Twin(service=service, applier=_applier(service, settings, clock))
    finally:
        service.close_workspace()


def _applier(service: Sandbox, settings: Settings, clock: RehearsalClock) -> Applier:
    """Return an applier with a connection of its own, on which waiting takes no time."""
    retry = RetryPolicy(
        sleep=clock.wait,
        clock=clock.passed,
        wall_clock=clock.epoch,
        random_number=random.Random(0).random,  # noqa: S311  the same pauses in each rehearsal
    )
    return Applier(
        settings=settings,
        connection=Connection(settings, retry=retry, service=service),
        parallelism=1,
        clock=clock.now,
        timing=WaitClock(now=clock.passed, sleep=clock.wait),
        patience=0.0,
    )


def _new_id(numbers: Iterator[int], prefix: str) -> str:
    """Return an id that no deleted resource of the workspace had: those that a snapshot holds may be of any form."""
    return f"twin-{prefix}-{next(numbers)}"


def _service_dialect(snapshot: Snapshot, settings: Settings) -> Mapping[str, str | int]:
    """Return the dialect that the twin itself speaks: that of the project, with the time format of live assignments.

    `auto` means that of the service, which only its own times show.
    """
    behaviour = ApiSpec(settings.dialect).behaviour(_TIME_FORMAT)
    times = (time for listing in snapshot.listings.values() for row in listing.rows for time in _times(row))
    first = next(times, None) if behaviour == "auto" else None
    return settings.dialect if first is None or not first.isdigit() else {**settings.dialect, _TIME_FORMAT: "epoch-ms"}


def _times(row: object) -> Iterator[str]:
    yield from (time for key in ("start", "finish") if isinstance(time := getattr(row, key, None), str))


def _fill(service: Sandbox, snapshot: Snapshot) -> None:
    """Load a snapshot into an empty twin. Raises CannotRehearse."""
    try:
        with service.store.write_transaction() as repository:
            fill_workspace(
                repository, snapshot_json(snapshot), source="snapshot", spec=service.spec, keeps_unlisted=True
            )
    except ProblemsFound as error:
        reasons = [problem.message for problem in error.problems]
        more = [f"… and {len(reasons) - _SHOWN:,} more"] if len(reasons) > _SHOWN else []
        hint = "\n".join(["It does not hold what a twin needs:", *map(escape_invisible, reasons[:_SHOWN]), *more])
        raise CannotRehearse("the plan cannot be rehearsed on this snapshot", hint=hint) from error
