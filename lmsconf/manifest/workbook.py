"""Spreadsheets, `.xlsx` and `.ods` → tables of texts, as CSV files would have them. python-calamine reads them.

Before it, only the sizes in the directory of the zip file are looked at: a part that is larger is an error there.
"""

from __future__ import annotations

import datetime
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation, cell_name, problem_found, refuse_if, shorten
from lmsconf.manifest.csv_tables import (
    WORKBOOK_ENDINGS,
    WORKBOOK_STARTS,
    CellSource,
    Table,
    TableFault,
    forbidden_character_found,
    table_of,
)
from lmsconf.model.control_characters import FORBIDDEN
from lmsconf.model.names import did_you_mean, normalize_name

if TYPE_CHECKING:
    from python_calamine import CalamineWorkbook

MEMBERS: Final = 5_000
"""Maximum number of parts of a workbook."""
UNPACKED: Final = 64 * 1024 * 1024
"""Maximum size of all parts together, unpacked, in bytes."""
CELLS: Final = 1_000_000
"""Maximum number of cells, empty ones included, from A1 to the last row and column that have a value."""
_ZIP, _OLD = WORKBOOK_STARTS
_EXTRA: Final = "lmsconf[spreadsheets]"
_OPEN_MANIFEST: Final = "META-INF/manifest.xml"
_SAVE: Final = "Save it again, or save the sheet as CSV."
_SMALLER: Final = "Delete what is not part of the table, or save the sheet as CSV."
_CellValue: TypeAlias = "int | float | str | bool | datetime.date | datetime.time | datetime.timedelta"
_Range: TypeAlias = "tuple[tuple[int, int], tuple[int, int]]"


def parse_workbook(path: str, data: bytes, sheet: str | None, where: SourceLocation) -> Table:
    """Return the table in the sheet with that name, else in the first that is not hidden.

    where: the location of the sheet's name. Raises ProblemsFound.
    """
    _check_name(path, data)
    _check_size(path, data)
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        with CalamineWorkbook.from_filelike(io.BytesIO(data)) as book:
            found = book.get_sheet_by_name(_chosen(book, path, sheet, where))
            row, column = found.end or (0, 0)
            if (row + 1) * (column + 1) > CELLS:
                raise _refused(
                    path,
                    f"this sheet has values down to row {row + 1:,} and in {column + 1:,} columns, and at most "
                    f"{CELLS:,} cells are read",
                    _SMALLER,
                    found.name,
                )
            source = CellSource(path, sheet=found.name)
            return _table(source, found.to_python(skip_empty_area=False), found.merged_cell_ranges or ())
    except (CalamineError, ValueError, OverflowError, OSError) as error:
        raise _refused(path, f"this workbook cannot be read: {type(error).__name__}: {error}", _SAVE) from error
    except BaseException as error:
        # calamine is written in Rust, and a defect of it raises an exception that is not an Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise _refused(path, "this workbook cannot be read: the parser stopped", _SAVE) from error


def _check_name(path: str, data: bytes) -> None:
    """Refuse a file whose first bytes or name are not those of a workbook, and any without the extra."""
    ending = PurePosixPath(path).suffix.lower()
    is_open = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet" in data[:200]
    kind = "an OpenDocument spreadsheet" if is_open else "an Excel workbook"
    right = PurePosixPath(path).with_suffix(".ods" if is_open else ".xlsx").name
    refuse_if(
        (
            data.startswith(_OLD),
            "this is a workbook with a password, or in the format of Excel before 2007",
            "Save it as .xlsx without a password, or as CSV.",
        ),
        (
            not data.startswith(_ZIP),
            "this is not a workbook, in spite of its name",
            f"Save it as {ending}, or give it a name that ends in .csv if it is text.",
        ),
        (
            find_spec("python_calamine") is None,
            f"this is {kind}: save it as CSV, or install {_EXTRA}",
            f"Install it with `pip install '{_EXTRA}'`, in the environment of lmsconf.",
        ),
        (
            ending not in WORKBOOK_ENDINGS,
            f"this is {kind}, not a CSV file",
            f"Save it as CSV, or name it {shorten(right)}.",
        ),
        error=partial(_refused, path),
    )


def _check_size(path: str, data: bytes) -> None:
    """Refuse a zip file that is damaged, encrypted, too large when it is unpacked, or no workbook."""
    # Each entry of the directory becomes an object, so they are counted first.
    if data.count(b"PK\x01\x02") > MEMBERS:
        raise _refused(path, f"this workbook has more than {MEMBERS:,} parts", "Save the sheet as CSV.")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            names = {part.filename for part in parts}
            is_too_large = sum(part.file_size for part in parts) > UNPACKED
            is_encrypted = any(part.flag_bits & 1 for part in parts)
            if _OPEN_MANIFEST in names and not is_too_large and not is_encrypted:
                is_encrypted = b"encryption-data" in archive.read(_OPEN_MANIFEST)
            sheets = [part for part in parts if part.filename.startswith("xl/worksheets/")] if not is_too_large else []
            # calamine makes a place in memory for each cell up to the last one, and ends the process without enough.
            most = max((_cells(archive.read(part)) for part in sheets if not part.flag_bits & 1), default=0)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, RuntimeError) as error:
        raise _refused(path, f"this workbook cannot be read: {error}", _SAVE) from error
    refuse_if(
        (is_too_large, f"this workbook is larger than {UNPACKED >> 20} MiB when it is unpacked", _SMALLER),
        (
            most > 10 * CELLS,
            f"this workbook has a sheet of {most:,} cells, with the empty ones before its last, and at most "
            f"{CELLS:,} are read",
            _SMALLER,
        ),
        (is_encrypted, "this workbook is encrypted", "Save it without a password."),
        (
            names.isdisjoint((_OPEN_MANIFEST, "[Content_Types].xml")),
            "this is a zip archive, and not a workbook",
            "Save the table as .xlsx or as CSV.",
        ),
        error=partial(_refused, path),
    )


def _cells(sheet: bytes) -> int:
    """Return how many cells a sheet of Excel has from A1 to its last row and column."""
    cells = re.findall(rb"""\br=["']([A-Z]{1,3})([0-9]{1,7})["']""", sheet)
    widest = max((column for column, _ in cells), key=lambda name: (len(name), name), default=b"")
    columns = reduce(lambda columns, letter: columns * 26 + letter - 64, widest, 0)
    return columns * max((int(row) for _, row in cells), default=0)


def _chosen(book: CalamineWorkbook, path: str, wanted: str | None, where: SourceLocation) -> str:
    """Return the name of the wanted sheet, else of the first that is not hidden. Raises ProblemsFound."""
    from python_calamine import SheetTypeEnum, SheetVisibleEnum

    sheets = [sheet for sheet in book.sheets_metadata if sheet.typ == SheetTypeEnum.WorkSheet]
    for sheet in sheets:
        is_shown = sheet.visible == SheetVisibleEnum.Visible
        if is_shown if wanted is None else normalize_name(sheet.name) == normalize_name(wanted):
            return sheet.name
    if wanted is None or not sheets:
        raise _refused(path, "this workbook has no sheet that is shown", "Name the sheet with `sheet: NAME`.")
    names = [sheet.name for sheet in sheets]
    raise problem_found(
        "table/sheet",
        f'{shorten(path)} has no sheet "{shorten(wanted)}"',
        did_you_mean(wanted, names) or f"It has {', '.join(map(shorten, names))}.",
        where,
    )


def _table(source: CellSource, values: list[list[_CellValue]], merged: Sequence[_Range]) -> Table:
    rows = [
        (line, tuple(normalize_name(_text(cell).strip()) for cell in cells))
        for line, cells in enumerate(values, start=1)
    ]
    for line, texts in rows:
        for column, text in enumerate(texts):
            if forbidden := FORBIDDEN.search(text):
                raise forbidden_character_found(forbidden[0], source.cell(line, column))
    table = table_of(source, "sheet", [row for row in rows if any(row[1])])
    return replace(table, faults=tuple(_merged(table, merged)))


def _merged(table: Table, ranges: Sequence[_Range]) -> Iterator[TableFault]:
    """Yield the merged cells between the header and the last value: of each range only the first cell has a value."""
    last = table.rows[-1][0] if table.rows else table.header
    for (top, left), (bottom, right) in ranges:
        if bottom + 1 >= table.header and top < last and (top, left) != (bottom, right):
            span = f"{cell_name(top + 1, left + 1)}:{cell_name(bottom + 1, right + 1)}"
            yield (
                top + 1,
                range(left, right + 1),
                Problem(
                    code="table/cell",
                    message=f"the cells {span} are merged, and only the first has a value",
                    hint="Unmerge them, and fill in each cell.",
                    source=table.source.cell(top + 1, left),
                ),
            )


def _text(value: _CellValue) -> str:
    """Return a value as a CSV file has it: a whole number without a decimal point, a date as YYYY-MM-DD."""
    match value:
        case bool():
            return str(value).lower()
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case datetime.datetime():
            # A workbook holds a time as a fraction of a day.
            is_late = value.microsecond >= 500_000 and value.year < datetime.MAXYEAR
            return (value.replace(microsecond=0) + datetime.timedelta(seconds=is_late)).isoformat()
        case datetime.time():
            return value.isoformat(timespec="seconds")
    return str(value)


def _refused(path: str, message: str, hint: str, sheet: str = "") -> ProblemsFound:
    return problem_found("table/workbook", message, hint, SourceLocation(path, sheet=sheet))
