"""Values of custom fields: live rows and declared specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD
from lmsconf.kinds.shared.response_json import object_list, require_text
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.support.lazy_dataclass import dataclass

MOST_FIELDS: Final = 10
TYPES: Final = ("CHOICE", "MULTI_SELECT", "TEXT")
FLAGS: Final = {"hidden": "isHidden", "locked": "isLocked", "optional": "isOptional"}


@dataclass(frozen=True, slots=True)
class ChoiceRow:
    """A live choice."""

    id: RemoteId
    name: str


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A live custom field. A flag is None where the response lacks it."""

    listing = CUSTOM_FIELD

    id: RemoteId
    name: str
    type: str
    choices: tuple[ChoiceRow, ...] = ()
    description: str | None = None
    hidden: bool | None = None
    locked: bool | None = None
    optional: bool | None = None


@dataclass(frozen=True, slots=True)
class DeclaredChoice:
    """A declared choice. pins: workspace, "" for any, → choice id. previously: old names. at: its path in the entry."""

    name: str
    pins: Mapping[str, str]
    previously: tuple[str, ...]
    at: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class DeclaredChoices:
    """The declared choices of a field: the whole list, or, unless `whole`, those that must and must not exist."""

    include: tuple[DeclaredChoice, ...]
    exclude: tuple[str, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class CustomFieldSpec:
    """A declared field; None for an undeclared key. `description` is "" where the manifest has null: clear it."""

    type: str | None
    choices: DeclaredChoices | None
    description: str | None
    hidden: bool | None
    locked: bool | None
    optional: bool | None


def parse_field_row(data: Mapping[str, Json]) -> FieldRow:
    """Parse a field of a response; `id` and `customFieldId` are the same (API specification, Custom field)."""
    return FieldRow(
        id=RemoteId(require_text(data, "customFieldId" if data.get("customFieldId") is not None else "id")),
        name=require_text(data, "name"),
        type=require_text(data, "type"),
        choices=tuple(
            ChoiceRow(RemoteId(require_text(choice, "choiceId")), require_text(choice, "name"))
            for choice in object_list(data, "choices")
        ),
        description=require_text(data, "description") if data.get("description") else None,
        **{key: cast("bool | None", data.get(wire_name)) for key, wire_name in FLAGS.items()},
    )
