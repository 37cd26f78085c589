"""What one person has and why, who is in an audience, and whose access a plan changes, as CSV.

In CSV (RFC 4180), for spreadsheets and scripts, a cell that a spreadsheet would take for a formula begins with an
apostrophe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import asdict

from lmsconf.model.access import AudienceReport, HeldContent, PersonAccess, RouteSide
from lmsconf.model.effects import Effects
from lmsconf.render.escape import csv_cell

PEOPLE_COLUMNS: Final = (
    *("email", "content", "content_id", "change", "before", "after"),
    *("from_before", "until_before", "from_after", "until_after", "shortened", "causes"),
)
"""The attributes of a PersonEffect, in the order of the columns of the file of `--people`."""
_SIDE: Final = ("mandatory", "visible_from", "visible_until", "member")
_ACCESS_COLUMNS: Final = (
    *("email", "content", "content_id", "change"),
    *("before", "from_before", "until_before", "after", "from_after", "until_after"),
    *("assignment", "audience"),
    *(f"{name}_{side}" for side in ("before", "after") for name in _SIDE),
)
_MEMBER_COLUMNS: Final = ("email", "before", "after")
_ANSWER_COLUMNS: Final = ("state", "choice", "before", "after")
_NUMBER_COLUMNS: Final = ("address", "before", "after", "join", "leave")
HEADERS: Final = (PEOPLE_COLUMNS, _ACCESS_COLUMNS, _MEMBER_COLUMNS, _ANSWER_COLUMNS, _NUMBER_COLUMNS)
"""The columns of every CSV that is written here."""


def access_csv(report: PersonAccess) -> str:
    """Return a row for each assignment of each content of a person."""
    return _csv(_ACCESS_COLUMNS, _access_rows(report))


def _access_rows(report: PersonAccess) -> Iterator[Sequence[object]]:
    held = ("word", "start", "finish")
    for content in report.contents:
        about = (report.email, content.content, content.id, content.change)
        has = (*_cells(content.before, held), *_cells(content.after, held))
        for route in content.routes:
            sides = (*_cells(route.before, _SIDE), *_cells(route.after, _SIDE))
            yield (*about, *has, str(route.address), str(route.audience), *sides)


def _cells(value: HeldContent | RouteSide | None, names: Sequence[str]) -> Iterator[object]:
    """Return attributes of a value; without one, empty cells."""
    return (getattr(value, name, None) for name in names)


def audience_csv(report: AudienceReport) -> str:
    """Return the members if they were asked for, else the counts by answer, else one row of numbers."""
    if report.members is not None:
        return _csv(_MEMBER_COLUMNS, ((one.email, one.before, one.after) for one in report.members))
    if report.by is not None:
        return _csv(_ANSWER_COLUMNS, ((one.state.value, one.choice, one.before, one.after) for one in report.answers))
    return _csv(_NUMBER_COLUMNS, [(str(report.address), report.before, report.after, report.join, report.leave)])


def people_csv(effects: Effects) -> str:
    """Return the rows of `--people`, causes joined by `; `, and then one for each content of an unknown audience."""
    known = (asdict(row) | {"causes": "; ".join(row.causes)} for row in effects.rows or ())
    unknown = (
        {"content": content, "content_id": id, "change": "unknown", "causes": one.audience}
        for one in effects.unknown
        for content, id in one.contents or ((None, None),)
    )
    return _csv(PEOPLE_COLUMNS, ([row.get(name) for name in PEOPLE_COLUMNS] for row in chain(known, unknown)))


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return CSV; an empty cell for None, true and false for flags."""
    return "".join(f"{','.join(map(_cell, row))}\r\n" for row in (columns, *rows))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else csv_cell(str(value))
