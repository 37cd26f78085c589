"""The rows of a large page: compressed in the file, put into the page by its script as the reader scrolls to them.

    is_large         whether a page has so many rows that they are packed
    Pack             the packed rows of one part of the page, and the script element that holds them
    pack_after_full  a list whose first rows stand in the HTML in full, and whose others are packed

A packed row is markup that is escaped already, as it would stand in the page. `large_page.js` parses it in a document
of its own, in which nothing runs, and moves the elements over.
"""

from __future__ import annotations

import gzip
import html
import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import field

from lmsconf.model.canonical_json import Json
from lmsconf.render.escape import escape_html
from lmsconf.render.html.document import Child, Markup, join_markup, tag
from lmsconf.render.resource_wording import count_noun
from lmsconf.support.lazy_dataclass import dataclass

LARGE_PAGE = 2_000
"""Up to so many rows, all of them stand in the HTML."""

FULL_MARKUP = 300_000
"""The maximum length of the rows that stand in the HTML of one part of a large page; the others are packed."""

FULL_NOTES = 50_000
"""The same for the problems of a large page."""

_BLOCK_MARKUP = 200_000
_BLOCK_ROWS = 200


@dataclass(frozen=True, slots=True)
class PackedRow:
    """The markup of a row, the anchor that leads to it, and the values that it is filtered by."""

    markup: Markup
    anchor: str = ""
    values: Mapping[str, str] = field(default_factory=dict)


class Pack:
    """Rows compressed in blocks, so that a reader's browser unpacks only those that it shows."""

    def __init__(self, name: str, command: str, *, full_markup: int = FULL_MARKUP) -> None:
        """Start without rows. command: prints them without a browser. full_markup: the room for rows in the HTML."""
        self.name, self.command = name, command
        self.full_markup = self.room = full_markup
        self._anchors: list[str] = []
        self._columns: dict[str, _Column] = {}
        self._sizes: list[Json] = []
        self._blocks: list[str] = []
        self._open: list[Json] = []
        self._open_markup = 0

    def __len__(self) -> int:
        return len(self._anchors)

    def add(self, row: PackedRow) -> None:
        self._anchors.append(row.anchor)
        for name, value in row.values.items():
            self._columns.setdefault(name, _Column()).add(value)
        self._open.append(row.markup)
        self._open_markup += len(row.markup)
        if self._open_markup >= _BLOCK_MARKUP or len(self._open) >= _BLOCK_ROWS:
            self._close_block()

    def script(self) -> Child:
        """Return the element with the rows: a line with the index, then one for each block; None without rows."""
        self._close_block()
        if not self._blocks:
            return None
        anchors: list[Json] = list(self._anchors)
        columns: dict[str, Json] = {name: column.to_json() for name, column in self._columns.items()}
        index = _compressed({"blocks": self._sizes, "ids": anchors, "columns": columns})
        # Base64 has no character that could end the element.
        lines = Markup("\n".join([index, *self._blocks]))
        return tag("script", lines, type="application/gzip", data_pack=self.name)

    def _close_block(self) -> None:
        if self._open:
            self._sizes.append(len(self._open))
            self._blocks.append(_compressed(self._open))
            self._open, self._open_markup = [], 0


class _Column:
    """The value of each row for one filter, as a number into the list of distinct values."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._rows: list[Json] = []

    def add(self, value: str) -> None:
        self._rows.append(self._numbers.setdefault(value, len(self._numbers)))

    def to_json(self) -> Json:
        # As the browser reads the values from the attributes of rows and options.
        values: list[Json] = [html.unescape(escape_html(value)) for value in self._numbers]
        return {"values": values, "rows": self._rows}


def _compressed(value: Json) -> str:
    """Return JSON as gzip in base64, without a time: equal pages are equal byte for byte."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode("ascii")


def is_large(rows: int) -> bool:
    """Return whether a page with so many rows in its main list packs them."""
    return rows > LARGE_PAGE


def pack_after_full(pack: Pack, rows: Iterable[PackedRow], *, full: bool, class_: str = "list") -> Markup:
    """Return a list: with `full`, rows in full while the pack has room for them, so one huge row hides no other.

    The other rows are packed, and stand behind those.
    """
    shown: list[Child] = []
    first = len(pack)
    for row in rows:
        if full and len(row.markup) <= pack.room:
            pack.room -= len(row.markup)
            shown.append(row.markup)
        else:
            pack.add(row)
    packed = len(pack) - first
    if not packed:
        return tag("div", shown, class_=class_)
    rows_here = tag("div", shown, class_=class_, data_packed=pack.name, data_first=first, data_last=len(pack))
    return join_markup(rows_here, _left_out(len(shown), packed, pack))


def packed_notes(notes: Iterable[Markup], command: str) -> Markup:
    """Return notes, the first of them in full."""
    pack = Pack("notes", command, full_markup=FULL_NOTES)
    return join_markup(pack_after_full(pack, map(PackedRow, notes), full=True, class_="notes"), pack.script())


def packed_list(name: str, rows: Iterable[PackedRow], command: str) -> Markup:
    """Return a list all of whose rows are packed."""
    pack = Pack(name, command)
    return join_markup(pack_after_full(pack, rows, full=False, class_="list"), pack.script())


def how_rows_appear(command: str) -> Markup:
    """Say what the browser's own search and a printer leave out. Shown by the script, and on paper."""
    return tag(
        "p",
        "This page is large: rows appear as you scroll to them. Search with the field above. The search of the browser "
        "finds, and a printer prints, only the rows near the screen and the first ones. All rows: ",
        tag("code", command),
        class_="keys printed",
        data_script=True,
        hidden=True,
    )


def _left_out(shown: int, packed: int, pack: Pack) -> Markup:
    """Say what is not shown. The script hides it once it can show the rows."""
    limit = (
        f"{shown:,} of {shown + packed:,} are included in full, within {pack.full_markup // 1000} kB. " if shown else ""
    )
    others = f"{count_noun(packed, 'more row' if shown else 'row')} can be shown only with JavaScript. Without it: "
    return tag(
        "p",
        limit + others,
        tag("code", pack.command),
        tag("span"),
        class_="note",
        data_unread=True,
    )
