"""Excel workbooks: their sheets, and what one of them holds."""

from __future__ import annotations

import posixpath
import re
from array import array
from collections.abc import Mapping
from typing import Final

from lmsconf.manifest.workbook.archive import WorkbookArchive, damaged_workbook
from lmsconf.manifest.workbook.scan import CELLS, SheetScan, WorkbookSheet, local_name, parse_cell_name, scan_xml

PACKAGE: Final = "_rels/.rels"
_TYPES: Final = "[Content_Types].xml"
_BEGINNING: Final = 20
_STRINGS: Final = re.compile(r"(^|[/\\])sharedStrings\.xml$", re.IGNORECASE)


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
        strings = ""
        for kind in ("sharedStrings", "styles"):
            named = [part for other, part in self._relations.values() if other == kind]
            if len(named) > 1:
                raise damaged_workbook(f"it has several parts of the type {kind}")
            if named and self._archive.has(named[0]):
                parts[named[0]] = self._archive.read(named[0])
                if kind == "sharedStrings":
                    strings = named[0]
                    lengths = _string_lengths(parts[strings])
        part = self._sheet_parts[number]
        parts[part] = self._archive.read(part)
        # The parser finds the shared strings by name, whatever their relation says.
        if any(_STRINGS.search(name) and name != strings for name in parts):
            raise damaged_workbook("its shared strings are not where they are named")
        # The parser sees these parts alone. It may take another one for the sheet, so the limits hold for each.
        for name, content in parts.items():
            if name != part:
                _scan_sheet(content, SheetScan(self.sheets[number].name), lengths)
        scan = SheetScan(self.sheets[number].name)
        _scan_sheet(parts[part], scan, lengths)
        return scan, parts

    def _add_sheet(self, name: str, attributes: Mapping[str, str]) -> None:
        """Add a worksheet; the sheets of charts and macros are left out."""
        if local_name(name) != "sheet":
            return
        ids = [value for key, value in attributes.items() if local_name(key) == "id"]
        if len(ids) > 1:
            raise damaged_workbook("a sheet has several ids")
        kind, part = self._relations.get("".join(ids), ("", ""))
        if kind == "worksheet" and "name" in attributes:
            self.sheets.append(WorkbookSheet(attributes["name"], attributes.get("state", "visible") != "visible"))
            self._sheet_parts.append(part)


def _relations(content: bytes, folder: str) -> dict[str, tuple[str, str]]:
    """Return id → type and part of the relations of a part that lies in `folder`, without those to other files.

    Raises WorkbookRefused if two have the same id or lead to the same part: readers differ in which of them counts.
    """
    related: dict[str, tuple[str, str]] = {}
    ids: set[str] = set()
    targets: set[str] = set()

    def start(name: str, attributes: Mapping[str, str]) -> None:
        if local_name(name) != "Relationship":
            return
        id = attributes.get("Id", "")
        if id in ids:
            raise damaged_workbook(f'it has several relations "{id[:20]}"')
        ids.add(id)
        if attributes.get("TargetMode") != "External":
            target = attributes.get("Target", "")
            part = target[1:] if target.startswith("/") else posixpath.normpath(posixpath.join(folder, target))
            if part in targets:
                raise damaged_workbook(f"several relations lead to {part[:80]}")
            targets.add(part)
            related[id] = (attributes.get("Type", "").rpartition("/")[2], part)

    scan_xml(content, start=start)
    return related


def _scan_sheet(content: bytes, scan: SheetScan, string_lengths: array[int]) -> None:
    handler = _SheetHandler(scan, string_lengths)
    scan_xml(content, start=handler.start, end=handler.end, text=handler.text, joined=False)


def _string_lengths(content: bytes) -> array[int]:
    """Return the length of each shared string: a sheet may repeat one in each of its cells."""
    lengths = array("Q")
    most = max(CELLS, len(content) // len("<si/>"))
    depth = 0
    has_begun = False

    def start(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal depth, has_begun
        # The parser reserves memory for as many texts as the part says that it has.
        for key, value in attributes.items():
            if local_name(key) == "uniqueCount" and not _is_count(value, most):
                raise damaged_workbook(f'it has "{value[:20]}" shared strings')
        has_begun = has_begun or local_name(name) == "sst"
        if local_name(name) == "si":
            if not has_begun:
                raise damaged_workbook("it has a shared string outside their list")
            if depth:
                raise damaged_workbook("it has a shared string inside a shared string")
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
            self._column = 0

    def text(self, data: str) -> None:
        if self._in_value:
            self._characters += len(data)
            if self._type == "s" and self._text.strip() and data.strip():
                # The parser reads an index up to the first comment or reference.
                raise damaged_workbook("the number of a shared string is in several parts")
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


def _is_count(text: str, most: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9 and int(text) <= most


def _row_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 7):
        raise damaged_workbook(f'"{text[:20]}" is not the number of a row')
    return max(int(text) - 1, 0)
