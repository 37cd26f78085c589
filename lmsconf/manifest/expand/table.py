"""A table from a file: its columns, its rows with their positions, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.manifest.yaml.nodes import Mark, Source, mark_line
from lmsconf.model.names import did_you_mean, normalize_name

CSV: Final = "CSV file"
TableRow: TypeAlias = "tuple[int, tuple[str, ...]]"


class CellPositions(Protocol):
    """Locations in the file of a table. Lines, or rows of a worksheet, count from 1, columns from 0."""

    @property
    def path(self) -> str:
        """The path of the file in the project."""

    def where(self, line: int, column: int) -> SourceLocation:
        """Return the location of a cell of the row that begins on `line`."""

    def row(self, line: int) -> SourceLocation:
        """Return the location of the row that begins on `line`."""


class TableFault(Struct, frozen=True):
    """Merged cells, which but the first are read as empty. Lines from 1, columns from 0, both ends included."""

    lines: tuple[int, int]
    columns: tuple[int, int]
    problem: Problem


class Table(Struct, frozen=True):
    """A table: the line of its header, its columns, and its rows, each with the line on which it begins.

    noun: what the file is called. Cells are trimmed and in Unicode NFC.
    """

    sheet: CellPositions
    noun: str
    header: int
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    faults: tuple[TableFault, ...] = ()

    def column_faults(self, columns: Iterable[int]) -> Iterator[Problem]:
        """Yield the problems of merged cells in these columns, and in the header."""
        for fault in self.faults:
            first, last = fault.columns
            if fault.lines[0] <= self.header or any(first <= column <= last for column in columns):
                yield fault.problem


class ColumnSource(Source):
    """Source of one column of a table: each mark is a line."""

    def __init__(self, sheet: CellPositions, column: int) -> None:
        super().__init__(sheet.path)
        self._sheet = sheet
        self._column = column

    def where(self, at: Mark) -> SourceLocation:
        """Return the location of the cell on that line."""
        return self._sheet.where(mark_line(at), self._column)


class UnusableTable(Exception):
    """Raised for a table or a list that cannot be built. problem: the reason; None if it was reported before."""

    def __init__(self, problem: Problem | None) -> None:
        super().__init__(problem.message if problem else "")
        self.problem = problem


def table_of(sheet: CellPositions, noun: str, rows: list[TableRow]) -> Table:
    """Build a table from its rows that are not empty; the first is the header. Raises UnusableTable without any."""
    if not rows:
        message, hint = f"this {noun} is empty", "Its first line must name the columns."
        raise UnusableTable(Problem(code="people/csv", message=message, hint=hint, source=sheet.row(1)))
    columns = _named(rows[0][1])
    filled = tuple((line, cells + ("",) * (len(columns) - len(cells))) for line, cells in rows[1:])
    return Table(sheet, noun, rows[0][0], columns, filled)


def _named(header: tuple[str, ...]) -> tuple[str, ...]:
    """Drop trailing columns without a name."""
    return header[: max(number for number, name in enumerate(header, start=1) if name)]


def shifted_row_problems(table: Table) -> Iterator[Problem]:
    """Report rows with a cell beyond the last column: an unquoted separator may have shifted their cells."""
    for line, cells in table.rows:
        if any(cells[len(table.columns) :]):
            yield Problem(
                code="people/csv",
                message=f"this row has {len(_named(cells))} cells, and the header names {len(table.columns)} columns",
                hint="Put a cell that contains the separator in quotes, or give the last columns a name.",
                source=table.sheet.where(line, _beyond(table, cells)),
            )


def _beyond(table: Table, cells: tuple[str, ...]) -> int:
    """Return the index of the first non-empty cell beyond the named columns."""
    return next(number for number, cell in enumerate(cells) if cell and number >= len(table.columns))


def column_index(table: Table, name: str, where: SourceLocation) -> int:
    """Return the index of the column with that name. Raises UnusableTable if none or several have it."""
    name = normalize_name(name)
    if table.columns.count(name) == 1:
        return table.columns.index(name)
    hint = did_you_mean(name, table.columns) or f"It has {', '.join(filter(None, table.columns))}."
    if len(table.columns) == 1 and "|" in table.columns[0]:
        hint = "Separate the cells with commas, semicolons or tabs, and not with |."
    if any("@" in title for title in table.columns):
        hint = f"The first line must name the columns, and is {', '.join(filter(None, table.columns))}."
    message, source = f'there is no column "{shorten(name)}"', table.sheet.row(table.header)
    if name in table.columns:
        source = table.sheet.where(table.header, table.columns.index(name, table.columns.index(name) + 1))
        message, hint = f'there are several columns "{shorten(name)}"', "Give each column its own name."
    hint = f"{hint} {where} uses it."
    raise UnusableTable(Problem(code="people/column", message=message, hint=hint, source=source))
