"""The files of tables that manifests refer to with `{file, where}`: found inside the project, and read once each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.manifest.expand.table import CSV, Table, TableRow, UnusableTable, column_index, shifted_row_problems
from lmsconf.manifest.file_set import ManifestFileReader, UnreadableFile, decode_text
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath, Map
from lmsconf.manifest.yaml.read_result import ENOUGH
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name

FILE: Final = "file"
SHEET: Final = "sheet"
WORKBOOK_STARTS: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of a zip file, and of a compound file, which older and encrypted workbooks are."""
WORKBOOK_ENDINGS: Final = (".xlsx", ".xlsm", ".ods")


class TableFiles(Struct):
    """Read the tables that manifests refer to, each once."""

    files: ManifestFileReader
    report: Callable[[Problem], None]
    _contents: dict[Path, bytes] = field(default_factory=dict)
    _tables: dict[tuple[Path, str | None], Table | None] = field(default_factory=dict)
    _indexes: dict[tuple[int, tuple[int, ...]], dict[tuple[str, ...], list[TableRow]]] = field(default_factory=dict)

    def table(self, reference: Map, path: KeyPath, places: EntrySourceMap) -> Table:
        """Return the table of `reference`, which stands at `path` of an entry.

        Raises UnusableTable if the file is missing, outside the project or unreadable.
        """
        name, where = str(reference[FILE]), places.at(*path, FILE)
        target = (self.files.root / where.file).parent / name
        if Path(name).is_absolute() or "\0" in name or not self.files.is_inside_project(target):
            hint = "Name a file inside the project, relative to this manifest."
            message = f"{shorten(name)} is outside the project"
            raise UnusableTable(Problem(code="people/outside", message=message, hint=hint, source=where))
        if not os.path.isfile(target):  # noqa: PTH113  # Path.is_file raises for a name that is too long
            relative = self.files.relative_path(target)
            hint, message = "The path is relative to this manifest.", f"there is no file {shorten(relative)}"
            if os.path.isdir(target):  # noqa: PTH112  # likewise
                hint, message = "Name a file in it.", f"{shorten(relative)} is a folder"
            raise UnusableTable(Problem(code="people/no-file", message=message, hint=hint, source=where))
        sheet = str(reference[SHEET]) if SHEET in reference else None
        key = Path(os.path.realpath(target)), sheet
        if key not in self._tables:
            self._tables[key] = self._read(target, key, places.at(*path, SHEET))
        table = self._tables[key]
        if table is None:
            raise UnusableTable(None)
        return table

    def rows(
        self, table: Table, reference: Map, path: KeyPath, places: EntrySourceMap, columns: Iterable[int]
    ) -> Sequence[TableRow]:
        """Return the rows that `where` selects, to read these columns of them.

        Raises UnusableTable for a column that the table does not have, and for merged cells in these columns.
        """
        filters = [
            (column_index(table, name, places.key(*path, "where", name)), normalize_name(str(value)))
            for name, value in cast("Mapping[str, Json]", reference.get("where", {})).items()
        ]
        faults = list(islice(table.column_faults({*columns, *(number for number, _ in filters)}), ENOUGH))
        for problem in faults:
            self.report(problem)
        if faults:
            raise UnusableTable(None)
        return self._selected(table, filters) if filters else table.rows

    def _selected(self, table: Table, filters: Sequence[tuple[int, str]]) -> Sequence[TableRow]:
        """Return the rows with these values. Indexed by columns, since many lists may select from one large file."""
        columns = tuple(number for number, _ in filters)
        key = id(table), columns
        if key not in self._indexes:
            index: dict[tuple[str, ...], list[TableRow]] = {}
            for row in table.rows:
                index.setdefault(tuple(row[1][number] for number in columns), []).append(row)
            self._indexes[key] = index
        return self._indexes[key].get(tuple(value for _, value in filters), [])

    def _read(self, path: Path, key: tuple[Path, str | None], where: SourceLocation) -> Table | None:
        """Return a table; None after reporting why there is none. where: the location of the sheet's name."""
        name = self.files.relative_path(path)
        real, sheet = key
        try:
            if real not in self._contents:
                self._contents[real] = self.files.read_table(path)
            table = _parse_table(name, self._contents[real], sheet, where)
        except UnreadableFile as unreadable:
            self.report(unreadable.problem)
        except UnusableTable as wrong:
            if wrong.problem is not None:
                self.report(wrong.problem)
        else:
            # Cells of a workbook cannot be shifted by a separator.
            shifted = list(islice(shifted_row_problems(table), ENOUGH)) if table.noun == CSV else []
            for problem in shifted:
                self.report(problem)
            return None if shifted else table
        return None


def _parse_table(name: str, data: bytes, sheet: str | None, where: SourceLocation) -> Table:
    """Return the table in a file, whose format its first bytes and its name show.

    Raises UnreadableFile and UnusableTable.
    """
    if data.startswith(WORKBOOK_STARTS) or name.lower().endswith(WORKBOOK_ENDINGS):
        from lmsconf.manifest.workbook import parse_workbook  # few projects have one

        return parse_workbook(name, data, sheet, where)
    if sheet is not None:
        hint = "Leave `sheet` out, or name an .xlsx or .ods file."
        message = f"{shorten(name)} is not a workbook, so it has no sheets"
        raise UnusableTable(Problem(code="table/sheet", message=message, hint=hint, source=where))
    from lmsconf.manifest.expand.csv_table import parse_csv_table  # many projects have no table

    return parse_csv_table(name, decode_text(name, data))


def selection_text(reference: Map) -> str:
    """Return what `where` asks for, for a message: ` with Group = Leaders`; empty without `where`."""
    filters = cast("Mapping[str, Json]", reference.get("where", {}))
    columns = ", ".join(f"{name} = {shorten(str(value))}" for name, value in filters.items())
    return f" with {columns}" if filters else ""
