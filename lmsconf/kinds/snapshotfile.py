"""Snapshots as files: `lmsconf.snapshot/1`, rows by kind, ids and all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

from lmsconf.core import document
from lmsconf.core.address import RemoteId
from lmsconf.core.identity import HasName
from lmsconf.core.snapshot import Listing, Snapshot, row_json
from lmsconf.core.values import Json
from lmsconf.errors import LmsconfError
from lmsconf.kinds.content import ContentRow
from lmsconf.kinds.field_values import ChoiceRow, FieldRow
from lmsconf.kinds.manual_group import GroupRow
from lmsconf.kinds.names import ADMIN, CONTENT, CONTENT_TARGET, CUSTOM_FIELD, GROUP, HOLDERS, SMART_GROUP, USER
from lmsconf.kinds.smart_values import ConditionRow, SmartRow
from lmsconf.kinds.target_values import TargetRow
from lmsconf.kinds.user_values import AdminRow, AnswerRow, HolderRow, PersonRow

FORMAT: Final = "lmsconf.snapshot/1"
Data = Mapping[str, Json]
PSEUDONYMOUS: Final = (
    "People are pseudonymous, not anonymous: each e-mail is a salted hash, by which who knows the e-mail can find the "
    "person. Names, metadata and answers are left out."
)


def dumps(snapshot: Snapshot) -> str:
    """The snapshot as text, one row to a line."""
    body: dict[str, Json] = {
        "format": FORMAT,
        "tool": document.TOOL,
        "taken_at": snapshot.taken_at,
        "workspace": {"name": snapshot.workspace, "url": snapshot.url},
        "people": snapshot.people,
        "incomplete": {
            kind: listing.incomplete for kind, listing in snapshot.listings.items() if listing.incomplete is not None
        },
    }
    if snapshot.salt is not None:
        body["pseudonyms"] = {"salt": snapshot.salt, "note": PSEUDONYMOUS}
    for kind in _ROWS:
        if kind in snapshot.listings:
            body[kind] = [row_json(row, in_order=True) for row in snapshot.listings[kind].rows]
    return document.render(body)


def loads(text: str) -> Snapshot:
    """The snapshot that a text holds. Raises LmsconfError for a text that holds none."""
    data = document.parse(text)
    if data["format"] != FORMAT:
        raise LmsconfError(
            f"the file is a {data['format']} document, not a {FORMAT}", hint="Make one with: lmsconf snapshot FILE"
        )
    try:
        return _snapshot(data)
    except (KeyError, TypeError, AttributeError) as wrong:
        hint = "It was edited or cut short. Make it again with: lmsconf snapshot FILE"
        raise LmsconfError(f"the snapshot cannot be read: {wrong!r}", hint=hint) from wrong


def _snapshot(data: Data) -> Snapshot:
    workspace, incomplete = cast("dict[str, str]", data["workspace"]), cast("dict[str, str]", data["incomplete"])
    return Snapshot(
        workspace=workspace["name"],
        url=workspace["url"],
        taken_at=cast(str, data["taken_at"]),
        people=cast("int | None", data["people"]),
        salt=cast("dict[str, str]", data["pseudonyms"])["salt"] if "pseudonyms" in data else None,
        listings={
            kind: Listing(
                rows=tuple(row(one) for one in cast("list[Data]", data[kind])), incomplete=incomplete.get(kind)
            )
            for kind, row in _ROWS.items()
            if kind in data
        },
    )


def _ids(value: Json) -> frozenset[RemoteId] | None:
    return None if value is None else frozenset(cast("list[RemoteId]", value))


def _person(data: Data) -> HasName:
    details: dict[str, object] = {**data}
    if "applications" in data:
        details["applications"] = frozenset(cast("list[str]", data["applications"]))
    if "metadata" in data:
        details["metadata"] = tuple((key, value) for key, value in cast("list[list[str]]", data["metadata"]))
    if "answers" in data:
        details["answers"] = tuple(map(_answer, cast("list[Data]", data["answers"])))
    return PersonRow(**details)  # type: ignore[arg-type]  # written by row_json


def _answer(data: Data) -> AnswerRow:
    choices = frozenset(cast("list[str]", data["choices"]))
    return AnswerRow(cast(str, data["field"]), choices, cast("str | None", data.get("text")))


def _admin(data: Data) -> HasName:
    return AdminRow(RemoteId(cast(str, data["id"])), cast(str, data["name"]))


def _holder(data: Data) -> HasName:
    return HolderRow(RemoteId(cast(str, data["id"])), cast(int, data["people"]))


def _field(data: Data) -> HasName:
    choices = cast("list[dict[str, str]]", data["choices"])
    said = cast("dict[str, str]", {key: value for key, value in data.items() if key != "choices"})
    return FieldRow(choices=tuple(ChoiceRow(RemoteId(one["id"]), one["name"]) for one in choices), **said)  # type: ignore[arg-type]  # written by row_json


def _group(data: Data) -> HasName:
    members, managers = _ids(data.get("members")), _ids(data.get("managers"))
    return GroupRow(RemoteId(cast(str, data["id"])), cast(str, data["name"]), members, managers)


def _smart_group(data: Data) -> HasName:
    conditions = cast("list[Data] | None", data.get("conditions"))
    return SmartRow(
        RemoteId(cast(str, data["id"])),
        cast(str, data["name"]),
        None if conditions is None else tuple(_condition(one) for one in conditions),
        _ids(data.get("managers")),
    )


def _condition(data: Data) -> ConditionRow:
    return ConditionRow(
        RemoteId(cast(str, data["field"])),
        _ids(data["choices"]) or frozenset(),
        cast("str | None", data.get("system_condition")),
    )


def _content(data: Data) -> HasName:
    return ContentRow(RemoteId(cast(str, data["id"])), cast(str, data["name"]), cast(str, data["type"]))


def _target(data: Data) -> HasName:
    return TargetRow(**cast("dict[str, RemoteId]", data))  # type: ignore[arg-type]  # written by row_json


_ROWS: Final[Mapping[str, Callable[[Data], HasName]]] = {
    USER: _person,
    ADMIN: _admin,
    HOLDERS: _holder,
    CUSTOM_FIELD: _field,
    GROUP: _group,
    SMART_GROUP: _smart_group,
    CONTENT: _content,
    CONTENT_TARGET: _target,
}
