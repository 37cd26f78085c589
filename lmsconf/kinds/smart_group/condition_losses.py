"""Conditions that the service removes from smart groups when it deletes a field or choice in use.

Only under the dialect `custom-fields.in-use: never`: by default the service refuses the deletion instead (API
specification, Custom Fields).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from lmsconf.kinds.custom_field.lost_answers import FieldOrChoiceDeletion, recorded_deletions
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.kinds.smart_group.conditions import condition_set, conditions_by_name
from lmsconf.kinds.smart_group.types import ConditionRow, SmartGroupRow, SmartGroupSpec
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.planner.context import BeforeAfter, MatchResult, PlanContext, SideEffect


def plan_condition_losses(
    planning: PlanContext, matched: MatchResult[SmartGroupSpec, SmartGroupRow], deleted: frozenset[str]
) -> None:
    """Add an effect for each smart group that the service would rewrite; report one left without usable conditions.

    deleted: the ids of the smart groups that the plan deletes. A group with declared conditions gets those, so it is
    skipped. If the listing of smart groups is incomplete, each loss is a problem.
    """
    losses = {loss.field.id: loss for loss in recorded_deletions(planning)}
    if not losses or planning.call_templates.behaviour("custom-fields.in-use") != "never":
        return
    listing = planning.snapshot.of(SMART_GROUP)
    if listing.incomplete is not None:
        _refuse_unread(planning, losses, listing.incomplete)
        return
    declared = {match.row.id: match for match in matched.matches if match.row and planning.chosen(match.address)}
    for row in planning.snapshot.rows(SmartGroupRow):
        left = _left(row.conditions or (), losses)
        match = declared.get(row.id)
        if left == (row.conditions or ()) or row.id in deleted:
            continue
        if match is not None and match.declared.spec.conditions is not None:
            continue
        at = Address.of(SMART_GROUP, planning.registry.name(SMART_GROUP, row.id) or normalize_name(row.name))
        cause = next(losses[one.field] for one in row.conditions or () if one.field in losses and one not in left)
        if not left:
            _refuse(planning, cause, f"{at} would be left without conditions")
        elif any(not one.choices and one.system_condition is None for one in left):
            _refuse(planning, cause, f"{at} would be left with a condition that names no choice")
        _announce(planning, row, at, cause, left)


def _left(
    conditions: Sequence[ConditionRow], losses: Mapping[RemoteId, FieldOrChoiceDeletion]
) -> tuple[ConditionRow, ...]:
    """The remaining conditions, without the deleted fields and choices."""
    out = []
    for condition in conditions:
        loss = losses.get(condition.field)
        if loss is None:
            out.append(condition)
        elif loss.choices is not None:
            out.append(replace(condition, choices=condition.choices - loss.choices))
    return tuple(out)


def _announce(
    planning: PlanContext, row: SmartGroupRow, at: Address, cause: FieldOrChoiceDeletion, left: Sequence[ConditionRow]
) -> None:
    name = normalize_name(row.name)
    before: Form = {"name": name, "conditions": condition_set(conditions_by_name(planning, row.conditions or ()))}
    after: Form = {"name": name, "conditions": condition_set(conditions_by_name(planning, left))}
    sides = BeforeAfter(before=before, after=after, sizes={"conditions": len(row.conditions or ())})
    reason = f"no manifest changes it: the service removes what belongs to {cause.address} from its conditions"
    planning.effects.append(SideEffect(address=at, row=row, with_=cause.address, reason=reason, sides=sides))


def _refuse(planning: PlanContext, cause: FieldOrChoiceDeletion, reason: str) -> None:
    verb = "deleted" if cause.choices is None else "changed"
    planning.problem(
        "refusal/no-conditions",
        f"{cause.address}: it cannot be {verb}, because {reason}",
        hint="Declare that smart group with new `conditions`, or list it under `absent`.",
        address=cause.address,
    )


def _refuse_unread(planning: PlanContext, losses: Mapping[RemoteId, FieldOrChoiceDeletion], why: str) -> None:
    for loss in losses.values():
        planning.problem(
            "read/incomplete",
            f"{loss.address}: it is not known which smart groups use what is deleted, because their list is not "
            f"complete: {why}",
            hint="Nothing is deleted from an incomplete list. Plan again once it can be read.",
            address=loss.address,
        )
