"""A sheet of a workbook → a table of texts, as a CSV file would have them."""

from __future__ import annotations

import datetime
import io
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Struct

from lmsconf.errors import Problem, SourceLocation
from lmsconf.manifest.expand.table import Table, TableFault, TableRow, UnusableTable, table_of
from lmsconf.manifest.workbook.archive import WorkbookArchive, WorkbookRefused, damaged_workbook, pack_workbook
from lmsconf.manifest.workbook.ods import MIMETYPE, SPREADSHEET, OpenDocumentWorkbook
from lmsconf.manifest.workbook.scan import SheetScan, WorkbookSheet
from lmsconf.manifest.workbook.xlsx import PACKAGE, ExcelWorkbook
from lmsconf.model.names import normalize_name
from lmsconf.model.text_limits import FORBIDDEN

CODE = "table/workbook"
_CellValue: TypeAlias = "int | float | str | bool | datetime.date | datetime.time | datetime.timedelta"


class UnknownSheet(Exception):
    """Raised where a workbook has no sheet of the wanted name; `names` are those that it has."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self.names = names


class WorkbookPositions(Struct, frozen=True):
    """Locations of the cells of one sheet."""

    path: str
    sheet: str

    def where(self, line: int, column: int) -> SourceLocation:
        """Return the location of a cell; columns count from 0."""
        return SourceLocation(self.path, line, column + 1, sheet=self.sheet)

    def row(self, line: int) -> SourceLocation:
        """Return the location of the first cell of a row."""
        return self.where(line, 0)


def read_workbook_table(path: str, data: bytes, sheet_name: str | None) -> Table:
    """Return the table in a sheet of a workbook: the one with that name, else the first that is not hidden.

    Raises UnusableTable for a workbook that cannot be read, and UnknownSheet.
    """
    try:
        book = _workbook(WorkbookArchive(data))
        scan, parts = book.scan(_chosen(book.sheets, sheet_name))
        values = _values(pack_workbook(parts), scan.name)
    except WorkbookRefused as refused:
        where = SourceLocation(path, refused.row + 1, refused.column + 1, sheet=refused.sheet)
        problem = Problem(code=CODE, message=refused.message, hint=refused.hint, source=where)
        raise UnusableTable(problem) from refused
    return _table(WorkbookPositions(path, scan.name), values, scan)


def _workbook(archive: WorkbookArchive) -> ExcelWorkbook | OpenDocumentWorkbook:
    if archive.has(MIMETYPE) and archive.read(MIMETYPE).startswith(SPREADSHEET):
        return OpenDocumentWorkbook(archive)
    if archive.has(PACKAGE):
        return ExcelWorkbook(archive)
    raise WorkbookRefused("this is a zip archive, and not a workbook", "Save the table as .xlsx or as CSV.")


def _chosen(sheets: Sequence[WorkbookSheet], name: str | None) -> int:
    """Return the index of the sheet with that name, else of the first that is not hidden.

    Raises UnknownSheet, and WorkbookRefused if all are hidden.
    """
    for number, sheet in enumerate(sheets):
        if not sheet.is_hidden if name is None else normalize_name(sheet.name) == normalize_name(name):
            return number
    if name is not None and sheets:
        raise UnknownSheet([sheet.name for sheet in sheets])
    raise WorkbookRefused("this workbook has no sheet that is shown", "Name the sheet with `sheet: NAME`.")


def _values(data: bytes, sheet: str) -> list[list[_CellValue]]:
    """Return the values of a sheet from cell A1 on. Raises WorkbookRefused if the parser cannot read it."""
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        rows: list[list[_CellValue]] = (
            CalamineWorkbook.from_filelike(io.BytesIO(data)).get_sheet_by_name(sheet).to_python(skip_empty_area=False)
        )
    except (CalamineError, ValueError, OverflowError, OSError) as error:
        raise damaged_workbook(error) from error
    except BaseException as error:
        # The parser is not written in Python, and a defect of it raises an exception that is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise damaged_workbook("the parser stopped") from error
    return rows


def _table(sheet: WorkbookPositions, values: list[list[_CellValue]], scan: SheetScan) -> Table:
    rows: list[TableRow] = []
    for line, cells in enumerate(values, start=1):
        texts = tuple(normalize_name(_text(cell).strip()) for cell in cells)
        if any(texts):
            rows.append((line, texts))
    table = table_of(sheet, "sheet", rows)
    for line, texts in rows:
        for column, text in enumerate(texts):
            if forbidden := FORBIDDEN.search(text):
                message = f"the character U+{ord(forbidden[0]):04X} is not allowed here"
                where = sheet.where(line, column)
                raise UnusableTable(Problem(code="people/csv", message=message, hint="Remove it.", source=where))
    faults = tuple(
        TableFault(
            (fault.rows[0] + 1, fault.rows[1] + 1),
            fault.columns,
            Problem(
                code="table/cell",
                message=fault.message,
                hint=fault.hint,
                source=sheet.where(fault.rows[0] + 1, fault.columns[0]),
            ),
        )
        for fault in scan.faults
    )
    last = table.rows[-1][0] if table.rows else table.header
    # Merged cells below the last value are empty anyway; the row of a formula without a result would be missing.
    within = tuple(
        fault for fault in faults if fault.lines[1] >= table.header and (fault.lines[0] <= last or fault.is_one_cell)
    )
    return Table(table.sheet, table.noun, table.header, table.columns, table.rows, within)


def _text(value: _CellValue) -> str:
    """Return a value as a CSV file has it: a whole number without a decimal point, a date as YYYY-MM-DD."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, datetime.datetime):
        return _rounded(value).isoformat()
    return value.isoformat(timespec="seconds") if isinstance(value, datetime.time) else str(value)


def _rounded(moment: datetime.datetime) -> datetime.datetime:
    """Return a time to the nearest second: a workbook holds it as a fraction of a day."""
    whole = moment.replace(microsecond=0)
    is_late = moment.microsecond >= 500_000 and whole.year < datetime.MAXYEAR
    return whole + datetime.timedelta(seconds=1) if is_late else whole
