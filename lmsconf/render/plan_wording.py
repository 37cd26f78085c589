"""Plans, their problems, settings and rehearsals in words that all formats share. Results are not escaped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.access import AccessTest
from lmsconf.model.address import Address
from lmsconf.model.calls import CallResult, CallStatus
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.forms import OfWorkspace
from lmsconf.model.guards import weaker_than_default
from lmsconf.model.lint_codes import is_lint
from lmsconf.model.names import count_noun
from lmsconf.model.outcomes import count_skipped_people
from lmsconf.model.plan import (
    Action,
    Change,
    ChangeOrigin,
    Plan,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsedAssumption,
    RehearsedGroup,
    SettingChange,
    UndoLevel,
)
from lmsconf.model.problem_codes import blockers
from lmsconf.model.time_formats import duration_in_words
from lmsconf.render.resource_wording import format_value, name_list, rate_text

ACTION_SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.REPLACE: "-/+", Action.DELETE: "-"}


ACTION_WORDS = {
    Action.CREATE: "will be created",
    Action.UPDATE: "will be changed",
    Action.REPLACE: "will be replaced: deleted, then created, so access is interrupted in between",
    Action.DELETE: "will be deleted",
}


def annotation_lines(declared: Change | AccessTest) -> Iterator[str]:
    """Yield the annotations (`about:`) of a resource or a test, one `key: value` each."""
    for key, value in (declared.about or {}).items():
        yield f"{key}: {value if isinstance(value, str) else format_value(value)}"


def workspace_line(about: OfWorkspace) -> str:
    """Return the line that identifies the workspace, the first of every plan, prompt and report."""
    known = "an unknown number of people" if about.people is None else count_noun(about.people, "person", "people")
    return f"Workspace {about.workspace} ({about.url}), {known}."


def scope_sentences(plan: Plan) -> Iterator[str]:
    """Yield the limits of a plan's scope: partial, offline, compared with a base."""
    if plan.undo_of is not None:
        yield f"This plan undoes the run {plan.undo_of.run}."
    if plan.partial:
        less = ", except those excluded" if plan.selection.excluded else ""
        named = f"only the resources named on the command line and what they need{less}"
        every = "everything except the resources excluded on the command line"
        yield f"This plan is partial: it covers {named if plan.selection.only else every}."
    if plan.offline:
        yield "This plan was made from a snapshot file: it can be shown, not applied."
    if plan.base is not None:
        yield count_origins(plan)


def count_origins(plan: Plan) -> str:
    """`Compared with main: 2 changes are from this change, 1 is already pending.`"""
    if any(problem.code == "base/not-planned" for problem in plan.problems):
        return f"Not compared with {escape_base_name(plan.base)}: its manifests cannot be planned."
    one_or_many = {
        ChangeOrigin.THIS_CHANGE: ("is from this change", "are from this change"),
        ChangeOrigin.PENDING: ("is already pending", "are already pending"),
        ChangeOrigin.REPAIR: ("repairs an edit by hand", "repair edits by hand"),
    }
    counts = Counter(change.origin for change in plan.changes)
    parts = [count_noun(counts[origin], *words) for origin, words in one_or_many.items() if counts[origin]]
    return f"Compared with {escape_base_name(plan.base)}: {', '.join(parts) or 'nothing changes'}."


def escape_base_name(name: str | None) -> str:
    """Return the base's name with each character that could be markup in some format replaced by `?`."""
    return re.sub(r"[^\w./~^+ -]", "?", name or "")


def left_out_heading(plan: Plan) -> str:
    """Return the heading of what a plan that only adds leaves out."""
    return f"Left out, because this plan only adds: {count_noun(len(plan.left_out), 'change')}"


def no_longer_declared_heading(plan: Plan) -> str:
    """Return the heading of the resources that the base declares and the manifests no longer do."""
    return (
        f"{escape_base_name(plan.base)} declares these, but the manifests no longer do. They are not deleted. To "
        "delete them, add these lines:"
    )


def plan_summary(plan: Plan) -> str:
    """Return the summary sentence of a plan."""
    if plan.changes:
        counts = plan.summary
        replaced = f", {counts.replace:,} to replace" if counts.replace else ""
        return (
            f"Plan: {counts.create:,} to create, {counts.update:,} to change{replaced}, {counts.delete:,} to delete "
            f"({count_noun(counts.calls, 'API call')})."
        )
    # A failing lint or test is about what is planned; another error may be why a change is missing.
    if any(one.is_error and not is_lint(one) and not one.code.startswith("test/") for one in plan.all_problems):
        return "No changes could be planned because of the errors above."
    if plan.left_out:
        return (
            f"No changes. This plan only adds (--additive), and leaves out {count_noun(len(plan.left_out), 'change')}."
        )
    if plan.undo_of is not None:
        conflicts = any(problem.code == "undo/conflict" for problem in plan.problems)
        left = "Nothing more can be undone" if conflicts else "Nothing is left to undo"
        return f"No changes. {left} of the run {plan.undo_of.run}."
    looked_at = "The scope of this plan" if plan.partial else "The snapshot" if plan.offline else "The workspace"
    but_for = skipped_people_clause(count_skipped_people(plan.all_problems))
    return f"No changes. {looked_at} matches the manifests{but_for}."


def assumptions_sentence(plan: Plan) -> str | None:
    """Return how many calls rest on what is only assumed about the service; None if nothing is."""
    assumed = [one.key for one in sorted(plan.assumptions, key=lambda one: -one.calls) if not one.known]
    return assumed_calls_sentence(plan.assumed_calls, assumed, "on this workspace") if assumed else None


def assumed_calls_sentence(calls: int, keys: Sequence[str], where: str) -> str:
    """`5 calls rest on 2 assumptions that nobody has tried on this workspace: …`, with the command that tries them.

    keys: the most used first. where: `on this workspace`.
    """
    rest, assumptions = count_noun(calls, "call rests", "calls rest"), count_noun(len(keys), "assumption")
    return (
        f"{rest} on {assumptions} that nobody has tried {where}: {name_list(keys, 3)}. "
        f"Try {'it' if len(keys) == 1 else 'them'} with: lmsconf doctor --probe"
    )


def skipped_people_clause(number: int) -> str:
    """Return the clause about skipped people (declared, not live) for a workspace that matches otherwise."""
    return f", but for {count_noun(number, 'mention')} of people who are not live" if number else ""


BLOCKERS_HEADING = "Apply would stop here"
"""The heading of a plan's blockers."""


def describe_undo_limit(change: Change) -> str | None:
    """Return what of a change cannot be undone; None if all of it can."""
    if change.undo.level is UndoLevel.FULL:
        return None
    how = "Can be undone in part" if change.undo.level is UndoLevel.PARTIAL else "Cannot be undone"
    return f"{how}: {change.undo.reason}."


def format_problem(problem: Problem, *, block_address: Address | None = None) -> str:
    """`groups.yaml:3:5: error: message [code]`. inside: the address of the enclosing block, which is not repeated."""
    place = f"{problem.source}: " if problem.source else ""
    return f"{place}{problem.severity.value}: {problem_message(problem, block_address=block_address)} [{problem.code}]"


def problem_message(problem: Problem, *, block_address: Address | None = None) -> str:
    """Return a problem's message with its address, or without it inside the block of that address."""
    if block_address is not None:
        return problem.message.removeprefix(f"{block_address}: ")
    if problem.address and problem.address not in problem.message:
        return f"{problem.address}: {problem.message}"
    return problem.message


def count_severities(problems: Sequence[Problem]) -> str:
    """`2 errors, 1 warning`, the worst first."""
    severities = [problem.severity for problem in problems]
    return ", ".join(
        count_noun(severities.count(severity), severity.value) for severity in Severity if severity in severities
    )


RELAXED_HEADING = "Settings weaker than the default"
WEAKER = ", which is weaker"
"""The end of the line of a changed setting that is weaker than in the base."""


def settings_lists(plan: Plan) -> Mapping[str, Sequence[str]]:
    """Return heading → lines: settings changed since the base, relaxed ones, and guards that may pass."""
    base = escape_base_name(plan.base)
    changed = sorted(plan.settings_changed, key=lambda setting: not setting.weaker)
    passed = (guard for guard in plan.guards if guard.allowed_by)
    return {
        "Settings changed": [f"{_line(setting, base)}{WEAKER if setting.weaker else ''}" for setting in changed],
        RELAXED_HEADING: list(relaxed_settings(plan)),
        "Allowed by consent": [f"Guard {one.name}: {one.reason}. Allowed by {one.allowed_by}." for one in passed],
    }


def relaxed_settings(plan: Plan) -> Iterator[str]:
    """Yield each setting weaker than its default, with the default."""
    weaker = weaker_than_default(plan.policy)
    off = [setting.path for setting in weaker if setting.now == "off"]
    guards = [f"guards.{name}" for name in members(plan.policy.get("guards")) if f"guards.{name}" not in off]
    if off and not guards:
        yield "guards: off"
    yield from (_line(setting, "default") for setting in weaker if guards or setting.path not in off)


def _line(setting: SettingChange, base: str) -> str:
    """`guards.removals: off (default: 50 or 10%)`."""
    return f"{setting.path}: {_value(setting.path, setting.now)} ({base}: {_value(setting.path, setting.base)})"


def _value(path: str, value: Json) -> str:
    if isinstance(value, dict) and value.keys() <= {"count", "share"}:
        share = value.get("share")
        halves = [value.get("count"), None if share is None else f"{float(str(share)) * 100:g}%"]
        return " or ".join(str(half) for half in halves if half is not None) or "off"
    if path in ("settle", "plans.valid_for") and isinstance(value, int | float):
        return f"{value:g} s"
    return value if isinstance(value, str) else format_value(value)


REHEARSAL_HEADING = "Rehearsal on a twin of the workspace"
ASSUMPTIONS_HEADING = "The calls rely on these assumptions about the service, which the rehearsal cannot check"
FAILED_HEADING = "Calls that were not done on the twin"
GROUPS_HEADING = "Active members"
REMAINING_HEADING = "The second plan on the twin still has these changes"


def rehearsal_sentences(plan: Plan, rehearsal: Rehearsal) -> Iterator[str]:
    """Yield the result, how it came about, and what it does not show."""
    clause = _outcome_clause(rehearsal)
    yield clause[0].upper() + clause[1:]
    if rehearsal.calls and blockers(plan):
        yield "The calls were sent as if nothing stopped an apply; what stops it stands with the plan."
    if rehearsal.calls:
        yield pace_sentence(rehearsal.pace)
    yield (
        "The twin is the embedded sandbox, filled with what was read. It has no progress, certificates or times of "
        "creation, and it is not the service: the service may answer otherwise."
    )


def rehearsal_line(rehearsal: Rehearsal) -> str:
    """Return the result as a line beside the plan's summary."""
    return f"Rehearsal: {_outcome_clause(rehearsal)}"


def _outcome_clause(rehearsal: Rehearsal) -> str:
    calls, outcome = count_noun(rehearsal.calls, "API call"), rehearsal.receipt.outcome
    if not rehearsal.calls and outcome is RehearsalOutcome.SUCCESS:
        return "there is no call to rehearse."
    refused = sum(call.status is CallStatus.FAILED for call in rehearsal.failed)
    return {
        RehearsalOutcome.SUCCESS: f"all {calls} were done on the twin, and a second plan is empty.",
        RehearsalOutcome.REFUSED: f"{rehearsal.done:,} of {calls} were done on the twin, and {refused:,} failed.",
        RehearsalOutcome.NOT_CONVERGED: f"all {calls} were done on the twin, but a second plan is not empty.",
    }[outcome]


def failed_call_line(call: CallResult) -> str:
    """Return the line of a call that was not done."""
    verb = {CallStatus.FAILED: "Refused", CallStatus.BLOCKED: "Skipped"}.get(call.status, "Not attempted")
    return f"{verb}: {resource_title(call.address)} ({call.operation})"


def remaining_line(change: Change) -> str:
    """Return a change of the second plan in one line: the plan itself, and JSON, have it in full."""
    line = f"{ACTION_SIGNS[change.action]} {resource_title(change.address)} {ACTION_WORDS[change.action]}"
    return f"{line}: {', '.join(field.path for field in change.fields)}" if change.fields else line


def pace_sentence(pace: RehearsalPace) -> str:
    """Return how many requests an apply takes, and how long."""
    number = f"An apply takes about {count_noun(pace.requests, 'request')}, with its checks and reading back"
    if pace.rate is None or pace.seconds is None:
        return (
            f"{number}; how long that takes is not known, since no request was refused as too many, and --max-rate was "
            "not given."
        )
    limit = "--max-rate" if pace.is_limit else "the limit that the service showed"
    return f"{number}: about {duration_in_words(pace.seconds)} at {rate_text(pace.rate)} a second ({limit})."


def assumption_line(one: RehearsedAssumption) -> str:
    """Return a dialect key, its value and the operations that rely on it."""
    where = ", declared in the project file" if one.declared else ""
    return f"{one.key}: {one.value} ({', '.join(one.operations)}{where})"


def group_line(group: RehearsedGroup) -> str:
    """Return the members of a group before, as predicted and as reached."""
    before, predicted, reached = (
        "unknown" if one is None else f"{one:,}" for one in (group.before, group.predicted, group.reached)
    )
    if group.reached is None or group.predicted != group.reached:
        return f"{resource_title(group.address)}: {before} → {predicted} predicted, {reached} on the twin"
    return f"{resource_title(group.address)}: {before} → {reached}, as predicted"
