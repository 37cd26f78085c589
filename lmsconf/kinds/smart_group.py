"""Smart groups: rows, specs, and conditions, by id as in the API, by name as in manifests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Problem, shorten
from lmsconf.kinds.custom_field.compare import references_exist
from lmsconf.kinds.custom_field.lost_answers import FieldOrChoiceDeletion
from lmsconf.kinds.custom_field.types import CustomFieldSpec, choices_hint
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP, choices_registry_kind
from lmsconf.kinds.shared.manifest_entry import (
    ManifestEntry,
    PeopleList,
    desired_resource_by_name,
    parse_names,
    parse_people_list,
)
from lmsconf.kinds.shared.plan_context import (
    MOST_COMPARED,
    BeforeAfter,
    MatchResult,
    NameRegistry,
    PlanContext,
    SideEffect,
)
from lmsconf.kinds.shared.responses import (
    id_set,
    object_list,
    optional_text,
    require_object,
    require_text,
    text_or_none,
)
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.forms import Form, item_order
from lmsconf.model.names import did_you_mean, normalize_name
from lmsconf.model.snapshot import IdAndName, SnapshotRow

MATCHED_BY_CHOICE: Final = (None, "IS_ANY")
"""With one of these system conditions, or with none, a person matches whose answer is one of the choices."""


class ConditionRow(SnapshotRow, frozen=True):
    """A live condition, by ids. system_condition: the operator of the service, such as IS_ANY."""

    field: RemoteId
    choices: frozenset[RemoteId]
    system_condition: str | None = None


class SmartGroupRow(IdAndName, frozen=True):
    """A live smart group. Conditions and managers are None where they were not read."""

    listing = SMART_GROUP

    conditions: tuple[ConditionRow, ...] | None = None
    managers: frozenset[RemoteId] | None = None


class DeclaredCondition(NamedTuple):
    """A condition, by names. `system_condition` is None if undeclared."""

    field: str
    choices: frozenset[str]
    system_condition: str | None

    def to_json(self) -> Json:
        """The condition as written in a manifest."""
        body: dict[str, Json] = {
            "field": self.field,
            "choices": [*sorted(self.choices)],
            "system_condition": self.system_condition,
        }
        return {key: value for key, value in body.items() if value or key == "field"}


class SmartGroupSpec(Struct, frozen=True):
    """A declared smart group; None for an undeclared key."""

    conditions: tuple[DeclaredCondition, ...] | None
    managers: PeopleList | None


def parse_condition_row(data: Mapping[str, Json]) -> ConditionRow:
    """Parse a condition of a response."""
    field, system = RemoteId(require_text(data, "customFieldId")), text_or_none(data.get("systemCondition"))
    return ConditionRow(field, id_set(data, "choiceIds"), system)


def parse_listed_row(data: Mapping[str, Json]) -> SmartGroupRow:
    """Parse a row of the listing, which has neither conditions nor managers."""
    return SmartGroupRow(RemoteId(require_text(data, "smartGroupId")), optional_text(data, "name"))


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
        tuple(parse_condition_row(condition) for condition in conditions),
        id_set(data, "managers"),
    )


def parse_smart_group(entry: ManifestEntry) -> DesiredResource[SmartGroupSpec]:
    """Parse the conditions and managers of an entry."""
    listed = cast("list[Mapping[str, Json]] | None", entry.body.get("conditions"))
    conditions = None if listed is None else tuple(map(_condition, listed))
    spec = SmartGroupSpec(conditions=conditions, managers=parse_people_list(entry, "managers"))
    return desired_resource_by_name(SMART_GROUP, entry, spec)


def _condition(body: Mapping[str, Json]) -> DeclaredCondition:
    field, system = normalize_name(str(body["field"])), body.get("system_condition")
    choices = frozenset(parse_names(body.get("choices")))
    return DeclaredCondition(field, choices, None if system is None else str(system))


def find_unknown_choices(
    declared: Sequence[DesiredResource[SmartGroupSpec]], custom_fields: Sequence[DesiredResource[CustomFieldSpec]]
) -> Iterator[Problem]:
    """Yield a problem for choices of a TEXT field, and for choices missing from a list that is declared whole."""
    fields = {resource.address: resource.spec for resource in custom_fields}
    unknown_count = count()
    for declared_group in declared:
        for position, condition in enumerate(declared_group.spec.conditions or ()):
            field = fields.get(Address.of(CUSTOM_FIELD, condition.field))
            if field is not None:
                yield from _unknown_choices(declared_group, position, condition, field, unknown_count)


def _unknown_choices(
    declared: DesiredResource[SmartGroupSpec],
    position: int,
    condition: DeclaredCondition,
    field: CustomFieldSpec,
    unknown_count: Iterator[int],
) -> Iterator[Problem]:
    at = Address.of(CUSTOM_FIELD, condition.field)
    if field.type == "TEXT" and condition.choices:
        yield Problem(
            code="reference/text-field",
            message=f"{declared.address}: {at} is a TEXT field, it has no choices to name",
            hint="Conditions need a CHOICE or MULTI_SELECT field.",
            source=declared.places.at("conditions", position, "choices"),
            address=str(declared.address),
        )
    if field.choices is None or not field.choices.whole:
        return
    known = [choice.name for choice in field.choices.include]
    for name in sorted(condition.choices - set(known)):
        is_compared = next(unknown_count) < MOST_COMPARED
        yield Problem(
            code="reference/unknown-choice",
            message=f'{declared.address}: {at} has no choice "{shorten(name)}"',
            hint=choices_hint(known, did_you_mean(name, known)) if is_compared else f"Name a choice of {at}.",
            source=declared.places.find(name, "conditions", position, "choices"),
            address=str(declared.address),
        )


class SimilarConditions(Struct, frozen=True):
    """The conditions of a smart group, equal to those of another if both may be the same group.

    The service may fill in a system condition that is not declared, so one that is missing on either side equals any.
    Equality is therefore not transitive: do not partition by it.
    """

    conditions: tuple[DeclaredCondition, ...]

    def __hash__(self) -> int:
        return hash(frozenset((key, len(systems)) for key, systems in systems_by_content(self.conditions).items()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimilarConditions):
            return NotImplemented
        own, others = systems_by_content(self.conditions), systems_by_content(other.conditions)
        return own.keys() == others.keys() and all(_can_be_paired(systems, others[key]) for key, systems in own.items())


def systems_by_content(
    conditions: Iterable[DeclaredCondition],
) -> defaultdict[tuple[str, frozenset[str]], list[str | None]]:
    """Return (field, choices) → the system conditions of the conditions with these, None where undeclared."""
    systems: defaultdict[tuple[str, frozenset[str]], list[str | None]] = defaultdict(list)
    for condition in conditions:
        systems[condition.field, condition.choices].append(condition.system_condition)
    return systems


def _can_be_paired(left: Sequence[str | None], right: Sequence[str | None]) -> bool:
    """Whether the system conditions can be paired one to one, None matching any."""
    known: Counter[str | None] = Counter(one for one in left if one is not None)
    others = Counter(right)
    return len(left) == len(right) and (known - others).total() <= others[None]


def sorted_conditions(conditions: Iterable[DeclaredCondition]) -> tuple[DeclaredCondition, ...]:
    """Return the conditions in the order in which plans list them, so that the same ones in any order are equal."""
    return tuple(sorted(conditions, key=lambda one: item_order(one.to_json())))


def sorted_for_request(form: Form) -> list[DeclaredCondition]:
    """Return the conditions of a form in the order in which requests send them."""
    conditions = cast("tuple[DeclaredCondition, ...]", form.get("conditions", ()))
    return sorted(conditions, key=lambda one: str(one.to_json()))


def keep_system_conditions(
    declared: Sequence[DeclaredCondition], live: Sequence[DeclaredCondition]
) -> tuple[DeclaredCondition, ...]:
    """Return the declared conditions; where no system condition is declared, with that of the live condition.

    The live condition with the same field and choices is meant.
    """
    # Sorted, so that which of several is kept does not depend on the order of the response.
    kept = systems_by_content(sorted(live, key=lambda one: one.system_condition or ""))
    for condition in declared:
        systems = kept[condition.field, condition.choices]
        if condition.system_condition is not None and condition.system_condition in systems:
            systems.remove(condition.system_condition)
    return tuple([_with_system(one, kept[one.field, one.choices]) for one in declared])


def _with_system(condition: DeclaredCondition, systems: list[str | None]) -> DeclaredCondition:
    """Return a condition; if it has no system condition, with the first of these, which is taken from them."""
    is_open = condition.system_condition is None and systems
    return condition._replace(system_condition=systems.pop(0)) if is_open else condition


def conditions_by_name(planning: PlanContext, conditions: Iterable[ConditionRow]) -> tuple[DeclaredCondition, ...]:
    """Live conditions with the names after the plan; an unresolved id becomes `field id …` or `choice id …`."""
    return tuple([_by_name(planning.registry, condition) for condition in conditions])


def _by_name(registry: NameRegistry, condition: ConditionRow) -> DeclaredCondition:
    field = registry.name(CUSTOM_FIELD, condition.field) or f"field id {condition.field}"
    scope = choices_registry_kind(field)
    names = frozenset(registry.name(scope, choice) or f"choice id {choice}" for choice in condition.choices)
    return DeclaredCondition(field, names, condition.system_condition)


def conditions_by_id(planning: PlanContext, conditions: Iterable[DeclaredCondition]) -> list[dict[str, object]]:
    """Conditions as in a request body; ids not known yet are Refs."""
    return [_by_id(planning.registry, condition) for condition in conditions]


def _by_id(registry: NameRegistry, condition: DeclaredCondition) -> dict[str, object]:
    at = Address.of(CUSTOM_FIELD, condition.field)
    body = {
        "customFieldId": registry.id_or_ref(Ref(at)),
        "choiceIds": [registry.id_or_ref(Ref(at, name)) for name in sorted(condition.choices)],
        "systemCondition": condition.system_condition,
    }
    return {key: value for key, value in body.items() if value}


def condition_refs(conditions: Iterable[DeclaredCondition]) -> frozenset[Ref]:
    """The fields and choices that conditions reference."""
    return frozenset(
        Ref(Address.of(CUSTOM_FIELD, one.field), part) for one in conditions for part in (None, *one.choices)
    )


def check_references(
    planning: PlanContext, declared: DesiredResource[SmartGroupSpec], conditions: Sequence[DeclaredCondition]
) -> bool:
    """Report each referenced field and choice that will not exist after the plan; return whether all will."""
    exist = True
    for position, (field, choices, _) in enumerate(conditions):
        at = ("conditions", position)
        exist = references_exist(planning, declared, field, choices, (*at, "field"), (*at, "choices")) and exist
    return exist


def record_possible_renames(
    planning: PlanContext, declared: Sequence[DeclaredCondition], live: Sequence[DeclaredCondition]
) -> None:
    """Record for each new choice the live, undeclared choices whose new name it may be.

    A declared condition and a live one of the same field may be the same condition with a choice renamed.
    """
    for condition in set(declared) - set(live):
        parts = planning.parts.get(Address.of(CUSTOM_FIELD, condition.field))
        if parts is None:
            continue
        for held in set(live) - set(declared):
            # Apart from new choices, the live condition has all that the declared one has.
            if held.field == condition.field and held.choices >= condition.choices - parts.new:
                for new in condition.choices - held.choices:
                    parts.likely.setdefault(new, set()).update((held.choices - condition.choices) & parts.undeclared)


def record_references(planning: PlanContext, deleted: frozenset[str]) -> None:
    """Record which references each live smart group keeps (`kept_refs`), and which it drops and adds (`changed_refs`).

    What is added in place of a dropped field is in `added_refs`. deleted: the ids of the groups that are deleted.
    """
    for row in planning.snapshot.rows(SmartGroupRow):
        before = conditions_by_name(planning, row.conditions or ())
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


def plan_condition_losses(
    planning: PlanContext, matched: MatchResult[SmartGroupSpec, SmartGroupRow], deleted: frozenset[str]
) -> None:
    """Add a side effect for each smart group that the service would rewrite; report one without usable conditions.

    deleted: the ids of the smart groups that the plan deletes. A group with declared conditions gets those, so it is
    skipped. If the listing of smart groups is incomplete, each loss is a problem.
    """
    losses = {loss.field.id: loss for loss in planning.losses}
    # The service rewrites conditions only if it never refuses to delete a field in use.
    if not losses or planning.api_spec.behaviour("custom-fields.in-use") != "never":
        return
    listing = planning.snapshot.of(SMART_GROUP)
    if listing.incomplete is not None:
        _report_unread(planning, losses, listing.incomplete)
        return
    chosen = [match for match in matched.matches if planning.chosen(match.address)]
    settled = {match.row.id for match in chosen if match.row and match.declared.spec.conditions is not None}
    for row in planning.snapshot.rows(SmartGroupRow):
        remaining = _remaining_conditions(row.conditions or (), losses)
        if remaining == (row.conditions or ()) or row.id in deleted or row.id in settled:
            continue
        at = Address.of(SMART_GROUP, planning.registry.name(SMART_GROUP, row.id) or normalize_name(row.name))
        cause = next(losses[one.field] for one in row.conditions or () if one.field in losses and one not in remaining)
        if not remaining:
            _report_unusable(planning, cause, f"{at} would be left without conditions")
        elif any(not one.choices and one.system_condition is None for one in remaining):
            _report_unusable(planning, cause, f"{at} would be left with a condition that names no choice")
        _add_side_effect(planning, row, at, cause, remaining)


def _remaining_conditions(
    conditions: Sequence[ConditionRow], losses: Mapping[RemoteId, FieldOrChoiceDeletion]
) -> tuple[ConditionRow, ...]:
    """Return the conditions without the deleted fields and choices."""
    left = (_without(one, losses[one.field]) if one.field in losses else one for one in conditions)
    return tuple(one for one in left if one is not None)


def _without(condition: ConditionRow, loss: FieldOrChoiceDeletion) -> ConditionRow | None:
    """Return a condition without the deleted choices of its field; None without the field."""
    return None if loss.choices is None else replace(condition, choices=condition.choices - loss.choices)


def _add_side_effect(
    planning: PlanContext,
    row: SmartGroupRow,
    at: Address,
    cause: FieldOrChoiceDeletion,
    remaining: Sequence[ConditionRow],
) -> None:
    name = normalize_name(row.name)
    before: Form = {"name": name, "conditions": sorted_conditions(conditions_by_name(planning, row.conditions or ()))}
    after: Form = {"name": name, "conditions": sorted_conditions(conditions_by_name(planning, remaining))}
    sides = BeforeAfter(before=before, after=after, sizes={"conditions": len(row.conditions or ())})
    reason = f"no manifest changes it: the service removes what belongs to {cause.address} from its conditions"
    planning.side_effects.append(SideEffect(address=at, row=row, with_=cause.address, reason=reason, sides=sides))


def _report_unusable(planning: PlanContext, cause: FieldOrChoiceDeletion, reason: str) -> None:
    verb = "deleted" if cause.choices is None else "changed"
    planning.problem(
        "refusal/no-conditions",
        f"{cause.address}: it cannot be {verb}, because {reason}",
        hint="Declare that smart group with new `conditions`, or list it under `absent`.",
        address=cause.address,
    )


def _report_unread(planning: PlanContext, losses: Mapping[RemoteId, FieldOrChoiceDeletion], why: str) -> None:
    for loss in losses.values():
        planning.problem(
            "read/incomplete",
            f"{loss.address}: it is not known which smart groups use what is deleted, because their list is not "
            f"complete: {why}",
            hint="Nothing is deleted from an incomplete list. Plan again once it can be read.",
            address=loss.address,
        )
