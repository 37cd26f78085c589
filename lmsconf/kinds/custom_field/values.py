"""Custom fields as values: the live row, and what a manifest says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from lmsconf.kinds.shared.answers import objects, text
from lmsconf.model.address import RemoteId
from lmsconf.model.values import Json

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
    """A live custom field. A flag is None where the answer lacks it."""

    id: RemoteId
    name: str
    type: str
    choices: tuple[ChoiceRow, ...] = ()
    description: str | None = None
    hidden: bool | None = None
    locked: bool | None = None
    optional: bool | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that a manifest wants."""

    name: str
    pins: Mapping[str, str]
    previously: tuple[str, ...]
    at: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a field: all there are, or only those that must be there and those that must not."""

    include: tuple[Choice, ...]
    exclude: tuple[str, ...] = ()
    whole: bool = True


@dataclass(frozen=True, slots=True)
class CustomField:
    """What a manifest says of a field. `description` is "" where it says null: to be cleared."""

    type: str | None
    choices: Choices | None
    description: str | None
    hidden: bool | None
    locked: bool | None
    optional: bool | None


def field_row(data: Mapping[str, Json]) -> FieldRow:
    """A field as the service describes it; `id` and `customFieldId` are the same."""
    return FieldRow(
        id=RemoteId(text(data, "customFieldId" if data.get("customFieldId") is not None else "id")),
        name=text(data, "name"),
        type=text(data, "type"),
        choices=tuple(
            ChoiceRow(RemoteId(text(choice, "choiceId")), text(choice, "name")) for choice in objects(data, "choices")
        ),
        description=text(data, "description") if data.get("description") else None,
        **{key: cast("bool | None", data.get(wire)) for key, wire in FLAGS.items()},
    )
