"""What a key, a lint or the code of a problem means: from the schemas that files are checked by, and from tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Final, cast

from msgspec import Struct

from lmsconf.errors import UsageError, shorten
from lmsconf.kinds.kind_table import KINDS
from lmsconf.manifest.file_set import PROJECT_FILE, PROJECT_SCHEMA
from lmsconf.manifest.schema_check import (
    ABSENT,
    TYPE_NAMES,
    Schema,
    branches_of,
    manifest_schema,
    properties,
    required_keys,
    written_out_schema,
)
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import ExplainedKey, KeyExplanation
from lmsconf.model.lint_codes import PREFIX, RULES, LintLevel
from lmsconf.model.names import did_you_mean, known_names
from lmsconf.model.problem_codes import meaning_of, meanings

_OF_PROJECT: Final = f"key of {PROJECT_FILE}: "


def _key(name: str, type: str, meaning: str, needed: bool = False) -> ExplainedKey:
    return ExplainedKey(name=name, type=type, meaning=meaning, needed=needed)


_MORE: Final = (
    _key("project", "keys of lmsconf.yaml", "The project file: workspaces, guards, ownership and more."),
    _key("lint", "codes", "What `validate` and `plan` report of manifests that are valid and probably not meant."),
    _key("codes", "codes", "What each error, warning and note means, by the code in brackets after its message."),
)
"""What `explain` without an argument lists beside the sections of a manifest."""


class Position(Struct, frozen=True):
    """A position in a manifest or in the project file. path: the keys that lead to it."""

    path: tuple[str, ...]
    schema: Schema
    of_project: bool = False
    needed: bool = False


def explain(key_path: str) -> KeyExplanation:
    """Explain a kind or section and keys below it, `smart_group.conditions`, a key of the project file, or a code.

    A key alone is explained wherever it may be used; `lint` and `codes` list what there is; nothing: what can be
    explained. Raises UsageError for an unknown name, with the closest known name as a hint.
    """
    if key_path.startswith(PREFIX):
        return _explain_lint(key_path)
    if (meaning := meaning_of(key_path)) is not None:
        return KeyExplanation(path=key_path, type="code of a problem", meaning=meaning, keys=())
    match key_path:
        case "lint":
            return KeyExplanation(
                path="lint",
                type=f"{_OF_PROJECT}mapping",
                meaning="Levels of lints that differ from the default, by code. A lint reports manifests that are "
                "valid and probably not what was meant. It sends no request, and says nothing about what the command "
                "does not know.",
                keys=tuple(_key(rule.code, f"{rule.level} by default", rule.title) for rule in RULES.values()),
            )
        case "codes":
            return KeyExplanation(
                path="codes",
                type="codes of problems",
                meaning="",
                keys=tuple(_key(code, "problem", text) for code, text in meanings().items()),
            )
        case "" | "manifest":
            return KeyExplanation(
                path="",
                type="a manifest: any of these sections, each a list, in any number of files",
                meaning="",
                keys=(*_rows(manifest_schema()), *(() if key_path else _MORE)),
            )
        case "project" | "lmsconf.yaml":
            return KeyExplanation(
                path="project",
                type="the project file lmsconf.yaml",
                meaning="",
                keys=_rows(written_out_schema(PROJECT_SCHEMA)),
            )
    return _explain_key(key_path)


def explainable(begun: str) -> Iterator[str]:
    """Yield what can be explained and may begin so: the next word of a path, and codes."""
    before, dot, _ = begun.rpartition(".")
    if dot:
        yield from (f"{before}.{key}" for key in _keys_of(_find(before).schema))
    else:
        yield from dict.fromkeys((*KINDS, *_key_names(), "manifest", "project", "codes", *RULES, *meanings()))


def _explain_key(key_path: str) -> KeyExplanation:
    """Explain a path, or a key alone: once if it means the same wherever it may be used, else place by place."""
    try:
        places = [_find(key_path)]
    except UsageError:
        places = [one for one in _positions() if one.path[-1] == key_path and one.path[0] != ABSENT]
        if not places:
            raise
    first, is_single = places[0], len(places) == 1
    rows = tuple(_row(".".join(place.path), place.schema, place.needed) for place in places)
    meanings = {(row.type, row.meaning) for row in rows}
    if len(meanings) > 1:
        return KeyExplanation(path=key_path, type=f"a key with {len(meanings)} meanings", meaning="", keys=rows)
    used = ", ".join(row.name.removesuffix(f".{key_path}") for row in rows)
    return KeyExplanation(
        path=rows[0].name if is_single else key_path,
        type=f"{_OF_PROJECT if is_single and first.of_project else ''}{rows[0].type}",
        meaning=rows[0].meaning if is_single else f"{rows[0].meaning}\n\nA key of: {used}.",
        keys=_rows(first.schema),
    )


def _rows(schema: Schema) -> tuple[ExplainedKey, ...]:
    needed = _needed_keys(schema)
    return tuple(_row(name, part, name in needed) for name, part in _keys_of(schema).items())


def _row(name: str, schema: Schema, needed: bool) -> ExplainedKey:
    meaning = next((str(one["description"]) for one in _alternatives(schema) if "description" in one), "")
    return _key(name, _type_in_words(schema), meaning, needed)


def _find(key_path: str) -> Position:
    """Return the position at a path, in a manifest or else in the project file. Raises UsageError."""
    words = key_path.split(".")
    manifest, project = manifest_schema(), written_out_schema(PROJECT_SCHEMA)
    sections = {kind.name: kind.section for kind in KINDS.values()}
    of_project = words[0] == "project" or (words[0] not in sections and words[0] not in _keys_of(manifest))
    schema = project if of_project else manifest
    path: tuple[str, ...] = ()
    for word in words[words[0] == "project" :]:
        known = _keys_of(schema)
        name = sections.get(word, word) if not of_project and path in ((), (ABSENT,)) else word
        if name in known:
            schema, path = known[name], (*path, name)
        elif path and (
            named := [one for one in _alternatives(schema) if isinstance(one.get("additionalProperties"), dict)]
        ):
            # A name of the user's own, such as that of a workspace, leads to the keys below it.
            schema = cast(Schema, named[0]["additionalProperties"])
            if not _keys_of(schema):
                path = (*path, name)
        else:
            raise _unknown(word, path, [*known] if path else [*sections, *_key_names()])
    return Position(path, schema, of_project)


@cache
def _positions() -> list[Position]:
    """Return every position in a manifest, and in the project file."""
    return [*_below(manifest_schema(), (), False), *_below(written_out_schema(PROJECT_SCHEMA), (), True)]


def _key_names() -> list[str]:
    """Return the names of all keys of manifests and of the project file: those of sections first."""
    return list(dict.fromkeys(one.path[-1] for one in sorted(_positions(), key=lambda one: len(one.path) > 1)))


def _below(schema: Schema, path: tuple[str, ...], of_project: bool) -> Iterator[Position]:
    needed = _needed_keys(schema)
    for name, part in _keys_of(schema).items():
        yield Position((*path, name), part, of_project, name in needed)
        yield from _below(part, (*path, name), of_project)


def _explain_lint(code: str) -> KeyExplanation:
    rule = RULES.get(code)
    if rule is None:
        raise UsageError(f'there is no lint "{shorten(code)}"', hint=did_you_mean(code, RULES) or known_names(RULES))
    return KeyExplanation(
        path=code,
        type=f"lint, {rule.level} by default, in {'validate and plan' if rule.in_validate else 'plan'}",
        meaning="\n\n".join((rule.title, rule.why, rule.remedy, f"Known from: {rule.known_from}")),
        keys=(
            _key(
                "level",
                "one of " + ", ".join(LintLevel),
                "error: `validate` exits 1, and `apply` stops with exit 4.",
                True,
            ),
            _key("reason", "text", "The reason; required if the level is below the default."),
            _key("until", "text", "The entry is valid before this date."),
        ),
    )


def _unknown(word: str, path: tuple[str, ...], known: Sequence[str]) -> UsageError:
    """Return the error for a word that is not a key at a path. known: what is; the hint is the nearest."""
    if path:
        message, hint = f"{'.'.join(path)} has no key", known_names(known) if known else "It has no keys."
    elif "/" in word:
        message, hint, known = "there is no code", "`lmsconf explain codes` lists the codes.", [*meanings()]
    else:
        message, hint = "there is no kind, section or key", "`lmsconf explain` lists what can be explained."
    return UsageError(f'{message} "{shorten(word)}"', hint=did_you_mean(word, known) or hint)


def _alternatives(schema: Schema) -> Iterator[Schema]:
    """Yield the schema and, recursively, its alternatives, the items of a list, and the values of a mapping."""
    yield schema
    branches = [part for word in ("oneOf", "anyOf", "allOf") for part in cast("list[Json]", schema.get(word, []))]
    for part in (*branches, schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            yield from _alternatives(part)


def _keys_of(schema: Schema) -> dict[str, Schema]:
    """Return the keys that may be below a position."""
    keys: dict[str, Schema] = {}
    for name, part in chain.from_iterable(properties(one).items() for one in _alternatives(schema)):
        keys.setdefault(name, cast(Schema, part))
    return keys


def _needed_keys(schema: Schema) -> frozenset[str]:
    """Return the keys that every alternative mapping requires, except one that reads its entries from a sheet."""
    mappings = [one for one in _alternatives(schema) if "properties" in one and not one.get("x-sheet")]
    needs = [frozenset(required_keys(mapping)) for mapping in mappings]
    return frozenset.intersection(*needs) if needs else frozenset()


def _type_in_words(schema: Schema) -> str:
    """Describe the accepted types in words."""
    if "type" not in schema and (branches := branches_of(schema)):
        return " or ".join(dict.fromkeys(map(_type_in_words, branches)))
    match schema:
        case {"const": value}:
            return json.dumps(value, ensure_ascii=False)
        case {"enum": [value]}:
            return str(value)
        case {"enum": [*values]}:
            return "one of " + ", ".join(map(str, values))
        case {"type": "array", "items": {**items}} if items:
            return f"list of {_type_in_words(cast(Schema, items))}"
        case {"type": "array"}:
            return "list"
    types = schema.get("type")
    words = (TYPE_NAMES.get(str(one), "anything") for one in (types if isinstance(types, list) else [types]))
    return " or ".join(word.removeprefix("a ") for word in words)
