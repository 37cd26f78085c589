"""Schema findings → problems in the manifest's terms: what is wrong, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.manifest.validation import suggestions
from lmsconf.manifest.validation.schema_query import (
    Schema,
    branches_of,
    identifying_keys,
    is_free_text,
    properties,
    types_of_branches,
    types_of_schema,
    types_of_value,
)
from lmsconf.manifest.validation.suggestions import TYPE_NAMES, join_with_or
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath
from lmsconf.model.canonical_json import Json

_UNQUOTED: Final = frozenset(["boolean", "integer", "number"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFinding:
    """One schema violation: the keyword and its value, the rejected value, its schema, and its path.

    union_branches: those of the union that the schema is one of. is_required: whether the key of the value is.
    """

    path: KeyPath
    keyword: str
    keyword_value: Json
    value: Json
    schema: Schema
    union_branches: tuple[Schema, ...] = ()
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class ProblemDraft:
    """A problem before its code gets the area, and its message the prefix."""

    code: str
    message: str
    hint: str | None
    where: SourceLocation


def problems_from_finding(
    finding: SchemaFinding, places: EntrySourceMap, *, message_prefix: str | None, code_area: str, address: str | None
) -> Iterator[Problem]:
    """Convert a finding to problems.

    message_prefix: prefix of the message. code_area: first part of the code. address: of the resource, if it is known.
    """
    for fault in _WORDINGS[finding.keyword](finding, places):
        yield Problem(
            code=f"{code_area}/{fault.code}",
            message=f"{message_prefix}: {fault.message}" if message_prefix else fault.message,
            hint=fault.hint or suggestions.suggest_from_schema(finding.schema),
            source=fault.where,
            address=address,
        )


def path_label(path: KeyPath) -> str:
    """Name the value at `path` by its keys; the index of an item is left out, since the location shows it."""
    keys = ".".join(str(step) for step in path if isinstance(step, str))
    if path and isinstance(path[-1], int):
        return f"an item of {keys}" if keys else "an item"
    return keys or "this"


def _unknown(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    known = properties(finding.schema)
    value = cast("dict[str, Json]", finding.value)
    for key in _strange(finding.value, finding.schema):
        yield _unknown_key(key, value[key], known, finding.path, places)


def _unknown_key(
    key: str, value: Json, known: Mapping[str, Json], path: KeyPath, places: EntrySourceMap
) -> ProblemDraft:
    inside = f" in {path_label(path)}" if path else ""
    hint = suggestions.suggest_known_key(key, known, value) or f"Known here: {', '.join(known)}."
    return ProblemDraft("unknown-key", f'unknown key "{shorten(key)}"{inside}', hint, places.key(*path, key))


def _strange(value: Json, schema: Mapping[str, Json]) -> list[str]:
    known = properties(schema)
    return [key for key in cast("dict[str, Json]", value) if key not in known and not _patterned(key, schema)]


def _patterned(key: str, schema: Mapping[str, Json]) -> bool:
    # The only pattern of keys is a prefix: `x-`, for anchors.
    patterns = cast("Mapping[str, Json]", schema.get("patternProperties", {}))
    return any(key.startswith(pattern.removeprefix("^")) for pattern in patterns)


def _type(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    yield _mistyped(finding, [finding.schema], places)


def _mistyped(finding: SchemaFinding, branches: list[Schema], places: EntrySourceMap) -> ProblemDraft:
    """A value of the wrong type, with what to write instead where that can be derived."""
    value, name, where = finding.value, path_label(finding.path), places.at(*finding.path)
    wanted = f"{name} must be {join_with_or(_described(branches))}"
    if value is None:
        return _nothing(finding, branches, places)
    if finding.schema.get("x-secret"):
        return ProblemDraft("type", wanted, str(finding.schema["description"]), where)
    time = suggestions.suggest_time(finding.schema)
    if isinstance(value, dict | list | str):
        actual = (
            f"{json.dumps(shorten(value), ensure_ascii=False)} is text"
            if isinstance(value, str)
            else f"it is {_sort(value)}"
        )
        return ProblemDraft(
            "type",
            f"{wanted}, and {actual}",
            (time if isinstance(value, dict) else None) or suggestions.suggest_replacement(value, branches),
            where,
        )
    word = shorten(places.written(*finding.path))
    hint = time or _in_quotes(word, branches) or suggestions.suggest_replacement(value, branches, word)
    return ProblemDraft("type", f"{wanted}, and {word} is {_sort(value)}", hint, where)


def _in_quotes(word: str, branches: list[Schema]) -> str | None:
    """Return the hint for a number, boolean or null where free text is accepted."""
    free = next((branch for branch in branches if is_free_text(branch)), None)
    if free is None or not _UNQUOTED.isdisjoint(types_of_branches(branches)):
        return None
    if "pattern" in free:
        return suggestions.suggest_date(free, word) or str(free["description"])
    return f'Write "{word}" with the quotes.'


def _nothing(finding: SchemaFinding, branches: list[Schema], places: EntrySourceMap) -> ProblemDraft:
    """Null, or no value after the colon, where null is not accepted."""
    where, name = places.at(*finding.path), path_label(finding.path)
    word = shorten(places.written(*finding.path))
    key = finding.path[-1] if finding.path else None
    quoted = word and any(is_free_text(branch) and "pattern" not in branch for branch in branches)
    if isinstance(key, int):
        hint = f'Write "{word}" with the quotes, or take the item out.' if quoted else "Take the item out."
        hint = hint if word else "Take the dash away."
    elif finding.schema.get("const") is True:
        hint = _only_true(key)
    elif key is None:
        hint = "Take it out." if word else "Write what it holds, or take it away."
    elif quoted and not finding.schema.get("x-time"):
        hint = f'Write "{word}" with the quotes if that is the text{_or_none(finding)}'
    elif "array" in types_of_branches(branches) and not _filled(finding.schema):
        nobody = "nobody" if finding.schema.get("x-people") else "an empty list"
        hint = f'Leave the key out not to manage it; "{key}: []" means {nobody}.'
    else:
        hint = f"Give it a value{_or_none(finding)}"
    return ProblemDraft("null", f"{name} has no value", hint, where)


def _or_none(finding: SchemaFinding) -> str:
    """Return the end of a hint: that the key may be left out, if it is optional."""
    return "." if finding.is_required else ", or leave the key out."


def _filled(schema: Mapping[str, Json]) -> bool:
    """Whether a list must not be empty."""
    return bool(schema.get("minItems")) or any(_filled(branch) for branch in branches_of(schema))


def _union_fault(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    """A value for which no branch of a union is certain: a type that none has, or keys of no or several branches."""
    branches = cast("list[Schema]", finding.keyword_value)
    if all(set(branch) == {"required"} for branch in branches):
        keys = join_with_or([identifying_keys(branch)[0] for branch in branches])
        hint = _one_of(identifying_keys(branches[0])[0], properties(finding.schema))
        yield ProblemDraft("missing", f"{path_label(finding.path)} needs {keys}", hint, places.at(*finding.path))
        return
    if not isinstance(finding.value, dict) or not any("object" in types_of_schema(branch) for branch in branches):
        yield _mistyped(finding, branches, places)
        return
    yield from _unmeant(branches, finding, places)


def _unmeant(branches: list[Schema], finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    """A mapping whose keys fit no branch of a union, or several."""
    value = cast("dict[str, Json]", finding.value)
    mappings = [branch for branch in branches if "properties" in branch]
    known = {key: wanted for branch in mappings for key, wanted in properties(branch).items()}
    telling = list(dict.fromkeys(key for branch in mappings for key in identifying_keys(branch)))
    both = [key for key in telling if key in value]
    strange = [key for key in value if key not in known]
    if strange:
        for key in strange:
            fault = _unknown_key(key, value[key], known, finding.path, places)
            yield replace(fault, hint=suggestions.suggest_text_for_mapping(key, value, branches) or fault.hint)
    elif both:
        where, hint = places.key(*finding.path, both[1]), "Keep one of them."
        if finding.path and isinstance(finding.path[-1], int):
            hint = "Write one item for each."
        yield ProblemDraft("together", f"{' and '.join(both)} cannot stand in one mapping", hint, where)
    else:
        hint = _one_of(telling[0], known)
        yield ProblemDraft(
            "missing", f"{path_label(finding.path)} needs {join_with_or(telling)}", hint, places.at(*finding.path)
        )


def _one_of(key: str, known: Mapping[str, Json]) -> str:
    """Return the hint where one of several keys is required: the first of them, with the form of its value."""
    is_list = types_of_schema(cast("Mapping[str, Json]", known.get(key, {}))) == {"array"}
    return f"Write one of them, such as {key}: {'[…]' if is_list else '…'}."


def _missing(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    known = properties(finding.schema)
    for key in cast("list[str]", finding.keyword_value):
        if key not in cast("dict[str, Json]", finding.value):
            inside = f" in {path_label(finding.path)}" if finding.path else ""
            about = cast("Mapping[str, Json]", known.get(key, {})).get("description")
            hint = str(about) if about else f"Write {key}: …."
            yield ProblemDraft("missing", f"{key} is missing{inside}", hint, places.at(*finding.path))


def _choice(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    values = finding.keyword_value if isinstance(finding.keyword_value, list) else [finding.keyword_value]
    if finding.value is None or (isinstance(values[0], str) and not isinstance(finding.value, str)):
        yield _mistyped(finding, [finding.schema], places)
        return
    known = [value if isinstance(value, str) else json.dumps(value) for value in values]
    value = finding.value
    given = json.dumps(shorten(value) if isinstance(value, str) else value, ensure_ascii=False)
    others = [branch for branch in finding.union_branches if branch is not finding.schema]
    near = suggestions.suggest_choice(finding.value, known) if isinstance(finding.value, str) else None
    wanted = join_with_or(known if near else [*known, *(word for word in _described(others) if word not in known)])
    yield ProblemDraft(
        "value",
        f"{path_label(finding.path)} must be {wanted}, and is {given}",
        near or _of_choice(finding, others),
        places.at(*finding.path),
    )


def _only_true(key: Json) -> str:
    """Return the hint for a key whose only value is true.

    To remove the key is suggested first, since true may reach everybody.
    """
    return f"Take {key} out: it cannot be false. Only if {key} is what you mean, write true."


def _of_choice(finding: SchemaFinding, others: list[Schema]) -> str | None:
    if finding.keyword == "const" and finding.keyword_value is True and finding.path:
        return _only_true(finding.path[-1])
    if not isinstance(finding.value, str) or not others:
        return None
    forms = suggestions.accepted_spellings(finding.value, others)
    return (
        f"Write {join_with_or(forms)}."
        if forms
        else suggestions.suggest_from_schema({"oneOf": cast(Json, finding.union_branches)})
    )


def _empty(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    noun = {"minItems": "list", "minLength": "text", "minProperties": "mapping"}[finding.keyword]
    is_item = finding.path and isinstance(finding.path[-1], int)
    hint = "Fill it, or take the item out." if is_item else f"Fill it{_or_none(finding)}"
    yield ProblemDraft("empty", f"{path_label(finding.path)} is an empty {noun}", hint, places.at(*finding.path))


def _long(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    length = len(str(finding.value))
    message = f"{path_label(finding.path)} may have {finding.keyword_value} characters, and has {length:,}"
    yield ProblemDraft("too-long", message, "Write a shorter one.", places.at(*finding.path))


def _no_name(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    yield _unfit(finding.value, path_label(finding.path), places.at(*finding.path))


def _no_key(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    yield _unfit(finding.value, f"a key of {path_label(finding.path)}", places.key(*finding.path, str(finding.value)))


def _unfit(value: Json, name: str, where: SourceLocation) -> ProblemDraft:
    """A text that cannot be a name, since it has a tab or a line break."""
    words = str(value).split()
    held = "a tab" if "\t" in str(value) else "a line break"
    one_line = json.dumps(shorten(" ".join(words)), ensure_ascii=False)
    hint = f"Write it in one line: {one_line}." if words else "Write the name, or take it out."
    return ProblemDraft("character", f"{name} holds {held}", hint, where)


def _pattern(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    value = finding.value
    given = json.dumps(shorten(value) if isinstance(value, str) else value, ensure_ascii=False)
    hint = (
        suggestions.suggest_date(finding.schema, str(finding.value))
        or _several(finding)
        or finding.schema.get("description")
    )
    message = f"{path_label(finding.path)} cannot be {given}"
    yield ProblemDraft("value", message, str(hint) if hint else None, places.at(*finding.path))


def _several(finding: SchemaFinding) -> str | None:
    """Return the hint for an item that contains several values, each of which is valid."""
    items = re.split(r"[\s;,]+", str(finding.value).strip(";, "))
    fits = re.compile(str(finding.schema["pattern"]))
    if len(items) == 1 or not finding.path or not isinstance(finding.path[-1], int) or not all(map(fits.search, items)):
        return None
    return f"Put a comma between them: {', '.join(items)}."


def _bound(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    side = "at least" if finding.keyword == "minimum" else "at most"
    message = f"{path_label(finding.path)} must be {side} {finding.keyword_value}, and is {finding.value}"
    hint = finding.schema.get("description")
    yield ProblemDraft("value", message, str(hint) if hint else None, places.at(*finding.path))


_WORDINGS: Final[dict[str, Callable[[SchemaFinding, EntrySourceMap], Iterator[ProblemDraft]]]] = {
    "additionalProperties": _unknown,
    "type": _type,
    "union": _union_fault,
    "required": _missing,
    "enum": _choice,
    "const": _choice,
    "minItems": _empty,
    "minLength": _empty,
    "minProperties": _empty,
    "maxLength": _long,
    "pattern": _pattern,
    "not": _no_name,
    "propertyNames": _no_key,
    "minimum": _bound,
    "maximum": _bound,
}
WORDED: Final = frozenset(_WORDINGS)
"""The keywords that a schema may reject a value by; each has a message."""


def _sort(value: Json) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return "a number" if isinstance(value, int | float) else TYPE_NAMES[next(iter(types_of_value(value)))]


def _described(branches: list[Schema]) -> list[str]:
    """Describe what is accepted: the values of an enum, the types otherwise."""
    words: list[str] = []
    for branch in branches:
        if "enum" in branch:
            words += (str(value) for value in cast("list[Json]", branch["enum"]))
            continue
        types = types_of_schema(branch) - {"null"}
        words += (
            TYPE_NAMES[name] for name in TYPE_NAMES if name in types and not (name == "number" and "integer" in types)
        )
    return list(dict.fromkeys(words))
