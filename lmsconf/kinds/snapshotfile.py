"""Snapshots as files: `lmsconf.snapshot/1`, rows by kind, ids and all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lmsconf.core import document
from lmsconf.core.identity import HasName
from lmsconf.core.rows import row_json, row_value
from lmsconf.core.snapshot import Listing, Snapshot
from lmsconf.core.values import Json
from lmsconf.errors import LmsconfError
from lmsconf.kinds.content import ContentRow
from lmsconf.kinds.field_values import FieldRow
from lmsconf.kinds.manual_group import GroupRow
from lmsconf.kinds.names import ADMIN, CONTENT, CONTENT_TARGET, CUSTOM_FIELD, GROUP, HOLDERS, SMART_GROUP, USER
from lmsconf.kinds.smart_values import SmartRow
from lmsconf.kinds.target_values import TargetRow
from lmsconf.kinds.user_values import AdminRow, HolderRow, PersonRow

FORMAT: Final = "lmsconf.snapshot/1"
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
        return _snapshot(document.Reader(data))
    except (ValueError, RecursionError) as wrong:
        hint = "It was edited or cut short. Make it again with: lmsconf snapshot FILE"
        raise LmsconfError(f"the snapshot cannot be read: {wrong}", hint=hint) from wrong


def _snapshot(at: document.Reader) -> Snapshot:
    workspace, incomplete = at.reader("workspace"), at.text_map("incomplete")
    return Snapshot(
        workspace=workspace.text("name"),
        url=workspace.text("url"),
        taken_at=at.text("taken_at"),
        people=at.maybe("people", at.number),
        salt=at.reader("pseudonyms").text("salt") if at.has("pseudonyms") else None,
        listings={
            kind: Listing(rows=tuple(_rows(at, kind)), incomplete=incomplete.get(kind))
            for kind in _ROWS
            if at.has(kind)
        },
    )


def _rows(at: document.Reader, kind: str) -> Iterator[HasName]:
    for number, row in enumerate(at.items(kind)):
        try:
            yield row_value(_ROWS[kind], row)
        except ValueError as wrong:
            raise ValueError(f"{kind}[{number}]: {wrong}") from wrong


_ROWS: Final[Mapping[str, type[HasName]]] = {
    USER: PersonRow,
    ADMIN: AdminRow,
    HOLDERS: HolderRow,
    CUSTOM_FIELD: FieldRow,
    GROUP: GroupRow,
    SMART_GROUP: SmartRow,
    CONTENT: ContentRow,
    CONTENT_TARGET: TargetRow,
}
