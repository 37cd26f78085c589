"""Whether a file is a workbook that can be read here: its first bytes, its name, and the extra `spreadsheets`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import PurePosixPath
from typing import Final

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.manifest.expand.table import Table, UnusableTable
from lmsconf.model.names import did_you_mean

_ZIP: Final = b"PK\x03\x04"
_OLD: Final = b"\xd0\xcf\x11\xe0"
_EXTRA: Final = "lmsconf[spreadsheets]"
_OPEN_DOCUMENT: Final = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"


def parse_workbook(path: str, data: bytes, sheet: str | None, where: SourceLocation) -> Table:
    """Return the table in a sheet of a workbook. where: the location of the sheet's name. Raises UnusableTable."""
    ending = PurePosixPath(path).suffix.lower()
    kind = "an OpenDocument spreadsheet" if _OPEN_DOCUMENT in data[:200] else "an Excel workbook"
    if data.startswith(_OLD):
        message = "this is a workbook with a password, or in the format of Excel before 2007"
        raise _refused(path, message, "Save it as .xlsx without a password, or as CSV.")
    if not data.startswith(_ZIP):
        message = "this is not a workbook, in spite of its name"
        raise _refused(path, message, f"Save it as {ending}, or give it a name that ends in .csv if it is text.")
    if find_spec("python_calamine") is None:
        message = f"this is {kind}: save it as CSV, or install {_EXTRA}"
        raise _refused(path, message, f"Install it with `pip install '{_EXTRA}'`, in the environment of lmsconf.")
    if ending not in (".xlsx", ".xlsm", ".ods"):
        right = PurePosixPath(path).with_suffix(".ods" if "Open" in kind else ".xlsx").name
        raise _refused(path, f"this is {kind}, not a CSV file", f"Save it as CSV, or name it {shorten(right)}.")
    from lmsconf.manifest.workbook.read import UnknownSheet, read_workbook_table

    try:
        return read_workbook_table(path, data, sheet)
    except UnknownSheet as unknown:
        hint = did_you_mean(str(sheet), unknown.names) or f"It has {', '.join(map(shorten, unknown.names))}."
        message = f'{shorten(path)} has no sheet "{shorten(str(sheet))}"'
        raise UnusableTable(Problem(code="table/sheet", message=message, hint=hint, source=where)) from unknown


def _refused(path: str, message: str, hint: str) -> UnusableTable:
    return UnusableTable(Problem(code="table/workbook", message=message, hint=hint, source=SourceLocation(path)))
