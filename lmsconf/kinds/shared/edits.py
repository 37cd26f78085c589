"""Who changed an assignment last, and when: the one kind of resource of which the service says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import cast

from lmsconf.kinds.content_target.values import target_row
from lmsconf.kinds.shared.answers import objects
from lmsconf.kinds.shared.names import EDITS, USER
from lmsconf.kinds.shared.times import shown_time
from lmsconf.model.address import RemoteId
from lmsconf.model.drift import Edit
from lmsconf.model.moments import live_time
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.values import Json


@dataclass(frozen=True, slots=True)
class EditRow:
    """What the service says of the last edit of the target with that id, in its own texts."""

    id: RemoteId
    by: str | None
    at: str | None

    @property
    def name(self) -> str:
        """An edit goes by what was edited."""
        return self.id


def edit_rows(content: RemoteId, answer: Json) -> Iterable[EditRow]:
    """The last edits of the targets in one answer, as far as it tells of them."""
    for one in objects(cast("Mapping[str, Json]", answer), "targets"):
        by, at = _editor(one.get("updatedBy")), _text(one.get("updatedAt"))
        if by or at:
            yield EditRow(target_row(content, one).id, by, at)


def edits_of(snapshot: Snapshot, zone: tzinfo | None) -> dict[RemoteId, Edit]:
    """Who changed what, by the id of what was changed: people by their e-mail, times in the project's zone."""
    emails = {row.id: row.name for row in snapshot.of(USER).rows}
    rows = cast("tuple[EditRow, ...]", snapshot.of(EDITS).rows)
    return {row.id: Edit(emails.get(RemoteId(row.by or ""), row.by), _moment(row.at, zone)) for row in rows}


def _editor(value: Json) -> str | None:
    """Who it was; where that is an object, what in it names somebody best."""
    if isinstance(value, dict):
        return next((_text(value[key]) for key in ("userId", "id", "email", "name") if value.get(key)), None)
    return _text(value)


def _text(value: Json) -> str | None:
    return None if value is None or value == "" else str(value)


def _moment(text: str | None, zone: tzinfo | None) -> str | None:
    """The time as plans show it; one that cannot be read is shown as the service has it."""
    try:
        return None if text is None else shown_time(live_time(text), zone)
    except ValueError:
        return text
