"""Lints of custom fields: unused while all fields of the workspace are taken, and names of choices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lmsconf.errors import Problem
from lmsconf.kinds.custom_field.types import MOST_FIELDS, CustomFieldSpec
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.lints import lint_problem
from lmsconf.planner.context import MatchResult
from lmsconf.planner.lints import lint_name

if TYPE_CHECKING:
    from lmsconf.planner.lints import LintContext, PlannedState


def lint_fields(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared fields."""
    yield from _suspicious_choices(context)
    yield from _unused_fields(context)


def _suspicious_choices(context: LintContext) -> Iterator[Problem]:
    declared: Sequence[DesiredResource[CustomFieldSpec]] = context.of(CUSTOM_FIELD)
    for resource in declared:
        for choice in () if resource.spec.choices is None else resource.spec.choices.include:
            yield from lint_name(resource.address, choice.name, resource.places.at(*choice.at), "the name of a choice")


def _unused_fields(context: LintContext) -> Iterator[Problem]:
    """Yield a finding for each declared field that no smart group asks for, if there is no room for another field."""
    plan = context.plan
    if plan is None or plan.planning.snapshot.of(CUSTOM_FIELD).incomplete is not None:
        return
    if _fields_after(plan) < MOST_FIELDS:
        return
    used = _fields_in_conditions(plan)
    if used is None:
        return
    for declared in context.of(CUSTOM_FIELD):
        if declared.address.name not in used:
            yield lint_problem(
                "lint/unused-field",
                f"no smart group uses it, and all {MOST_FIELDS} custom fields are taken",
                source=declared.source,
                address=declared.address,
            )


def _fields_after(plan: PlannedState) -> int:
    """Return how many fields the workspace holds after the plan."""
    planning, matched = plan.planning, plan.results[CUSTOM_FIELD]
    created = sum(match.row is None and planning.chosen(match.address) for match in matched.matches)
    return len(planning.snapshot.of(CUSTOM_FIELD).rows) - len(_deleted(plan, matched)) + created


def _deleted(plan: PlannedState, matched: MatchResult[Any, Any]) -> frozenset[str]:
    """Return the ids of the resources of one kind that the plan deletes."""
    if plan.planning.policy.additive:
        return frozenset()
    return frozenset(deletion.row.id for deletion in matched.deletions if plan.planning.chosen(deletion.address))


def _fields_in_conditions(plan: PlannedState) -> frozenset[str] | None:
    """Return the fields that smart groups ask for, before or after the plan; None if some conditions are not known."""
    planning, matched = plan.planning, plan.results[SMART_GROUP]
    listing = planning.snapshot.of(SMART_GROUP)
    if listing.incomplete is not None:
        return None
    deleted = _deleted(plan, matched)
    fields = {condition.field for match in matched.matches for condition in match.declared.spec.conditions or ()}
    for row in listing.rows:
        if row.id in deleted:
            continue
        if row.conditions is None:
            return None
        fields |= {planning.registry.name(CUSTOM_FIELD, condition.field) or "" for condition in row.conditions}
    return frozenset(fields)
