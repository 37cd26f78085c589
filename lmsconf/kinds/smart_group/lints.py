"""Lints of smart groups: conditions that nobody or everybody meets, those of another one, and no active manager."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from lmsconf.errors import Problem
from lmsconf.kinds.custom_field.choices import field_types
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.smart_group.conditions import NumberedCondition, condition_set
from lmsconf.kinds.smart_group.types import ASKING_FOR_CHOICES, DeclaredCondition, SmartGroupRow, SmartGroupSpec
from lmsconf.kinds.user.manager_lints import lint_managers
from lmsconf.model.address import Address
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.lints import lint_problem

if TYPE_CHECKING:
    from lmsconf.planner.lints import LintContext

_SINGLE: Final = "CHOICE"
_FEWEST: Final = 2
"""In a workspace of one person every smart group has nobody or everybody."""


def lint_smart_groups(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared smart groups."""
    types, rows = _field_types(context), _live_rows(context)
    by_conditions: dict[frozenset[NumberedCondition], DesiredResource[SmartGroupSpec]] = {}
    for declared in context.of(SMART_GROUP):
        row = rows.get(declared.address)
        managers = row.managers if row is not None else frozenset()
        yield from lint_managers(context, declared, managers)
        if declared.spec.conditions is None:
            continue
        impossible = list(_impossible(declared, row, types))
        yield from impossible or _size(context, declared)
        first = by_conditions.setdefault(condition_set(declared.spec.conditions), declared)
        if first is not declared:
            yield lint_problem(
                "lint/duplicate-audience",
                f"it has the same conditions as {first.address}",
                source=declared.places.at("conditions"),
                address=declared.address,
                remedy=f"See {first.source}. Keep one of the two, and assign to it.",
            )


def _field_types(context: LintContext) -> Mapping[str, str]:
    """Return the type of each field by name, as far as it is known."""
    if context.plan is not None:
        return field_types(context.plan.planning)
    return {one.address.name: one.spec.type for one in context.of(CUSTOM_FIELD) if one.spec.type is not None}


def _live_rows(context: LintContext) -> dict[Address, SmartGroupRow]:
    matches = () if context.plan is None else context.plan.results[SMART_GROUP].matches
    return {match.address: match.row for match in matches if match.row is not None}


def _impossible(
    declared: DesiredResource[SmartGroupSpec], row: SmartGroupRow | None, types: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield a finding for each single-choice field of which no choice meets all conditions."""
    if row is not None and any(one.system_condition not in ASKING_FOR_CHOICES for one in row.conditions or ()):
        # A declared condition without a system condition keeps that of the live one.
        return
    common: dict[str, frozenset[str]] = {}
    for position, condition in enumerate(declared.spec.conditions or ()):
        if not _names_single_choices(condition, types):
            continue
        before = common.get(condition.field)
        common[condition.field] = condition.choices if before is None else before & condition.choices
        if before and not common[condition.field]:
            yield lint_problem(
                "lint/impossible-conditions",
                f"nobody can meet all its conditions on {Address.of(CUSTOM_FIELD, condition.field)}: each person has "
                "one answer, and no choice is in all of them",
                source=declared.places.at("conditions", position),
                address=declared.address,
            )


def _names_single_choices(condition: DeclaredCondition, types: Mapping[str, str]) -> bool:
    single = types.get(condition.field) == _SINGLE
    return single and bool(condition.choices) and condition.system_condition in ASKING_FOR_CHOICES


def _size(context: LintContext, declared: DesiredResource[SmartGroupSpec]) -> Iterator[Problem]:
    """Yield a finding for a smart group without members, or with everybody."""
    size = context.size(declared.address)
    if size is None or size.everybody < _FEWEST:
        return
    if size.people == 0:
        code, message = "lint/matches-nobody", "no active person meets its conditions"
    elif size.people == size.everybody:
        code, message = "lint/matches-everybody", f"all {size.people:,} active people meet its conditions"
    else:
        return
    yield lint_problem(code, message, source=declared.places.at("conditions"), address=declared.address)
