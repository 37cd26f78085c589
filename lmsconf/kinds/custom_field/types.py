"""Values of custom fields: live rows and declared specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import asdict

from lmsconf.api.spec.value_encoding import PickedChoice
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD
from lmsconf.kinds.shared.responses import AnswerRow, object_list, require_text
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import SourceMap
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import SnapshotRow

MOST_FIELDS: Final = 10
TYPES: Final = ("CHOICE", "MULTI_SELECT", "TEXT")
FLAGS: Final = {"hidden": "isHidden", "locked": "isLocked", "optional": "isOptional"}


class ChoiceRow(SnapshotRow, frozen=True):
    """A live choice."""

    id: RemoteId
    name: str


class FieldRow(SnapshotRow, frozen=True):
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


class DeclaredChoice(Struct, frozen=True):
    """A declared choice. pins: workspace, "" for any, → choice id. previously: old names. at: its path in the entry."""

    name: str
    pins: Mapping[str, str]
    previously: tuple[str, ...]
    at: tuple[str | int, ...]


class DeclaredChoices(Struct, frozen=True):
    """The declared choices of a field: the whole list, or, unless `whole`, those that must and must not exist."""

    include: tuple[DeclaredChoice, ...]
    exclude: tuple[str, ...] = ()
    whole: bool = True


class Migration(Struct, frozen=True, kw_only=True):
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
    places: SourceMap
    is_replayed: bool

    def __eq__(self, other: object) -> bool:
        aside = {"places": None}
        return isinstance(other, Migration) and asdict(self) | aside == asdict(other) | aside


class CustomFieldSpec(Struct, frozen=True):
    """A declared field; None for an undeclared key. `description` is "" where the manifest has null: clear it."""

    type: str | None
    choices: DeclaredChoices | None
    description: str | None
    hidden: bool | None
    locked: bool | None
    optional: bool | None
    migrate: Migration | None = None


def answer_value(field: FieldRow, answer: AnswerRow) -> str | list[PickedChoice]:
    """Return a live answer as it can be sent again: its text, or those of the field's choices that it picks."""
    if field.type == "TEXT":
        return answer.as_text
    return [
        PickedChoice(choice.id, choice.name)
        for choice in field.choices
        if answer.picked & {choice.id, choice.name, normalize_name(choice.name)}
    ]


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


def parts_of(row: object) -> tuple[ChoiceRow, ...]:
    """Return the parts of a live resource that have ids of their own: the choices of a field."""
    return row.choices if isinstance(row, FieldRow) else ()
