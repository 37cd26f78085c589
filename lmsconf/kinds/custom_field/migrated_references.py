"""What a migration of a field changes beside the fields: answers of people, and conditions of smart groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec.structs import replace

from lmsconf.kinds.custom_field.lost_answers import known_answers
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP, USER
from lmsconf.kinds.shared.plan_context import MatchResult, PlanContext
from lmsconf.kinds.smart_group.conditions import conditions_by_name
from lmsconf.kinds.smart_group.types import DeclaredCondition, SmartGroupRow, SmartGroupSpec
from lmsconf.kinds.user.types import Answer, PersonRow, PersonSpec
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import matches_patterns, normalize_name

if TYPE_CHECKING:
    from lmsconf.kinds.custom_field.planned_migration import ActiveMigration

Person: TypeAlias = "DesiredResource[PersonSpec]"
_ANSWERS = "answers"


def add_copied_answers(planning: PlanContext, declared: Sequence[Person]) -> Sequence[Person]:
    """Return the declared people with the answers that migrations copy, and everybody else who has such an answer."""
    copies, migration_of = _copies(planning)
    if not copies:
        return declared
    out: list[Person] = []
    people = {row.id: row for row in planning.snapshot.rows(PersonRow)}
    ids = {people[id].name: id for id in copies}
    for resource in declared:
        pin = resource.pin(planning.policy.workspace)
        names = (name for name in (resource.address.name, *resource.previously) if name in ids)
        id = pin if pin in copies else next((ids[name] for name in names), None) if pin is None else None
        if id is not None and resource.address in planning.included:
            continue  # the selection leaves out what else is declared of the person, and it was not read
        added = {} if id is None else copies.pop(id, {})
        out.append(_with_answers(resource, added) if added else resource)
    for id, answers in copies.items():
        out.append(
            DesiredResource(
                address=Address.of(USER, people[id].name),
                spec=PersonSpec(declared_keys=frozenset({_ANSWERS}), answers=answers),
                places=migration_of[id].migration.places,
                pins={planning.policy.workspace: id},
                reason=f"its answer is copied from {migration_of[id].deletion.address} to {migration_of[id].target}",
            )
        )
    return out


def _copies(planning: PlanContext) -> tuple[dict[RemoteId, dict[str, Answer]], dict[RemoteId, ActiveMigration]]:
    """Return person → the answers to copy, by the new field, and the migration of each."""
    copies: defaultdict[RemoteId, dict[str, Answer]] = defaultdict(dict)
    migration_of: dict[RemoteId, ActiveMigration] = {}
    for _, active in sorted(planning.migrations.items()):
        for id, answer in active.copies.items():
            copies[id][active.target.name] = answer
            migration_of[id] = active
    return dict(copies), migration_of


def _with_answers(one: Person, added: Mapping[str, Answer]) -> Person:
    """Return a declaration with further answers; those that it has itself hold."""
    spec = one.spec
    keys = spec.declared_keys | {_ANSWERS}
    return replace(one, spec=replace(spec, declared_keys=keys, answers={**added, **spec.answers}))


def complete_copies(planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> None:
    """Give the rows of people with copied answers their live answers, as if these had been declared when read."""
    wanted = {id for one in planning.migrations.values() for id in one.copies}
    known = known_answers(planning.snapshot) if wanted else {}
    if isinstance(known, str):
        return
    for position, match in enumerate(matched.matches):
        row = match.row
        if row is not None and row.answers is None and row.id in wanted:
            matched.matches[position] = replace(match, row=replace(row, answers=known[row.id].all_answers))


Group: TypeAlias = "DesiredResource[SmartGroupSpec]"


def add_replaced_conditions(
    planning: PlanContext, declared: Sequence[Group], absent: Sequence[DeleteEntry[Any]]
) -> Sequence[Group]:
    """Return the declared smart groups, and others, with the conditions that migrations replace."""
    active = {
        migration.deletion.row.id: migration
        for migration in planning.migrations.values()
        if migration.migration.all_groups and not migration.is_held
    }
    if not active:
        return declared
    out = {id(resource): resource for resource in declared}
    more: list[Group] = []
    for row in planning.snapshot.rows(SmartGroupRow):
        migrations = [active[condition.field] for condition in row.conditions or () if condition.field in active]
        conditions = _replaced(planning, row, active) if migrations else None
        if conditions is None:
            continue
        own = [resource for resource in declared if _is_of(resource, row, planning.policy.workspace)]
        for one in own:
            if one.spec.conditions is None:
                out[id(one)] = replace(one, spec=replace(one.spec, conditions=conditions))
        if not own and not _is_left(planning, row, absent):
            planning.include(Address.of(SMART_GROUP, normalize_name(row.name)))
            more.append(_undeclared(planning, row, conditions, migrations[0]))
    return [*out.values(), *more]


def _is_of(one: Group, row: SmartGroupRow, workspace: str) -> bool:
    """Whether a declaration is of a live smart group, by id or by name, also by an earlier one."""
    pin = one.pin(workspace)
    return row.id == pin if pin is not None else normalize_name(row.name) in (one.address.name, *one.previously)


def _is_left(planning: PlanContext, row: SmartGroupRow, absent: Sequence[DeleteEntry[Any]]) -> bool:
    """Whether the plan deletes an undeclared smart group, or must not touch it."""
    policy, name = planning.policy, normalize_name(row.name)
    address = Address.of(SMART_GROUP, name)
    owned = not policy.only and matches_patterns(name, policy.ownership.get(SMART_GROUP, ()))
    return owned or matches_patterns(str(address), policy.leave_alone) or any(one.address == address for one in absent)


def _undeclared(
    planning: PlanContext, row: SmartGroupRow, conditions: tuple[DeclaredCondition, ...], active: ActiveMigration
) -> Group:
    return DesiredResource(
        address=Address.of(SMART_GROUP, normalize_name(row.name)),
        spec=SmartGroupSpec(conditions=conditions, managers=None),
        places=active.migration.places,
        pins={planning.policy.workspace: row.id},
        reason=f"its conditions name {active.deletion.address}, whose answers move to {active.target}",
    )


def _replaced(
    planning: PlanContext, row: SmartGroupRow, active: dict[RemoteId, ActiveMigration]
) -> tuple[DeclaredCondition, ...] | None:
    """Return the conditions on the new fields; None if one has no counterpart there, or names what is not known."""
    live = row.conditions or ()
    if any(planning.registry.name(CUSTOM_FIELD, condition.field) is None for condition in live):
        return None
    pairs = zip(live, conditions_by_name(planning, live), strict=True)
    new = [_moved(named, active[one.field]) if one.field in active else named for one, named in pairs]
    known = tuple(condition for condition in new if condition is not None)
    return known if len(known) == len(new) else None


def _moved(condition: DeclaredCondition, active: ActiveMigration) -> DeclaredCondition | None:
    """Return a condition on the new field with the choices that the old ones become; None if none is left."""
    new = (active.migration.choices.get(choice, choice) for choice in condition.choices)
    choices = frozenset(choice for choice in new if choice is not None)
    if condition.choices and (not choices or active.target_type == "TEXT"):
        return None
    return condition._replace(field=active.target.name, choices=choices)
