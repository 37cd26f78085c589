"""What a probe reads of live fields and assignments, and the kinds that it takes parsers and limits from."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from lmsconf.api.spec.listings import CUSTOM_FIELDS
from lmsconf.kinds import all_kinds
from lmsconf.kinds.custom_field.types import parse_field_row
from lmsconf.kinds.shared.response_json import require_text
from lmsconf.model.api import ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.planner.kind import Kind


class Choice(Protocol):
    """A live choice of a field."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...


class Field(Protocol):
    """A live custom field; `description` is None or empty without one."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def choices(self) -> Sequence[Choice]: ...

    @property
    def description(self) -> str | None: ...


class Assignment(NamedTuple):
    """A live assignment of a content, with texts as in the response. `start` and `finish` are None for no limit."""

    target: str
    type: str
    mandatory: bool
    start: str | None
    finish: str | None


def kind_listed_by(listing: ListOperation) -> Kind:
    """Return the kind whose resources the operation lists."""
    return next(kind for kind in all_kinds().values() if kind.list_operation == listing)


def most_fields() -> int:
    """Return the number of custom fields that a workspace can hold."""
    limit = kind_listed_by(CUSTOM_FIELDS).limit
    return sys.maxsize if limit is None else limit


def parse_field(row: Mapping[str, Json]) -> Field:
    """Parse a row of the listing of custom fields. Raises InvalidResponse."""
    field: Field = parse_field_row(row)
    return field


def parse_assignment(row: Mapping[str, Json]) -> Assignment:
    """Parse an item of a content's targets. Raises InvalidResponse."""
    return Assignment(
        target=require_text(row, "targetId"),
        type=str(row.get("targetType") or ""),
        mandatory=bool(row.get("mandatory")),
        start=_time(row.get("startTime")),
        finish=_time(row.get("finishTime")),
    )


def _time(value: Json) -> str | None:
    return None if value is None or value == "" else str(value)
