"""Snapshot files: `lmsconf.snapshot/1`, rows by kind, with their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lmsconf.documents import document
from lmsconf.errors import LmsconfError
from lmsconf.kinds.content_target.catalog import ContentRow
from lmsconf.kinds.content_target.values import TargetRow
from lmsconf.kinds.custom_field.values import FieldRow
from lmsconf.kinds.manual_group.values import GroupRow
from lmsconf.kinds.shared.names import (
    ADMIN,
    CONTENT,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    GROUP,
    HOLDERS,
    SMART_GROUP,
    UNNAMED,
    USER,
)
from lmsconf.kinds.smart_group.values import SmartRow
from lmsconf.kinds.user.values import AdminRow, HolderRow, PersonRow, UnnamedRow
from lmsconf.model.rows import row_json, row_value
from lmsconf.model.snapshot import HasName, Listing, Redaction, Snapshot
from lmsconf.model.values import Json

FORMAT: Final = "lmsconf.snapshot/1"
REDACTED: Final = (
    "People in the manifests are pseudonymous: a salted hash stands for their e-mail. Everyone else "
    "has a random label, new in each snapshot, and is in no list: unnamed_people counts them."
)


def dumps(snapshot: Snapshot) -> str:
    """Return the text of the snapshot file, one row per line."""
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
    if snapshot.redaction is not None:
        named: list[Json] = [*sorted(snapshot.redaction.named)]
        body["pseudonyms"] = {"salt": snapshot.redaction.salt, "named": named, "note": REDACTED}
    for kind in _ROWS:
        if kind in snapshot.listings:
            body[kind] = [row_json(row, in_order=True) for row in snapshot.listings[kind].rows]
    return document.render(body)


def loads(text: str) -> Snapshot:
    """Return the snapshot in a text. Raises LmsconfError for a text without one."""
    data = document.parse(text)
    if data["format"] != FORMAT:
        raise LmsconfError(
            f"the file is a {data['format']} document, not a {FORMAT}", hint="Make one with: lmsconf snapshot FILE"
        )
    try:
        return _snapshot(document.DocumentReader(data))
    except (ValueError, RecursionError) as wrong:
        hint = "It was edited or cut short. Make it again with: lmsconf snapshot FILE"
        raise LmsconfError(f"the snapshot cannot be read: {wrong}", hint=hint) from wrong


def _snapshot(at: document.DocumentReader) -> Snapshot:
    workspace, incomplete = at.reader("workspace"), at.text_map("incomplete")
    return Snapshot(
        workspace=workspace.text("name"),
        url=workspace.text("url"),
        taken_at=at.text("taken_at"),
        people=at.maybe("people", at.number),
        redaction=_redaction(at.reader("pseudonyms")) if at.has("pseudonyms") else None,
        listings={
            kind: Listing(rows=tuple(_rows(at, kind)), incomplete=incomplete.get(kind))
            for kind in _ROWS
            if at.has(kind)
        },
    )


def _redaction(at: document.DocumentReader) -> Redaction:
    return Redaction(salt=at.text("salt"), named=frozenset(at.texts("named")))


def _rows(at: document.DocumentReader, kind: str) -> Iterator[HasName]:
    for number, row in enumerate(at.items(kind)):
        try:
            yield row_value(_ROWS[kind], row)
        except ValueError as wrong:
            raise ValueError(f"{kind}[{number}]: {wrong}") from wrong


_ROWS: Final[Mapping[str, type[HasName]]] = {
    USER: PersonRow,
    ADMIN: AdminRow,
    HOLDERS: HolderRow,
    UNNAMED: UnnamedRow,
    CUSTOM_FIELD: FieldRow,
    GROUP: GroupRow,
    SMART_GROUP: SmartRow,
    CONTENT: ContentRow,
    CONTENT_TARGET: TargetRow,
}
