"""Lists of people from files: `{file, column, where, allow_empty}` in place of a list of people."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity, SourceLocation, shorten
from lmsconf.manifest.expand.table import ColumnSource, Table, UnusableTable, column_index
from lmsconf.manifest.expand.table_files import TableFiles, selection_text
from lmsconf.manifest.yaml.nodes import (
    EntrySourceMap,
    KeyPath,
    Map,
    Seq,
    pack_mark,
    store_marks,
)
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import did_you_mean, normalize_name

ANY_ITEM: Final = "*"
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
_LONGEST_ADDRESS = 320


MOST_PEOPLE: Final = 2_000_000
"""Maximum number of rows that all lists may take together."""
_MOST_VALUES: Final = 1_000


KeyMatch: TypeAlias = tuple[Map, str, KeyPath]
"""A mapping in an entry, one of its keys, and the path of that key in the entry."""


class TablePeopleExpander(Struct):
    """Replace references to columns of tables by the e-mails in them."""

    tables: TableFiles
    report: Callable[[Problem], None]
    _left: int = MOST_PEOPLE

    def expand(self, lists: Iterable[KeyMatch], places: EntrySourceMap) -> bool:
        """Replace every reference to a table in an entry, in place; return False if one could not be read."""
        whole = True
        for node, step, path in lists:
            value = node[step]
            if isinstance(value, Map) and "file" in value:
                try:
                    node[step] = cast(Json, self._people(value, path, places))
                except UnusableTable as wrong:
                    whole = False
                    if wrong.problem is not None:
                        self.report(wrong.problem)
        return whole

    def _people(self, reference: Map, path: KeyPath, places: EntrySourceMap) -> Seq:
        """Return the addresses in the selected rows, each located in its row of the table."""
        table = self.tables.table(reference, path, places)
        column = column_index(table, str(reference["column"]), places.at(*path, "column"))
        people, marks = Seq(ColumnSource(table.sheet, column)), list[int]()
        rows = self.tables.rows(table, reference, path, places, [column])
        self._left -= len(rows)
        if self._left < 0:
            message = f"the lists of people from files come to more than {MOST_PEOPLE:,} rows"
            hint = "Select fewer rows with `where`, or split the project."
            raise UnusableTable(Problem(code="people/too-many", message=message, hint=hint, source=places.at(*path)))
        for line, cells in rows:
            if self._usable(cells, table, line, column):
                people.append(cells[column])
                marks.append(pack_mark(line))
        store_marks(people, marks)
        is_reported = any(cells[column] for _, cells in rows)  # what is no e-mail is an error of its own row
        if not people and not is_reported and reference.get("allow_empty") is not True:
            raise UnusableTable(_nobody(table, reference, places.at(*path)))
        return people

    def _usable(self, cells: tuple[str, ...], table: Table, line: int, column: int) -> bool:
        """Whether a cell holds an e-mail address; if not, report the problem at its location."""
        address = cells[column]
        if not address:
            where = table.sheet.where(line, column)
            message, hint = "this row has no e-mail, so it adds nobody", "Write the e-mail, or remove the row."
            warning = Severity.WARNING
            self.report(Problem(code="people/no-address", message=message, severity=warning, hint=hint, source=where))
        elif len(address) > _LONGEST_ADDRESS or not _ADDRESS.fullmatch(address):
            where = table.sheet.where(line, column)
            message = f'"{shorten(address)}" is not an e-mail address'
            hint = "Write one address in the cell, such as anna.berg@acme.example, or skip the row with `where`."
            self.report(Problem(code="people/address", message=message, hint=hint, source=where))
        else:
            return True
        return False


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


def matching_keys(node: Json, trail: KeyPath, path: KeyPath) -> Iterable[KeyMatch]:
    """Return each mapping, key and full path that `trail` matches in an entry."""
    step, rest = trail[0], trail[1:]
    if step == ANY_ITEM:
        items = enumerate(node) if isinstance(node, list) else ()
        return chain.from_iterable(matching_keys(item, rest, (*path, number)) for number, item in items)
    if not isinstance(node, Map) or not isinstance(step, str) or step not in node:
        return ()
    return matching_keys(node[step], rest, (*path, step)) if rest else ((node, step, (*path, step)),)


def _nobody(table: Table, reference: Map, where: SourceLocation) -> Problem:
    near = _nearest_value(table, cast("Mapping[str, Json]", reference.get("where", {})))
    return Problem(
        code="people/nobody",
        message=f"there is no e-mail{selection_text(reference)}, so {where} would mean nobody",
        hint=f"{near} To mean nobody, set `allow_empty: true`." if near else "Set `allow_empty: true` to allow this.",
        source=replace(table.sheet.row(table.header), column=0),
    )


def _nearest_value(table: Table, filters: Mapping[str, Json]) -> str | None:
    """Return `Did you mean "Malmö"?` for a value of `where` that no row has; None if none of a few is similar."""
    for name, value in filters.items():
        number = table.columns.index(name) if name in table.columns else None
        held = {cells[number] for _, cells in table.rows} if number is not None else set()
        if normalize_name(str(value)) not in held and len(held) <= _MOST_VALUES:
            return did_you_mean(str(value), sorted(held))
    return None
