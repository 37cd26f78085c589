"""Last editor and edit time of content targets, the only kind for which the service returns both.

See API specification, Content target: `updatedBy`, `updatedAt`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import tzinfo

from lmsconf.kinds.content_target.types import parse_target_row
from lmsconf.kinds.shared.kind_names import EDITS, USER
from lmsconf.kinds.shared.response_json import object_list, require_object, text_or_none
from lmsconf.kinds.shared.times import format_time
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import LastEdit
from lmsconf.model.snapshot import Snapshot, SnapshotRow
from lmsconf.model.time_formats import parse_response_time


class EditRow(SnapshotRow, frozen=True):
    """The last edit of the target with that id, as the service writes it: `updatedBy` and `updatedAt`."""

    listing = EDITS

    id: RemoteId
    by: str | None = None
    at: str | None = None


def parse_edit_rows(content: RemoteId, answer: Json) -> Iterable[EditRow]:
    """Yield the last edits of the targets in one response; targets without editor and time are skipped."""
    for target in object_list(require_object(answer, "the targets"), "targets"):
        by, at = _editor(target.get("updatedBy")), text_or_none(target.get("updatedAt"))
        if by or at:
            yield EditRow(parse_target_row(content, target).id, by, at)


def last_edits(snapshot: Snapshot, zone: tzinfo | None) -> dict[RemoteId, LastEdit]:
    """Return the last edits by target id: editors by e-mail where known, times in `zone`."""
    emails = {row.id: row.name for row in snapshot.of(USER).rows}
    rows = snapshot.rows(EditRow)
    return {row.id: LastEdit(emails.get(RemoteId(row.by or ""), row.by), _moment(row.at, zone)) for row in rows}


def _editor(value: Json) -> str | None:
    """Return the editor; of an object, its first value among userId, id, email and name."""
    if isinstance(value, dict):
        return next((text_or_none(value[key]) for key in ("userId", "id", "email", "name") if value.get(key)), None)
    return text_or_none(value)


def _moment(text: str | None, zone: tzinfo | None) -> str | None:
    """Return the time as plans show it, or unchanged if it cannot be parsed."""
    try:
        return None if text is None else format_time(parse_response_time(text), zone)
    except ValueError:
        return text
