"""One CSV file: its columns, its rows with their lines, and what is wrong with them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TypeAlias

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.manifest.yaml.csv_positions import CsvPositions
from lmsconf.manifest.yaml.nodes import (
    Mark,
    Source,
    mark_line,
)
from lmsconf.model.names import did_you_mean, normalize_name
from lmsconf.model.text_limits import FORBIDDEN
from lmsconf.support.lazy_dataclass import dataclass

CsvRow: TypeAlias = "tuple[int, tuple[str, ...]]"


@dataclass(frozen=True, slots=True)
class CsvTable:
    """A CSV file: the line of its header, its columns, and its rows, each with the line on which it begins.

    Cells are trimmed and in Unicode NFC.
    """

    sheet: CsvPositions
    header: int
    columns: tuple[str, ...]
    rows: tuple[tuple[int, tuple[str, ...]], ...]


class ColumnSource(Source):
    """Source of one column of a CSV file: each mark is a line."""

    def __init__(self, sheet: CsvPositions, column: int) -> None:
        super().__init__(sheet.path)
        self._sheet = sheet
        self._column = column

    def where(self, at: Mark) -> SourceLocation:
        """Return the location of the cell on that line."""
        return self._sheet.where(mark_line(at), self._column)


class UnusableList(Exception):
    """Raised for a list that cannot be built. problem: the reason; None if it was reported before."""

    def __init__(self, problem: Problem | None) -> None:
        super().__init__(problem.message if problem else "")
        self.problem = problem


def parse_csv_table(path: str, text: str) -> CsvTable:
    """Parse CSV text. Raises UnusableList with the line that cannot be parsed."""
    sheet = CsvPositions(path, text)
    if forbidden := FORBIDDEN.search(text):
        message, where = (
            f"the character U+{ord(forbidden[0]):04X} has no place here",
            sheet.offset_location(forbidden.start()),
        )
        raise UnusableList(Problem(code="people/csv", message=message, hint="Take it out.", source=where))
    rows = list(_rows(sheet))
    if not rows:
        message, hint = "this CSV file is empty", "Its first line must name the columns."
        raise UnusableList(Problem(code="people/csv", message=message, hint=hint, source=SourceLocation(path, 1, 1)))
    columns = _named(rows[0][1])
    filled = tuple((line, cells + ("",) * (len(columns) - len(cells))) for line, cells in rows[1:])
    return CsvTable(sheet, rows[0][0], columns, filled)


def _named(header: tuple[str, ...]) -> tuple[str, ...]:
    """Drop trailing columns without a name."""
    return header[: max(number for number, name in enumerate(header, start=1) if name)]


def shifted_row_problems(table: CsvTable) -> Iterator[Problem]:
    """Report rows with a cell beyond the last column: an unquoted separator may have shifted their cells."""
    for line, cells in table.rows:
        if any(cells[len(table.columns) :]):
            yield Problem(
                code="people/csv",
                message=f"this row has {len(_named(cells))} cells, and the header names {len(table.columns)} columns",
                hint="Put a cell that holds the separator in quotes, or give the last columns a name.",
                source=table.sheet.where(line, _beyond(table, cells)),
            )


def _beyond(table: CsvTable, cells: tuple[str, ...]) -> int:
    """Return the index of the first non-empty cell beyond the named columns."""
    return next(number for number, cell in enumerate(cells) if cell and number >= len(table.columns))


def _rows(sheet: CsvPositions) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the rows that are not empty, each with the line on which it begins. Raises UnusableList."""
    line = 1
    try:
        reader = csv.reader(io.StringIO(sheet.text, newline=""), delimiter=sheet.separator, strict=True)
        for cells in reader:
            trimmed = tuple(normalize_name(cell.strip()) for cell in cells)
            if any(trimmed):
                yield line, trimmed
            line = reader.line_num + 1
    except csv.Error as error:
        message = f"this row cannot be read: {error}"
        hint = 'Close each quote that opens a cell, and write a quote inside one twice: "".'
        raise UnusableList(
            Problem(code="people/csv", message=message, hint=hint, source=sheet.bad_quote_location(line))
        ) from error


def column_index(table: CsvTable, name: str, where: SourceLocation) -> int:
    """Return the index of the column with that name. Raises UnusableList if none or several have it."""
    name = normalize_name(name)
    if table.columns.count(name) == 1:
        return table.columns.index(name)
    hint = did_you_mean(name, table.columns) or f"It has {', '.join(table.columns)}."
    message, source = f'there is no column "{shorten(name)}"', SourceLocation(table.sheet.path, table.header, 1)
    if name in table.columns:
        source = table.sheet.where(table.header, table.columns.index(name, table.columns.index(name) + 1))
        message, hint = f'there are several columns "{shorten(name)}"', "Give each column its own name."
    hint = f"{hint} {where} asks for it."
    raise UnusableList(Problem(code="people/column", message=message, hint=hint, source=source))
