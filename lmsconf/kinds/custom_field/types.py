"""Values of custom fields: live rows and declared specs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final, cast

from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD
from lmsconf.kinds.shared.response_json import object_list, require_text
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import SourceMap
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """How answers move from the field `source` to the field `target`. Names are normalized.

    choices: old choice, or text → new choice, None: no answer; others keep their name.
    deletes_rest: whether answers that cannot be copied are deleted with the old field, instead of keeping it.
    all_groups: whether conditions that no manifest declares are replaced too. places: of the parts of the mapping.
    is_replayed: whether it is that of a plan, which deletes the old field.
    """

    source: str
    target: str
    choices: Mapping[str, str | None]
    deletes_rest: bool
    all_groups: bool
    places: SourceMap = field(compare=False)
    is_replayed: bool


@dataclass(frozen=True, slots=True)
class CustomFieldSpec:
    """A declared field; None for an undeclared key. `description` is "" where the manifest has null: clear it."""

    type: str | None
    choices: DeclaredChoices | None
    description: str | None
    hidden: bool | None
    locked: bool | None
    optional: bool | None
    migrate: Migration | None = None


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
