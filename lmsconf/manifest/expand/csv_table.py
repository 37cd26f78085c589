"""CSV text → a table: its rows with their lines, and what is wrong with its text."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from lmsconf.errors import Problem
from lmsconf.manifest.expand.table import CSV, Table, TableRow, UnusableTable, table_of
from lmsconf.manifest.yaml.csv_positions import CsvPositions
from lmsconf.model.names import normalize_name
from lmsconf.model.text_limits import FORBIDDEN


def parse_csv_table(path: str, text: str) -> Table:
    """Parse CSV text. Raises UnusableTable with the line that cannot be parsed."""
    sheet = CsvPositions(path, text)
    if forbidden := FORBIDDEN.search(text):
        message, where = (
            f"the character U+{ord(forbidden[0]):04X} is not allowed here",
            sheet.offset_location(forbidden.start()),
        )
        raise UnusableTable(Problem(code="people/csv", message=message, hint="Remove it.", source=where))
    return table_of(sheet, CSV, list(_rows(sheet)))


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
