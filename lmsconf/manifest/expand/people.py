"""Lists of people from CSV files: `{file, column, where, allow_empty}` in place of a list of people."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Final, cast

from lmsconf.errors import Problem, Severity, SourceLocation, shorten
from lmsconf.manifest.expand.csv_table import (
    ColumnSource,
    CsvRow,
    CsvTable,
    UnusableList,
    column_index,
    parse_csv_table,
    shifted_row_problems,
)
from lmsconf.manifest.file_set import ManifestFileReader, UnreadableFile
from lmsconf.manifest.yaml.nodes import (
    EntrySourceMap,
    KeyPath,
    Map,
    Seq,
    pack_mark,
    store_marks,
)
from lmsconf.manifest.yaml.read_result import ENOUGH
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.support.lazy_dataclass import dataclass

ANY_ITEM: Final = "*"
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_LONGEST_ADDRESS = 320


MOST_PEOPLE: Final = 2_000_000
"""Maximum number of CSV rows that all lists may take together."""


@dataclass(slots=True)
class CsvPeopleExpander:
    """Read the CSV files that manifests refer to, each once."""

    files: ManifestFileReader
    report: Callable[[Problem], None]
    _tables: dict[Path, CsvTable | None] = field(default_factory=dict)
    _indexes: dict[tuple[str, tuple[int, ...]], dict[tuple[str, ...], list[CsvRow]]] = field(default_factory=dict)
    _left: int = MOST_PEOPLE

    def expand(self, body: Map, trails: Iterable[KeyPath], places: EntrySourceMap) -> bool:
        """Replace every CSV reference in the entry by its e-mails, in place; return False if one could not be read."""
        whole = True
        for trail in trails:
            for node, step, path in matching_keys(body, trail, ()):
                value = node[step]
                if isinstance(value, Map) and "file" in value:
                    try:
                        node[step] = cast(Json, self._people(value, path, places))
                    except UnusableList as wrong:
                        whole = False
                        if wrong.problem is not None:
                            self.report(wrong.problem)
        return whole

    def _people(self, reference: Map, path: KeyPath, places: EntrySourceMap) -> Seq:
        """Return the addresses in the selected rows, each located in its line of the CSV file."""
        table = self._table(reference, path, places)
        column = column_index(table, str(reference["column"]), places.at(*path, "column"))
        filters = [
            (column_index(table, name, places.key(*path, "where", name)), normalize_name(str(value)))
            for name, value in cast("Mapping[str, Json]", reference.get("where", {})).items()
        ]
        people, marks = Seq(ColumnSource(table.sheet, column)), list[int]()
        rows = self._where(table, filters)
        self._left -= len(rows)
        if self._left < 0:
            message = f"the lists of people from CSV files come to more than {MOST_PEOPLE:,} rows"
            hint = "Ask for fewer rows with `where`, or split the project into several."
            raise UnusableList(Problem(code="people/too-many", message=message, hint=hint, source=places.at(*path)))
        for line, cells in rows:
            if self._usable(cells, table, line, column):
                people.append(cells[column])
                marks.append(pack_mark(line))
        store_marks(people, marks)
        if not people and reference.get("allow_empty") is not True:
            raise UnusableList(_nobody(table, reference, places.at(*path)))
        return people

    def _where(self, table: CsvTable, filters: Sequence[tuple[int, str]]) -> Sequence[CsvRow]:
        """Return the rows with these values. Indexed by columns, since many lists may select from one large file."""
        if not filters:
            return table.rows
        columns = tuple(number for number, _ in filters)
        key = table.sheet.path, columns
        if key not in self._indexes:
            index: dict[tuple[str, ...], list[CsvRow]] = {}
            for row in table.rows:
                index.setdefault(tuple(row[1][number] for number in columns), []).append(row)
            self._indexes[key] = index
        return self._indexes[key].get(tuple(value for _, value in filters), [])

    def _usable(self, cells: tuple[str, ...], table: CsvTable, line: int, column: int) -> bool:
        """Whether a cell holds an e-mail address; if not, report the problem at its location."""
        address = cells[column]
        if not address:
            where = table.sheet.where(line, column)
            message, hint = "this row has no address, so it adds nobody", "Write the address, or take the row out."
            warning = Severity.WARNING
            self.report(Problem(code="people/no-address", message=message, severity=warning, hint=hint, source=where))
        elif len(address) > _LONGEST_ADDRESS or not _ADDRESS.fullmatch(address):
            where = table.sheet.where(line, column)
            message = f'"{shorten(address)}" is no e-mail address'
            hint = "Write one address in the cell, such as anna.berg@acme.example, or leave the row out with `where`."
            self.report(Problem(code="people/address", message=message, hint=hint, source=where))
        else:
            return True
        return False

    def _table(self, reference: Map, path: KeyPath, places: EntrySourceMap) -> CsvTable:
        """Return the parsed CSV file. Raises UnusableList if it is missing, outside the project or unreadable."""
        name, where = str(reference["file"]), places.at(*path, "file")
        target = (self.files.root / places.at().file).parent / name
        if Path(name).is_absolute() or "\0" in name or not self.files.is_inside_project(target):
            hint = "Name a file inside the project, relative to this manifest."
            message = f"{shorten(name)} lies outside the project"
            raise UnusableList(Problem(code="people/outside", message=message, hint=hint, source=where))
        if not os.path.isfile(target):  # noqa: PTH113  # Path.is_file raises for a name that is too long
            relative = self.files.relative_path(target)
            hint = "The path is relative to this manifest."
            raise UnusableList(
                Problem(code="people/no-file", message=f"there is no file {shorten(relative)}", hint=hint, source=where)
            )
        real = Path(os.path.realpath(target))
        if real not in self._tables:
            self._tables[real] = self._read(target)
        table = self._tables[real]
        if table is None:
            raise UnusableList(None)
        return table

    def _read(self, path: Path) -> CsvTable | None:
        name = self.files.relative_path(path)
        try:
            table = parse_csv_table(name, self.files.read_csv(path))
        except UnreadableFile as unreadable:
            self.report(unreadable.problem)
        except UnusableList as wrong:
            if wrong.problem is not None:
                self.report(wrong.problem)
        else:
            shifted = list(islice(shifted_row_problems(table), ENOUGH))
            for problem in shifted:
                self.report(problem)
            return None if shifted else table
        return None


def marked_paths(schema: Mapping[str, Json], mark: str) -> tuple[KeyPath, ...]:
    """Return the paths from an entry to the values that its schema marks, such as lists of people with `x-people`."""
    return tuple(dict.fromkeys(_trails(schema, mark, ())))


def _trails(schema: Mapping[str, Json], mark: str, path: KeyPath) -> Iterator[KeyPath]:
    if schema.get(mark):
        yield path
    for key, below in cast("Mapping[str, Mapping[str, Json]]", schema.get("properties", {})).items():
        yield from _trails(below, mark, (*path, key))
    items = schema.get("items")
    if isinstance(items, dict):
        yield from _trails(items, mark, (*path, ANY_ITEM))
    for branch in cast("list[Mapping[str, Json]]", schema.get("oneOf", [])):
        yield from _trails(branch, mark, path)


def matching_keys(node: Json, trail: KeyPath, path: KeyPath) -> Iterator[tuple[Map, str, KeyPath]]:
    """Yield each mapping, key and full path that `trail` matches in an entry."""
    step, rest = trail[0], trail[1:]
    if step == ANY_ITEM:
        for number, item in enumerate(node if isinstance(node, list) else ()):
            yield from matching_keys(item, rest, (*path, number))
    elif isinstance(node, Map) and isinstance(step, str) and step in node:
        if rest:
            yield from matching_keys(node[step], rest, (*path, step))
        else:
            yield node, step, (*path, step)


def _nobody(table: CsvTable, reference: Map, where: SourceLocation) -> Problem:
    filters = cast("Mapping[str, Json]", reference.get("where", {}))
    columns = ", ".join(f"{name} = {shorten(str(value))}" for name, value in filters.items())
    given = f" with {columns}" if filters else ""
    return Problem(
        code="people/nobody",
        message=f"there is no address{given}, so {where} would mean nobody",
        hint="`allow_empty: true` says that this may be.",
        source=SourceLocation(table.sheet.path, table.header),
    )
