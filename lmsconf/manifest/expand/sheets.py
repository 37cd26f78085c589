"""Entries from a sheet: `{file: assignments.csv}` in a section stands for one entry for each row of the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, Severity, SourceLocation, problem_found, shorten
from lmsconf.kinds.assignment.parse import audience_forms, audience_from_text
from lmsconf.kinds.shared.kind import Kind
from lmsconf.kinds.shared.manifest_entry import EntryItems
from lmsconf.manifest.expand.table import Table, TableSource, column_name, known_columns, require_columns
from lmsconf.manifest.expand.table_files import FILE, SHEET, TableFiles, selection_text
from lmsconf.manifest.keys import ALLOW_EMPTY
from lmsconf.manifest.nodes import EntrySourceMap, Map, Seq, pack_mark
from lmsconf.manifest.whole_schema import item_keys
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import did_you_mean, normalize_name

MOST_ROWS: Final = 50_000
"""Maximum number of entries that one reference to a sheet may stand for."""
_OWN_KEYS: Final = frozenset([FILE, SHEET, "where", ALLOW_EMPTY])
"""The keys that choose rows; each other key applies to all rows."""
_BOOLEANS: Final[dict[str, bool]] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class SheetEntries:
    """Write out one entry for each row of a table, for a kind whose entries have items."""

    def __init__(self, kind: Kind, tables: TableFiles) -> None:
        self._items = cast(EntryItems, kind.entry_items)
        self._keys = item_keys(kind)
        self._tables = tables

    def expand(self, reference: Json, places: EntrySourceMap) -> Iterator[Map]:
        """Yield the entry of each row of the file that `reference` names; report what is wrong with it."""
        reference = cast(Map, reference)
        try:
            table = self._tables.table(reference, (), places)
            columns = self._columns(table, cast("Mapping[str, Json]", reference.get("where", {})))
            rows = self._tables.rows(table, reference, (), places, columns.values())
            if not rows and reference.get(ALLOW_EMPTY) is not True:
                raise _nothing(table, reference, places)
            if len(rows) > MOST_ROWS:
                raise _too_many(len(rows), places)
        except ProblemsFound as wrong:
            for problem in wrong.problems:
                self._tables.problems.append(replace(problem, code=problem.code.replace("people/", "sheet/")))
            return
        defaults = {key: value for key, value in reference.items() if key not in _OWN_KEYS}
        locations = [place for key in defaults for place in (places.key(key), places.at(key))]
        source = TableSource(table.sheet, locations)
        for line, cells in rows:
            entry = self._entry(table, columns, (line, cells), source, defaults)
            if entry is not None:
                yield entry

    def _columns(self, table: Table, where_names: Iterable[str]) -> dict[str, int]:
        """Map each known column to its index. Raises ProblemsFound without a required one, or with one twice."""
        required = (self._items.subject, self._items.noun)
        known = (*required, *self._keys)
        columns = known_columns(table, known, "sheet/column")
        selecting = set(map(normalize_name, where_names))
        ignored: list[str] = []
        for number, title in enumerate(table.columns):
            if title and number not in columns.values() and title not in selecting:
                if near := did_you_mean(column_name(title), [one for one in known if one not in columns]):
                    where = table.sheet.where(table.header, number)
                    raise problem_found("sheet/column", f'unknown column "{shorten(title)}"', near, where)
                ignored.append(shorten(title))
        hint = f"The first row names {' and '.join(required)}; optional are {', '.join(self._keys)}."
        require_columns(table, columns, required, "sheet/column", hint)
        if ignored:
            hint = f"These are read: {', '.join(known)}."
            message = f"columns that are not read: {', '.join(ignored)}"
            self._tables.problems.append(
                _problem("ignored-column", message, hint, table.sheet.row(table.header), Severity.NOTE)
            )
        return columns

    def _entry(
        self,
        table: Table,
        columns: Mapping[str, int],
        row: tuple[int, tuple[str, ...]],
        source: TableSource,
        defaults: Mapping[str, Json],
    ) -> Map | None:
        """Return the entry of a row; None after reporting a problem."""
        line, cells = row
        marks = {name: pack_mark(line, number + 1) for name, number in columns.items()}
        values = {name: cells[number] for name, number in columns.items()}
        subject, noun = self._items.subject, self._items.noun
        problems = [
            _problem("empty-cell", f"this row has no {name}", f"Write the {name}, or delete the row.", source.where(at))
            for name in (subject, noun)
            if not values[name] and (at := marks[name])
        ]
        item = audience_from_text(values[noun]) if values[noun] else None
        if values[noun] and item is None:
            problems.append(self._unknown_item(values[noun], source.where(marks[noun])))
        own: dict[str, Json] = {}
        for name in self._keys:
            if text := values.get(name):
                value = _BOOLEANS.get(text.casefold()) if self._keys[name].get("type") == "boolean" else text
                if value is None:
                    message = f'{name} must be true or false, and is "{shorten(text)}"'
                    hint = "Write true or false, or leave the cell empty."
                    problems.append(_problem("boolean", message, hint, source.where(marks[name])))
                own[name] = value
        self._tables.problems += problems
        if problems or item is None:
            return None
        part = source.mapping({**item, **own}, {**dict.fromkeys(item, marks[noun]), **marks})
        body = {subject: values[subject], **defaults, self._items.key: Seq(source, [part], [marks[noun]])}
        # The keys and values of the defaults are the other locations of the source, one after the other.
        places = (marks[subject], marks[subject], *range(2 * len(defaults)), marks[noun], marks[noun])
        return Map(source, body, places)

    def _unknown_item(self, text: str, where: SourceLocation) -> Problem:
        forms = audience_forms(shorten(text))
        hint = f"Write {', '.join(forms[:-1])} or {forms[-1]}." if len(forms) > 1 else f"Write {forms[0]}."
        return _problem(self._items.noun, f'"{shorten(text)}" names no {self._items.noun}', hint, where)


def _problem(code: str, message: str, hint: str, where: SourceLocation, severity: Severity = Severity.ERROR) -> Problem:
    return Problem(code=f"sheet/{code}", severity=severity, message=message, hint=hint, source=where)


def _nothing(table: Table, reference: Map, places: EntrySourceMap) -> ProblemsFound:
    selected = selection_text(reference)
    message = f"there is no row{selected or ' below the header'}, so {places.at(FILE)} would declare nothing"
    hint = "Set `allow_empty: true` to allow this."
    return problem_found("sheet/nothing", message, hint, table.sheet.row(table.header))


def _too_many(count: int, places: EntrySourceMap) -> ProblemsFound:
    message = f"the sheet comes to {count:,} rows, and at most {MOST_ROWS:,} are read as entries"
    hint = "Assign to groups instead of to single people, or split the project into several."
    return problem_found("sheet/too-many", message, hint, places.at(FILE))
