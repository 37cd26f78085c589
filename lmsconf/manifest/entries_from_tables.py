"""The files of tables that manifests refer to, each read once: lists of people, and entries from the rows of a sheet.

`{file, where}` stands for the people of a file; `{file: assignments.csv}` in a section stands for one entry
for each row of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, Severity, SourceLocation, problem_found, shorten
from lmsconf.kinds.assignment.parse import audience_forms, audience_from_text
from lmsconf.kinds.shared.kind_names import Kind
from lmsconf.kinds.shared.manifest_entry import EntryItems
from lmsconf.manifest.csv_tables import (
    WORKBOOK_ENDINGS,
    WORKBOOK_STARTS,
    Table,
    TableRow,
    column_index,
    column_name,
    known_columns,
    named_cells,
    parse_csv_table,
)
from lmsconf.manifest.file_set import ManifestFileReader, decode_text
from lmsconf.manifest.nodes import EMAIL, EntrySourceMap, Map, Seq, combine_pairs, pack_mark
from lmsconf.manifest.schema_check import item_keys
from lmsconf.manifest.yaml_reader import ENOUGH
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import did_you_mean, grouped, join_words, normalize_name

MOST_PEOPLE: Final = 2_000_000
"""Maximum number of rows that all lists may take together."""


class TableFiles(Struct):
    """Read the tables that manifests refer to, each once, and the lists of people in them."""

    files: ManifestFileReader
    problems: list[Problem]
    _contents: dict[Path, bytes] = field(default_factory=dict)
    _tables: dict[tuple[Path, str | None], Table | None] = field(default_factory=dict)
    _left: int = MOST_PEOPLE
    _indexes: dict[tuple[int, tuple[int, ...]], dict[tuple[str, ...], list[TableRow]]] = field(default_factory=dict)

    def table(self, reference: EntrySourceMap) -> Table:
        """Return the table that a mapping with `file` names.

        Raises ProblemsFound if the file is missing, outside the project or unreadable.
        """
        body, where = members(reference.value), reference.at("file")
        name = str(body["file"])
        target = (self.files.root / where.file).parent / name
        is_outside = Path(name).is_absolute() or "\0" in name or not self.files.is_inside_project(target)
        if is_outside or not os.path.isfile(target):  # noqa: PTH113  # Path.is_file raises for a name that is too long
            raise _no_table(name, self.files.relative_path(target), target, is_outside, where)
        key = Path(os.path.realpath(target)), (str(body["sheet"]) if "sheet" in body else None)
        if key not in self._tables:
            self._tables[key] = self._read(target, *key, reference.at("sheet"))
        table = self._tables[key]
        if table is None:
            raise ProblemsFound([])
        return table

    def rows(self, table: Table, reference: EntrySourceMap, columns: Iterable[int]) -> Sequence[TableRow]:
        """Return the rows that `where` selects, to read these columns of them.

        Raises ProblemsFound for a column that the table does not have, and for merged cells in these columns.
        """
        filters = [
            (column_index(table, name, reference.key("where", name)), normalize_name(str(value)))
            for name, value in _filters(reference).items()
        ]
        read = {*columns, *(number for number, _ in filters)}
        # The workbook chooses how wide a span is, so its columns are not gone through.
        faults = [
            fault
            for line, span, fault in table.faults
            if line <= table.header or any(column in span for column in read)
        ]
        self.problems += faults[:ENOUGH]
        if faults:
            raise ProblemsFound([])
        if not filters:
            return table.rows
        # Indexed by columns, since many lists may select from one large file.
        key = id(table), tuple(number for number, _ in filters)
        if key not in self._indexes:
            self._indexes[key] = grouped(table.rows, lambda row: tuple(row[1][number] for number in key[1]))
        return self._indexes[key].get(tuple(value for _, value in filters), [])

    def people(self, reference: EntrySourceMap) -> Seq:
        """Return the addresses in the selected rows, each located in its row of the table. Raises ProblemsFound."""
        table, body = self.table(reference), members(reference.value)
        column = column_index(table, str(body["column"]), reference.at("column"))
        rows = self.rows(table, reference, [column])
        self._left -= len(rows)
        if self._left < 0:
            raise problem_found(
                "people/too-many",
                f"the lists of people from files come to more than {MOST_PEOPLE:,} rows",
                "Select fewer rows with `where`, or split the project.",
                reference.at(),
            )
        people = [(line, cells[column]) for line, cells in rows if self._usable(cells, table, line, column)]
        is_reported = any(cells[column] for _, cells in rows)  # what is no e-mail is an error of its own row
        if not people and not is_reported and body.get("allow_empty") is not True:
            near = _nearest_value(table, _filters(reference))
            allow = "To mean nobody, set `allow_empty: true`." if near else "Set `allow_empty: true` to allow this."
            raise problem_found(
                "people/nobody",
                f"there is no e-mail{selection_text(reference)}, so {reference.at()} would mean nobody",
                " ".join(filter(None, [near, allow])),
                replace(table.source.cell(table.header, 0), column=0),
            )
        marks = [pack_mark(line, column + 1) for line, _ in people]
        return Seq(table.source, [email for _, email in people], marks)

    def _usable(self, cells: tuple[str, ...], table: Table, line: int, column: int) -> bool:
        """Whether a cell holds an e-mail address; if not, report the problem at its location."""
        address = cells[column]
        if len(address) <= 320 and EMAIL.fullmatch(address):
            return True
        where = table.source.cell(line, column)
        if address:
            problem = Problem(
                code="people/address",
                message=f'"{shorten(address)}" is not an e-mail address',
                hint="Write one address in the cell, such as anna.berg@acme.example, or skip the row with `where`.",
                source=where,
            )
        else:
            problem = Problem(
                code="people/no-address",
                message="this row has no e-mail, so it adds nobody",
                severity=Severity.WARNING,
                hint="Write the e-mail, or remove the row.",
                source=where,
            )
        self.problems.append(problem)
        return False

    def _read(self, path: Path, real: Path, sheet: str | None, where: SourceLocation) -> Table | None:
        """Return a table; None after reporting why it cannot be read. where: the location of the sheet's name."""
        try:
            if real not in self._contents:
                self._contents[real] = self.files.read_table(path)
            name, data = self.files.relative_path(path), self._contents[real]
            if data.startswith(WORKBOOK_STARTS) or name.lower().endswith(WORKBOOK_ENDINGS):
                from lmsconf.manifest.workbook import parse_workbook  # few projects have one

                return parse_workbook(name, data, sheet, where)
            if sheet is not None:
                raise problem_found(
                    "table/sheet",
                    f"{shorten(name)} is not a workbook, so it has no sheets",
                    "Leave `sheet` out, or name an .xlsx or .ods file.",
                    where,
                )
            return parse_csv_table(name, decode_text(name, data))
        except ProblemsFound as wrong:
            self.problems += wrong.problems
            return None


def _no_table(name: str, relative: str, target: Path, is_outside: bool, where: SourceLocation) -> ProblemsFound:
    """Return the error for a name that is not that of a file in the project."""
    # os.path, unlike pathlib, raises no PermissionError for what may not be looked at.
    rules = (
        (
            is_outside,
            "people/outside",
            f"{shorten(name)} is outside the project",
            "Name a file inside the project, relative to this manifest.",
        ),
        (os.path.isdir(target), "people/no-file", f"{shorten(relative)} is a folder", "Name a file in it."),  # noqa: PTH112  as said
        (
            os.path.exists(target),  # noqa: PTH110  as said
            "people/no-file",
            f"{shorten(relative)} is a pipe or a device, not a file",
            "Name a file of people or of rows.",
        ),
        (True, "people/no-file", f"there is no file {shorten(relative)}", "The path is relative to this manifest."),
    )
    code, message, hint = next(found for is_so, *found in rules if is_so)
    return problem_found(code, message, hint, where)


def _filters(reference: EntrySourceMap) -> Mapping[str, Json]:
    """Return column → value of the rows that `where` selects."""
    return members(reference.below("where").value)


def selection_text(reference: EntrySourceMap) -> str:
    """Return what `where` asks for, for a message: ` with Group = Leaders`; empty without `where`."""
    columns = ", ".join(f"{name} = {shorten(str(value))}" for name, value in _filters(reference).items())
    return columns and f" with {columns}"


def _nearest_value(table: Table, filters: Mapping[str, Json]) -> str | None:
    """Return `Did you mean "Malmö"?` for a value of `where` that no row has; None if none of a few is similar."""
    for name, value in filters.items():
        number = table.columns.index(name) if name in table.columns else None
        held = {cells[number] for _, cells in table.rows} if number is not None else set()
        if normalize_name(str(value)) not in held and len(held) <= 1_000:
            return did_you_mean(str(value), sorted(held))
    return None


MOST_ROWS: Final = 50_000
"""Maximum number of entries that one reference to a sheet may stand for."""
_BOOLEANS: Final[dict[str, bool]] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def sheet_entries(kind: Kind, reference: EntrySourceMap, tables: TableFiles) -> Iterator[Map]:
    """Yield an entry for each row of the file that `reference` names; report what is wrong with it."""
    items, keys = cast(EntryItems, kind.entry_items), item_keys(kind)
    try:
        table, columns, rows = _read_sheet(items, [*keys], reference, tables)
    except ProblemsFound as wrong:
        tables.problems += [replace(one, code=one.code.replace("people/", "sheet/")) for one in wrong.problems]
        return
    # These keys choose rows; each other one applies to all rows.
    defaults = cast(Map, reference.value).without("file", "sheet", "where", "allow_empty").pairs()
    source = table.source
    for row in rows:
        values, marks = named_cells(row, columns)
        item = audience_from_text(values[items.noun]) if values[items.noun] else None
        own: dict[str, Json] = {
            name: _BOOLEANS.get(values[name].casefold()) if schema.get("type") == "boolean" else values[name]
            for name, schema in keys.items()
            if values.get(name)
        }
        problems = [
            Problem(code=f"sheet/{code}", message=message, hint=hint, source=source.where(marks[name]))
            for name, code, message, hint in _cell_faults(items, values, item, own)
        ]
        tables.problems += problems
        if item is not None and not problems:
            at, end = marks[items.subject], marks[items.noun]
            part = source.mapping({**item, **own}, {**dict.fromkeys(item, end), **marks})
            subject, listed = values[items.subject], Seq(source, [part], [end])
            first, last = ((source, at), (source, at)), ((source, end), (source, end))
            yield combine_pairs([(items.subject, subject, *first), *defaults, (items.key, listed, *last)])


def _read_sheet(
    items: EntryItems, keys: Sequence[str], reference: EntrySourceMap, tables: TableFiles
) -> tuple[Table, dict[str, int], Sequence[TableRow]]:
    """Return the table that `reference` names, its columns and the selected rows. Raises ProblemsFound."""
    table = tables.table(reference)
    columns = _columns(table, (items.subject, items.noun), keys, _filters(reference), tables.problems)
    rows = tables.rows(table, reference, columns.values())
    if not rows and reference.below("allow_empty").value is not True:
        raise problem_found(
            "sheet/nothing",
            f"there is no row{selection_text(reference) or ' below the header'}, so {reference.at('file')} would "
            "declare nothing",
            "Set `allow_empty: true` to allow this.",
            table.source.cell(table.header, 0),
        )
    if len(rows) > MOST_ROWS:
        raise problem_found(
            "sheet/too-many",
            f"the sheet comes to {len(rows):,} rows, and at most {MOST_ROWS:,} are read as entries",
            "Assign to groups instead of to single people, or split the project into several.",
            reference.at("file"),
        )
    return table, columns, rows


def _columns(
    table: Table, required: Sequence[str], keys: Sequence[str], where_names: Iterable[str], problems: list[Problem]
) -> dict[str, int]:
    """Map each known column to its index. Raises ProblemsFound without a required one, or with one twice."""
    known, others = (*required, *keys), [*map(column_name, where_names)]
    hint = f"The first row names {' and '.join(required)}; optional are {', '.join(keys)}."
    columns = known_columns(table, known, required, hint, others)
    ignored = [title for title in table.columns if title and column_name(title) not in (*known, *others)]
    if ignored:
        problems.append(
            Problem(
                code="sheet/ignored-column",
                severity=Severity.NOTE,
                message=f"columns that are not read: {', '.join(map(shorten, ignored))}",
                hint=f"These are read: {', '.join(known)}.",
                source=table.source.cell(table.header, 0),
            )
        )
    return columns


def _cell_faults(
    items: EntryItems, values: Mapping[str, str], item: Json, own: Mapping[str, Json]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield what is wrong with the cells of a row: the column, the end of the code, the message and the hint.

    item and own: what the cells mean; None for what means nothing.
    """
    for name in (items.subject, items.noun):
        if not values[name]:
            yield name, "empty-cell", f"this row has no {name}", f"Write the {name}, or delete the row."
    if values[items.noun] and item is None:
        named = shorten(values[items.noun])
        hint = f"Write {join_words(audience_forms(named))}."
        yield items.noun, items.noun, f'"{named}" names no {items.noun}', hint
    for name, value in own.items():
        if value is None:
            yield (
                name,
                "boolean",
                f'{name} must be true or false, and is "{shorten(values[name])}"',
                "Write true or false, or leave the cell empty.",
            )
