"""The text view of a fleet: failures, people, what is the same in many workspaces, then each workspace in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmsconf.errors import ExitCode
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.blockers import Blocker
from lmsconf.model.fleet import FleetAction, FleetReport, SharedChanges, SharedFailure, group_blocked, group_failures
from lmsconf.render.escape import escape_terminal
from lmsconf.render.fleet_wording import (
    SHOWN_ERRORS,
    failed_workspaces,
    fleet_assumptions,
    fleet_effects,
    fleet_headline,
    fleet_relaxed,
    more_errors,
    name_list,
    outcome_words,
    shared_headline,
    workspace_count,
)
from lmsconf.render.plan_wording import RELAXED_HEADING
from lmsconf.render.text.blocks import change_lines, join_blocks, problem_lines

_NAMES: Final = 6


def fleet_text(report: FleetReport, *, color: bool = False) -> str:
    """Return the text view."""
    index = report.index
    return join_blocks(
        [
            [fleet_headline(report)],
            *(_failure(failure, index.action) for failure in group_failures(index.entries)),
            [escape_terminal(line) for line in filter(None, [fleet_effects(report), fleet_assumptions(report)])],
            _relaxed(report),
            *(_blocked(blockers, names) for blockers, names in group_blocked(index.entries)),
            *(_shared(shared, len(index.entries)) for shared in report.shared),
            _lines(report),
        ],
        color,
    )


def _relaxed(report: FleetReport) -> list[str]:
    lines = [escape_terminal(f"  {line}") for line in fleet_relaxed(report)]
    return [f"{RELAXED_HEADING}:", *lines] if lines else []


def _failure(failure: SharedFailure, action: FleetAction) -> Iterator[str]:
    entry = failure.entry
    yield escape_terminal(failed_workspaces(failure))
    if len(failure.workspaces) > 1:
        yield escape_terminal(f"  {name_list(failure.workspaces, _NAMES)}")
    for problem in entry.problems[:SHOWN_ERRORS]:
        yield from problem_lines(problem, indent="  ")
    if more := more_errors(entry, action):
        yield escape_terminal(f"  {more}")


def _blocked(blockers: Sequence[Blocker], names: Sequence[str]) -> Iterator[str]:
    where = f"Workspace {names[0]}" if len(names) == 1 else workspace_count(len(names))
    yield escape_terminal(f"{where}: apply would stop here")
    if len(names) > 1:
        yield escape_terminal(f"  {name_list(names, _NAMES)}")
    yield from (escape_terminal(f"  {blocker}") for blocker in blockers)


def _shared(shared: SharedChanges, of: int) -> Iterator[str]:
    if shared.one_each:
        yield f"{shared_headline(shared, of)}:"
        yield ""
        yield from change_lines(shared.changes[0])
        for change, workspace in zip(shared.changes, shared.workspaces, strict=True):
            yield escape_terminal(f"      {workspace}: {resource_title(change.address)}")
        return
    yield escape_terminal(f"{shared_headline(shared, of)}: {name_list(shared.workspaces, _NAMES)}")
    for change in shared.changes:
        yield ""
        yield from change_lines(change)


def _lines(report: FleetReport) -> Sequence[str]:
    """Return a line for each workspace that succeeded, if the changes do not name it already."""
    if report.index.action is FleetAction.PLAN and report.shared:
        return []
    rows = [entry for entry in report.index.entries if not entry.failed and entry.exit is not ExitCode.OK]
    return [escape_terminal(f"  {entry.workspace}: {outcome_words(entry)}") for entry in rows]
