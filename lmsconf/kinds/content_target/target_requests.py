"""Request the targets of contents, one request for each (API specification, Content Targeting)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from lmsconf.kinds.content_target.types import ContentRow, TargetRow, parse_target_row
from lmsconf.kinds.shared.response_json import object_list, require_object
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api
from lmsconf.model.canonical_json import Json

AnswersById: TypeAlias = "dict[RemoteId, tuple[Json, tuple[TargetRow, ...]]]"
"""Content id → the response for it, and its targets."""
_AT_ONCE: Final = 32


class LiveTargets(Struct, frozen=True):
    """The live targets, the responses by content id, and why the targets may be incomplete, None if they are not."""

    rows: tuple[TargetRow, ...]
    answers: Mapping[RemoteId, Json]
    incomplete: str | None


def read_targets(api: Api, contents: Sequence[ContentRow]) -> AnswersById:
    """The targets of each content. Raises InvalidResponse for one without its list, which would read as no targets."""
    answers = api.each("content-targets.list", [({}, {"contentId": content.id}) for content in contents])
    return {content.id: (answer, _rows(content, answer)) for content, answer in zip(contents, answers, strict=True)}


def reread_doubtful_contents(
    api: Api, contents: Sequence[ContentRow], first: AnswersById, doubtful: Collection[RemoteId]
) -> LiveTargets:
    """Read the doubtful contents a second time and merge; incomplete if the two responses have different targets."""
    again = read_targets(api, [content for content in contents if content.id in doubtful])
    differs = [one.name for one in contents if one.id in again and _ids(again[one.id]) != _ids(first[one.id])]
    latest = {**first, **again}
    return LiveTargets(
        rows=tuple(row for _, rows in latest.values() for row in rows),
        answers={id: answer for id, (answer, _) in latest.items()},
        incomplete=f"those of {differs[0]} were read twice, with different results" if differs else None,
    )


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
