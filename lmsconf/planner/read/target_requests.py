"""Request the targets of contents, one request for each (API specification, Content Targeting), and their edits."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import tzinfo
from typing import Final, TypeAlias

from msgspec import Struct

from lmsconf.kinds.assignment.types import ContentRow, TargetRow, parse_target_row
from lmsconf.kinds.shared.kind_names import EDITS, USER
from lmsconf.kinds.shared.responses import object_list, require_object, text_or_none
from lmsconf.kinds.shared.times import format_time
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import Api
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import LastEdit
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.time_formats import parse_response_time

AnswersById: TypeAlias = "dict[RemoteId, tuple[Json, tuple[TargetRow, ...]]]"
"""Content id → the response for it, and its targets."""
_AT_ONCE: Final = 32


def read_targets(api: Api, contents: Sequence[ContentRow]) -> AnswersById:
    """The targets of each content. Raises InvalidResponse for one without its list, which would read as no targets."""
    answers = api.each("content-targets.list", [({}, {"contentId": content.id}) for content in contents])
    return {content.id: (answer, _rows(content, answer)) for content, answer in zip(contents, answers, strict=True)}


def reread_doubtful_contents(
    api: Api, contents: Sequence[ContentRow], first: AnswersById, doubtful: Collection[RemoteId]
) -> tuple[AnswersById, str | None]:
    """Read the doubtful contents a second time; return the latest answers, and why targets may be missing, or None."""
    again = read_targets(api, [content for content in contents if content.id in doubtful])
    differs = [one.name for one in contents if one.id in again and _ids(again[one.id]) != _ids(first[one.id])]
    differing = f"those of {differs[0]} were read twice, with different results" if differs else None
    return {**first, **again}, differing


def read_targets_until(api: Api, contents: Sequence[ContentRow], enough: float) -> tuple[TargetRow, ...]:
    """Targets of the contents, in batches until there are `enough`. Raises InvalidResponse like `read_targets`."""
    rows: list[TargetRow] = []
    for start in range(0, len(contents), _AT_ONCE):
        if len(rows) >= enough:
            break
        answers = read_targets(api, contents[start : start + _AT_ONCE])
        rows.extend(row for _, targets in answers.values() for row in targets)
    return tuple(rows)


def _rows(content: ContentRow, answer: Json) -> tuple[TargetRow, ...]:
    targets = object_list(require_object(answer, "the targets"), "targets")
    return tuple(parse_target_row(content.id, one) for one in targets)


def _ids(answer: tuple[Json, tuple[TargetRow, ...]]) -> set[RemoteId]:
    return {row.id for row in answer[1]}


class EditRow(Struct, frozen=True):
    """The last edit of the target with that id, as the service writes it: `updatedBy` and `updatedAt`."""

    listing = EDITS

    id: RemoteId
    by: str | None
    at: str | None


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
