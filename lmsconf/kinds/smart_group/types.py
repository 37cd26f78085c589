"""Values of smart groups: live rows and declared specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Struct

from lmsconf.errors import InvalidResponse
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.kinds.shared.people_lists import PeopleList
from lmsconf.kinds.shared.response_json import (
    id_set,
    object_list,
    optional_text,
    require_object,
    require_text,
    text_or_none,
)
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json

ASKING_FOR_CHOICES: Final = (None, "IS_ANY")
"""The system conditions under which an answer with one of the choices meets a condition; None: it has none."""


class ConditionRow(NamedTuple):
    """A live condition, by ids."""

    field: RemoteId
    choices: frozenset[RemoteId]
    system_condition: str | None


class SmartGroupRow(Struct, frozen=True):
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
        body: dict[str, Json] = {"field": self.field}
        if self.choices:
            body["choices"] = [*sorted(self.choices)]
        if self.system_condition is not None:
            body["system_condition"] = self.system_condition
        return body


class SmartGroupSpec(Struct, frozen=True):
    """A declared smart group; None for an undeclared key."""

    conditions: tuple[DeclaredCondition, ...] | None
    managers: PeopleList | None

    @property
    def declares_people(self) -> bool:
        """Whether managers are declared."""
        return self.managers is not None


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


def parse_detail_row(stub: SmartGroupRow, answer: Json) -> SmartGroupRow:
    """Parse a smart group of a detail response, with conditions and managers.

    stub: its row in the listing. Raises InvalidResponse for a response without conditions.
    """
    data = require_object(answer, "a smart group")
    conditions = object_list(data, "conditions")
    if not conditions:
        # Every smart group has a condition; if none were accepted, its fields would look safe to change or delete.
        raise InvalidResponse(f"smart_group/{stub.name}: a response is missing its conditions")
    return SmartGroupRow(
        stub.id, stub.name, tuple(parse_condition_row(condition) for condition in conditions), id_set(data, "managers")
    )
