"""Smart groups: rows, specs, and conditions, by id as in the API, by name as in manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, product
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Problem, shorten
from lmsconf.kinds.custom_field.compare import references_exist
from lmsconf.kinds.custom_field.types import CustomFieldSpec, DeclaredCondition, FieldOrChoiceDeletion, choices_hint
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP, choices_registry_kind
from lmsconf.kinds.shared.manifest_entry import (
    ManifestEntry,
    PeopleList,
    parse_names,
    parse_people_list,
)
from lmsconf.kinds.shared.plan_context import (
    MOST_COMPARED,
    BeforeAfter,
    MatchResult,
    PlanContext,
    SideEffect,
)
from lmsconf.kinds.shared.responses import (
    id_set,
    object_list,
    require_object,
    require_text,
    text_or_none,
)
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.forms import Form, item_order, without_empty
from lmsconf.model.names import did_you_mean, grouped, normalize_name
from lmsconf.model.snapshot import IdAndName, SnapshotRow

MATCHED_BY_CHOICE: Final = (None, "IS_ANY")
"""Under these (None: no system condition) a person matches whose answer is one of the choices."""


class ConditionRow(SnapshotRow, frozen=True):
    """A live condition, by ids. system_condition: a word of the service, such as IS_ANY; None without one."""

    field: RemoteId
    choices: frozenset[RemoteId]
    system_condition: str | None = None


class SmartGroupRow(IdAndName, frozen=True):
    """A live smart group. Conditions and managers are None where they were not read."""

    listing = SMART_GROUP

    conditions: tuple[ConditionRow, ...] | None = None
    managers: frozenset[RemoteId] | None = None


class SmartGroupSpec(Struct, frozen=True):
    """A declared smart group; None for an undeclared key."""

    conditions: tuple[DeclaredCondition, ...] | None
    managers: PeopleList | None


def parse_detail_row(listed: SmartGroupRow, response: Json) -> SmartGroupRow:
    """Parse a smart group of a detail response, with conditions and managers.

    listed: its row in the listing. Raises InvalidResponse for a response without conditions.
    """
    data = require_object(response, "a smart group")
    conditions = object_list(data, "conditions")
    if not conditions:
        # Every smart group has conditions. Read as none, its fields would look unused, and so safe to change or delete.
        raise InvalidResponse(
            f"smart_group/{listed.name}: a response is missing its conditions",
            hint="If it has none, give it conditions in the product, or delete it there.",
        )
    return SmartGroupRow(
        listed.id,
        listed.name,
        tuple(
            ConditionRow(
                RemoteId(require_text(one, "customFieldId")),
                id_set(one, "choiceIds"),
                text_or_none(one.get("systemCondition")),
            )
            for one in conditions
        ),
        id_set(data, "managers"),
    )


def parse_smart_group(entry: ManifestEntry, _: Address) -> SmartGroupSpec:
    """Parse the conditions and managers of an entry."""
    listed = cast("list[Mapping[str, Json]] | None", entry.body.get("conditions"))
    conditions = tuple(
        DeclaredCondition(
            normalize_name(str(one["field"])),
            frozenset(parse_names(one.get("choices"))),
            None if one.get("system_condition") is None else str(one["system_condition"]),
        )
        for one in listed or ()
    )
    return SmartGroupSpec(None if listed is None else conditions, parse_people_list(entry, "managers"))


def find_unknown_choices(
    declared: Sequence[DesiredResource[SmartGroupSpec]], custom_fields: Sequence[DesiredResource[CustomFieldSpec]]
) -> Iterator[Problem]:
    """Yield a problem for choices of a TEXT field, and for choices missing from a list that is declared whole."""
    fields = {resource.address.name: resource.spec for resource in custom_fields}
    unknown_count = count()
    for group in declared:
        for position, condition in enumerate(group.spec.conditions or ()):
            at, field = Address.of(CUSTOM_FIELD, condition.field), fields.get(condition.field)
            if field is not None and field.type == "TEXT" and condition.choices:
                yield Problem(
                    code="reference/text-field",
                    message=f"{group.address}: {at} is a TEXT field, it has no choices to name",
                    hint="Conditions need a CHOICE or MULTI_SELECT field.",
                    source=group.places.at("conditions", position, "choices"),
                    address=str(group.address),
                )
            if field is None or field.choices is None or not field.choices.whole:
                continue
            known = [choice.name for choice in field.choices.include]
            for name in sorted(condition.choices.difference(known)):
                is_compared = next(unknown_count) < MOST_COMPARED
                yield Problem(
                    code="reference/unknown-choice",
                    message=f'{group.address}: {at} has no choice "{shorten(name)}"',
                    hint=choices_hint(known, did_you_mean(name, known)) if is_compared else f"Name a choice of {at}.",
                    source=group.places.find(name, "conditions", position, "choices"),
                    address=str(group.address),
                )


class ConditionsRenameKey(Struct, frozen=True):
    """Equal if both may be the conditions of one smart group: not transitive, so do not partition by it.

    The service may fill in a system condition that is not declared, so one that is missing on either side
    equals any.
    """

    conditions: tuple[DeclaredCondition, ...]

    def __hash__(self) -> int:
        by_key = system_conditions_by_field_and_choices(self.conditions)
        return hash(frozenset((key, len(systems)) for key, systems in by_key.items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConditionsRenameKey):
            return NotImplemented
        own = system_conditions_by_field_and_choices(self.conditions)
        others = system_conditions_by_field_and_choices(other.conditions)
        return own.keys() == others.keys() and all(
            _system_conditions_match(systems, others[key]) for key, systems in own.items()
        )


def system_conditions_by_field_and_choices(
    conditions: Iterable[DeclaredCondition],
) -> dict[tuple[str, frozenset[str]], list[str | None]]:
    """Return (field, choices) → the system condition of each condition with them; None where undeclared."""
    by_key = grouped(conditions, lambda one: (one.field, one.choices))
    return {key: [one.system_condition for one in same] for key, same in by_key.items()}


def _system_conditions_match(left: Sequence[str | None], right: Sequence[str | None]) -> bool:
    """Whether the system conditions can be paired one to one, None matching any."""
    known: Counter[str | None] = Counter(one for one in left if one is not None)
    others = Counter(right)
    return len(left) == len(right) and (known - others).total() <= others[None]


def sorted_conditions(conditions: Iterable[DeclaredCondition]) -> tuple[DeclaredCondition, ...]:
    """Return the conditions in the order in which plans list them, so that the same ones in any order are equal."""
    return tuple(sorted(conditions, key=lambda one: item_order(one.to_json())))


def conditions_of(form: Form) -> tuple[DeclaredCondition, ...]:
    """Return the conditions of a form; none without the key."""
    return cast("tuple[DeclaredCondition, ...]", form.get("conditions", ()))


def conditions_in_request_order(form: Form) -> list[DeclaredCondition]:
    """Return the conditions of a form in the order in which requests send them: by field first.

    Plans list them by choices first, as `item_order` sorts. The two orders stay: the calls of a saved plan
    are compared with those of a fresh one, so with another order in requests it would be stale.
    """
    return sorted(conditions_of(form), key=lambda one: str(one.to_json()))


def with_live_system_conditions(
    declared: Sequence[DeclaredCondition], live: Sequence[DeclaredCondition]
) -> tuple[DeclaredCondition, ...]:
    """Return the declared conditions, with the system conditions that live ones have.

    A declared condition without a system condition gets that of an unpaired live one with the same field and
    choices.
    """
    # Sorted, so that which of several is kept does not depend on the order of the response.
    kept = system_conditions_by_field_and_choices(sorted(live, key=lambda one: one.system_condition or ""))
    for condition in declared:
        systems = kept.get((condition.field, condition.choices), [])
        if condition.system_condition is not None and condition.system_condition in systems:
            systems.remove(condition.system_condition)
    pairs = ((one, kept.get((one.field, one.choices), [])) for one in declared)
    return tuple(
        one._replace(system_condition=systems.pop(0)) if one.system_condition is None and systems else one
        for one, systems in pairs
    )


def live_conditions_as_declared(
    planning: PlanContext, conditions: Iterable[ConditionRow]
) -> tuple[DeclaredCondition, ...]:
    """Live conditions with the names after the plan; an unresolved id becomes `field id …` or `choice id …`."""
    registry = planning.registry
    fields = ((registry.name(CUSTOM_FIELD, one.field) or f"field id {one.field}", one) for one in conditions)
    return tuple(
        DeclaredCondition(
            field,
            frozenset(registry.name(choices_registry_kind(field), id) or f"choice id {id}" for id in one.choices),
            one.system_condition,
        )
        for field, one in fields
    )


def conditions_to_request(planning: PlanContext, conditions: Iterable[DeclaredCondition]) -> list[dict[str, object]]:
    """Conditions as in a request body; ids not known yet are Refs."""
    id_or_ref, field_at = planning.registry.id_or_ref, partial(Address.of, CUSTOM_FIELD)
    return [
        without_empty(
            {
                "customFieldId": id_or_ref(Ref(field_at(one.field))),
                "choiceIds": [id_or_ref(Ref(field_at(one.field), name)) for name in sorted(one.choices)],
                "systemCondition": one.system_condition,
            }
        )
        for one in conditions
    ]


def condition_refs(conditions: Iterable[DeclaredCondition]) -> frozenset[Ref]:
    """The fields and choices that conditions reference."""
    return frozenset(
        Ref(Address.of(CUSTOM_FIELD, one.field), part) for one in conditions for part in (None, *one.choices)
    )


def check_references(
    planning: PlanContext, declared: DesiredResource[SmartGroupSpec], conditions: Sequence[DeclaredCondition]
) -> bool:
    """Report each referenced field and choice that will not exist after the plan; return whether all will."""
    exist = [
        references_exist(
            planning, declared, field, choices, ("conditions", position, "field"), ("conditions", position, "choices")
        )
        for position, (field, choices, _) in enumerate(conditions)
    ]
    return all(exist)


def record_possible_choice_renames(
    planning: PlanContext, declared: Sequence[DeclaredCondition], live: Sequence[DeclaredCondition]
) -> None:
    """Record for each new choice the live, undeclared choices that may have been renamed to it.

    A declared condition and a live one of the same field may be the same condition with a choice renamed.
    """
    for wanted, held in product(set(declared) - set(live), set(live) - set(declared)):
        parts = planning.parts.get(Address.of(CUSTOM_FIELD, wanted.field)) if wanted.field == held.field else None
        # Apart from new choices, the live condition has all that the declared one has.
        if parts is not None and held.choices >= wanted.choices - parts.new:
            for new in wanted.choices - held.choices:
                parts.likely.setdefault(new, set()).update((held.choices - wanted.choices) & parts.undeclared)


def record_reference_changes(
    planning: PlanContext,
    matched: MatchResult[SmartGroupSpec, SmartGroupRow],
) -> None:
    """Record which references each live smart group keeps (`kept_refs`), and which it drops and adds (`changed_refs`).

    What is added in place of a dropped field is in `added_refs`; what the service itself removes is a side
    effect.
    """
    deleted = frozenset(one.row.id for one in planning.planned(matched.deletions))
    for row in planning.snapshot.rows(SmartGroupRow):
        before = live_conditions_as_declared(planning, row.conditions or ())
        after = () if row.id in deleted else planning.planned_conditions.get(row.id, before)
        refs_before = condition_refs(before)
        refs_after = refs_before if after == before else condition_refs(after)
        address = Address.of(SMART_GROUP, planning.registry.name(SMART_GROUP, row.id) or row.name)
        for ref in refs_before & refs_after:
            planning.kept_refs[ref].append(address)
        dropped, added = refs_before - refs_after, refs_after - refs_before
        if dropped or added:
            planning.changed_refs.append((dropped, added))
        for field in (ref.address.name for ref in dropped if ref.part is None):
            planning.added_refs[field] = planning.added_refs.get(field, frozenset()) | added
    replaced = {
        match.row.id
        for match in matched.matches
        if match.row and match.declared.spec.conditions is not None and planning.chosen(match.address)
    }
    _add_service_rewrites(planning, deleted | replaced)


def _add_service_rewrites(planning: PlanContext, settled: frozenset[str]) -> None:
    """Add a side effect for each smart group that the service would rewrite; report one without usable conditions.

    settled: the ids of the smart groups that the plan deletes, and of those with declared conditions, which they get
    once these have no errors. If the listing of smart groups is incomplete, each deletion is a problem.
    """
    deletions = {deletion.field.id: deletion for deletion in planning.losses}
    # The service rewrites conditions only if it never refuses to delete a field in use.
    if not deletions or planning.api_spec.behaviour("custom-fields.in-use") != "never":
        return
    if (incomplete := planning.snapshot.of(SMART_GROUP).incomplete) is not None:
        for deletion in deletions.values():
            planning.problem(
                "read/incomplete",
                f"{deletion.address}: it is not known which smart groups use what is deleted, because "
                f"their list is not complete: {incomplete}",
                hint="Nothing is deleted from an incomplete list. Plan again once it can be read.",
                address=deletion.address,
            )
        return
    for row in planning.snapshot.rows(SmartGroupRow):
        live = row.conditions or ()
        remaining = _conditions_after_deletions(live, deletions)
        if remaining != live and row.id not in settled:
            lost = (one.field for one in live if one.field in deletions and one not in remaining)
            _add_side_effect(planning, row, deletions[next(lost)], remaining)


def _conditions_after_deletions(
    conditions: Sequence[ConditionRow], deletions: Mapping[RemoteId, FieldOrChoiceDeletion]
) -> tuple[ConditionRow, ...]:
    """Return the conditions without the deleted fields and choices."""
    dropped = {id: deletion.choices for id, deletion in deletions.items()}
    return tuple(
        replace(one, choices=one.choices.difference(dropped.get(one.field) or ()))
        for one in conditions
        if dropped.get(one.field, ()) is not None
    )


def _add_side_effect(
    planning: PlanContext, row: SmartGroupRow, cause: FieldOrChoiceDeletion, remaining: Sequence[ConditionRow]
) -> None:
    """Add what the service makes of a smart group; report one that would be left without usable conditions."""
    name = normalize_name(row.name)
    at = Address.of(SMART_GROUP, planning.registry.name(SMART_GROUP, row.id) or name)
    if not remaining or any(not one.choices and one.system_condition is None for one in remaining):
        left = "with a condition that names no choice" if remaining else "without conditions"
        planning.problem(
            "refusal/no-conditions",
            f"{cause.address}: it cannot be {'deleted' if cause.choices is None else 'changed'}, because {at} would be "
            f"left {left}",
            hint="Declare that smart group with new `conditions`, or list it under `absent`.",
            address=cause.address,
        )
    live = row.conditions or ()
    declared = (live_conditions_as_declared(planning, conditions) for conditions in (live, remaining))
    before, after = map(sorted_conditions, declared)
    planning.side_effects.append(
        SideEffect(
            address=at,
            row=row,
            with_=cause.address,
            reason=f"no manifest changes it: the service removes what belongs to {cause.address} from its conditions",
            sides=BeforeAfter(
                before={"name": name, "conditions": before},
                after={"name": name, "conditions": after},
                sizes={"conditions": len(live)},
            ),
        )
    )
