"""Apply reports, drift, fleets, snapshots and recorded runs as text for a terminal.

A plan is printed without this module, and without templates: they take long to import.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Final

from lmsconf.model.drift import DriftReport
from lmsconf.model.fleet import FleetReport, group_blocked, group_failures
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.recorded_run import CallState, RecordedRun, undo_command
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.time_formats import format_utc
from lmsconf.render.apply_report import describe_call
from lmsconf.render.drift_report import managed_share
from lmsconf.render.escape import escape_terminal
from lmsconf.render.jinja import terminal_text
from lmsconf.render.plan_wording import workspace_line
from lmsconf.render.resource_wording import count_listed_rows, count_noun
from lmsconf.render.text import join_blocks


def apply_text(report: ApplyReport, *, names_workspace: bool = True) -> str:
    """Render an apply report: problems, failed calls, calls not done, remaining differences, outcome.

    names_workspace: whether the first line is that of the workspace, which a question above it may have named.
    """
    return terminal_text("apply.txt.j2", report=report, names_workspace=names_workspace)


def drift_text(drift: DriftReport) -> str:
    """Render a drift report: findings, ignored differences, unmanaged resources, coverage.

    Differences that do not count, as they are ignored or not applied yet, come after the findings.
    """
    return terminal_text("drift.txt.j2", drift=drift, coverage=map(managed_share, drift.coverage))


def fleet_text(report: FleetReport) -> str:
    """Render the results of a fleet: failures, people, what is alike, then each workspace.

    Workspaces that fail alike, and those that the same guards stop, are listed together.
    """
    entries = report.index.entries
    failures, blocked = group_failures(entries), group_blocked(entries)
    return terminal_text("fleet.txt.j2", report=report, failures=failures, blocked=blocked)


def snapshot_text(snapshot: Snapshot) -> str:
    """Render a snapshot: counts per kind, and which listings are incomplete.

    A snapshot names people, so that its rows are not shown.
    """
    workspace = workspace_line(snapshot)
    counts = [f"  {count_listed_rows(kind, listing)}" for kind, listing in snapshot.listings.items()]
    return join_blocks([[workspace, f"Taken {snapshot.taken_at}."], counts])


def table_lines(rows: Sequence[Sequence[str]], left: Container[int]) -> Iterator[str]:
    """Yield rows of cells in columns as wide as their widest cell. left: the columns that are not right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()


_COUNTED: Final = {
    CallState.DONE: "DONE",
    CallState.FAILED: "FAILED",
    CallState.BLOCKED: "BLOCKED",
    CallState.IN_FLIGHT: "IN FLIGHT",
    CallState.NOT_ATTEMPTED: "NOT ATTEMPTED",
}
_HEAD: Final = ("STARTED", "WORKSPACE", "RUN", *_COUNTED.values(), "END")
_TEXTS: Final = [column for column, title in enumerate(_HEAD) if title not in _COUNTED.values()]
"""The columns that are no counts."""
_UNKNOWN: Final = "?"


def runs_text(runs: Sequence[RecordedRun]) -> str:
    """Render a table: one line per run, with counts of calls per state."""
    if not runs:
        return "No runs recorded.\n"
    rows = [_HEAD, *(_row(run) for run in runs)]
    return "".join(f"{line}\n" for line in table_lines(rows, _TEXTS))


def run_text(run: RecordedRun) -> str:
    """Render one run: plan, each recorded call, counts, and what is unknown."""
    return terminal_text("run.txt.j2", run=run, describe_call=describe_call, undo_command=undo_command, utc=format_utc)


def _row(run: RecordedRun) -> tuple[str, ...]:
    opening = run.opening
    started, workspace = (format_utc(opening.started), opening.workspace) if opening else (_UNKNOWN, _UNKNOWN)
    counts = (f"{run.summary[state]:,}" for state in _COUNTED)
    return (started, escape_terminal(workspace), escape_terminal(run.name), *counts, _end(run))


def _end(run: RecordedRun) -> str:
    end = "not ended" if run.ending is None else f"exit {run.ending.exit}"
    return f"{end}, {count_noun(run.damaged, 'line')} damaged" if run.damaged else end
