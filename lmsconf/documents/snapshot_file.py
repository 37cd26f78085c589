"""Snapshot files: `lmsconf.snapshot/1`, rows by listing, with their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from lmsconf.documents import json_documents
from lmsconf.documents.json_documents import json_at, value_at
from lmsconf.errors import LmsconfError
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import in_snapshot_order
from lmsconf.model.canonical_json import Json, canonical_json
from lmsconf.model.outcomes import SnapshotDigest
from lmsconf.model.snapshot import ListedRow, Listing, Snapshot, SnapshotRedaction, row_to_json
from lmsconf.planner.snapshot_redaction import UnnamedRow

FORMAT: Final = "lmsconf.snapshot/1"
REDACTED: Final = (
    "People in the manifests are pseudonymous: a salted hash replaces their e-mail. Everyone else "
    "has a random label, new in each snapshot, and is in no list: unnamed_people counts them."
)


def dumps(snapshot: Snapshot) -> str:
    """Return the text of the snapshot file, one row per line."""
    return "".join(text_pieces(snapshot))


def text_pieces(snapshot: Snapshot) -> Iterator[str]:
    """Yield the text of the snapshot file piece by piece: of a large workspace it is hundreds of megabytes."""
    redaction = snapshot.redaction
    document: dict[str, Json | Iterator[Json]] = {
        "format": FORMAT,
        "tool": json_documents.TOOL,
        "taken_at": snapshot.taken_at,
        "workspace": {"name": snapshot.workspace, "url": snapshot.url},
        "people": snapshot.people,
        "incomplete": {
            kind: listing.incomplete for kind, listing in snapshot.listings.items() if listing.incomplete is not None
        },
        **(
            {}
            if redaction is None
            else {"pseudonyms": {"salt": redaction.salt, "named": [*sorted(redaction.named)], "note": REDACTED}}
        ),
        **{
            listing: (row_to_json(row, in_order=True) for row in snapshot.listings[listing].rows)
            for listing in _row_types()
            if listing in snapshot.listings
        },
    }
    return json_documents.json_pieces(document)


def file_digest(snapshot: Snapshot) -> str:
    """Return the SHA-256 of the snapshot file."""
    digest = sha256()
    for piece in text_pieces(snapshot):
        digest.update(piece.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def loads(text: str) -> Snapshot:
    """Return the snapshot in a text. Raises LmsconfError for a text without one."""
    data = json_documents.parse_document(text)
    json_documents.verify_format(data, FORMAT, "Create one with: lmsconf snapshot FILE")
    return snapshot_of(data)


def snapshot_of(data: dict[str, Json]) -> Snapshot:
    """Return the snapshot in a document of that format. Raises LmsconfError if it was edited or is truncated."""
    try:
        incomplete = value_at(data, dict[str, str], "incomplete")
        return Snapshot(
            workspace=value_at(data, str, "workspace", "name"),
            url=value_at(data, str, "workspace", "url"),
            taken_at=value_at(data, str, "taken_at"),
            people=None if json_at(data, "people") is None else value_at(data, int, "people"),
            redaction=value_at(data, SnapshotRedaction, "pseudonyms") if "pseudonyms" in data else None,
            listings={
                listing: Listing(rows=tuple(_rows(data, row_type)), incomplete=incomplete.get(listing))
                for listing, row_type in _row_types().items()
                if listing in data
            },
        )
    except (ValueError, RecursionError) as wrong:
        raise LmsconfError(
            f"the snapshot cannot be read: {wrong}",
            hint="It was edited or is truncated. Create it again with: lmsconf snapshot FILE",
        ) from wrong


def _rows(data: dict[str, Json], row_type: type[ListedRow]) -> Iterator[ListedRow]:
    for number, row in enumerate(value_at(data, list[Json], row_type.listing)):
        place = f"{row_type.listing}[{number}]"
        if isinstance(row, dict) and None in row.values():
            raise ValueError(f"{place}: a value is null, and would be left out")
        yield json_documents.from_json(row, row_type, place)


def _row_types() -> dict[str, type[ListedRow]]:
    """Return the row type of each listing, in the order of the file."""
    row_types: list[type[ListedRow]] = [
        *(row_type for kind in in_snapshot_order(KINDS.values()) for row_type in kind.row_types),
        UnnamedRow,
    ]
    return {row_type.listing: row_type for row_type in row_types}


def snapshot_digest(snapshot: Snapshot) -> SnapshotDigest:
    """Return the SHA-256 of the rows of a snapshot, and how many there are of each listing: the part that was read.

    Hashed is a line of canonical JSON for each listing, in the order of their names, and one for each of its rows.
    """
    hashed = hashlib.sha256()
    for name in sorted(snapshot.listings):
        hashed.update(canonical_json({"listing": name}) + b"\n")
        for row in snapshot.listings[name].rows:
            hashed.update(canonical_json(row_to_json(row)) + b"\n")
    return SnapshotDigest(
        sha256=hashed.hexdigest(),
        taken_at=snapshot.taken_at,
        rows={name: len(snapshot.listings[name].rows) for name in sorted(snapshot.listings)},
        incomplete=tuple(sorted(name for name, listing in snapshot.listings.items() if listing.incomplete is not None)),
    )
