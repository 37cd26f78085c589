"""CSV text → a table: its rows with their lines, and what is wrong with its text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from msgspec.structs import replace

from lmsconf.errors import Problem, shorten
from lmsconf.manifest.expand.table import CSV, Table, TableFault, TableRow, UnusableTable, table_of
from lmsconf.manifest.yaml.csv_positions import SEPARATORS, CsvPositions
from lmsconf.model.names import FORBIDDEN, normalize_name


def parse_csv_table(path: str, text: str) -> Table:
    """Parse CSV text. Raises UnusableTable with the line that cannot be parsed."""
    sheet = CsvPositions(path, text)
    if forbidden := FORBIDDEN.search(text):
        message, where = (
            f"the character U+{ord(forbidden[0]):04X} is not allowed here",
            sheet.offset_location(forbidden.start()),
        )
        raise UnusableTable(Problem(code="people/csv", message=message, hint="Remove it.", source=where))
    rows = list(_rows(sheet))
    _refuse_preamble(sheet, rows)
    return replace(table_of(sheet, CSV, rows), faults=tuple(_formulas(sheet, rows)))


def _refuse_preamble(sheet: CsvPositions, rows: list[TableRow]) -> None:
    """Raise UnusableTable if the first line is one text without columns, and the second one names the columns."""
    if len(rows) < 2 or any(rows[0][1][1:]):
        return
    line, cells = rows[1]
    separated = any(cells[1:]) or any(separator in cells[0] for separator in SEPARATORS)
    if separated and not any("@" in cell for cell in cells):
        message = f'the first line, "{shorten(rows[0][1][0])}", does not name the columns; line {line} seems to'
        hint = f"Delete line {rows[0][0]}: the first line of a CSV file must name the columns."
        raise UnusableTable(Problem(code="people/csv", message=message, hint=hint, source=sheet.row(rows[0][0])))


def _formulas(sheet: CsvPositions, rows: list[TableRow]) -> Iterator[TableFault]:
    """Yield each cell that holds a formula, such as `=HYPERLINK(…)`, in place of its result."""
    for line, cells in rows:
        for column, cell in enumerate(cells):
            if cell.startswith("=") and "(" in cell:
                problem = Problem(
                    code="people/csv",
                    message=f'this cell holds a formula, "{shorten(cell)}"',
                    hint="Export the values of the cells, not their formulas.",
                    source=sheet.where(line, column),
                )
                yield TableFault((line, line), (column, column), problem)


def _rows(sheet: CsvPositions) -> Iterator[TableRow]:
    """Yield the rows that are not empty, each with the line on which it begins. Raises UnusableTable."""
    above = line = 2 if sheet.first else 1
    try:
        lines = io.StringIO(sheet.text, newline="")
        lines.seek(sheet.first)
        reader = csv.reader(lines, delimiter=sheet.separator, strict=True)
        for cells in reader:
            trimmed = tuple(normalize_name(cell.strip()) for cell in cells)
            if any(trimmed):
                yield line, trimmed
            line = reader.line_num + above
    except csv.Error as error:
        message = f"this row cannot be read: {error}"
        hint = 'Close each quote that opens a cell, and write a quote inside one twice: "".'
        raise UnusableTable(
            Problem(code="people/csv", message=message, hint=hint, source=sheet.bad_quote_location(line))
        ) from error
