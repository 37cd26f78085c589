"""The files of tables that manifests refer to with `{file, where}`: found inside the project, and read once each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Final, cast

from lmsconf.errors import Problem, shorten
from lmsconf.manifest.expand.csv_table import parse_csv_table
from lmsconf.manifest.expand.table import Table, TableRow, UnusableTable, column_index, shifted_row_problems
from lmsconf.manifest.file_set import ManifestFileReader, UnreadableFile
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath, Map
from lmsconf.manifest.yaml.read_result import ENOUGH
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.support.lazy_dataclass import dataclass

FILE: Final = "file"


@dataclass(slots=True)
class TableFiles:
    """Read the tables that manifests refer to, each once."""

    files: ManifestFileReader
    report: Callable[[Problem], None]
    _tables: dict[Path, Table | None] = field(default_factory=dict)
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
            if os.path.isdir(target):  # noqa: PTH112
                hint, message = "Name a file in it.", f"{shorten(relative)} is a folder"
            raise UnusableTable(Problem(code="people/no-file", message=message, hint=hint, source=where))
        real = Path(os.path.realpath(target))
        if real not in self._tables:
            self._tables[real] = self._read(target)
        table = self._tables[real]
        if table is None:
            raise UnusableTable(None)
        return table

    def rows(self, table: Table, reference: Map, path: KeyPath, places: EntrySourceMap) -> Sequence[TableRow]:
        """Return the rows that `where` selects. Raises UnusableTable for a column that the table does not have.

        Indexed by columns, since many lists may select from one large file.
        """
        filters = [
            (column_index(table, name, places.key(*path, "where", name)), normalize_name(str(value)))
            for name, value in cast("Mapping[str, Json]", reference.get("where", {})).items()
        ]
        if not filters:
            return table.rows
        columns = tuple(number for number, _ in filters)
        key = id(table), columns
        if key not in self._indexes:
            index: dict[tuple[str, ...], list[TableRow]] = {}
            for row in table.rows:
                index.setdefault(tuple(row[1][number] for number in columns), []).append(row)
            self._indexes[key] = index
        return self._indexes[key].get(tuple(value for _, value in filters), [])

    def _read(self, path: Path) -> Table | None:
        name = self.files.relative_path(path)
        try:
            table = parse_csv_table(name, self.files.read_csv(path))
        except UnreadableFile as unreadable:
            self.report(unreadable.problem)
        except UnusableTable as wrong:
            if wrong.problem is not None:
                self.report(wrong.problem)
        else:
            shifted = list(islice(shifted_row_problems(table), ENOUGH))
            for problem in shifted:
                self.report(problem)
            return None if shifted else table
        return None


def selection_text(reference: Map) -> str:
    """Return what `where` asks for, for a message: ` with Group = Leaders`; empty without `where`."""
    filters = cast("Mapping[str, Json]", reference.get("where", {}))
    columns = ", ".join(f"{name} = {shorten(str(value))}" for name, value in filters.items())
    return f" with {columns}" if filters else ""
