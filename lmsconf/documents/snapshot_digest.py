"""The digest of a snapshot: of all rows that were read, whatever the time of reading."""

from __future__ import annotations

import hashlib

from lmsconf.documents.document import object_json
from lmsconf.model.canonical_json import Json, canonical_json
from lmsconf.model.recorded_run import SnapshotDigest
from lmsconf.model.rows import row_to_json
from lmsconf.model.snapshot import Snapshot


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


def snapshot_digest_json(digest: SnapshotDigest) -> dict[str, Json]:
    # A list, as in the file that it is compared with.
    return {**object_json(digest), "incomplete": list(digest.incomplete)}
