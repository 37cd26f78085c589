"""Excel workbooks: their sheets, and what one of them holds."""

from __future__ import annotations

import posixpath
from array import array
from collections.abc import Mapping
from typing import Final

from lmsconf.manifest.workbook.archive import WorkbookArchive, damaged_workbook
from lmsconf.manifest.workbook.scan import SheetScan, WorkbookSheet, local_name, parse_cell_name, scan_xml

PACKAGE: Final = "_rels/.rels"
_TYPES: Final = "[Content_Types].xml"
_BEGINNING: Final = 20


class ExcelWorkbook:
    """An Excel workbook, of which only the parts that one sheet needs are unpacked."""

    def __init__(self, archive: WorkbookArchive) -> None:
        """Raises WorkbookRefused."""
        self._archive = archive
        self._parts = {name: archive.read(name) for name in (_TYPES, PACKAGE)}
        package = _relations(self._parts[PACKAGE], "").values()
        self._main = next((target for kind, target in package if kind == "officeDocument"), "")
        if not self._main:
            raise damaged_workbook("it names no workbook")
        folder, name = posixpath.split(self._main)
        self._relations_part = f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels"
        for part in (self._main, self._relations_part):
            self._parts[part] = archive.read(part)
        self._relations = _relations(self._parts[self._relations_part], folder)
        self._sheet_parts: list[str] = []
        self.sheets: list[WorkbookSheet] = []
        scan_xml(self._parts[self._main], start=self._add_sheet)

    def scan(self, number: int) -> tuple[SheetScan, dict[str, bytes]]:
        """Return what the sheet with that index holds, and the parts needed to parse it. Raises WorkbookRefused."""
        parts = dict(self._parts)
        lengths = array("Q")
        for kind, part in self._relations.values():
            if kind in ("sharedStrings", "styles") and self._archive.has(part):
                parts[part] = self._archive.read(part)
                if kind == "sharedStrings":
                    lengths = _string_lengths(parts[part])
        part = self._sheet_parts[number]
        parts[part] = self._archive.read(part)
        handler = _SheetHandler(SheetScan(self.sheets[number].name), lengths)
        scan_xml(parts[part], start=handler.start, end=handler.end, text=handler.text)
        return handler.scan, parts

    def _add_sheet(self, name: str, attributes: Mapping[str, str]) -> None:
        """Add a worksheet; the sheets of charts and macros are left out."""
        if local_name(name) != "sheet":
            return
        id = next((value for key, value in attributes.items() if local_name(key) == "id"), "")
        kind, part = self._relations.get(id, ("", ""))
        if kind == "worksheet" and "name" in attributes:
            self.sheets.append(WorkbookSheet(attributes["name"], attributes.get("state", "visible") != "visible"))
            self._sheet_parts.append(part)


def _relations(content: bytes, folder: str) -> dict[str, tuple[str, str]]:
    """Return id → type and part of the relations of a part that lies in `folder`, without those to other files."""
    related: dict[str, tuple[str, str]] = {}

    def start(name: str, attributes: Mapping[str, str]) -> None:
        if local_name(name) == "Relationship" and attributes.get("TargetMode") != "External":
            target = attributes.get("Target", "")
            part = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            related[attributes.get("Id", "")] = (attributes.get("Type", "").rpartition("/")[2], part)

    scan_xml(content, start=start)
    return related


def _string_lengths(content: bytes) -> array[int]:
    """Return the length of each shared string: a sheet may repeat one in each of its cells."""
    lengths = array("Q")
    depth = 0

    def start(name: str, _: Mapping[str, str]) -> None:
        nonlocal depth
        if local_name(name) == "si":
            depth += 1
            lengths.append(0)

    def end(name: str) -> None:
        nonlocal depth
        depth -= local_name(name) == "si"

    def text(data: str) -> None:
        if depth:
            lengths[-1] += len(data)

    scan_xml(content, start=start, end=end, text=text)
    return lengths


class _SheetHandler:
    """Handlers of the XML of one sheet. Cells without a reference follow the one before, as for Excel."""

    def __init__(self, scan: SheetScan, string_lengths: array[int]) -> None:
        self.scan = scan
        self._string_lengths = string_lengths
        self._row = 0
        self._column = 0
        self._type = ""
        self._has_formula = False
        self._has_value = False
        self._in_value = False
        self._text = ""  # its beginning: enough for the index of a shared string
        self._characters = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        tag = local_name(name)
        if tag == "c":
            if "r" in attributes:
                self._row, self._column = parse_cell_name(attributes["r"])
            self._type = attributes.get("t", "n")
            self._has_formula = self._has_value = False
            self._text, self._characters = "", 0
        elif tag in ("v", "is"):
            self._has_value = self._in_value = True
        elif tag == "f":
            self._has_formula = True
        elif tag == "row":
            if "r" in attributes:
                self._row = _row_number(attributes["r"])
            self._column = 0
        elif tag == "mergeCell":
            first, _, last = attributes.get("ref", "").partition(":")
            (top, left), (bottom, right) = parse_cell_name(first), parse_cell_name(last or first)
            self.scan.add_merged((top, bottom), (left, right))

    def end(self, name: str) -> None:
        tag = local_name(name)
        if tag in ("v", "is"):
            self._in_value = False
        elif tag == "c":
            self._cell()
            self._column += 1
        elif tag == "row":
            self._row += 1

    def text(self, data: str) -> None:
        if self._in_value:
            self._characters += len(data)
            self._text = (self._text + data)[:_BEGINNING]

    def _cell(self) -> None:
        if self._has_formula and not self._text and self._type != "str":
            self.scan.add_value(self._row, self._column)
            self.scan.add_uncomputed(self._row, self._column)
        elif self._has_value:
            self.scan.add_value(self._row, self._column)
            self.scan.add_text(self._length())
            if self._type == "e":
                self.scan.add_error(self._row, self._column, self._text)

    def _length(self) -> int:
        if self._type != "s":
            return self._characters
        index = self._text.strip()
        if not (index.isascii() and index.isdigit() and int(index) < len(self._string_lengths)):
            raise damaged_workbook("a cell names a text that is not in the workbook")
        return self._string_lengths[int(index)]


def _row_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 7):
        raise damaged_workbook(f'"{text[:20]}" is not the number of a row')
    return max(int(text) - 1, 0)
