"""Fleets in sentences that all formats share, which are not escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from lmsconf.errors import ExitCode
from lmsconf.model.effects import AccessCounts, Basis, PredictedTotals
from lmsconf.model.fleet import (
    INTERRUPTIONS,
    FleetAction,
    FleetEntry,
    FleetReport,
    SharedChanges,
    SharedFailure,
)
from lmsconf.render.effects_wording import EFFECTS_HEADING, NOT_COMPUTED, totals_sentence
from lmsconf.render.plan_wording import assumed_calls_sentence
from lmsconf.render.resource_wording import count_noun, name_list

_FAILURES = {
    ExitCode.ERROR: "failed with errors",
    ExitCode.USAGE: "failed with errors",
    ExitCode.STALE: "the plan does not fit any more",
    ExitCode.BLOCKED: "stopped by a guard or a refusal",
    ExitCode.PARTIAL: "applied in part, or not at all",
    ExitCode.NOT_CONVERGED: "applied, and still differs",
    ExitCode.UNAUTHORIZED: "the service refused the token, or the permission is missing",
    ExitCode.UNREACHABLE: "unreachable or timed out",
    ExitCode.INTERRUPTED: "interrupted",
    ExitCode.TERMINATED: "terminated",
}

_FEW: Final = 3
"""How many workspaces a sentence names."""
SHOWN_ERRORS: Final = 3
"""How many errors of a workspace are shown; the others are counted."""
_BEGUN: Final = (ExitCode.PARTIAL, *INTERRUPTIONS)
"""What may have sent calls that no result counts."""


def fleet_headline(report: FleetReport) -> str:
    """Return the first sentence: how many workspaces were looked at, and what came of it."""
    entries, index = report.index.entries, report.index
    changed = sum(bool(entry.changes) and not entry.failed for entry in entries)
    failed = len(index.failed)
    waiting = sum(entry.was_not_attempted for entry in entries)
    match index.action:
        case FleetAction.PLAN:
            result = f"{changed:,} with changes, {len(entries) - changed - failed:,} without"
        case FleetAction.DRIFT:
            differ = "differs from its manifests" if changed == 1 else "differ from their manifests"
            alike = len(entries) - changed - failed
            result = f"{changed:,} {differ}, {alike:,} {'does' if alike == 1 else 'do'} not"
        case FleetAction.APPLY:
            calls = sum(entry.summary.get("done", 0) for entry in entries)
            uncounted = any(entry.exit in _BEGUN and "done" not in entry.summary for entry in entries)
            least = "at least " if uncounted else ""
            result = f"{len(entries) - failed:,} applied or without changes ({least}{calls:,} API calls)"
        case FleetAction.VALIDATE:
            result = f"the manifests of {len(entries) - failed:,} have no errors"
        case FleetAction.TEST:
            untested = sum(not entry.failed and not entry.summary.get("tests") for entry in entries)
            result = f"the tests of {len(entries) - failed - untested:,} pass"
            result += f", {untested:,} without tests" if untested else ""
    failures = f", {failed - waiting:,} failed" if failed > waiting else ""
    left = f", {waiting:,} not attempted" if waiting else ""
    shard = f" of shard {index.shard}" if index.shard else ""
    return f"{count_noun(len(entries), 'workspace')}{shard}: {result}{failures}{left}."


def fleet_effects(report: FleetReport) -> str:
    """Return what the plans do to people, who count once in each workspace; empty if no plan changes anything."""
    plans = [entry for entry in report.index.entries if entry.basis is not None and entry.changes and not entry.failed]
    known = [entry.people for entry in plans if entry.people and None not in entry.people.values()]
    unknown = [entry.workspace for entry in plans if not entry.people or None in entry.people.values()]
    if not plans:
        return ""
    sentences = []
    if known:
        counts = {name: sum(people.get(name) or 0 for people in known) for name in AccessCounts.__struct_fields__}
        basis = Basis.ESTIMATE if any(entry.basis is Basis.ESTIMATE for entry in plans) else Basis.EXACT
        sentences.append(totals_sentence(PredictedTotals(basis=basis, people=AccessCounts(**counts))))
    if all(entry.basis is Basis.OFF for entry in plans):
        sentences.append(NOT_COMPUTED)
    elif unknown:
        sentences.append(f"Not known in {count_noun(len(unknown), 'workspace')}: {name_list(unknown, _FEW)}.")
    return f"{EFFECTS_HEADING} in {count_noun(len(plans), 'workspace')}: {' '.join(sentences)}"


def fleet_relaxed(report: FleetReport) -> Iterator[str]:
    """Yield each setting that is weaker than the default, with the workspaces whose plans have it."""
    names: dict[str, list[str]] = {}
    for entry in report.index.entries:
        for line in entry.relaxed:
            names.setdefault(line, []).append(entry.workspace)
    for line, workspaces in names.items():
        yield f"{line}, in {count_noun(len(workspaces), 'workspace')}: {name_list(workspaces, _FEW)}"


def fleet_assumptions(report: FleetReport) -> str | None:
    """Return how many calls of the plans rest on what is only assumed about the services; None if nothing is."""
    entries = [entry for entry in report.index.entries if entry.assumed_keys]
    # Those of most workspaces first; equal ones in alphabetical order.
    keys = Counter(sorted(key for entry in entries for key in entry.assumed_keys))
    if not keys:
        return None
    calls = sum(entry.assumed_calls for entry in entries)
    ranked = [key for key, _ in keys.most_common()]
    where = f"in {count_noun(len(entries), 'workspace')}"
    return f"{assumed_calls_sentence(calls, ranked, where)} --workspace NAME"


def outcome_words(entry: FleetEntry) -> str:
    """Return what came of one workspace."""
    if entry.was_not_attempted:
        return "not attempted"
    if entry.exit in _FAILURES:
        return _FAILURES[entry.exit]
    counts = [f"{number:,} to {name}" for name, number in entry.summary.items() if number and name in _TO]
    if counts:
        return ", ".join(counts)
    if "problems" in entry.summary:
        return "no errors"
    for key, noun in (("done", "API call"), ("differences", "difference"), ("tests", "passing test")):
        if number := entry.summary.get(key, 0):
            return count_noun(number, noun)
    return "no changes"


_TO = ("create", "update", "replace", "delete")


def shared_headline(shared: SharedChanges, of: int) -> str:
    """Return how many workspaces share how many changes: `These 3 changes in 412 of 500 workspaces`."""
    number = len(shared.changes)
    if shared.one_each:
        where = f"one in each of {number:,} of {count_noun(of, 'workspace')}"
        return f"These {number:,} changes, {where}, equal but for their names"
    these = "This change" if number == 1 else f"These {number:,} changes"
    return f"{these} in {len(shared.workspaces):,} of {count_noun(of, 'workspace')}"


def failed_workspaces(failure: SharedFailure) -> str:
    """Return which workspaces failed alike, and how: `Workspace oslo (https://…): …`, or `3 workspaces: …`."""
    if len(failure.workspaces) == 1:
        return f"Workspace {failure.entry.workspace} ({failure.entry.url}): {outcome_words(failure.entry)}"
    return f"{count_noun(len(failure.workspaces), 'workspace')}: {outcome_words(failure.entry)}"


def more_errors(entry: FleetEntry, action: FleetAction) -> str | None:
    """Return how many errors are not shown, and where they are; None if all are."""
    left = len(entry.problems) - SHOWN_ERRORS
    if left <= 0:
        return None
    command = FleetAction.PLAN if action is FleetAction.APPLY else action
    where = f" in {entry.file}" if entry.file else f": lmsconf {command.value} --workspace {entry.workspace}"
    return f"… and {count_noun(left, 'more error')}{where}"
