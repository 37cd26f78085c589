"""Scan the XML of a workbook: how many cells and how much text it stands for, and cells without a usable value.

It runs before the workbook is parsed: a few bytes can stand for billions of cells or characters, and a formula without
a result, or a cell that is merged into another, would be read as empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Final, TypeAlias
from xml.parsers import expat  # a document type, and so every entity, is refused below

from msgspec import Struct, field

from lmsconf.errors import cell_name
from lmsconf.manifest.workbook.archive import WorkbookRefused, damaged_workbook

CELLS: Final = 1_000_000
"""Maximum number of cells, empty ones included, from A1 to the last row and column that have a value."""
CHARACTERS: Final = 64 * 1024 * 1024
"""Maximum number of characters in all cells of a sheet."""
_FAULTS: Final = 1_000
_CELL_NAME: Final = re.compile(r"([A-Za-z]{1,3})([0-9]{1,7})", re.ASCII)
_SMALLER: Final = "Delete what is not part of the table, or save the sheet as CSV."
StartHandler: TypeAlias = Callable[[str, Mapping[str, str]], None]


class WorkbookSheet(Struct, frozen=True):
    """One sheet of a workbook."""

    name: str
    is_hidden: bool


class CellFault(Struct, frozen=True):
    """A range of cells without usable values: rows and columns from 0, both ends included."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    message: str
    hint: str


class SheetScan(Struct):
    """What one sheet holds: how far its values reach, how much text they have, and its faults."""

    name: str
    last_row: int = -1
    last_column: int = -1
    characters: int = 0
    faults: list[CellFault] = field(default_factory=list)

    def add_value(self, row: int, column: int) -> None:
        """Count a cell with a value. Raises WorkbookRefused where the sheet would have too many cells."""
        if row <= self.last_row and column <= self.last_column:
            return
        self.last_row = max(self.last_row, row)
        self.last_column = max(self.last_column, column)
        if (self.last_row + 1) * (self.last_column + 1) > CELLS:
            message = (
                f"this sheet has values down to row {self.last_row + 1:,} and in {self.last_column + 1:,} columns, "
                f"and at most {CELLS:,} cells are read"
            )
            raise WorkbookRefused(message, _SMALLER, sheet=self.name)

    def add_text(self, characters: int) -> None:
        """Count the characters of a cell. Raises WorkbookRefused where they are too many."""
        self.characters += characters
        if self.characters > CHARACTERS:
            message = f"the cells of this sheet have more than {CHARACTERS >> 20} million characters"
            raise WorkbookRefused(message, _SMALLER, sheet=self.name)

    def add_fault(self, rows: tuple[int, int], columns: tuple[int, int], message: str, hint: str) -> None:
        """Add a fault; beyond the limit the sheet is refused as a whole."""
        if len(self.faults) >= _FAULTS:
            first = self.faults[0]
            raise WorkbookRefused(
                f"this sheet has more than {_FAULTS:,} cells without a usable value; of this one, {first.message}",
                first.hint,
                sheet=self.name,
                row=first.rows[0],
                column=first.columns[0],
            )
        self.faults.append(CellFault(rows, columns, message, hint))

    def add_error(self, row: int, column: int, text: str) -> None:
        """Add a cell whose formula has an error as its result."""
        hint = "Correct the formula, or write the value."
        self.add_fault((row, row), (column, column), f"this cell has the error {text[:20]}", hint)

    def add_uncomputed(self, row: int, column: int) -> None:
        """Add a cell whose formula has no result."""
        message, hint = "this cell has a formula without a result", "Open the workbook, save it, and run it again."
        self.add_fault((row, row), (column, column), message, hint)

    def add_merged(self, rows: tuple[int, int], columns: tuple[int, int]) -> None:
        """Add merged cells, of which only the first has a value."""
        if rows[0] == rows[1] and columns[0] == columns[1]:
            return
        span = f"{cell_name(rows[0] + 1, columns[0] + 1)}:{cell_name(rows[1] + 1, columns[1] + 1)}"
        message = f"the cells {span} are merged, and only the first has a value"
        self.add_fault(rows, columns, message, "Unmerge them, and fill in each cell.")


def parse_cell_name(name: str) -> tuple[int, int]:
    """Return row and column, both from 0, of `B7`. Raises WorkbookRefused for another text."""
    parts = _CELL_NAME.fullmatch(name)
    if parts is None:
        raise damaged_workbook(f'"{name[:20]}" is not the name of a cell')
    return max(int(parts[2]) - 1, 0), _column(parts[1])


@cache
def _column(letters: str) -> int:
    column = 0
    for letter in letters.upper():
        column = column * 26 + ord(letter) - ord("A") + 1
    return column - 1


@lru_cache(maxsize=1000)
def local_name(name: str) -> str:
    """Return the name of an element or attribute without its prefix."""
    return name.rpartition(":")[2]


def scan_xml(
    content: bytes,
    *,
    start: StartHandler,
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
    joined: bool = True,
) -> None:
    """Call the handlers for each element and text. Raises WorkbookRefused for XML that is damaged or has a DTD."""
    parser = expat.ParserCreate()
    parser.buffer_text = joined  # else a reference or comment in a text divides it
    parser.StartElementHandler = start
    if end is not None:
        parser.EndElementHandler = end
    if text is not None:
        parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(content, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # an unknown encoding is a LookupError
        raise damaged_workbook(error) from error


def _refuse_doctype(*_: object) -> None:
    raise damaged_workbook("its XML declares a document type, which no spreadsheet program writes")
