"""Apply reports and fleets in words that all formats share, not escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Final

from lmsconf.errors import ExitCode
from lmsconf.model.calls import CallStatus
from lmsconf.model.effects import AccessCounts, Basis, PredictedTotals
from lmsconf.model.fleet import (
    INTERRUPTIONS,
    FleetAction,
    FleetEntry,
    FleetIndex,
    SharedChanges,
)
from lmsconf.model.names import count_noun, grouped
from lmsconf.model.outcomes import ApplyReport, CallOutcome, VerifyMode
from lmsconf.render.effects_wording import EFFECTS_HEADING, NOT_COMPUTED, totals_sentence
from lmsconf.render.plan_wording import assumed_calls_sentence, skipped_people_clause
from lmsconf.render.resource_wording import RowGroup, name_list, numbered_groups

STATUS_TITLES = {
    CallStatus.FAILED: "Failed",
    CallStatus.BLOCKED: "Skipped",
    CallStatus.NOT_ATTEMPTED: "Not attempted",
    CallStatus.DONE: "Done",
}
"""Calls by their status, in the order in which views list them."""
_FEW: Final = 3
"""How many are named: people beside a call, a removed one or the first of many added ones, and workspaces."""


def outcomes_by_status(report: ApplyReport) -> Iterator[RowGroup]:
    """Yield the outcomes of each status that calls have."""
    return numbered_groups(report.outcomes, "status", STATUS_TITLES, lambda group: count_noun(len(group), "API call"))


def describe_call(call: CallOutcome) -> str:
    """Return the operation of a call and the people concerned: `manual-groups.remove-member: bo@acme.example`."""
    return f"{call.operation}: {name_list(call.people, _FEW)}" if call.people else call.operation


def apply_summary(report: ApplyReport) -> str:
    """Return the last line of an apply report: `Apply complete!` only if no difference is known to remain."""
    done, total = report.summary[CallStatus.DONE], len(report.outcomes)
    calls = count_noun(total, "API call")
    if not done and (again := sum(outcome.carried_out for outcome in report.outcomes)):
        return f"Apply stopped. {again:,} of {calls} did what was planned when sent once more with other values."
    # A failed call may have been carried out, because its response was lost.
    may_have_acted = report.exit in (ExitCode.PARTIAL, ExitCode.NOT_CONVERGED, *INTERRUPTIONS)
    if not done and report.summary[CallStatus.FAILED] and may_have_acted:
        return f"Apply stopped. It is not known whether anything was done: none of {calls} is confirmed."
    if done < total:
        return f"Apply {'incomplete' if done else 'stopped before any change'}. {done:,} of {calls} done."
    if report.converged or (report.converged is None and not total):
        resources = len({outcome.address for outcome in report.outcomes})
        return f"Apply complete! {count_noun(resources, 'resource')} changed ({calls})."
    if report.converged is None:
        return f"Apply ended, but it is not known whether the workspace is as planned ({calls} done)."
    only_others = report.residue and not report.remaining_changes and report.verified.scope is VerifyMode.ALL
    differs = "does not match the manifests" if only_others else "is not as planned"
    return f"Apply ended, but the workspace {differs}: {_unlike(report)} ({calls} done)."


def verification_result(report: ApplyReport) -> str:
    """Return the result of the verification, limited to the scope that was read back."""
    verified = report.verified
    if report.converged is None:
        unread = "The workspace was not read back, so it is not known whether it matches the manifests."
        return unread if report.outcomes else "Nothing was sent, and the workspace was not read back."
    if verified.scope is VerifyMode.TOUCHED:
        planned = f"The {count_noun(verified.resources, 'resource of this plan is', 'resources of this plan are')}"
        result = "as planned." if report.converged else f"not all as planned: {_unlike(report)}."
        return " ".join(filter(None, (planned, result, verified.reason)))
    looked_at = "the scope of this plan" if verified.partial else "the workspace"
    if not report.converged:
        return f"Read back: {looked_at} does not match the manifests; {_unlike(report)}."
    if verified.left_out:
        return (
            f"Read back: nothing of {looked_at} is left to create or to add; {count_noun(verified.left_out, 'change')} "
            "left out, because this plan only adds."
        )
    begin = "Read back" if report.outcomes else "Nothing was sent"
    return f"{begin}: {looked_at} matches the manifests{skipped_people_clause(verified.skipped)}."


def other_changes_heading(report: ApplyReport) -> str:
    """Return the heading of the remaining differences in resources that the plan did not change."""
    is_touched = report.verified.scope is VerifyMode.TOUCHED
    return f"Not part of this plan, but {'now conflicts with it' if is_touched else 'drifted'}:"


REMAINING_CHANGES_HEADING = "A new plan would still make these changes:"
"""The heading of the remaining differences in resources that the plan changed."""


def _unlike(report: ApplyReport) -> str:
    """Return how the workspace is not as planned: resources that differ, and errors that prevent a fresh plan."""
    number, others = len(report.residue), len(report.foreign_changes)
    errors = sum(problem.is_error and problem.code != "apply/no-effect" for problem in report.problems)
    parts = [count_noun(number, "resource differs", "resources differ")] if number else []
    if others:
        which = "which is" if number == 1 else "none of them" if others == number else f"{others:,} of them"
        parts.append(f"{which} {'' if others == number > 1 else 'not '}part of this plan")
    if errors or not parts:
        parts.append(f"a new plan finds {count_noun(errors, 'error')}")
    return ", ".join(parts)


_FAILURES: Final = {
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

SHOWN_ERRORS: Final = 3
"""How many errors of a workspace are shown; the others are counted."""


def fleet_headline(report: FleetIndex) -> str:
    """Return the first sentence: how many workspaces were looked at, and what came of it."""
    entries = report.entries
    changed = sum(bool(entry.changes) and not entry.failed for entry in entries)
    waiting = sum(entry.was_not_attempted for entry in entries)
    failed, without_failure = len(report.failed) - waiting, len(entries) - len(report.failed)
    alike = without_failure - changed
    calls = sum(entry.summary.get("done", 0) for entry in entries)
    # What may have sent calls that no result counts.
    begun = (ExitCode.PARTIAL, *INTERRUPTIONS)
    least = "at least " if any(one.exit in begun and "done" not in one.summary for one in entries) else ""
    untested = sum(not entry.failed and not entry.summary.get("tests") for entry in entries)
    results = {
        FleetAction.PLAN: f"{changed:,} with changes, {alike:,} without",
        FleetAction.DRIFT: ", ".join(
            [
                count_noun(changed, "differs from its manifests", "differ from their manifests"),
                f"{count_noun(alike, 'does', 'do')} not",
            ]
        ),
        FleetAction.APPLY: f"{without_failure:,} applied or without changes ({least}{calls:,} API calls)",
        FleetAction.VALIDATE: f"the manifests of {without_failure:,} have no errors",
        FleetAction.TEST: f"the tests of {without_failure - untested:,} pass"
        + (f", {untested:,} without tests" if untested else ""),
    }
    others = ((failed, "failed"), (waiting, "not attempted"))
    parts = [results[report.action], *(f"{number:,} {what}" for number, what in others if number)]
    shard = f" of shard {report.shard}" if report.shard else ""
    return f"{count_noun(len(entries), 'workspace')}{shard}: {', '.join(parts)}."


def fleet_effects(report: FleetIndex) -> str:
    """Return what the plans do to people, who count once in each workspace; empty if no plan changes anything."""
    plans = [entry for entry in report.entries if entry.basis is not None and entry.changes and not entry.failed]
    known = [entry.people for entry in plans if entry.people and None not in entry.people.values()]
    unknown = [entry.workspace for entry in plans if not entry.people or None in entry.people.values()]
    if not plans:
        return ""
    said = f"{EFFECTS_HEADING} in {count_noun(len(plans), 'workspace')}:"
    if known:
        counts = {name: sum(people.get(name) or 0 for people in known) for name in AccessCounts.__struct_fields__}
        basis = Basis.ESTIMATE if any(entry.basis is Basis.ESTIMATE for entry in plans) else Basis.EXACT
        said += f" {totals_sentence(PredictedTotals(basis=basis, people=AccessCounts(**counts)))}"
    if all(entry.basis is Basis.OFF for entry in plans):
        said += f" {NOT_COMPUTED}"
    elif unknown:
        said += f" Not known in {count_noun(len(unknown), 'workspace')}: {name_list(unknown, _FEW)}."
    return said


def fleet_relaxed(report: FleetIndex) -> Iterator[str]:
    """Yield each setting that is weaker than the default, with the workspaces whose plans have it."""
    relaxed = ((line, entry.workspace) for entry in report.entries for line in entry.relaxed)
    for line, alike in grouped(relaxed, lambda one: one[0]).items():
        names = [workspace for _, workspace in alike]
        yield f"{line}, in {count_noun(len(names), 'workspace')}: {name_list(names, _FEW)}"


def fleet_assumptions(report: FleetIndex) -> str | None:
    """Return how many calls of the plans rest on what is only assumed about the services; None if nothing is."""
    entries = [entry for entry in report.entries if entry.assumed_keys]
    if not entries:
        return None
    # Those of most workspaces first; equal ones in alphabetical order.
    keys = Counter(sorted(key for entry in entries for key in entry.assumed_keys)).most_common()
    calls = sum(entry.assumed_calls for entry in entries)
    where = f"in {count_noun(len(entries), 'workspace')}"
    return f"{assumed_calls_sentence(calls, [key for key, _ in keys], where)} --workspace NAME"


def outcome_words(entry: FleetEntry) -> str:
    """Return what came of one workspace."""
    if entry.was_not_attempted:
        return "not attempted"
    if entry.exit in _FAILURES:
        return _FAILURES[entry.exit]
    if "problems" in entry.summary:
        return "no errors"
    nouns = {"done": "API call", "differences": "difference", "tests": "passing test"}
    counts = [
        count_noun(number, nouns[name]) if name in nouns else f"{number:,} to {name}"
        for name, number in entry.summary.items()
        if number and name in (*nouns, "create", "update", "replace", "delete")
    ]
    return ", ".join(counts) or "no changes"


def shared_headline(shared: SharedChanges, of: int) -> str:
    """Return how many workspaces share how many changes: `These 3 changes in 412 of 500 workspaces`."""
    number = len(shared.changes)
    every = count_noun(of, "workspace")
    if shared.one_each:
        return f"These {number:,} changes, one in each of {number:,} of {every}, equal but for their names"
    these = "This change" if number == 1 else f"These {number:,} changes"
    return f"{these} in {len(shared.workspaces):,} of {every}"


def shared_groups(report: FleetIndex) -> Sequence[RowGroup]:
    """Return the changes that workspaces share, numbered through all groups."""
    numbers = count(1)
    return [
        RowGroup(
            shared,
            shared_headline(shared, len(report.entries)),
            [(next(numbers), change) for change in shared.changes],
        )
        for shared in report.shared
    ]


def failures_first(entries: Sequence[FleetEntry]) -> Sequence[FleetEntry]:
    """Return the results of workspaces: those that failed first, then those with changes."""
    return sorted(entries, key=lambda entry: (not entry.failed, not entry.changes))


def failed_workspaces(alike: Sequence[FleetEntry]) -> str:
    """Return which workspaces failed alike, and how: `Workspace oslo (https://…): …`, or `3 workspaces: …`."""
    one = f"Workspace {alike[0].workspace} ({alike[0].url})"
    which = one if len(alike) == 1 else count_noun(len(alike), "workspace")
    return f"{which}: {outcome_words(alike[0])}"


def more_errors(entry: FleetEntry, action: FleetAction) -> str | None:
    """Return how many errors are not shown, and where they are; None if all are."""
    left = len(entry.problems) - SHOWN_ERRORS
    if left <= 0:
        return None
    command = FleetAction.PLAN if action is FleetAction.APPLY else action
    where = f" in {entry.file}" if entry.file else f": lmsconf {command.value} --workspace {entry.workspace}"
    return f"… and {count_noun(left, 'more error')}{where}"
