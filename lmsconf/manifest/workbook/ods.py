"""OpenDocument spreadsheets: their sheets, and what each of them holds.

All sheets stand in one part and are parsed together, so the limits hold for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.manifest.workbook.archive import WorkbookArchive, WorkbookRefused, damaged_workbook
from lmsconf.manifest.workbook.scan import CELLS, CHARACTERS, SheetScan, WorkbookSheet, scan_xml

MIMETYPE: Final = "mimetype"
SPREADSHEET: Final = b"application/vnd.oasis.opendocument.spreadsheet"
_MANIFEST: Final = "META-INF/manifest.xml"
_CONTENT: Final = "content.xml"
_CELLS: Final = ("table:table-cell", "table:covered-table-cell")
_MARKS: Final = ("table:formula", "office:value-type", "calcext:value-type")
_VALUES: Final = ("value", "string-value", "date-value", "time-value", "boolean-value")


class OpenDocumentWorkbook:
    """An OpenDocument spreadsheet."""

    def __init__(self, archive: WorkbookArchive) -> None:
        """Raises WorkbookRefused."""
        self._parts = {name: archive.read(name) for name in (MIMETYPE, _MANIFEST, _CONTENT)}
        scan_xml(self._parts[_MANIFEST], start=_refuse_encryption)
        handler = _ContentHandler()
        scan_xml(self._parts[_CONTENT], start=handler.start, end=handler.end, text=handler.text)
        self._scans = handler.scans
        self.sheets = handler.sheets

    def scan(self, number: int) -> tuple[SheetScan, dict[str, bytes]]:
        """Return what the sheet with that index holds, and the parts with which it can be parsed."""
        return self._scans[number], self._parts


def _refuse_encryption(name: str, _: Mapping[str, str]) -> None:
    if name == "manifest:encryption-data":
        raise WorkbookRefused("this workbook is encrypted", "Save it without a password.")


class _ContentHandler:
    """Handlers of `content.xml`. One element may stand for many equal cells, or for many equal rows."""

    def __init__(self) -> None:
        self.sheets: list[WorkbookSheet] = []
        self.scans: list[SheetScan] = []
        self._hidden: set[str] = set()
        self._style = ""
        self._scan: SheetScan | None = None
        self._row = self._column = self._rows = self._columns = 0
        self._cell: Mapping[str, str] | None = None
        self._length = 0
        self._text = ""
        self._has_paragraph = False
        self._row_width = self._row_text = 0
        self._cells_left = CELLS
        self._characters_left = CHARACTERS

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name in _CELLS:
            self._start_cell(attributes)
        elif name == "table:table-row":
            self._rows = _count(attributes, "table:number-rows-repeated")
            self._column = self._row_width = self._row_text = 0
        elif name == "text:s" and self._cell is not None:
            self._length += _count(attributes, "text:c")
        elif name == "text:p":
            self._has_paragraph = True  # an empty one is the result of a formula that is an empty text
        elif name == "table:table":
            if self._scan is not None:
                raise damaged_workbook("it has a table inside a table")
            title = attributes.get("table:name", "")
            self._scan, self._row = SheetScan(title), 0
            is_hidden = attributes.get("table:style-name", "") in self._hidden
            self.sheets.append(WorkbookSheet(title, is_hidden))
            self.scans.append(self._scan)
        elif name == "style:style":
            self._style = attributes.get("style:name", "")
        elif name == "style:table-properties" and attributes.get("table:display") == "false":
            self._hidden.add(self._style)

    def end(self, name: str) -> None:
        if name in _CELLS:
            self._end_cell()
        elif name == "table:table-row":
            self._end_row()
        elif name == "table:table":
            self._scan = None

    def text(self, data: str) -> None:
        if self._cell is not None:
            self._length += len(data)
            self._text = (self._text + data)[:20]

    def _start_cell(self, attributes: Mapping[str, str]) -> None:
        self._cell, self._length, self._text, self._has_paragraph = attributes, 0, "", False
        self._columns = _count(attributes, "table:number-columns-repeated")

    def _end_cell(self) -> None:
        scan, cell = self._scan, self._cell
        self._cell = None
        if scan is None or cell is None:
            raise damaged_workbook("a cell stands outside a table")
        last = self._column + self._columns - 1
        rows = (self._row, self._row + _count(cell, "table:number-rows-spanned") - 1)
        columns = (self._column, self._column + _count(cell, "table:number-columns-spanned") - 1)
        value = next((cell[key] for name in _VALUES if (key := f"office:{name}") in cell), None)
        # The parser takes a cell with a type for a value even if its text is empty.
        if value is not None or self._length or any(name in cell for name in _MARKS):
            scan.add_value(self._row + self._rows - 1, last)
            self._row_width = last + 1
            # The parser repeats a formula as it repeats a text.
            self._row_text += (self._length + len(value or "") + len(cell.get("table:formula", ""))) * self._columns
            if "table:formula" in cell and "office:value-type" not in cell and not self._has_paragraph:
                scan.add_uncomputed(self._row, self._column)
            elif cell.get("calcext:value-type") == "error":
                scan.add_error(self._row, self._column, self._text)
        scan.add_merged(rows, columns)
        self._column = last + 1

    def _end_row(self) -> None:
        if self._scan is None:
            raise damaged_workbook("a row stands outside a table")
        self._scan.add_text(self._row_text * self._rows)
        self._characters_left -= self._row_text * self._rows
        if self._characters_left < 0:
            raise WorkbookRefused(
                f"the cells of this workbook have more than {CHARACTERS >> 20} million characters",
                "Delete the sheets that are not needed, or save the sheet as CSV.",
                sheet=self._scan.name,
            )
        # The parser holds the cells of each row up to its last value, and repeats them for the rows that are equal.
        self._cells_left -= self._row_width * self._rows
        if self._cells_left < 0:
            raise WorkbookRefused(
                f"the sheets of this workbook have more than {CELLS:,} cells",
                "Delete the sheets that are not needed, or save the sheet as CSV.",
                sheet=self._scan.name,
            )
        self._row += self._rows


def _count(attributes: Mapping[str, str], name: str) -> int:
    """Return the number under a key, 1 without it. Raises WorkbookRefused for a text that is not a small number."""
    text = attributes.get(name, "1")
    least = 0 if name == "text:c" else 1  # the cells of a row that is repeated 0 times are parsed too
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text) >= least):
        raise damaged_workbook(f'{name} is "{text[:20]}"')
    return int(text)
