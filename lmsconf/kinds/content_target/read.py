"""Read live assignments: one request per content, and a second one where a declared assignment is missing.

The response has no row count, so a truncated one cannot be detected (API specification, Content Targeting). Before an
assignment is created because it is missing, a second response must list the same targets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from lmsconf.errors import BadAnswer
from lmsconf.kinds.content_target.catalog import ContentRow
from lmsconf.kinds.content_target.values import Assignment, TargetRow, target_row
from lmsconf.kinds.shared.answers import an_object, objects
from lmsconf.kinds.shared.names import EVERYONE, USER
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api
from lmsconf.model.names import email, normal
from lmsconf.model.snapshot import Listing
from lmsconf.model.values import Json

Found: TypeAlias = "dict[RemoteId, tuple[Json, tuple[TargetRow, ...]]]"
"""Content id → the response for it, and its targets."""
_AT_ONCE: Final = 32


@dataclass(frozen=True, slots=True)
class LiveAudiences:
    """The live targets, the responses by content id, and why the targets may be incomplete, None if they are not."""

    rows: tuple[TargetRow, ...]
    answers: Mapping[RemoteId, Json]
    incomplete: str | None


@dataclass(frozen=True, slots=True)
class Known:
    """Resolve audiences while reading. listings: possible audiences by kind. everyone: the target id of all users."""

    listings: Mapping[str, Listing[Any]]
    everyone: str

    def lacking(self, wanted: Iterable[Assignment], contents: Iterable[ContentRow], found: Found) -> set[RemoteId]:
        """The ids of contents that lack a declared assignment, judged by names.

        A name that does not resolve (a new resource, or one found only by its pin) counts: it costs one more request.
        """
        named: defaultdict[str, list[RemoteId]] = defaultdict(list)
        for content in contents:
            if content.id in found:
                named[normal(content.name)].append(content.id)
        ids = {kind: _by_name(kind, listing) for kind, listing in self.listings.items()}
        live = {(row.content, str(row.target)) for _, rows in found.values() for row in rows}
        out: set[RemoteId] = set()
        for one in wanted:
            to = one.audience
            target = self.everyone if to == EVERYONE else ids.get(to.kind, {}).get(to.name)
            pinned = (RemoteId(pin) for pin in one.content_pins.values() if pin in found)
            out.update(id for id in (*named[one.content], *pinned) if target is None or (id, target) not in live)
        return out


def read_targets(api: Api, contents: Sequence[ContentRow]) -> Found:
    """The targets of each content. Raises BadAnswer for a response without its list, which would read as no targets."""
    answers = api.each("content-targets.list", [({}, {"contentId": content.id}) for content in contents])
    return {
        content.id: (answer, tuple(_rows(content, answer))) for content, answer in zip(contents, answers, strict=True)
    }


def read_again(api: Api, contents: Sequence[ContentRow], found: Found, doubtful: Collection[RemoteId]) -> LiveAudiences:
    """Read the doubtful contents a second time and merge; incomplete if the two responses have different targets."""
    again = read_targets(api, [content for content in contents if content.id in doubtful])
    differs = [one.name for one in contents if one.id in again and _ids(again[one.id]) != _ids(found[one.id])]
    latest = {**found, **again}
    return LiveAudiences(
        rows=tuple(row for _, rows in latest.values() for row in rows),
        answers={id: answer for id, (answer, _) in latest.items()},
        incomplete=f"those of {differs[0]} were read twice, and other ones came" if differs else None,
    )


def count_on(api: Api, contents: Sequence[ContentRow], enough: float) -> tuple[TargetRow, ...]:
    """The targets of the contents, read in batches until there are `enough`. Raises BadAnswer like `read_targets`."""
    rows: list[TargetRow] = []
    for start in range(0, len(contents), _AT_ONCE):
        if len(rows) >= enough:
            break
        found = read_targets(api, contents[start : start + _AT_ONCE])
        rows.extend(row for _, some in found.values() for row in some)
    return tuple(rows)


def _rows(content: ContentRow, answer: Json) -> Iterable[TargetRow]:
    found = an_object(answer, "the targets")
    if not isinstance(found.get("targets"), list):
        raise BadAnswer(f"an answer on the assignments of content {content.id} came without its list of targets")
    return (target_row(content.id, one) for one in objects(found, "targets"))


def _ids(found: tuple[Json, tuple[TargetRow, ...]]) -> set[RemoteId]:
    return {row.id for row in found[1]}


def _by_name(kind: str, listing: Listing[Any]) -> dict[str, str]:
    """Ids by name, those of people by e-mail."""
    return {email(row.name) if kind == USER else normal(row.name): row.id for row in listing.rows}
