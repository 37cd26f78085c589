"""Matched resources → those that change, with the changes that the service makes along with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec import Struct, field

from lmsconf.errors import Problem
from lmsconf.kinds.assignment.steps import update_action
from lmsconf.kinds.kind_functions import diff, state_before_deletion
from lmsconf.kinds.kind_table import KINDS, dependencies
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, Kind
from lmsconf.kinds.shared.plan_context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, SideEffect
from lmsconf.model.address import Address, shell_quoted
from lmsconf.model.calls import Step
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import form_to_json
from lmsconf.model.guards import Policy
from lmsconf.model.names import matches_patterns, normalize_name
from lmsconf.model.plan import Action, Change
from lmsconf.planner.diff import diff_forms
from lmsconf.planner.selection import Selection, additions_only
from lmsconf.planner.undo.kept_state import undo_extent

OWNED = "it is owned, and no manifest declares it"
"""The reason of a deletion without an entry under `absent`."""


class PlannedResource(Struct, kw_only=True):
    """One resource that changes, before it becomes a Change and calls."""

    address: Address
    subject: Match[Any, Any] | Deletion[Any] | SideEffect
    sides: BeforeAfter
    action: Action
    steps: list[Step] = field(default_factory=list)


def planned_resources(
    kind: Kind, planning: PlanContext, selection: Selection, result: MatchResult[Any, Any], skipped: list[Address]
) -> list[PlannedResource]:
    """Return the resources of one kind that change, sorted by address; add what `--additive` skips to `skipped`.

    Refuses to delete a group if `--except` excludes a resource that is deleted with it.
    """
    planned = list(_changed(kind, planning, result.matches, skipped))
    deletions = [one for one in result.deletions if _is_deleted(planning, selection, one)]
    if planning.policy.additive:
        skipped.extend(one.address for one in deletions)
    else:
        planned.extend(
            PlannedResource(
                address=one.address, subject=one, sides=state_before_deletion(planning, one), action=Action.DELETE
            )
            for one in deletions
        )
    return sorted(planned, key=lambda item: (item.address, item.action))


def _changed(
    kind: Kind, planning: PlanContext, matches: Iterable[Match[Any, Any]], skipped: list[Address]
) -> Iterator[PlannedResource]:
    """Yield the declared resources that are chosen and differ from their rows."""
    update = update_action(planning) if kind.name == CONTENT_TARGET else Action.UPDATE
    for match in matches:
        address = match.address
        sides = diff(planning, match) if planning.chosen(match.along or address) else None
        if planning.policy.additive and sides is not None and sides.before is not None:
            whole, sides = sides, additions_only(sides)
            if sides.after != whole.after:
                skipped.append(address)
            # It renames nothing, so the plan is checked under the name that the resource keeps.
            name = (sides.after or {}).get(kind.name_key)
            address = Address.of(kind.name, name) if isinstance(name, str) else address
        if sides is not None and sides.before != sides.after:
            yield PlannedResource(
                address=address, subject=match, sides=sides, action=Action.CREATE if match.row is None else update
            )


def _is_deleted(planning: PlanContext, selection: Selection, deletion: Deletion[Any]) -> bool:
    """Whether a deletion is chosen, by itself or with its group; refuse the latter if `--except` excludes it."""
    if deletion.with_ is None or not planning.chosen(deletion.with_):
        return planning.chosen(deletion.address)
    _refuse_excluded(planning, selection, deletion.with_, deletion.address)
    return True


def add_changes_by_service(
    planning: PlanContext, selection: Selection, items: Sequence[PlannedResource]
) -> list[PlannedResource]:
    """Return the items with the changes that the service itself makes because of them, sorted.

    Refuses a resource that both a call and the service would change: the result would be undefined.
    """
    changed = {item.address for item in items}
    for effect in planning.side_effects:
        _refuse_excluded(planning, selection, effect.with_, effect.address)
        if effect.address in changed:
            _report_both(planning, effect)
    effects = (
        PlannedResource(address=effect.address, subject=effect, sides=effect.sides, action=Action.UPDATE)
        for effect in planning.side_effects
        if effect.address not in changed
    )
    order = list(KINDS)
    return sorted([*items, *effects], key=lambda item: (order.index(item.address.kind), item.address, item.action))


def _report_both(planning: PlanContext, effect: SideEffect) -> None:
    before, after = effect.sides.before or {}, effect.sides.after or {}
    keys = " and ".join(key for key in before if before[key] != after.get(key))
    planning.problem(
        "refusal/changed-along",
        f"{effect.with_}: it cannot change together with {effect.address}, whose {keys} the service would change too",
        hint=f"Declare the {keys} of {effect.address}, or apply one of the two first, with --only.",
        address=effect.with_,
    )


def _refuse_excluded(planning: PlanContext, selection: Selection, cause: Address, along: Address) -> None:
    if selection.excludes(along):
        planning.problem(
            "select/goes-along",
            f"{cause}: {along} is deleted with it, but --except excludes that",
            hint=f"Exclude both: --except {shell_quoted(cause)}.",
            address=cause,
        )


def refuse_references_to_skipped_renames(
    planning: PlanContext, items: Sequence[PlannedResource], results: Mapping[str, MatchResult[Any, Any]]
) -> None:
    """Refuse a reference to a new name if the plan leaves out the rename."""
    waiting = {
        match.address
        for match, _ in _renamed(results.values())
        if planning.policy.additive or not planning.chosen(match.address)
    }
    changing = [(item.address, item.subject.declared) for item in items if isinstance(item.subject, Match)]
    for address, declared in changing if waiting else ():
        for other in (one for one in dependencies(declared) if one in waiting):
            planning.problem(
                "reference/not-renamed",
                f"{address}: it names {other}, but the plan does not contain the rename to that name",
                hint=f"First run: lmsconf apply --only {shell_quoted(other)}",
                at=declared.source,
                address=address,
            )


def to_change(planning: PlanContext, item: PlannedResource) -> Change:
    subject, sides = item.subject, item.sides
    declared = subject.declared if isinstance(subject, Match) else None
    entry = subject if isinstance(subject, Deletion) else declared
    default_keys = KINDS[item.address.kind].default_keys if sides.before is None else ()
    return Change(
        address=item.address,
        action=item.action,
        id=None if subject.row is None else subject.row.id,
        about=declared.about if declared else None,
        source=entry.source if entry else None,
        before=form_to_json(sides.before),
        after=form_to_json(sides.after),
        fields=() if sides.before is None or sides.after is None else diff_forms(sides.before, sides.after),
        defaults=tuple(key for key in default_keys if key not in (sides.after or {})),
        reason=_reason(subject),
        goes_with=None if isinstance(subject, Match) else subject.with_,
        replaced_by=() if isinstance(subject, SideEffect) else subject.replaced_by,
        undo=undo_extent(planning, subject, sides),
    )


def _reason(subject: Match[Any, Any] | Deletion[Any] | SideEffect) -> str | None:
    """Return why a resource is deleted or changed that no manifest names; None for any other."""
    match subject:
        case Match():
            return subject.declared.reason
        case Deletion(reason=None, absent=None):
            return f"it goes with {subject.with_}" if subject.with_ else OWNED
    return subject.reason


def find_expired_absent(absent: Iterable[DeleteEntry[Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each entry under `absent` after its `until` date."""
    return (
        Problem(
            code="absent/expired",
            message=f"{entry.address}: the entry under `absent` expired on {entry.until}",
            hint="Delete the entry, or give it a later date.",
            source=entry.source,
            address=str(entry.address),
        )
        for entry in absent
        if entry.applies_in(policy.workspace) and entry.until is not None and policy.today > entry.until
    )


def find_left_alone(
    entries: Iterable[DesiredResource[Any] | DeleteEntry[Any]],
    policy: Policy,
    results: Iterable[MatchResult[Any, Any]] = (),
) -> Iterator[Problem]:
    """Yield an error for each declaration and entry under `absent` that `leave_alone` ignores.

    results: of matching; a live resource that is ignored by its current name is not renamed either.
    """
    here = ((entry, entry.address) for entry in entries if entry.applies_in(policy.workspace))
    renamed = (
        (match.declared, Address.of(match.address.kind, name))
        for match, name in (_renamed(results) if policy.leave_alone else ())
        # Where the new name is ignored, too, that is one error, not two.
        if not matches_patterns(match.address, policy.leave_alone)
    )
    return (
        Problem(
            code="identity/left-alone",
            message=f"{entry.address}: it is {'under `absent`' if isinstance(entry, DeleteEntry) else 'declared'}, but "
            f"`leave_alone` of the project file matches {name}",
            hint="Remove the entry, or narrow the pattern under `leave_alone`.",
            source=entry.source,
            address=str(entry.address),
        )
        for entry, name in chain(here, renamed)
        if matches_patterns(name, policy.leave_alone)
    )


def _renamed(results: Iterable[MatchResult[Any, Any]]) -> Iterator[tuple[Match[Any, Any], str]]:
    """Return the declared resources that are live under another name, with that name."""
    return (
        (match, name)
        for result in results
        for match in result.matches
        if match.row and (name := normalize_name(match.row.name)) != match.address.name
    )
