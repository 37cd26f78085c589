"""What the formats share: verbs, counts, and values in an administrator's words. Nothing here is escaped yet."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lmsconf.errors import ExitCode, Problem, Severity
from lmsconf.model.address import Address, unescape
from lmsconf.model.recorded_run import RecordedCall
from lmsconf.model.scope import Verify, skipped
from lmsconf.model.snapshot import Listing
from lmsconf.model.values import (
    Action,
    ApplyReport,
    Change,
    FieldChange,
    Json,
    Origin,
    Outcome,
    Plan,
    Status,
    UndoLevel,
    Unmanaged,
)

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
"""As many items of a list are read at a glance. A page folds up the others; a comment or a message that has only so
much room counts them. The text has room, and names all."""

_FEW = 3
"""As many people are named beside a call: one who goes, or the first of many who come."""

_CALLED = {
    # Everybody who assigns content calls it an assignment; only the API and the manifest key say content target.
    "content_target": ("assignment", "assignments"),
    "user": ("person", "people"),
    "content": ("content", "contents"),
    # A snapshot keeps these beside what can be declared, under names that no administrator has heard.
    "admin": ("person with administrator rights", "people with administrator rights"),
    "choice_holders": ("choice that somebody holds", "choices that somebody holds"),
    "target_edits": ("assignment with its last edit", "assignments with their last edits"),
}
"""What one of a kind is called, and several, where that is not the kind's own name with an s."""
_SEVERAL = dict(_CALLED.values())
_JOINED = re.compile(r"((?:\\(?: -> |.)|(?! -> )[^\\])*) -> (.*)", re.DOTALL)
_PLAIN = re.compile(r"[^\s\"(](?:.*[^\s\"])?", re.DOTALL)


def count(number: int, noun: str) -> str:
    """`1 group`, `1,200 groups`."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    return _SEVERAL.get(noun, f"{noun}s")


def noun(kind: str) -> str:
    """What people call a kind: `smart group`, `assignment`."""
    return _CALLED[kind][0] if kind in _CALLED else kind.replace("_", " ")


def title(address: Address) -> str:
    """What people call a resource: `group/Sales`, `assignment of GDPR basics to group/Sales`."""
    joined = _joined(address)
    if joined is None:
        return str(address)
    return f"{noun(address.kind)} of {name(unescape(joined[1]))} to {joined[2]}"


def short(address: Address) -> str:
    """A resource where its kind stands beside it: `Sales`, `GDPR basics to group/Sales`."""
    joined = _joined(address)
    if joined is None:
        return name(address.name)
    return f"{name(unescape(joined[1]))} to {joined[2]}"


def told_by_title(address: Address) -> frozenset[str]:
    """The keys of a resource that its title says already."""
    return frozenset({"content", "assign_to"} if _joined(address) else {"name"})


def _joined(address: Address) -> re.Match[str] | None:
    """What is assigned and to whom; a group may well be called `A -> B`."""
    return _JOINED.fullmatch(address.text) if address.kind == "content_target" else None


def name(text: str) -> str:
    """A name as it stands in a line: in quotes where its ends could be mistaken."""
    return text if _PLAIN.fullmatch(text) else quoted(text)


def quoted(value: Json) -> str:
    """A value as it stands in JSON, `"old"`; what is not there reads `(none)`."""
    if value is None or value == [] or value == {}:
        return NOTHING
    if isinstance(value, dict) and _is_condition(value):
        return condition(value)
    return json.dumps(value, ensure_ascii=False)


def words(value: Json) -> str:
    """An item of a list in words: a name, a condition, or what its keys say."""
    if isinstance(value, str):
        return name(value)
    if not isinstance(value, dict):
        return quoted(value)
    if _is_condition(value):
        return condition(value)
    rest = ", ".join(f"{key}: {quoted(item)}" for key, item in value.items() if key != "name")
    return ", ".join(filter(None, (name(str(value["name"])) if "name" in value else "", rest)))


def _is_condition(value: Mapping[str, Json]) -> bool:
    return "field" in value and ("choices" in value or "system_condition" in value)


def condition(value: Mapping[str, Json]) -> str:
    """`Department is Sales or Engineering`. A system condition that is said stands there as it is spelt.

    One that is usual as well: where it alone is what changes, two lines would otherwise read the same.
    """
    choices = value.get("choices")
    named = " or ".join(_choice(str(item)) for item in choices) if isinstance(choices, list) else ""
    system = value.get("system_condition")
    verb = "is" if system is None and named else name(str(system))
    return " ".join(filter(None, (name(str(value["field"])), verb, named)))


def _choice(text: str) -> str:
    return quoted(text) if " or " in text else name(text)


def about(change: Change) -> Iterator[str]:
    """Why a resource is as it is, key by key."""
    for key, value in (change.about or {}).items():
        yield f"{key}: {value if isinstance(value, str) else quoted(value)}"


def leaves(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """The keys of a resource with their values; `members.include` for a key inside a key."""
    if isinstance(value, dict) and value and not _is_condition(value):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else key)
    elif path:
        yield path, value


def set_counts(field: FieldChange) -> str:
    """`2 added, 1 removed`. The counts are always whole, however many items a view shows."""
    parts = [f"{len(items):,} {verb}" for items, verb in ((field.added, "added"), (field.removed, "removed")) if items]
    return ", ".join(parts)


def first_line(workspace: str, url: str, people: int | None) -> str:
    """Which workspace this is about: the first line of every plan, prompt and report."""
    known = "an unknown number of people" if people is None else count(people, "person")
    return f"Workspace {workspace} ({url}), {known}."


def scope(plan: Plan) -> Iterator[str]:
    """In what the plan is not the whole truth about the workspace."""
    if plan.partial:
        yield "This plan is partial: it looks only at the resources named on the command line and what they need."
    if plan.offline:
        yield "This plan was made from a snapshot file: it can be shown, not applied."
    if plan.base is not None:
        yield origins(plan)


def origins(plan: Plan) -> str:
    """`Compared with main: 2 changes are from this change, 1 is already pending.`"""
    counts = Counter(change.origin for change in plan.changes)
    verbs = {one: _FROM[one] if counts[one] == 1 else _FROM_SEVERAL[one] for one in Origin}
    said = [f"{counts[one]:,} {verbs[one]}" for one in Origin if counts[one]]
    return f"Compared with {base_name(plan.base)}: {', '.join(said) or 'nothing changes'}."


_FROM = {
    Origin.THIS_CHANGE: "is from this change",
    Origin.PENDING: "is already pending",
    Origin.REPAIR: "repairs an edit by hand",
}
_FROM_SEVERAL = {
    Origin.THIS_CHANGE: "are from this change",
    Origin.PENDING: "are already pending",
    Origin.REPAIR: "repair edits by hand",
}


def base_name(name: str | None) -> str:
    """What a base is called, as far as its characters mean nothing in any format."""
    return re.sub(r"[^\w./~^+ -]", "?", name or "")


def let_go(plan: Plan) -> str:
    """What stands above the things that a change lets go of."""
    name = base_name(plan.base)
    return f"{name} declares these, and the manifests do not any more. They stay; the line below deletes each:"


def closing(plan: Plan) -> str:
    """The sentence that everybody reads."""
    counts = plan.summary
    if not counts.changes and any(problem.is_error for problem in plan.all_problems):
        return "No changes could be planned: the errors above stand in the way."
    if not counts.changes and plan.left_out:
        return f"No changes. This plan only adds, and leaves out {count(len(plan.left_out), 'change')}."
    if not counts.changes:
        looked_at = "What this plan looks at" if plan.partial else "The snapshot" if plan.offline else "The workspace"
        return f"No changes. {looked_at} matches the manifests{but_for(skipped(plan.all_problems))}."
    replaced = f", {counts.replace:,} to replace" if counts.replace else ""
    return (
        f"Plan: {counts.create:,} to create, {counts.update:,} to change{replaced}, {counts.delete:,} to delete "
        f"({count(counts.calls, 'API call')})."
    )


def but_for(number: int) -> str:
    """What a workspace lacks that matches otherwise: people who are not live, where the project skips them."""
    return f", but for {count(number, 'mention')} of people who are not live" if number else ""


def unmanaged(group: Unmanaged) -> str:
    """`12 groups are not managed by any manifest. 3 more are left alone.`"""
    number, alone = len(group.addresses), group.left_alone
    parts = [f"{count(number, noun(group.kind))} {_be(number)} not managed by any manifest."] if number else []
    if alone:
        parts.append(f"{f'{alone:,} more' if number else count(alone, noun(group.kind))} {_be(alone)} left alone.")
    return " ".join(parts)


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def listing(kind: str, found: Listing) -> str:
    """`25 groups`, or `24 groups, not all of them: …`."""
    rest = f", not all of them: {found.incomplete}" if found.incomplete is not None else ""
    return f"{count(len(found.rows), noun(kind))}{rest}"


def call(value: Outcome | RecordedCall) -> str:
    """The operation of a call, and whom it is about: `manual-groups.remove-member: bo@acme.example`."""
    if not value.people:
        return value.operation
    more = len(value.people) - _FEW
    return f"{value.operation}: {', '.join(value.people[:_FEW])}{f' and {more:,} more' if more > 0 else ''}"


STOPS = "Apply would stop here"
"""What stands above all that would stop it."""


def undo(change: Change) -> str | None:
    """What of a change cannot be taken back; None where all of it can."""
    if change.undo.level is UndoLevel.FULL:
        return None
    how = "Can be undone in part" if change.undo.level is UndoLevel.PARTIAL else "Cannot be undone"
    return f"{how}: {change.undo.reason}."


def problem(value: Problem, *, inside: Address | None = None) -> str:
    """`groups.yaml:3:5: error: message [code]`, with the address unless the text stands inside its block."""
    place = f"{value.source}: " if value.source else ""
    return f"{place}{value.severity.value}: {message(value, inside=inside)} [{value.code}]"


def message(value: Problem, *, inside: Address | None = None) -> str:
    """What a problem says, with the address unless the text stands inside its block."""
    if inside is not None:
        return value.message.removeprefix(f"{inside}: ")
    if value.address and value.address not in value.message:
        return f"{value.address}: {value.message}"
    return value.message


def problem_counts(problems: Sequence[Problem]) -> str:
    """`2 errors, 1 warning`, the worst first."""
    severities = [problem.severity for problem in problems]
    return ", ".join(count(severities.count(one), one.value) for one in Severity if one in severities)


def outcome_counts(report: ApplyReport) -> str:
    """`5 calls done, 1 failed, 2 blocked, 0 not attempted`."""
    rest = (Status.FAILED, Status.BLOCKED, Status.NOT_ATTEMPTED)
    told = [f"{report.count(status):,} {status.value.replace('_', ' ')}" for status in rest]
    return ", ".join([f"{count(report.count(Status.DONE), 'call')} done", *told])


def ending(report: ApplyReport) -> str:
    """The last line of a run. It is complete only where nothing is known to be otherwise than it should be."""
    done, total = report.count(Status.DONE), len(report.outcomes)
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
    told = f"{_unlike(report)} ({calls} done)"
    if report.residue and not report.left and report.verified.scope is Verify.ALL:
        return f"Apply ended, and the workspace is not as the manifests say: {told}."
    return f"Apply ended, and the workspace is not as planned: {told}."


_MAY_HAVE_ACTED = (ExitCode.PARTIAL, ExitCode.INTERRUPTED, ExitCode.TERMINATED)
"""With what a run exits that changed something, may have, or was cut short before that could be told."""


def _may_have_acted(report: ApplyReport) -> bool:
    """Whether a call that failed may have been done all the same, its answer being lost."""
    return report.count(Status.FAILED) > 0 and report.exit in _MAY_HAVE_ACTED


def convergence(report: ApplyReport) -> str:
    """What a look at the workspace has shown, and at what it was. It says no more than that."""
    verified = report.verified
    if report.converged is None:
        if not report.outcomes:
            return "Nothing was sent, and the workspace was not read back."
        return "The workspace was not read back, so it is not known whether it matches the manifests."
    if verified.scope is Verify.TOUCHED:
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
    """Whether the resources of the plan are as planned, which alone were looked at."""
    number = report.verified.resources
    if report.converged:
        return f"The {count(number, 'resource')} of this plan {_be(number)} as planned."
    return f"The {count(number, 'resource')} of this plan {_be(number)} not all as planned: {_unlike(report)}."


def others(report: ApplyReport) -> str:
    """What stands above the differences of resources that the plan did not change."""
    if report.verified.scope is Verify.TOUCHED:
        return "Not part of this plan, and in its way by now:"
    return "Not part of this plan, and not as the manifests say:"


LEFT = "A fresh plan would still do this:"
"""What stands above the differences of resources that the plan changed."""


def _unlike(report: ApplyReport) -> str:
    """In what the workspace is not as planned: the resources that differ, and the errors that bar a fresh plan."""
    number, others = len(report.residue), len(report.others)
    errors = sum(problem.is_error and problem.code != "apply/no-effect" for problem in report.problems)
    told = [f"{count(number, 'resource')} {'differs' if number == 1 else 'differ'}"] if number else []
    if others:
        which = "which is" if number == 1 else "none of them" if others == number else f"{others:,} of them"
        told.append(f"{which} {'' if others == number > 1 else 'not '}part of this plan")
    if errors or not told:
        told.append(f"a fresh plan finds {count(errors, 'error')}")
    return ", ".join(told)
