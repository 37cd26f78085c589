"""Read the workspaces of a table: `workspaces: {file: workspaces.csv}`, with a pattern of their tokens beside it.

Columns are `name` and `url`, and optionally `labels` and `vars`, whose cells hold pairs: `ring=canary, region=eu`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation, problem_found, shorten
from lmsconf.manifest.expand.table import Table, TableSource, column_name, known_columns, require_columns
from lmsconf.manifest.expand.table_files import FILE, TableFiles
from lmsconf.manifest.file_set import ManifestFileReader
from lmsconf.manifest.nodes import EntrySourceMap, Map, merge_mappings, pack_mark
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import did_you_mean, known_names

WORKSPACES: Final = "workspaces"
TOKEN: Final = "token"  # noqa: S105  the name of a key
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""A workspace's name in a table: it is part of file names, and of arguments of token commands."""
MOST_WORKSPACES: Final = 10_000
_CODE: Final = "project/table"
_PAIRS: Final = ("labels", "vars")
_COLUMNS: Final = ("name", "url", *_PAIRS)


def with_table(body: Map, declared: Map, root: Path, problems: list[Problem]) -> Map:
    """Return the project file with the workspaces of the table that `declared` names. Problems are appended."""
    named, files = declared.without(FILE, TOKEN), TableFiles(ManifestFileReader(root), problems)
    try:
        places = EntrySourceMap(declared, declared.source, declared.mark(FILE) or 0)
        table = files.table(declared, (), places)
        columns = _columns(table)
    except ProblemsFound as wrong:
        problems += [replace(problem, code="project/table") for problem in wrong.problems]
        return merge_mappings(body, Map(declared.source, {WORKSPACES: named}, [0, 0]))
    source = TableSource(table.sheet, [places.at(TOKEN)])
    rows = dict(_rows(table, columns, source, declared.get(TOKEN), set(named), problems))
    if not rows and not problems:
        where = table.sheet.row(table.header)
        problems.append(_problem("this table has no workspace", "Add a row, or remove `file:`.", where))
    joined = merge_mappings(named, source.mapping(dict(rows), {}))
    return merge_mappings(body, source.mapping({WORKSPACES: joined}, {}))


def _columns(table: Table) -> dict[str, int]:
    """Map each known column to its index. Raises ProblemsFound."""
    for number, title in enumerate(table.columns):
        where = table.sheet.where(table.header, number)
        if column_name(title) == TOKEN:
            raise problem_found(
                _CODE,
                "a token must not stand in this file",
                "Remove it, and write a pattern beside `file:`, such as token: {env: LMSCONF_TOKEN_$(workspace)}.",
                where,
            )
        if column_name(title) not in _COLUMNS:
            raise problem_found(
                _CODE,
                f'unknown column "{shorten(title)}"',
                did_you_mean(column_name(title), _COLUMNS) or known_names(_COLUMNS),
                where,
            )
    columns = known_columns(table, _COLUMNS, _CODE)
    require_columns(table, columns, _COLUMNS[:2], _CODE, f"The first row names the columns: {', '.join(_COLUMNS)}.")
    return columns


def _rows(
    table: Table,
    columns: Mapping[str, int],
    source: TableSource,
    token: Json,
    taken: set[str],
    problems: list[Problem],
) -> Iterator[tuple[str, Map]]:
    """Yield the name and entry of each row; problems of a row are appended."""
    if len(table.rows) > MOST_WORKSPACES:
        problems.append(
            _problem(
                f"{len(table.rows):,} workspaces are too many: at most {MOST_WORKSPACES:,} are read",
                "Split the project.",
                table.sheet.row(table.header),
            )
        )
        return
    for line, cells in table.rows:
        values = {name: cells[number] for name, number in columns.items()}
        marks = {name: pack_mark(line, number + 1) for name, number in columns.items()}
        name = values["name"]
        wrong = _name_problem(name, taken, source.where(marks["name"]))
        if wrong is not None:
            problems.append(wrong)
            continue
        taken.add(name)
        body: dict[str, Json] = {"url": values["url"]}
        for key in _PAIRS:
            pairs = _pairs(values.get(key, ""))
            if pairs is None:
                problems.append(
                    _problem(
                        f"{shorten(values[key])} is not a list of pairs",
                        "Write pairs: ring=canary, region=eu.",
                        source.where(marks[key]),
                    )
                )
            elif pairs:
                body[key] = source.mapping(pairs, dict.fromkeys(pairs, marks[key]))
        if token is not None:
            body[TOKEN] = token
        yield name, source.mapping(body, marks)


def _name_problem(name: str, taken: Collection[str], where: SourceLocation) -> Problem | None:
    """Return why a row cannot have this name; None if it can. taken: the names of other workspaces."""
    if not NAME.fullmatch(name) or name in (FILE, TOKEN):
        hint = "Write letters, digits, ., _ and -; begin with a letter or a digit."
        return _problem(f'"{shorten(name)}" cannot be the name of a workspace', hint, where)
    if name in taken:
        return _problem(f'the workspace "{name}" is declared twice', "Give each workspace its own name.", where)
    return None


def _pairs(cell: str) -> dict[str, Json] | None:
    """Parse `ring=canary, region=eu`; None if it is something else, or names a key twice."""
    pairs: dict[str, Json] = {}
    for part in filter(None, (part.strip() for part in re.split("[,;]", cell))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not key or not equals or key in pairs:
            return None
        pairs[key] = value
    return pairs


def _problem(message: str, hint: str, where: SourceLocation) -> Problem:
    return Problem(code="project/table", message=message, hint=hint, source=where)
