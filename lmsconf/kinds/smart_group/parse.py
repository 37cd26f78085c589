"""Parsing of a smart group's manifest entry, and problems between its conditions and declared fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final, cast

from lmsconf.errors import Problem, shorten
from lmsconf.kinds.custom_field.types import CustomFieldSpec
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD
from lmsconf.kinds.shared.manifest_entries import parse_names
from lmsconf.kinds.shared.people_lists import parse_people_list
from lmsconf.kinds.smart_group.types import DeclaredCondition, SmartGroupSpec
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.names import did_you_mean, list_names, normalize_name
from lmsconf.planner.manifest_entries import ManifestEntry


def parse_smart_group(entry: ManifestEntry) -> SmartGroupSpec:
    """Parse the conditions and managers of an entry."""
    conditions = entry.body.get("conditions")
    return SmartGroupSpec(
        conditions=tuple(_condition(condition) for condition in cast("list[Mapping[str, Json]]", conditions))
        if conditions is not None
        else None,
        managers=parse_people_list(entry, "managers"),
    )


def _condition(body: Mapping[str, Json]) -> DeclaredCondition:
    system = body.get("system_condition")
    return DeclaredCondition(
        normalize_name(str(body["field"])),
        frozenset(parse_names(body.get("choices"))),
        None if system is None else str(system),
    )


_HINTS: Final = 50
"""The number of unknown choices that are compared with the known ones, which takes long where both are many."""


def find_unknown_choices(
    declared: Sequence[DesiredResource[SmartGroupSpec]], custom_fields: Sequence[DesiredResource[CustomFieldSpec]]
) -> Iterator[Problem]:
    """Yield a problem for choices of a TEXT field, and for choices missing from a field's declared whole list."""
    fields = {resource.address: resource.spec for resource in custom_fields}
    number = count()
    for declared_group in declared:
        for position, condition in enumerate(declared_group.spec.conditions or ()):
            field = fields.get(Address.of(CUSTOM_FIELD, condition.field))
            if field is not None:
                yield from _unknown_choices(declared_group, position, condition, field, number)


def _unknown_choices(
    declared: DesiredResource[SmartGroupSpec],
    position: int,
    condition: DeclaredCondition,
    field: CustomFieldSpec,
    number: Iterator[int],
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
        hints = [f"Name a choice of {at}."]
        if next(number) < _HINTS:
            hints = [f"It has {list_names(known)}.", did_you_mean(name, known) or ""]
        yield Problem(
            code="reference/unknown-choice",
            message=f'{declared.address}: {at} has no choice "{shorten(name)}"',
            hint=" ".join(hint for hint in hints if hint),
            source=declared.places.find(name, "conditions", position, "choices"),
            address=str(declared.address),
        )
