"""`lmsconf plan --rehearse`: read the whole workspace, plan on that, and try the plan's calls on a twin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from lmsconf.apply.rehearsal.reading_cost import ReadingCost, read_first_pages
from lmsconf.apply.rehearsal.rehearsed_plan import RehearsalRequest, rehearsed_plan
from lmsconf.cli.events import CommandEvents
from lmsconf.cli.output_streams import show_progress, write_stderr
from lmsconf.cli.planning import load_valid_manifests, show_reading_progress
from lmsconf.model.time_formats import duration_in_words
from lmsconf.render.resource_wording import rate_text

if TYPE_CHECKING:
    from lmsconf.model.declarations import Manifests
    from lmsconf.model.plan import Plan
    from lmsconf.model.progress import Report, RunProgress
    from lmsconf.model.snapshot import Snapshot
    from lmsconf.workspace.reader import WorkspaceReader

_LABEL = "Rehearsing on a twin in memory"


def rehearse_plan(workspace: WorkspaceReader, request: RehearsalRequest, events: CommandEvents) -> Plan:
    """Return the plan of the manifests with its rehearsal, showing what the reading costs, and the progress."""
    return rehearsed_plan(
        workspace,
        replace(request, phase=_shown_phase),
        load_valid_manifests(workspace, events),
        lambda manifests: _read(workspace, manifests, events),
    )


def _read(workspace: WorkspaceReader, manifests: Manifests, events: CommandEvents) -> Snapshot:
    """Read the whole workspace, after saying what that costs."""
    cost, pages = read_first_pages(workspace, manifests)
    write_stderr(reading_cost_sentence(cost))
    with show_reading_progress("Reading", events) as tell:
        return workspace.snapshot(tell, manifests, pages)


def reading_cost_sentence(cost: ReadingCost) -> str:
    """Return what a full reading costs, as a sentence."""
    number = f"at least {cost.requests:,} requests"
    if cost.seconds is None or cost.rate is None:
        return f"Rehearsing reads the whole workspace: {number}. How many the service takes a second is not known."
    time = duration_in_words(cost.seconds)
    return f"Rehearsing reads the whole workspace: {number}, {time} or more at {rate_text(cost.rate)} a second."


@contextmanager
def _shown_phase(label: str) -> Iterator[Report]:
    # A twin answers at once: in a log, its progress would only be lines.
    with show_progress(label=_LABEL, quiet=not sys.stderr.isatty()) as tell:

        def report(progress: RunProgress) -> None:
            tell(progress, _LABEL)

        yield report
