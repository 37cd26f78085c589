"""Wording shared by all formats: verbs, counts, and values in an administrator's terms. Results are not escaped."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmsconf.errors import ExitCode, Problem, Severity
from lmsconf.kinds import all_kinds
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import quote_if_ambiguous
from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallStatus
from lmsconf.model.plan import Action, Change, ChangeOrigin, FieldChange, Plan, UndoLevel, UnmanagedResources
from lmsconf.model.recorded_run import RecordedCall
from lmsconf.model.scope import VerifyMode, count_skipped_people
from lmsconf.model.snapshot import Listing

SERVICE_DEFAULT = "(service default)"
NOTHING = "(none)"

SIGNS = {Action.CREATE: "+", Action.UPDATE: "~", Action.REPLACE: "-/+", Action.DELETE: "-"}
WILL_BE = {
    Action.CREATE: "will be created",
    Action.UPDATE: "will be changed",
    Action.REPLACE: "will be replaced: deleted, then created, so access is interrupted in between",
    Action.DELETE: "will be deleted",
}

FIRST_ITEMS = 20
"""The number of list items shown at first. HTML folds the others; a comment or message of limited size counts them.
The text format lists all."""

_FEW = 3
"""The number of people named beside a call: one who is removed, or the first of many who are added."""


def count(number: int, noun: str, several: str | None = None) -> str:
    """`1 group`, `1,200 groups`. several: the plural, where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def count_of(number: int, kind: str) -> str:
    """`1 assignment`, `1,200 assignments`, of a kind or listing."""
    return count(number, *nouns(kind))


def noun(kind: str) -> str:
    """Return the display name of a kind: `smart group`, `assignment`."""
    return nouns(kind)[0]


def plural(kind: str) -> str:
    """Return the display name of several of a kind: `smart groups`, `people`."""
    return nouns(kind)[1]


def nouns(kind: str) -> tuple[str, str]:
    """Return the display names of a kind or listing, singular and plural. A file may name a kind of a later version."""
    if kind in all_kinds():
        return all_kinds()[kind].noun, all_kinds()[kind].plural
    words = kind.replace("_", " ")
    read = (known.listing_nouns[kind] for known in all_kinds().values() if kind in known.listing_nouns)
    return next(read, (words, f"{words}s"))


def title(address: Address) -> str:
    """Return the display name of a resource: `group/Sales`, `assignment of GDPR basics to group/Sales`."""
    kind = all_kinds().get(address.kind)
    return kind.title(address) if kind else str(address)


def short(address: Address) -> str:
    """Return the display name without the kind, for use beside it: `Sales`, `GDPR basics to group/Sales`."""
    kind = all_kinds().get(address.kind)
    return kind.short_title(address) if kind else quote_if_ambiguous(address.name)


def title_keys(address: Address) -> frozenset[str]:
    """Return the keys of a resource whose values its title contains."""
    kind = all_kinds().get(address.kind)
    return kind.title_keys if kind else frozenset({"name"})


def quoted(value: Json) -> str:
    """Return a value as JSON, `"old"`; `(none)` for null and empty values; a condition in words."""
    if value is None or value == [] or value == {}:
        return NOTHING
    if isinstance(value, dict) and _is_condition(value):
        return condition(value)
    return json.dumps(value, ensure_ascii=False)


def words(value: Json) -> str:
    """Return a list item in words: a name, a condition, or its keys and values."""
    if isinstance(value, str):
        return quote_if_ambiguous(value)
    if not isinstance(value, dict):
        return quoted(value)
    if _is_condition(value):
        return condition(value)
    rest = ", ".join(f"{key}: {quoted(item)}" for key, item in value.items() if key != "name")
    return ", ".join(filter(None, (quote_if_ambiguous(str(value["name"])) if "name" in value else "", rest)))


def _is_condition(value: Mapping[str, Json]) -> bool:
    return "field" in value and ("choices" in value or "system_condition" in value)


def condition(value: Mapping[str, Json]) -> str:
    """`Department is Sales or Engineering`. A declared system condition is shown as spelled, the default one too.

    Otherwise both lines would read the same if it is all that changes.
    """
    choices = value.get("choices")
    named = " or ".join(_choice(str(item)) for item in choices) if isinstance(choices, list) else ""
    system = value.get("system_condition")
    verb = "is" if system is None and named else quote_if_ambiguous(str(system))
    return " ".join(filter(None, (quote_if_ambiguous(str(value["field"])), verb, named)))


def _choice(text: str) -> str:
    return quoted(text) if " or " in text else quote_if_ambiguous(text)


def about(change: Change) -> Iterator[str]:
    """Yield the annotations (`about:`) of a resource, one `key: value` each."""
    for key, value in (change.about or {}).items():
        yield f"{key}: {value if isinstance(value, str) else quoted(value)}"


def leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the leaf keys of a resource with their values; a nested key as a path, `members.include`."""
    if isinstance(value, dict) and value and not _is_condition(value):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif path:
        yield path, value


def set_counts(field: FieldChange) -> str:
    """`2 added, 1 removed`: counts of all items, however many a view lists."""
    parts = [f"{len(items):,} {verb}" for items, verb in ((field.added, "added"), (field.removed, "removed")) if items]
    return ", ".join(parts)


def first_line(workspace: str, url: str, people: int | None) -> str:
    """Return the line that identifies the workspace, the first of every plan, prompt and report."""
    known = "an unknown number of people" if people is None else count(people, "person", "people")
    return f"Workspace {workspace} ({url}), {known}."


def scope(plan: Plan) -> Iterator[str]:
    """Yield the limits of a plan's scope: partial, offline, compared with a base."""
    if plan.partial:
        yield "This plan is partial: it looks only at the resources named on the command line and what they need."
    if plan.offline:
        yield "This plan was made from a snapshot file: it can be shown, not applied."
    if plan.base is not None:
        yield origins(plan)


def origins(plan: Plan) -> str:
    """`Compared with main: 2 changes are from this change, 1 is already pending.`"""
    counts = Counter(change.origin for change in plan.changes)
    verbs = {origin: _FROM[origin] if counts[origin] == 1 else _FROM_SEVERAL[origin] for origin in ChangeOrigin}
    parts = [f"{counts[origin]:,} {verbs[origin]}" for origin in ChangeOrigin if counts[origin]]
    return f"Compared with {base_name(plan.base)}: {', '.join(parts) or 'nothing changes'}."


_FROM = {
    ChangeOrigin.THIS_CHANGE: "is from this change",
    ChangeOrigin.PENDING: "is already pending",
    ChangeOrigin.REPAIR: "repairs an edit by hand",
}
_FROM_SEVERAL = {
    ChangeOrigin.THIS_CHANGE: "are from this change",
    ChangeOrigin.PENDING: "are already pending",
    ChangeOrigin.REPAIR: "repair edits by hand",
}


def base_name(name: str | None) -> str:
    """Return the base's name with each character that could be markup in some format replaced by `?`."""
    return re.sub(r"[^\w./~^+ -]", "?", name or "")


def let_go(plan: Plan) -> str:
    """Return the heading of the resources that the base declares and the manifests no longer do."""
    name = base_name(plan.base)
    return f"{name} declares these, and the manifests do not any more. They stay; the line below deletes each:"


def closing(plan: Plan) -> str:
    """Return the summary sentence of a plan."""
    counts = plan.summary
    if not counts.changes and any(problem.is_error for problem in plan.all_problems):
        return "No changes could be planned: the errors above stand in the way."
    if not counts.changes and plan.left_out:
        return f"No changes. This plan only adds, and leaves out {count(len(plan.left_out), 'change')}."
    if not counts.changes:
        looked_at = "What this plan looks at" if plan.partial else "The snapshot" if plan.offline else "The workspace"
        return f"No changes. {looked_at} matches the manifests{but_for(count_skipped_people(plan.all_problems))}."
    replaced = f", {counts.replace:,} to replace" if counts.replace else ""
    return (
        f"Plan: {counts.create:,} to create, {counts.update:,} to change{replaced}, {counts.delete:,} to delete "
        f"({count(counts.calls, 'API call')})."
    )


def but_for(number: int) -> str:
    """Return the clause about skipped people (declared, not live) for a workspace that matches otherwise."""
    return f", but for {count(number, 'mention')} of people who are not live" if number else ""


def unmanaged(group: UnmanagedResources) -> str:
    """`12 groups are not managed by any manifest. 3 more are left alone.`"""
    number, alone = len(group.addresses), group.left_alone
    parts = [f"{count_of(number, group.kind)} {_be(number)} not managed by any manifest."] if number else []
    if alone:
        parts.append(f"{f'{alone:,} more' if number else count_of(alone, group.kind)} {_be(alone)} left alone.")
    return " ".join(parts)


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def listing(kind: str, value: Listing[Any]) -> str:
    """`25 groups`, or `24 groups, not all of them: …`."""
    rest = f", not all of them: {value.incomplete}" if value.incomplete is not None else ""
    return f"{count_of(len(value.rows), kind)}{rest}"


def call(value: CallOutcome | RecordedCall) -> str:
    """Return the operation of a call and the people concerned: `manual-groups.remove-member: bo@acme.example`."""
    if not value.people:
        return value.operation
    more = len(value.people) - _FEW
    return f"{value.operation}: {', '.join(value.people[:_FEW])}{f' and {more:,} more' if more > 0 else ''}"


STOPS = "Apply would stop here"
"""The heading of a plan's blockers."""


def undo(change: Change) -> str | None:
    """Return what of a change cannot be undone; None if all of it can."""
    if change.undo.level is UndoLevel.FULL:
        return None
    how = "Can be undone in part" if change.undo.level is UndoLevel.PARTIAL else "Cannot be undone"
    return f"{how}: {change.undo.reason}."


def problem(value: Problem, *, inside: Address | None = None) -> str:
    """`groups.yaml:3:5: error: message [code]`. inside: the address of the enclosing block, which is not repeated."""
    place = f"{value.source}: " if value.source else ""
    return f"{place}{value.severity.value}: {message(value, inside=inside)} [{value.code}]"


def message(value: Problem, *, inside: Address | None = None) -> str:
    """Return a problem's message with its address, or without it inside the block of that address."""
    if inside is not None:
        return value.message.removeprefix(f"{inside}: ")
    if value.address and value.address not in value.message:
        return f"{value.address}: {value.message}"
    return value.message


def problem_counts(problems: Sequence[Problem]) -> str:
    """`2 errors, 1 warning`, the worst first."""
    severities = [problem.severity for problem in problems]
    return ", ".join(
        count(severities.count(severity), severity.value) for severity in Severity if severity in severities
    )


def outcome_counts(report: ApplyReport) -> str:
    """`5 calls done, 1 failed, 2 blocked, 0 not attempted`."""
    rest = (CallStatus.FAILED, CallStatus.BLOCKED, CallStatus.NOT_ATTEMPTED)
    not_done = [f"{report.count(status):,} {status.value.replace('_', ' ')}" for status in rest]
    return ", ".join([f"{count(report.count(CallStatus.DONE), 'call')} done", *not_done])


def ending(report: ApplyReport) -> str:
    """Return the last line of an apply report: `Apply complete!` only if no difference is known to remain."""
    done, total = report.count(CallStatus.DONE), len(report.outcomes)
    calls = count(total, "API call")
    if not done and _may_have_acted(report):
        return f"Apply stopped, and something may have been done. Of {calls} none is known to be done."
    if done < total:
        verb = "stopped before anything was done" if not done else "incomplete"
        return f"Apply {verb}. {done:,} of {calls} done."
    if report.converged or (report.converged is None and not total):
        resources = len({outcome.address for outcome in report.outcomes})
        return f"Apply complete! {count(resources, 'resource')} changed ({calls})."
    if report.converged is None:
        return f"Apply ended, and it is not known whether the workspace is as planned ({calls} done)."
    difference = f"{_unlike(report)} ({calls} done)"
    if report.residue and not report.remaining_changes and report.verified.scope is VerifyMode.ALL:
        return f"Apply ended, and the workspace does not match the manifests: {difference}."
    return f"Apply ended, and the workspace is not as planned: {difference}."


_MAY_HAVE_ACTED = (ExitCode.PARTIAL, ExitCode.INTERRUPTED, ExitCode.TERMINATED)
"""Exit codes of runs that changed something, may have, or were interrupted before that was known."""


def _may_have_acted(report: ApplyReport) -> bool:
    """Whether a failed call may have been carried out, because its response was lost."""
    return report.count(CallStatus.FAILED) > 0 and report.exit in _MAY_HAVE_ACTED


def convergence(report: ApplyReport) -> str:
    """Return the result of the verification, limited to the scope that was read back."""
    verified = report.verified
    if report.converged is None:
        if not report.outcomes:
            return "Nothing was sent, and the workspace was not read back."
        return "The workspace was not read back, so it is not known whether it matches the manifests."
    if verified.scope is VerifyMode.TOUCHED:
        return " ".join(filter(None, (_touched(report), verified.reason)))
    looked_at = "what this plan looks at" if verified.partial else "the workspace"
    if not report.converged:
        return f"Read back: {looked_at} does not match the manifests; {_unlike(report)}."
    if verified.left_out:
        more = f"{count(verified.left_out, 'change')} left out, because this plan only adds"
        return f"Read back: nothing of {looked_at} is left to create or to add; {more}."
    begin = "Read back" if report.outcomes else "Nothing was sent"
    return f"{begin}: {looked_at} matches the manifests{but_for(verified.skipped)}."


def _touched(report: ApplyReport) -> str:
    """Return the result for `--verify touched`, which reads back only the plan's resources."""
    number = report.verified.resources
    if report.converged:
        return f"The {count(number, 'resource')} of this plan {_be(number)} as planned."
    return f"The {count(number, 'resource')} of this plan {_be(number)} not all as planned: {_unlike(report)}."


def other_changes_heading(report: ApplyReport) -> str:
    """Return the heading of the remaining differences in resources that the plan did not change."""
    if report.verified.scope is VerifyMode.TOUCHED:
        return "Not part of this plan, and in its way by now:"
    return "Not part of this plan, and not as the manifests say:"


LEFT = "A fresh plan would still do this:"
"""The heading of the remaining differences in resources that the plan changed."""


def _unlike(report: ApplyReport) -> str:
    """Return how the workspace is not as planned: resources that differ, and errors that prevent a fresh plan."""
    number, others = len(report.residue), len(report.foreign_changes)
    errors = sum(problem.is_error and problem.code != "apply/no-effect" for problem in report.problems)
    parts = [f"{count(number, 'resource')} {'differs' if number == 1 else 'differ'}"] if number else []
    if others:
        which = "which is" if number == 1 else "none of them" if others == number else f"{others:,} of them"
        parts.append(f"{which} {'' if others == number > 1 else 'not '}part of this plan")
    if errors or not parts:
        parts.append(f"a fresh plan finds {count(errors, 'error')}")
    return ", ".join(parts)
