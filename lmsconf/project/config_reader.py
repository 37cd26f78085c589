"""Read the project file `lmsconf.yaml`: parse it with source positions, and report all its problems at once."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from datetime import date
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final, cast

from msgspec import convert
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation, problem_found, shorten
from lmsconf.kinds.kind_table import KINDS
from lmsconf.manifest.csv_tables import Table, column_name, known_columns, named_cells
from lmsconf.manifest.entries_from_tables import TableFiles
from lmsconf.manifest.file_set import PROJECT_FILE, PROJECT_SCHEMA, ManifestFileReader
from lmsconf.manifest.nodes import EntrySourceMap, Map, Pair, combine_pairs, merge_mappings
from lmsconf.manifest.problems import shape_problems
from lmsconf.manifest.schema_check import SchemaValidator, written_out_schema
from lmsconf.manifest.yaml_reader import read_yaml
from lmsconf.model.address import decode_typed, double_lone_backslashes
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.guards import GUARDS
from lmsconf.model.lint_codes import RULES, LintLevel
from lmsconf.model.names import did_you_mean, known_names, quote_name
from lmsconf.model.time_formats import NO_ZONES, is_zone
from lmsconf.project.config_file import (
    ENV_WORKSPACE,
    ProjectFile,
    kind_names_by_section,
    suggest_address_pattern,
)
from lmsconf.support import url_rules

SANDBOX: Final = "sandbox:"


def read_project_file(root: Path) -> ProjectFile:
    """Read and validate the project file of a folder. Raises ProblemsFound with all its problems at once."""
    path = root / PROJECT_FILE
    if path.is_symlink():
        raise problem_found(
            "project/link",
            "is a symbolic link, and such links are not followed",
            "Replace the link by the file.",
            SourceLocation(PROJECT_FILE),
        )
    if not path.is_file():
        create = "Run `lmsconf init` to create a project, or go to the project (with -C)."
        hint = f"Rename lmsconf.yml to {PROJECT_FILE}." if (root / "lmsconf.yml").is_file() else create
        raise problem_found("project/missing", f"there is no {PROJECT_FILE} in {root.absolute()}", hint)
    reading = read_yaml(PROJECT_FILE, ManifestFileReader(root).read_yaml(path))
    if not reading.documents:
        hint = 'Write one line into it: workspaces: {sandbox: {url: "sandbox:"}}. Or delete it, and run `lmsconf init`.'
        empty = _problem("project/empty", "the project file is empty", SourceLocation(PROJECT_FILE), hint=hint)
        raise ProblemsFound(reading.problems or [empty])
    places, *others = reading.documents
    message, hint = "the project file must be one YAML document", "Remove the line `---`, and keep each key once."
    problems = [*reading.problems, *(_problem("project/documents", message, one.at(), hint=hint) for one in others)]
    shape = shape_problems(project_validator(), places, area="project")
    if not shape:
        body = cast(Map, places.value)
        declared = body.get("workspaces")
        if isinstance(declared, Map) and isinstance(declared.get("file"), str):
            body = with_table(body, declared, root, problems)
            places = places.of(body)
            problems += shape_problems(project_validator(), places, area="project") if not problems else []
        project = convert({**body, "body": body, "places": places}, ProjectFile, strict=False)
        problems += _meaning(project, root)
    if shape or problems:
        raise ProblemsFound(sorted((*problems, *shape), key=lambda problem: problem.source or SourceLocation("")))
    return project


@cache
def project_validator() -> SchemaValidator:
    """Return the schema of a project file."""
    # Not checked as names: reasons may span several lines, and patterns may match names no manifest could hold.
    return SchemaValidator(written_out_schema(PROJECT_SCHEMA), "project", names=None)


def url_problem(url: str) -> tuple[str, str] | None:
    """Return (message, hint) for an invalid workspace URL; None for a valid one."""
    return None if url.startswith(SANDBOX) else url_rules.url_problem(url)


def sandbox_path(url: str) -> str:
    """Return the file of the embedded sandbox; empty for one in memory, and for any other URL."""
    return url.removeprefix(SANDBOX) if url.startswith(SANDBOX) else ""


def path_problem(root: Path, text: str) -> tuple[str, str] | None:
    """Return (message, hint) for a path that is outside the project once symlinks are resolved; None if inside."""
    inside = not text.startswith("/") and ".." not in Path(text).parts and "\0" not in text
    if inside and Path(os.path.realpath(root / text)).is_relative_to(os.path.realpath(root)):
        return None
    return f"{shorten(text)} is outside the project", "Name a file inside the project, without `..`."


def _meaning(project: ProjectFile, root: Path) -> Iterator[Problem]:
    """Yield the problems that the JSON Schema cannot express, over all workspaces."""
    names = list(project.mapping_at("workspaces"))
    if "token" in names:
        yield _problem(
            "project/token",
            "workspaces: a token here is that of the workspaces in a file, and there is no `file:`",
            project.places.key("workspaces", "token"),
            hint="Add `file:` with the table of workspaces, or write the token under its workspace.",
        )
        return
    yield from chain.from_iterable(_workspace_problems(project, root, name) for name in names)
    yield from chain.from_iterable(
        _layer_problems(project, path) for path in ((), *(("workspaces", name) for name in names))
    )
    default = project.body.get("default_workspace")
    if default is not None and default not in names:
        yield _problem(
            "project/unknown-workspace",
            f'there is no workspace "{shorten(str(default))}"',
            project.places.at("default_workspace"),
            hint=did_you_mean(str(default), names) or known_names(names),
        )
    zone = str(project.body.get("timezone", "UTC"))
    if not is_zone(zone):
        from zoneinfo import available_timezones  # only a wrong name needs it

        yield _problem(
            "project/timezone",
            f'there is no time zone "{shorten(zone)}"',
            project.places.at("timezone"),
            hint=did_you_mean(zone, sorted(available_timezones() - NO_ZONES))
            or "Write an IANA name such as Europe/Stockholm.",
        )


def _workspace_problems(project: ProjectFile, root: Path, name: str) -> Iterator[Problem]:
    at = ("workspaces", name)
    if name == ENV_WORKSPACE:
        yield _problem(
            "project/name",
            'a workspace cannot be called "env"',
            project.places.key(*at),
            hint="LMSCONF_URL makes a workspace of that name; choose another.",
        )
    declared = project.mapping_at(*at)
    url, seed = str(declared["url"]), str(declared.get("seed", ""))
    rules = (
        ("project/url", "url", url_problem(url)),
        ("project/outside", "url", path_problem(root, sandbox_path(url))),
        ("project/outside", "seed", path_problem(root, seed)),
    )
    yield from (
        _problem(code, f"workspaces.{name}: {wrong[0]}", project.places.at(*at, key), hint=wrong[1])
        for code, key, wrong in rules
        if wrong is not None
    )


def _layer_problems(project: ProjectFile, path: tuple[str, ...]) -> Iterator[Problem]:
    """Yield the problems of what the project and each of its workspaces may have."""
    here = project.places.below(*path)
    for _, item in here.below("allow").parts():
        if sum(guard in members(item.value) for guard in GUARDS) != 1:
            yield _problem(
                "project/consent",
                f"an entry under `allow` needs exactly one of {', '.join(GUARDS[:-1])} and {GUARDS[-1]}",
                item.at(),
                hint="Write one item for each.",
            )
        yield from _date_problems(item)
    for _, item in here.below("ignore").parts():
        yield from _date_problems(item)
        yield from _pattern_problems("ignore", item.below("address"))
    for code, item in here.below("lint").parts():
        default, setting = RULES[str(code)].level, members(item.value)
        if LintLevel(str(setting["level"])).is_weaker_than(default) and "reason" not in setting:
            yield _problem(
                "project/lint-reason",
                f"lint: {code}: a level below the default, which is {default}, needs a reason",
                item.at("level"),
                hint="Add `reason:` with the reason.",
            )
        yield from _date_problems(item)
    for key, patterns in (("protect", here.below("guards", "protect")), ("leave_alone", here.below("leave_alone"))):
        for _, pattern in patterns.parts():
            yield from _pattern_problems(key, pattern)
    owned = members(here.below("ownership").value)
    yield from (
        _problem(
            "project/people-owned",
            f"{kind.plural} cannot be owned, because people are never deleted",
            here.key("ownership", kind.section),
            hint=f"Remove `{kind.section}`. To archive somebody, declare them with `archived: true`.",
        )
        for kind in KINDS.values()
        if kind.is_person and kind.section in owned
    )


def _pattern_problems(key: str, place: EntrySourceMap) -> Iterator[Problem]:
    """Yield the problem of a pattern that can match no address, or whose backslash is ambiguous.

    Under `ignore` a pattern is neither negated, nor `all`.
    """
    pattern = str(place.value)
    bare = pattern if key == "ignore" else pattern.removeprefix("!")
    doubled = double_lone_backslashes(pattern)
    if doubled != pattern:
        # It may mean itself or, as on a command line, escape what follows.
        decoded = decode_typed(pattern)
        other = "" if decoded == pattern else f", or {quote_name(shorten(decoded))} for the character itself"
        yield _problem(
            "project/pattern",
            f"{key}: the single backslash in {quote_name(shorten(pattern))} is ambiguous",
            place.at(),
            hint=f"Write {quote_name(shorten(doubled))} for a backslash in the name{other}.",
        )
    elif bare != "*" and (bare != "all" or key == "ignore") and (right := suggest_address_pattern(bare)) is not None:
        right = quote_name(shorten(pattern[: len(pattern) - len(bare)] + right))
        yield _problem(
            "project/pattern",
            f"{key}: no address can match {quote_name(shorten(pattern))}",
            place.at(),
            hint=f"Write {right}: a kind, a slash and a name. The kinds are "
            f"{', '.join(kind_names_by_section().values())}.",
        )


def _date_problems(item: EntrySourceMap) -> Iterator[Problem]:
    until = members(item.value).get("until", "2030-01-31")
    try:
        date.fromisoformat(str(until))
    except ValueError:
        yield _problem(
            "project/date",
            f"{shorten(str(until))} is not a calendar date",
            item.at("until"),
            hint="Write a date such as 2030-01-31.",
        )


def _problem(code: str, message: str, where: SourceLocation, *, hint: str | None = None) -> Problem:
    return Problem(code=code, message=message, hint=hint, source=where)


NAME: Final = re.compile(r"(?!(?:file|token)\Z)[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""A workspace's name in a table: it is part of file names, and of arguments of token commands."""
MOST_WORKSPACES: Final = 10_000
_CODE: Final = "project/table"
_PAIRS: Final = ("labels", "vars")
_COLUMNS: Final = ("name", "url", *_PAIRS)


def with_table(body: Map, declared: Map, root: Path, problems: list[Problem]) -> Map:
    """Return the project file with the workspaces of the table that `declared` names. Problems are appended."""
    named, files = declared.without("file", "token"), TableFiles(ManifestFileReader(root), problems)
    try:
        table = files.table(EntrySourceMap(declared, declared.source, declared.mark("file") or 0))
        columns = _columns(table)
        if len(table.rows) > MOST_WORKSPACES:
            raise problem_found(
                _CODE,
                f"{len(table.rows):,} workspaces are too many: at most {MOST_WORKSPACES:,} are read",
                "Split the project.",
                table.source.cell(table.header, 0),
            )
    except ProblemsFound as wrong:
        problems += [replace(problem, code=_CODE) for problem in wrong.problems]
        return body.changed({**body, "workspaces": named})
    rows = list(_rows(table, columns, declared, problems))
    if not rows and not problems:
        problems.append(
            _problem(
                _CODE,
                "this table has no workspace",
                table.source.cell(table.header, 0),
                hint="Add a row, or remove `file:`.",
            )
        )
    return body.changed({**body, "workspaces": combine_pairs([*named.pairs(), *rows])})


def _columns(table: Table) -> dict[str, int]:
    """Map each known column to its index. Raises ProblemsFound."""
    for number, title in enumerate(table.columns):
        where = table.source.cell(table.header, number)
        if column_name(title) == "token":
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
    return known_columns(table, _COLUMNS, _COLUMNS[:2], f"The first row names the columns: {', '.join(_COLUMNS)}.")


def _rows(table: Table, columns: Mapping[str, int], declared: Map, problems: list[Problem]) -> Iterator[Pair]:
    """Yield the name and entry of each row; problems of a row are appended. declared: that with the `file`."""
    source, taken, token = table.source, {*declared}, declared.without(*declared.keys() - {"token"})
    for row in table.rows:
        values, marks = named_cells(row, columns)
        pairs = {key: _pairs(values.get(key, "")) for key in _PAIRS}
        faults = {key: fault for key, *fault in _row_faults(values, pairs, taken)}
        problems += [
            _problem(_CODE, message, source.where(marks[key]), hint=hint) for key, (message, hint) in faults.items()
        ]
        if "name" not in faults:
            named = {key: source.mapping(of, dict.fromkeys(of, marks[key])) for key, of in pairs.items() if of}
            body = source.mapping({"url": values["url"], **named}, marks)
            taken.add(values["name"])
            at = (source, marks["name"])
            yield values["name"], merge_mappings(body, token), at, at


def _row_faults(
    values: Mapping[str, str], pairs: Mapping[str, Mapping[str, Json] | None], taken: Collection[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield what is wrong with a row: its column, the message and the hint."""
    name = values["name"]
    hint = "Write pairs: ring=canary, region=eu."
    yield from ((key, f"{shorten(values[key])} is not a list of pairs", hint) for key in pairs if pairs[key] is None)
    if NAME.fullmatch(name) is None:
        rule = "Write letters, digits, ., _ and -; begin with a letter or a digit."
        yield "name", f'"{shorten(name)}" cannot be the name of a workspace', rule
    elif name in taken:
        yield "name", f'the workspace "{name}" is declared twice', "Give each workspace its own name."


def _pairs(cell: str) -> dict[str, Json] | None:
    """Parse `ring=canary, region=eu`; None if it is something else, or names a key twice."""
    parts = [[piece.strip() for piece in part.partition("=")] for part in re.split("[,;]", cell) if part.strip()]
    pairs: dict[str, Json] = {key: value for key, equals, value in parts if key and equals}
    return pairs if len(pairs) == len(parts) else None
