"""Documentation of a manifest key, derived from the schema that manifests are validated against."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias, cast

from lmsconf.errors import UsageError, shorten
from lmsconf.manifest.schemas import ABSENT, manifest_schema
from lmsconf.model.canonical_json import Json
from lmsconf.model.explanation import ExplainedKey, KeyExplanation
from lmsconf.model.lints import PREFIX, RULES, LintLevel
from lmsconf.model.names import did_you_mean
from lmsconf.planner.kind import AnyKind

_Schema: TypeAlias = "Mapping[str, Json]"
_WORDS: Final = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "object": "mapping",
    "null": "null",
}


LINTS: Final = "lint"
_LINTS_MEANING: Final = (
    "Levels of lints that differ from the default, by code. A lint reports manifests that are valid and probably not "
    "what was meant. It sends no request, and says nothing about what the command does not know."
)
_LINT_KEYS: Final = (
    ("level", "one of " + ", ".join(LintLevel), "error: `validate` exits 1, and `apply` stops with exit 4.", True),
    ("reason", "text", "The reason; required if the level is below the default.", False),
    ("until", "text", "The entry holds before this date.", False),
)


def explain(kinds: Mapping[str, AnyKind], key_path: str) -> KeyExplanation:
    """Explain `key_path`: a kind or section, then keys separated by dots; empty for the whole manifest.

    `lint` explains which lints there are, and the code of a lint that one.

    Raises UsageError for an unknown name, with the closest known name as a hint.
    """
    if key_path == LINTS or key_path.startswith(PREFIX):
        return _explain_lint(key_path)
    schema: _Schema = manifest_schema(kinds)
    sections = {kind.name: kind.section for kind in kinds.values()}
    trail: list[str] = []
    for word in key_path.split(".") if key_path else ():
        known = _keys(schema)
        name = sections.get(word, word) if not trail or trail == [ABSENT] else word
        if name not in known:
            raise _unknown(word, trail, [*known, *(() if trail else sections)])
        schema, trail = known[name], [*trail, name]
    needed = _needed(schema)
    keys = tuple(
        ExplainedKey(name=name, type=_type(part), meaning=_meaning(part), needed=name in needed)
        for name, part in _keys(schema).items()
    )
    whole = "a manifest: any of these sections, each a list, in any number of files"
    return KeyExplanation(
        path=".".join(trail),
        type=_type(schema) if trail else whole,
        meaning=_meaning(schema) if trail else "",
        keys=keys,
    )


def _explain_lint(code: str) -> KeyExplanation:
    if code == LINTS:
        listed = tuple(
            ExplainedKey(name=rule.code, type=f"{rule.level} by default", meaning=rule.title, needed=False)
            for rule in RULES.values()
        )
        return KeyExplanation(path=LINTS, type="key of lmsconf.yaml: mapping", meaning=_LINTS_MEANING, keys=listed)
    rule = RULES.get(code)
    if rule is None:
        raise UsageError(
            f'there is no lint "{shorten(code)}"', hint=did_you_mean(code, RULES) or f"There is {', '.join(RULES)}."
        )
    where = "validate and plan" if rule.in_validate else "plan"
    keys = tuple(
        ExplainedKey(name=key, type=type, meaning=meaning, needed=needed) for key, type, meaning, needed in _LINT_KEYS
    )
    paragraphs = (rule.title, rule.why, rule.remedy, f"Known from: {rule.known_from}")
    return KeyExplanation(
        path=code, type=f"lint, {rule.level} by default, in {where}", meaning="\n\n".join(paragraphs), keys=keys
    )


def _unknown(word: str, trail: Sequence[str], known: Sequence[str]) -> UsageError:
    place = f"{'.'.join(trail)} has no key" if trail else "there is no kind or section"
    hint = did_you_mean(word, known) or (f"There is {', '.join(known)}." if known else "It has no keys.")
    return UsageError(f'{place} "{word}"', hint=hint)


def _alternatives(schema: _Schema) -> Iterator[_Schema]:
    """Yield the schema and, recursively, its alternatives and the items of a list."""
    yield schema
    for word in ("oneOf", "anyOf", "allOf"):
        for branch in cast("list[_Schema]", schema.get(word, [])):
            yield from _alternatives(branch)
    if isinstance(schema.get("items"), dict):
        yield from _alternatives(cast(_Schema, schema["items"]))


def _keys(schema: _Schema) -> dict[str, _Schema]:
    keys: dict[str, _Schema] = {}
    for alternative in _alternatives(schema):
        for name, part in cast("Mapping[str, _Schema]", alternative.get("properties", {})).items():
            keys.setdefault(name, part)
    return keys


def _needed(schema: _Schema) -> frozenset[str]:
    """Return the keys that every alternative mapping requires, but for one that reads its entries from a sheet."""
    needs = [
        frozenset(cast("list[str]", alternative.get("required", [])))
        for alternative in _alternatives(schema)
        if "properties" in alternative and not alternative.get("x-sheet")
    ]
    return frozenset.intersection(*needs) if needs else frozenset()


def _meaning(schema: _Schema) -> str:
    """Return the first description in the schema or its alternatives."""
    return next(
        (str(alternative["description"]) for alternative in _alternatives(schema) if "description" in alternative), ""
    )


def _type(schema: _Schema) -> str:
    """Describe the accepted types in words."""
    for word in ("oneOf", "anyOf") if "type" not in schema else ():
        if word in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in cast("list[_Schema]", schema[word])))
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        return "one of " + ", ".join(str(one) for one in cast("list[Json]", schema["enum"]))
    types = schema.get("type")
    if types == "array":
        items = schema.get("items")
        return f"list of {_type(cast(_Schema, items))}" if isinstance(items, dict) and items else "list"
    words = types if isinstance(types, list) else [types]
    return " or ".join(_WORDS.get(str(one), "anything") for one in words)
