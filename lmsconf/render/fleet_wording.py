"""Sentences about a fleet that all formats share."""

from __future__ import annotations

from collections.abc import Sequence

from lmsconf.errors import ExitCode
from lmsconf.model.fleet import FleetAction, FleetEntry, FleetReport, SharedChanges, SharedFailure

_FAILURES = {
    ExitCode.ERROR: "failed with errors",
    ExitCode.STALE: "the plan does not fit any more",
    ExitCode.BLOCKED: "stopped by a guard or a refusal",
    ExitCode.PARTIAL: "applied in part, or not at all",
    ExitCode.NOT_CONVERGED: "applied, and still differs",
    ExitCode.UNAUTHORIZED: "the service refused the token, or the permission is missing",
    ExitCode.UNREACHABLE: "no result: unreachable, or the time was over",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}


def fleet_headline(report: FleetReport) -> str:
    """Return the first sentence: how many workspaces were looked at, and what came of it."""
    entries, index = report.index.entries, report.index
    changed = sum(bool(entry.changes) and not entry.failed for entry in entries)
    failed = len(index.failed)
    match index.action:
        case FleetAction.PLAN:
            result = f"{changed:,} with changes, {len(entries) - changed - failed:,} without"
        case FleetAction.DRIFT:
            result = f"{changed:,} differ from their manifests, {len(entries) - changed - failed:,} do not"
        case FleetAction.APPLY:
            calls = sum(entry.summary.get("done", 0) for entry in entries)
            result = f"{len(entries) - failed:,} applied or without changes ({calls:,} API calls)"
        case FleetAction.VALIDATE:
            result = f"the manifests of {len(entries) - failed:,} have no errors"
        case FleetAction.TEST:
            result = f"the tests of {len(entries) - failed:,} pass"
    failures = f", {failed:,} failed" if failed else ""
    return f"{_count(len(entries), 'workspace')}: {result}{failures}."


def outcome_words(entry: FleetEntry) -> str:
    """Return what came of one workspace."""
    if entry.exit in _FAILURES:
        return _FAILURES[entry.exit]
    counts = [f"{number:,} to {name}" for name, number in entry.summary.items() if number and name in _TO]
    if counts:
        return ", ".join(counts)
    differences = entry.summary.get("differences", 0)
    return _count(differences, "difference") if differences else "no changes"


_TO = ("create", "update", "replace", "delete")


def shared_headline(shared: SharedChanges, of: int) -> str:
    """Return how many workspaces share how many changes: `These 3 changes in 412 of 500 workspaces`."""
    number = len(shared.changes)
    if shared.one_each:
        where = f"one in each of {number:,} of {_count(of, 'workspace')}"
        return f"These {number:,} changes, {where}, equal but for their names"
    these = "This change" if number == 1 else f"These {number:,} changes"
    return f"{these} in {len(shared.workspaces):,} of {_count(of, 'workspace')}"


def failed_workspaces(failure: SharedFailure, most: int) -> str:
    """Return which workspaces failed alike: `Workspace oslo (https://…)`, or `3 workspaces, oslo, …`."""
    names = failure.workspaces
    if len(names) == 1:
        return f"Workspace {failure.entry.workspace} ({failure.entry.url})"
    return f"{len(names):,} workspaces alike, {name_list(names, most)}; of {names[0]}"


def name_list(names: Sequence[str], most: int) -> str:
    """Return names separated by commas, and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
