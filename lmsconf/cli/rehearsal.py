"""`lmsconf plan --rehearse`: read the whole workspace, plan on that, and try the plan's calls on a twin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lmsconf.apply.events import ApplyProgress
from lmsconf.apply.rehearse import RehearsalRequest, rehearsed_plan
from lmsconf.cli.events import CommandEvents
from lmsconf.cli.output_streams import show_progress
from lmsconf.cli.planning import load_valid_manifests, show_reading_progress

if TYPE_CHECKING:
    from lmsconf.model.declarations import Manifests
    from lmsconf.model.plan import Plan
    from lmsconf.model.progress import Report, RunProgress
    from lmsconf.model.snapshot import Snapshot
    from lmsconf.workspace.reader import WorkspaceReader

_LABEL = "Rehearsing on a twin in memory"


def rehearse_plan(workspace: WorkspaceReader, request: RehearsalRequest, events: CommandEvents) -> Plan:
    """Return the plan of the manifests with its rehearsal, showing the progress."""
    return rehearsed_plan(
        workspace,
        replace(request, progress=_TwinProgress()),
        load_valid_manifests(workspace, events),
        lambda manifests: _read(workspace, manifests, events),
    )


def _read(workspace: WorkspaceReader, manifests: Manifests, events: CommandEvents) -> Snapshot:
    with show_reading_progress("Reading", events) as tell:
        return workspace.snapshot(tell, manifests)


class _TwinProgress(ApplyProgress):
    """The phases of a rehearsal, as one progress bar."""

    @contextmanager
    def phase(self, label: str) -> Iterator[Report]:
        # A twin answers at once: in a log, its progress would only be lines.
        with show_progress(label=_LABEL, quiet=not sys.stderr.isatty()) as tell:

            def report(progress: RunProgress) -> None:
                tell(progress, _LABEL)

            yield report
