"""Schema findings → problems in the manifest's terms: what is wrong, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, cast

from lmsconf.errors import Problem, SourceLocation, shown
from lmsconf.manifest.validation import suggestions
from lmsconf.manifest.validation.schema_query import (
    Schema,
    branches_of,
    heads,
    is_free_text,
    properties,
    types_of,
    types_of_any,
    types_of_schema,
)
from lmsconf.manifest.validation.suggestions import A, either
from lmsconf.manifest.yaml.nodes import EntryPlaces, Trail
from lmsconf.model.values import Json

_UNQUOTED: Final = frozenset(["boolean", "integer", "number"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaFinding:
    """One schema violation: the keyword and its value, the rejected value, its schema, and its path.

    among: the branches of the union that the schema is one of. needed: whether the key of the value is required.
    """

    path: Trail
    keyword: str
    wanted: Json
    value: Json
    schema: Schema
    among: tuple[Schema, ...] = ()
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Violation:
    """A problem before its code gets the area, and its message the prefix."""

    code: str
    message: str
    hint: str | None
    where: SourceLocation


def problems(
    finding: SchemaFinding, places: EntryPlaces, *, within: str | None, area: str, address: str | None
) -> Iterator[Problem]:
    """Convert a finding to problems.

    within: prefix of the message. area: first part of the code. address: of the resource, if it is known.
    """
    for fault in _WORDINGS[finding.keyword](finding, places):
        yield Problem(
            code=f"{area}/{fault.code}",
            message=f"{within}: {fault.message}" if within else fault.message,
            hint=fault.hint or suggestions.way_out(finding.schema),
            source=fault.where,
            address=address,
        )


def label(path: Trail) -> str:
    """Name the value at `path` by its keys; the index of an item is left out, since the location shows it."""
    keys = ".".join(str(step) for step in path if isinstance(step, str))
    if path and isinstance(path[-1], int):
        return f"an item of {keys}" if keys else "an item"
    return keys or "this"


def _unknown(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    known = properties(finding.schema)
    value = cast("dict[str, Json]", finding.value)
    for key in _strange(finding.value, finding.schema):
        yield _unknown_key(key, value[key], known, finding.path, places)


def _unknown_key(key: str, value: Json, known: Mapping[str, Json], path: Trail, places: EntryPlaces) -> Violation:
    inside = f" in {label(path)}" if path else ""
    hint = suggestions.key_hint(key, known, value) or f"Known here: {', '.join(known)}."
    return Violation("unknown-key", f'unknown key "{shown(key)}"{inside}', hint, places.key(*path, key))


def _strange(value: Json, schema: Mapping[str, Json]) -> list[str]:
    known = properties(schema)
    return [key for key in cast("dict[str, Json]", value) if key not in known and not _patterned(key, schema)]


def _patterned(key: str, schema: Mapping[str, Json]) -> bool:
    # The only pattern of keys is a prefix: `x-`, for anchors.
    patterns = cast("Mapping[str, Json]", schema.get("patternProperties", {}))
    return any(key.startswith(pattern.removeprefix("^")) for pattern in patterns)


def _type(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    yield _mistyped(finding, [finding.schema], places)


def _mistyped(finding: SchemaFinding, branches: list[Schema], places: EntryPlaces) -> Violation:
    """A value of the wrong type, with what to write instead where that can be derived."""
    value, name, where = finding.value, label(finding.path), places.at(*finding.path)
    wanted = f"{name} must be {either(_described(branches))}"
    if value is None:
        return _nothing(finding, branches, places)
    if finding.schema.get("x-secret"):
        return Violation("type", wanted, str(finding.schema["description"]), where)
    time = suggestions.time_hint(finding.schema)
    if isinstance(value, dict | list | str):
        actual = (
            f"{json.dumps(shown(value), ensure_ascii=False)} is text"
            if isinstance(value, str)
            else f"it is {_sort(value)}"
        )
        return Violation(
            "type",
            f"{wanted}, and {actual}",
            (time if isinstance(value, dict) else None) or suggestions.instead(value, branches),
            where,
        )
    word = shown(places.written(*finding.path))
    hint = time or _in_quotes(word, branches) or suggestions.instead(value, branches, word)
    return Violation("type", f"{wanted}, and {word} is {_sort(value)}", hint, where)


def _in_quotes(word: str, branches: list[Schema]) -> str | None:
    """Return the hint for a number, boolean or null where free text is accepted."""
    free = next((branch for branch in branches if is_free_text(branch)), None)
    if free is None or not _UNQUOTED.isdisjoint(types_of_any(branches)):
        return None
    if "pattern" in free:
        return suggestions.date_hint(free, word) or str(free["description"])
    return f'Write "{word}" with the quotes.'


def _nothing(finding: SchemaFinding, branches: list[Schema], places: EntryPlaces) -> Violation:
    """Null, or no value after the colon, where null is not accepted."""
    where, name = places.at(*finding.path), label(finding.path)
    word = shown(places.written(*finding.path))
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
    elif "array" in types_of_any(branches) and not _filled(finding.schema):
        nobody = "nobody" if finding.schema.get("x-people") else "an empty list"
        hint = f'Leave the key out not to manage it; "{key}: []" means {nobody}.'
    else:
        hint = f"Give it a value{_or_none(finding)}"
    return Violation("null", f"{name} has no value", hint, where)


def _or_none(finding: SchemaFinding) -> str:
    """Return the end of a hint: that the key may be left out, if it is optional."""
    return "." if finding.needed else ", or leave the key out."


def _filled(schema: Mapping[str, Json]) -> bool:
    """Whether a list must not be empty."""
    return bool(schema.get("minItems")) or any(_filled(branch) for branch in branches_of(schema))


def _union_fault(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    """A value for which no branch of a union is certain: a type that none has, or keys of no or several branches."""
    branches = cast("list[Schema]", finding.wanted)
    if all(set(branch) == {"required"} for branch in branches):
        keys = either([heads(branch)[0] for branch in branches])
        hint = _one_of(heads(branches[0])[0], properties(finding.schema))
        yield Violation("missing", f"{label(finding.path)} needs {keys}", hint, places.at(*finding.path))
        return
    if not isinstance(finding.value, dict) or not any("object" in types_of_schema(branch) for branch in branches):
        yield _mistyped(finding, branches, places)
        return
    yield from _unmeant(branches, finding, places)


def _unmeant(branches: list[Schema], finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    """A mapping whose keys fit no branch of a union, or several."""
    value = cast("dict[str, Json]", finding.value)
    mappings = [branch for branch in branches if "properties" in branch]
    known = {key: wanted for branch in mappings for key, wanted in properties(branch).items()}
    telling = list(dict.fromkeys(key for branch in mappings for key in heads(branch)))
    both = [key for key in telling if key in value]
    strange = [key for key in value if key not in known]
    if strange:
        for key in strange:
            fault = _unknown_key(key, value[key], known, finding.path, places)
            yield replace(fault, hint=suggestions.one_text(key, value, branches) or fault.hint)
    elif both:
        where, hint = places.key(*finding.path, both[1]), "Keep one of them."
        if finding.path and isinstance(finding.path[-1], int):
            hint = "Write one item for each."
        yield Violation("together", f"{' and '.join(both)} cannot stand in one mapping", hint, where)
    else:
        hint = _one_of(telling[0], known)
        yield Violation("missing", f"{label(finding.path)} needs {either(telling)}", hint, places.at(*finding.path))


def _one_of(key: str, known: Mapping[str, Json]) -> str:
    """Return the hint where one of several keys is required: the first of them, with the form of its value."""
    is_list = types_of_schema(cast("Mapping[str, Json]", known.get(key, {}))) == {"array"}
    return f"Write one of them, such as {key}: {'[…]' if is_list else '…'}."


def _missing(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    known = properties(finding.schema)
    for key in cast("list[str]", finding.wanted):
        if key not in cast("dict[str, Json]", finding.value):
            inside = f" in {label(finding.path)}" if finding.path else ""
            about = cast("Mapping[str, Json]", known.get(key, {})).get("description")
            hint = str(about) if about else f"Write {key}: …."
            yield Violation("missing", f"{key} is missing{inside}", hint, places.at(*finding.path))


def _choice(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    values = finding.wanted if isinstance(finding.wanted, list) else [finding.wanted]
    if finding.value is None or (isinstance(values[0], str) and not isinstance(finding.value, str)):
        yield _mistyped(finding, [finding.schema], places)
        return
    known = [value if isinstance(value, str) else json.dumps(value) for value in values]
    value = finding.value
    given = json.dumps(shown(value) if isinstance(value, str) else value, ensure_ascii=False)
    others = [branch for branch in finding.among if branch is not finding.schema]
    near = suggestions.choice_hint(finding.value, known) if isinstance(finding.value, str) else None
    wanted = either(known if near else [*known, *(word for word in _described(others) if word not in known)])
    yield Violation(
        "value",
        f"{label(finding.path)} must be {wanted}, and is {given}",
        near or _of_choice(finding, others),
        places.at(*finding.path),
    )


def _only_true(key: Json) -> str:
    """Return the hint for a key whose only value is true.

    To remove the key is suggested first, since true may reach everybody.
    """
    return f"Take {key} out: it cannot be false. Only if {key} is what you mean, write true."


def _of_choice(finding: SchemaFinding, others: list[Schema]) -> str | None:
    if finding.keyword == "const" and finding.wanted is True and finding.path:
        return _only_true(finding.path[-1])
    if not isinstance(finding.value, str) or not others:
        return None
    forms = suggestions.spellings(finding.value, others)
    return f"Write {either(forms)}." if forms else suggestions.way_out({"oneOf": cast(Json, finding.among)})


def _empty(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    noun = {"minItems": "list", "minLength": "text", "minProperties": "mapping"}[finding.keyword]
    is_item = finding.path and isinstance(finding.path[-1], int)
    hint = "Fill it, or take the item out." if is_item else f"Fill it{_or_none(finding)}"
    yield Violation("empty", f"{label(finding.path)} is an empty {noun}", hint, places.at(*finding.path))


def _long(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    length = len(str(finding.value))
    message = f"{label(finding.path)} may have {finding.wanted} characters, and has {length:,}"
    yield Violation("too-long", message, "Write a shorter one.", places.at(*finding.path))


def _no_name(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    yield _unfit(finding.value, label(finding.path), places.at(*finding.path))


def _no_key(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    yield _unfit(finding.value, f"a key of {label(finding.path)}", places.key(*finding.path, str(finding.value)))


def _unfit(value: Json, name: str, where: SourceLocation) -> Violation:
    """A text that cannot be a name, since it has a tab or a line break."""
    words = str(value).split()
    held = "a tab" if "\t" in str(value) else "a line break"
    one_line = json.dumps(shown(" ".join(words)), ensure_ascii=False)
    hint = f"Write it in one line: {one_line}." if words else "Write the name, or take it out."
    return Violation("character", f"{name} holds {held}", hint, where)


def _pattern(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    value = finding.value
    given = json.dumps(shown(value) if isinstance(value, str) else value, ensure_ascii=False)
    hint = (
        suggestions.date_hint(finding.schema, str(finding.value))
        or _several(finding)
        or finding.schema.get("description")
    )
    message = f"{label(finding.path)} cannot be {given}"
    yield Violation("value", message, str(hint) if hint else None, places.at(*finding.path))


def _several(finding: SchemaFinding) -> str | None:
    """Return the hint for an item that contains several values, each of which is valid."""
    items = re.split(r"[\s;,]+", str(finding.value).strip(";, "))
    fits = re.compile(str(finding.schema["pattern"]))
    if len(items) == 1 or not finding.path or not isinstance(finding.path[-1], int) or not all(map(fits.search, items)):
        return None
    return f"Put a comma between them: {', '.join(items)}."


def _bound(finding: SchemaFinding, places: EntryPlaces) -> Iterator[Violation]:
    side = "at least" if finding.keyword == "minimum" else "at most"
    message = f"{label(finding.path)} must be {side} {finding.wanted}, and is {finding.value}"
    hint = finding.schema.get("description")
    yield Violation("value", message, str(hint) if hint else None, places.at(*finding.path))


_WORDINGS: Final[dict[str, Callable[[SchemaFinding, EntryPlaces], Iterator[Violation]]]] = {
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
    return "a number" if isinstance(value, int | float) else A[next(iter(types_of(value)))]


def _described(branches: list[Schema]) -> list[str]:
    """Describe what is accepted: the values of an enum, the types otherwise."""
    words: list[str] = []
    for branch in branches:
        if "enum" in branch:
            words += (str(value) for value in cast("list[Json]", branch["enum"]))
            continue
        types = types_of_schema(branch) - {"null"}
        words += (A[name] for name in A if name in types and not (name == "number" and "integer" in types))
    return list(dict.fromkeys(words))
