"""Values of smart groups: live rows, and what manifest entries declare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, cast

from msgspec import Struct

from lmsconf.errors import InvalidResponse, Problem, shorten
from lmsconf.kinds.custom_field.types import CustomFieldSpec
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.shared.manifest_entry import (
    ManifestEntry,
    PeopleList,
    desired_resource_by_name,
    parse_names,
    parse_people_list,
)
from lmsconf.kinds.shared.missing_references import MOST_COMPARED
from lmsconf.kinds.shared.responses import (
    id_set,
    object_list,
    optional_text,
    require_object,
    require_text,
    text_or_none,
)
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.names import did_you_mean, list_names, normalize_name
from lmsconf.model.snapshot import SnapshotRow

MATCHED_BY_CHOICE: Final = (None, "IS_ANY")
"""With one of these system conditions, or with none, a person matches whose answer is one of the choices."""


class ConditionRow(SnapshotRow, frozen=True):
    """A live condition, by ids. system_condition: the operator of the service, such as IS_ANY."""

    field: RemoteId
    choices: frozenset[RemoteId]
    system_condition: str | None = None


class SmartGroupRow(SnapshotRow, frozen=True):
    """A live smart group. Conditions and managers are None where they were not read."""

    listing = SMART_GROUP

    id: RemoteId
    name: str
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
    return ConditionRow(
        RemoteId(require_text(data, "customFieldId")),
        id_set(data, "choiceIds"),
        text_or_none(data.get("systemCondition")),
    )


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
        raise InvalidResponse(f"smart_group/{listed.name}: a response is missing its conditions")
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
    system = body.get("system_condition")
    return DeclaredCondition(
        normalize_name(str(body["field"])),
        frozenset(parse_names(body.get("choices"))),
        None if system is None else str(system),
    )


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
        hints = [f"Name a choice of {at}."]
        if next(unknown_count) < MOST_COMPARED:
            hints = [f"It has {list_names(known)}.", did_you_mean(name, known) or ""]
        yield Problem(
            code="reference/unknown-choice",
            message=f'{declared.address}: {at} has no choice "{shorten(name)}"',
            hint=" ".join(hint for hint in hints if hint),
            source=declared.places.find(name, "conditions", position, "choices"),
            address=str(declared.address),
        )
