"""Read the project file `lmsconf.yaml`: parse it with source positions, and report all its problems at once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final, cast

from lmsconf.errors import Problem, ProblemsFound, SourceLocation, shorten
from lmsconf.manifest.file_set import ManifestFileReader, UnreadableFile
from lmsconf.manifest.validation.check import SchemaFinding, SchemaValidator
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath, Map
from lmsconf.manifest.yaml.strict_reader import read_yaml
from lmsconf.model.address import decode_typed, double_lone_backslashes
from lmsconf.model.canonical_json import Json
from lmsconf.model.lints import RULES, LintLevel
from lmsconf.model.names import did_you_mean, known_names, quote_name
from lmsconf.model.policy import GUARDS
from lmsconf.project.config_file import ENV_WORKSPACE, FILE, ProjectFile
from lmsconf.project.ownership_keys import (
    kind_names_by_section,
    ownership_properties,
    suggest_address_pattern,
    unownable_sections,
)
from lmsconf.support import url_rules
from lmsconf.support.folders import read_schema

_SANDBOX: Final = "sandbox:"
_EVERYTHING: Final = ("*", "all")
_NO_FILE_HINT: Final = "Run `lmsconf init` to create a project, or go to the project (with -C)."
_EMPTY_HINT: Final = (
    'Write one line into it: workspaces: {sandbox: {url: "sandbox:"}}. Or delete it, and run `lmsconf init`.'
)


def read_project_file(root: Path) -> ProjectFile:
    """Read and validate the project file of a folder. Raises ProblemsFound with all its problems at once."""
    path = root / FILE
    if path.is_symlink():
        message, hint = "is a symbolic link, and such links are not followed", "Replace the link by the file."
        raise ProblemsFound([_problem("project/link", message, SourceLocation(FILE), hint=hint)])
    if not path.is_file():
        raise ProblemsFound([_no_file(root)])
    try:
        text = ManifestFileReader(root).read_yaml(path)
    except UnreadableFile as unreadable:
        raise ProblemsFound([unreadable.problem]) from unreadable
    reading = read_yaml(FILE, text)
    if not reading.documents and not reading.problems:
        raise ProblemsFound(
            [_problem("project/empty", "the project file is empty", SourceLocation(FILE), hint=_EMPTY_HINT)]
        )
    problems = list(reading.problems)
    for extra in reading.documents[1:]:
        where, hint = extra.source.where(extra.at), "Remove the line `---`, and keep each key once."
        problems.append(_problem("project/documents", "the project file must be one YAML document", where, hint=hint))
    project: ProjectFile | None = None
    if reading.documents:
        document = reading.documents[0]
        places = EntrySourceMap(document.value, document.source, document.at)
        shape = _problems_of_shape(_shape(text).validate(document.value), places)
        problems += shape
        if isinstance(document.value, Map) and not shape:
            body = document.value
            if _has_table(body):
                from lmsconf.project.workspace_table import with_table  # few projects have one

                body = with_table(body, root, problems)
                places = places.of(body)
                problems += _problems_of_shape(_shape(text).validate(body), places) if not problems else []
            project = ProjectFile(body, places)
            problems += _meaning(project, root) if not _lone_token(project) else [_without_table(project)]
    if problems or project is None:
        raise ProblemsFound(sorted(problems, key=lambda problem: problem.source or SourceLocation("")))
    return project


def _has_table(body: Map) -> bool:
    """Whether `workspaces:` names a file with more workspaces."""
    workspaces = body.get("workspaces")
    return isinstance(workspaces, dict) and isinstance(workspaces.get("file"), str)


def _lone_token(project: ProjectFile) -> bool:
    """Whether `workspaces:` has a token for the workspaces of a file, and no file."""
    return "token" in project.mapping_at("workspaces")


def _without_table(project: ProjectFile) -> Problem:
    hint = "Add `file:` with the table of workspaces, or write the token under its workspace."
    message = "workspaces: a token here is that of the workspaces in a file, and there is no `file:`"
    return _problem("project/token", message, project.places.key("workspaces", "token"), hint=hint)


def _problems_of_shape(findings: Sequence[SchemaFinding], places: EntrySourceMap) -> list[Problem]:
    if not findings:
        return []
    from lmsconf.manifest.validation import messages  # only for a problem

    return [
        problem
        for finding in findings
        for problem in messages.problems_from_finding(
            finding, places, message_prefix=None, code_area="project", address=None
        )
    ]


def _shape(text: str) -> SchemaValidator:
    # Kinds take time to load, and only ownership depends on them.
    return _compiled(json.dumps(ownership_properties()) if "ownership" in text else None)


@cache
def _compiled(ownership: str | None) -> SchemaValidator:
    schema = json.loads(read_schema("project.schema.json"))
    if ownership is not None:
        schema["$defs"]["ownership"]["properties"] = json.loads(ownership)
    # Not checked as names: reasons may span several lines, and patterns may match names no manifest could hold.
    return SchemaValidator(schema, names=None)


def url_problem(url: str) -> tuple[str, str] | None:
    """Return (message, hint) for an invalid workspace URL; None for a valid one."""
    if url.startswith(_SANDBOX):
        return None
    return url_rules.url_problem(url)


def path_problem(root: Path, text: str) -> tuple[str, str] | None:
    """Return (message, hint) for a path that is outside the project once symlinks are resolved; None if inside."""
    inside = not text.startswith("/") and ".." not in Path(text).parts and "\0" not in text
    if inside and Path(os.path.realpath(root / text)).is_relative_to(os.path.realpath(root)):
        return None
    return f"{shorten(text)} is outside the project", "Name a file inside the project, without `..`."


def _meaning(project: ProjectFile, root: Path) -> Iterator[Problem]:
    """Yield the problems that the JSON Schema cannot express, over all workspaces."""
    names = list(project.mapping_at("workspaces"))
    for name in names:
        at = ("workspaces", name)
        if name == ENV_WORKSPACE:
            hint = "LMSCONF_URL makes a workspace of that name; choose another."
            yield _problem("project/name", 'a workspace cannot be called "env"', project.places.key(*at), hint=hint)
        wrong = url_problem(str(project.mapping_at(*at)["url"]))
        if wrong:
            yield _problem(
                "project/url", f"workspaces.{name}: {wrong[0]}", project.places.at(*at, "url"), hint=wrong[1]
            )
        url, seed = str(project.mapping_at(*at)["url"]), project.mapping_at(*at).get("seed", "")
        for key, text in (("url", url.removeprefix(_SANDBOX) if url.startswith(_SANDBOX) else ""), ("seed", str(seed))):
            if text and (wrong := path_problem(root, text)):
                where = project.places.at(*at, key)
                yield _problem("project/outside", f"workspaces.{name}: {wrong[0]}", where, hint=wrong[1])
        yield from _consent_problems(project, at)
        yield from _ignore_problems(project, at)
        yield from _lint_problems(project, at)
        yield from _pattern_problems(project, (*at, "guards"), "protect")
    yield from _consent_problems(project, ())
    yield from _ignore_problems(project, ())
    yield from _lint_problems(project, ())
    yield from _pattern_problems(project, ("guards",), "protect")
    yield from _pattern_problems(project, (), "leave_alone")
    for path in ((), *(("workspaces", name) for name in names)):
        for section, people in unownable_sections(project.mapping_at(*path, "ownership")).items():
            hint = f"Remove `{section}`. To archive somebody, declare them with `archived: true`."
            where = project.places.key(*path, "ownership", section)
            message = f"{people} cannot be owned, because people are never deleted"
            yield _problem("project/people-owned", message, where, hint=hint)
    default = project.body.get("default_workspace")
    if default is not None and default not in names:
        hint = did_you_mean(str(default), names) or known_names(names)
        where = project.places.at("default_workspace")
        yield _problem(
            "project/unknown-workspace",
            f'there is no workspace "{shorten(str(default))}"',
            where,
            hint=hint,
        )
    yield from _zone_problems(project)


def _consent_problems(project: ProjectFile, path: tuple[str, ...]) -> Iterator[Problem]:
    consents = cast("list[Mapping[str, Json]]", project.mapping_at(*path).get("allow", []))
    for number, item in enumerate(consents):
        at: KeyPath = (*path, "allow", number)
        if sum(guard in item for guard in GUARDS) != 1:
            message = f"an entry under `allow` needs exactly one of {', '.join(GUARDS[:-1])} and {GUARDS[-1]}"
            yield _problem("project/consent", message, project.places.at(*at), hint="Write one item for each.")
        yield from _date_problems(project, item["until"], (*at, "until"))


def _ignore_problems(project: ProjectFile, path: tuple[str, ...]) -> Iterator[Problem]:
    ignores = cast("list[Mapping[str, Json]]", project.mapping_at(*path).get("ignore", []))
    for number, item in enumerate(ignores):
        at: KeyPath = (*path, "ignore", number)
        if "until" in item:
            yield from _date_problems(project, item["until"], (*at, "until"))
        pattern = str(item["address"])
        where = project.places.at(*at, "address")
        if doubled := _doubled(pattern):
            yield _lone_backslash("ignore", pattern, doubled, where)
        elif pattern != "*" and (right := suggest_address_pattern(pattern)) is not None:
            yield _no_address("ignore", pattern, right, where)


def _lint_problems(project: ProjectFile, path: tuple[str, ...]) -> Iterator[Problem]:
    for code, item in cast("Mapping[str, Mapping[str, Json]]", project.mapping_at(*path, "lint")).items():
        at: KeyPath = (*path, "lint", code)
        default = RULES[code].level
        if LintLevel(str(item["level"])).is_weaker_than(default) and "reason" not in item:
            message = f"lint: {code}: a level below the default, which is {default}, needs a reason"
            hint = "Add `reason:` with the reason."
            yield _problem("project/lint-reason", message, project.places.at(*at, "level"), hint=hint)
        if "until" in item:
            yield from _date_problems(project, item["until"], (*at, "until"))


def _pattern_problems(project: ProjectFile, path: tuple[str, ...], key: str) -> Iterator[Problem]:
    """Yield a problem for each pattern that can match no address, or whose backslash is ambiguous."""
    for number, pattern in enumerate(cast("list[str]", project.mapping_at(*path).get(key, []))):
        bare = pattern.removeprefix("!")
        where = project.places.at(*path, key, number)
        right = None if bare in _EVERYTHING else suggest_address_pattern(bare)
        if doubled := _doubled(pattern):
            yield _lone_backslash(key, pattern, doubled, where)
        elif right is not None:
            sign = pattern[: len(pattern) - len(bare)]
            yield _no_address(key, pattern, sign + right, where)


def _doubled(pattern: str) -> str | None:
    """Return the pattern with its lone backslashes doubled; None if it has none."""
    doubled = double_lone_backslashes(pattern)
    return None if doubled == pattern else doubled


def _lone_backslash(key: str, pattern: str, doubled: str, where: SourceLocation) -> Problem:
    """Return the error for a backslash that may mean itself or, as on a command line, escape what follows."""
    decoded = decode_typed(pattern)
    other = "" if decoded == pattern else f", or {quote_name(shorten(decoded))} for the character itself"
    message = f"{key}: the single backslash in {quote_name(shorten(pattern))} is ambiguous"
    hint = f"Write {quote_name(shorten(doubled))} for a backslash in the name{other}."
    return _problem("project/pattern", message, where, hint=hint)


def _no_address(key: str, pattern: str, right: str, where: SourceLocation) -> Problem:
    kinds = ", ".join(kind_names_by_section().values())
    hint = f"Write {quote_name(shorten(right))}: a kind, a slash and a name. The kinds are {kinds}."
    return _problem("project/pattern", f"{key}: no address can match {quote_name(shorten(pattern))}", where, hint=hint)


def _date_problems(project: ProjectFile, value: Json, at: KeyPath) -> Iterator[Problem]:
    try:
        date.fromisoformat(str(value))
    except ValueError:
        message = f"{shorten(str(value))} is not a calendar date"
        yield _problem("project/date", message, project.places.at(*at), hint="Write a date such as 2030-01-31.")


def _zone_problems(project: ProjectFile) -> Iterator[Problem]:
    try:
        project.timezone()
    except (KeyError, ValueError, OSError):
        from zoneinfo import available_timezones

        name = str(project.body["timezone"])
        hint = did_you_mean(name, sorted(available_timezones())) or "Write an IANA name such as Europe/Stockholm."
        yield _problem(
            "project/timezone",
            f'there is no time zone "{shorten(name)}"',
            project.places.at("timezone"),
            hint=hint,
        )


def _no_file(root: Path) -> Problem:
    other = root / "lmsconf.yml"
    hint = f"Rename lmsconf.yml to {FILE}." if other.is_file() else _NO_FILE_HINT
    return Problem(code="project/missing", message=f"there is no {FILE} in {root.absolute()}", hint=hint)


def _problem(code: str, message: str, where: SourceLocation, *, hint: str | None = None) -> Problem:
    return Problem(code=code, message=message, hint=hint, source=where)
