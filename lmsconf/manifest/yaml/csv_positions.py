"""Positions of the cells of a CSV file, computed on demand: the csv module reports lines only."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

from msgspec import Struct

from lmsconf.errors import SourceLocation

SEPARATORS: Final = (",", ";", "\t")
_DECLARED: Final = re.compile(r'"?sep=([,;\t])"?[ \t]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
"""A first line that names the separator, which Excel reads and does not show."""
_END: Final = re.compile(r"\r\n|\r|\n")
_QUOTED: Final = re.compile(r'"(?:[^"]|"")*+"')
_IN_QUOTES: Final = re.compile(r'(?<![^,;\t])"(?:[^"]|"")*+"?')
"""A quoted cell of the header; its text may go on in the next line."""
_BLANKS: Final = re.compile(r" *")


class CsvPositions(Struct, frozen=True, dict=True):
    """The text of one CSV file, and its path in the project."""

    path: str
    text: str

    @cached_property
    def separator(self) -> str:
        """The separator: the one that the first line names, or else the one that splits the header into the most cells.

        It is a comma, a semicolon or a tab.
        """
        if declared := _DECLARED.match(self.text):
            return declared[1]
        header = next((line for line in self.text.splitlines() if line.strip()), "")
        return max(SEPARATORS, key=_IN_QUOTES.sub("", header).count)

    @cached_property
    def first(self) -> int:
        """The offset of the first line of the table, which follows one that names the separator."""
        declared = _DECLARED.match(self.text)
        return declared.end() if declared else 0

    def where(self, line: int, column: int) -> SourceLocation:
        """Return the location of a cell of the row that begins on `line`; columns count from 0.

        A missing cell is located at the end of its row.
        """
        at = self._starts[line - 1]
        for _ in range(column):
            end = self._end(at)
            if self.text[end : end + 1] != self.separator:
                return self.offset_location(end)
            at = end + 1
        blanks = _BLANKS.match(self.text, at)
        return self.offset_location(blanks.end() if blanks else at)

    def row(self, line: int) -> SourceLocation:
        """Return the location of a row."""
        return SourceLocation(self.path, line, 1)

    def bad_quote_location(self, line: int) -> SourceLocation:
        """Return the location of the malformed quote in the row that begins on `line`; without one, of the line."""
        line = min(line, len(self._starts))
        at = self._starts[line - 1]
        while True:
            end = self._end(at)
            quoted = _QUOTED.match(self.text, at)
            if self.text.startswith('"', at) and (quoted is None or quoted.end() != end):
                return self.offset_location(at)
            if self.text[end : end + 1] != self.separator:
                return SourceLocation(self.path, line)
            at = end + 1

    def offset_location(self, offset: int) -> SourceLocation:
        """Convert a character offset to a location."""
        line = bisect_right(self._starts, offset)
        return SourceLocation(self.path, line, offset - self._starts[line - 1] + 1)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in _END.finditer(self.text))]

    def _end(self, at: int) -> int:
        """Return the offset at which the cell that begins at `at` ends."""
        if self.text[at : at + 1] == '"':
            quoted = _QUOTED.match(self.text, at)
            if quoted is None:
                return len(self.text)
            at = quoted.end()
        stop = self._stop.search(self.text, at)
        return stop.start() if stop else len(self.text)

    @cached_property
    def _stop(self) -> re.Pattern[str]:
        return re.compile(f"[{re.escape(self.separator)}\r\n]")
