"""The people whose access to a content a plan changes: the rows of `--people`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from lmsconf.model.address import RemoteId
from lmsconf.model.effects import AccessChange, PersonEffect
from lmsconf.model.time_formats import format_utc
from lmsconf.planner.audiences import Access, AudienceModel, Bits, ContentAccess, positions_of

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def changed_people(access: ContentAccess, change: AccessChange) -> Bits:
    """Return everybody who is affected by this."""
    bits: Bits = getattr(access, change.value)
    return bits


def person_rows(model: AudienceModel, id: RemoteId, name: str, access: ContentAccess) -> Iterator[PersonEffect]:
    """Yield a row for each person whose access to a content changes."""
    changed = access.changed
    sides = [_side(side, changed) for side in (access.before, access.after)]
    because: defaultdict[int, list[str]] = defaultdict(list)
    for cause, people in access.causes:
        for position in positions_of(people & changed):
            because[position].append(str(cause))
    short = frozenset(positions_of(access.shortened))
    for change in AccessChange:
        for position in positions_of(changed_people(access, change)):
            before, after = (side.get(position, _NO_ACCESS) for side in sides)
            if position in model.changed_people:
                because[position].append(str(model.changed_people[position]))
            yield PersonEffect(
                email=model.emails[position],
                content=name,
                content_id=id,
                change=change,
                before=before.word,
                after=after.word,
                from_before=before.start,
                until_before=before.finish,
                from_after=after.start,
                until_after=after.finish,
                shortened=position in short,
                causes=tuple(sorted(because[position])),
            )


class _PersonAccess(NamedTuple):
    """What one person has of a content: none, optional or mandatory, and the hull of its windows."""

    word: str
    start: str | None
    finish: str | None


_NO_ACCESS: Final = _PersonAccess("none", None, None)


def _side(access: Access, among: Bits) -> dict[int, _PersonAccess]:
    """Return what those of `among` who have a content have of it, by position."""
    starts, finishes = (_times(bounds, among) for bounds in (access.starts, access.finishes))
    mandatory = frozenset(positions_of(access.mandatory & among))
    return {
        position: _PersonAccess(
            "mandatory" if position in mandatory else "optional", starts[position], finishes[position]
        )
        for position in positions_of(access.has & among)
    }


def _times(bounds: Mapping[int | None, Bits], among: Bits) -> dict[int, str | None]:
    """Return the bound of each person as ISO 8601, None if it is open."""
    out: dict[int, str | None] = {}
    for bound, people in bounds.items():
        text = None if bound is None else format_epoch(bound)
        out.update(dict.fromkeys(positions_of(people & among), text))
    return out


def format_epoch(seconds: int) -> str:
    """Format epoch seconds as ISO 8601 in UTC."""
    return format_utc(_EPOCH + timedelta(seconds=seconds))


def sort_rows(rows: Iterable[PersonEffect]) -> list[PersonEffect]:
    """Sort by content, content id and casefolded e-mail, by code point."""
    return sorted(rows, key=lambda row: (row.content, row.content_id, row.email.casefold()))
