"""One finding of the schema in the manifest's words: what is wrong, and what to write instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, cast

from lmsconf.core.names import did_you_mean
from lmsconf.core.values import Json
from lmsconf.errors import Problem, Where
from lmsconf.manifest.nodes import EntryPlaces, Trail

Branches: TypeAlias = "list[Mapping[str, Json]]"
_TYPES: Final[dict[type, frozenset[str]]] = {
    bool: frozenset(["boolean"]),
    int: frozenset(["integer", "number"]),
    float: frozenset(["number"]),
    str: frozenset(["string"]),
    type(None): frozenset(["null"]),
}
_A: Final = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
_ALL: Final = frozenset(_A)
_UNQUOTED: Final = frozenset(["boolean", "integer", "number"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a schema says against a value: the keyword and what it wants, the value, and the way to it."""

    path: Trail
    keyword: str
    wanted: Json
    value: Json
    schema: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Fault:
    """A problem without its place in the files."""

    code: str
    message: str
    hint: str | None
    where: Where


def types_of(value: Json) -> frozenset[str]:
    """The JSON types that a value has."""
    if isinstance(value, dict):
        return frozenset(["object"])
    return _TYPES.get(type(value), frozenset(["array"]))


def types_of_schema(schema: Mapping[str, Json]) -> frozenset[str]:
    """The JSON types that a schema lets through, as far as it says."""
    if "type" in schema:
        named = schema["type"]
        return frozenset([named] if isinstance(named, str) else cast("list[str]", named))
    if "enum" in schema:
        return _union(types_of(value) for value in cast("list[Json]", schema["enum"]))
    if "const" in schema:
        return types_of(schema["const"])
    branches = _branches(schema)
    return _union(types_of_schema(branch) for branch in branches) if branches else _ALL


def problems(
    finding: Finding, places: EntryPlaces, *, within: str | None, area: str, address: str | None
) -> Iterator[Problem]:
    """The problems that a finding comes down to; `within` opens the message, `area` the code."""
    for fault in _WORDINGS[finding.keyword](finding, places):
        yield Problem(
            code=f"{area}/{fault.code}",
            message=f"{within}: {fault.message}" if within else fault.message,
            hint=fault.hint or _way_out(finding),
            source=fault.where,
            address=address,
        )


def _way_out(finding: Finding) -> str:
    """What to write, as far as the schema alone can tell."""
    samples = [sample for branch in _branches(finding.schema) or [finding.schema] for sample in _samples(branch)]
    return f"Write {either(list(dict.fromkeys(samples)))}."


def _samples(schema: Mapping[str, Json]) -> Iterator[str]:
    """Values that a schema lets through, in the form in which people write them."""
    if "enum" in schema or "const" in schema:
        values = cast("list[Json]", schema.get("enum", [schema.get("const")]))
        yield from (value if isinstance(value, str) else json.dumps(value) for value in values)
        return
    types = types_of_schema(schema) - {"null"}
    if "object" in types:
        yield f"{{{next(iter(heads(schema)), 'key')}: …}}"
    if "array" in types:
        yield "a list: […]"
    yield from (_A[name] for name in ("string", "boolean") if name in types)
    if types & {"integer", "number"}:
        low, high = schema.get("minimum"), schema.get("maximum")
        number = _A["number" if "number" in types else "integer"]
        yield f"{number} from {low} {'on' if high is None else f'to {high}'}" if low is not None else number


def label(path: Trail) -> str:
    """What a person calls the value at `path`: its keys; the place in the file tells which item of a list it is."""
    keys = ".".join(str(step) for step in path if isinstance(step, str))
    if path and isinstance(path[-1], int):
        return f"an item of {keys}" if keys else "an item"
    return keys or "this"


def either(words: list[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _unknown(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    known = _properties(finding.schema)
    for key in _strange(finding.value, finding.schema):
        yield _unknown_key(key, known, finding.path, places)


def _unknown_key(key: str, known: Mapping[str, Json], path: Trail, places: EntryPlaces) -> Fault:
    inside = f" in {label(path)}" if path else ""
    hint = did_you_mean(key, known) or f"Known here: {', '.join(known)}."
    return Fault("unknown-key", f'unknown key "{key}"{inside}', hint, places.key(*path, key))


def _strange(value: Json, schema: Mapping[str, Json]) -> list[str]:
    known = _properties(schema)
    return [key for key in cast("dict[str, Json]", value) if key not in known and not _patterned(key, schema)]


def _patterned(key: str, schema: Mapping[str, Json]) -> bool:
    # The only pattern for keys is "begins with": anchors' home `x-`.
    patterns = cast("Mapping[str, Json]", schema.get("patternProperties", {}))
    return any(key.startswith(pattern.removeprefix("^")) for pattern in patterns)


def _type(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    yield _mistyped(finding, [finding.schema], places)


def _mistyped(finding: Finding, branches: Branches, places: EntryPlaces) -> Fault:
    """A value of the wrong type, with what to write instead where that can be told."""
    value, name, where = finding.value, label(finding.path), places.at(*finding.path)
    wanted = f"{name} must be {either(_described(branches))}"
    if value is None:
        return _nothing(finding, branches, places)
    if finding.schema.get("x-secret"):
        return Fault("type", wanted, str(finding.schema["description"]), where)
    if isinstance(value, dict | list | str):
        shown = (
            f"{json.dumps(value, ensure_ascii=False)} is text" if isinstance(value, str) else f"it is {_sort(value)}"
        )
        return Fault("type", f"{wanted}, and {shown}", _instead(value, branches), where)
    word = places.written(*finding.path)
    return Fault("type", f"{wanted}, and {word} is {_sort(value)}", _in_quotes(word, branches), where)


def _in_quotes(word: str, branches: Branches) -> str | None:
    """How to write a number, a boolean or null where any text will do."""
    free = next((branch for branch in branches if _is_free_text(branch)), None)
    if free is None or not _UNQUOTED.isdisjoint(_types(branches)):
        return None
    return str(free["description"]) if "pattern" in free else f'Write "{word}" with the quotes.'


def _instead(value: Json, branches: Branches) -> str | None:
    wanted = _types(branches)
    if isinstance(value, str) and "array" in wanted:
        return f"Write a list: [{value}]."
    if isinstance(value, dict) and len(value) == 1:
        return _one_text(next(iter(value)), value, branches)
    if isinstance(value, str) and any("name" in _properties(branch) for branch in branches):
        return f'Write {{name: "{value}"}}.'
    return "Write true or false." if wanted == {"boolean"} else None


def _nothing(finding: Finding, branches: Branches, places: EntryPlaces) -> Fault:
    """Null, or nothing after the colon, where that has no meaning."""
    where, name = places.at(*finding.path), label(finding.path)
    word = places.written(*finding.path)
    hint = "Give it a value, or leave the key out."
    if "array" in _types(branches) and not _filled(finding.schema):
        nobody = "nobody" if finding.schema.get("x-people") else "an empty list"
        hint = f'"{finding.path[-1] if finding.path else name}: []" means {nobody}; leave the key out not to manage it.'
    elif word and any(map(_is_free_text, branches)):
        hint = f'Write "{word}" with the quotes if that is the text, or leave the key out.'
    if finding.path and isinstance(finding.path[-1], int):
        hint = f'Write "{word}" with the quotes, or take the item out.' if word else "Take the dash away."
    return Fault("null", f"{name} has no value", hint, where)


def _filled(schema: Mapping[str, Json]) -> bool:
    """Whether a list must hold something."""
    return bool(schema.get("minItems")) or any(_filled(branch) for branch in _branches(schema))


def _union_fault(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    """No branch of a union was meant for sure: a type that none has, or keys that point to none or to several."""
    branches = cast("Branches", finding.wanted)
    if all(set(branch) == {"required"} for branch in branches):
        keys = either([heads(branch)[0] for branch in branches])
        hint = _one_of(heads(branches[0])[0], _properties(finding.schema))
        yield Fault("missing", f"{label(finding.path)} needs {keys}", hint, places.at(*finding.path))
        return
    if not isinstance(finding.value, dict) or not any("object" in types_of_schema(branch) for branch in branches):
        yield _mistyped(finding, branches, places)
        return
    yield from _unmeant(branches, finding, places)


def _unmeant(branches: Branches, finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    """A mapping whose keys fit no branch of a union, or several."""
    value = cast("dict[str, Json]", finding.value)
    mappings = [branch for branch in branches if "properties" in branch]
    known = {key: wanted for branch in mappings for key, wanted in _properties(branch).items()}
    telling = list(dict.fromkeys(key for branch in mappings for key in heads(branch)))
    both = [key for key in telling if key in value]
    strange = [key for key in value if key not in known]
    if strange:
        for key in strange:
            fault = _unknown_key(key, known, finding.path, places)
            yield replace(fault, hint=_one_text(key, value, branches) or fault.hint)
    elif both:
        where, hint = places.key(*finding.path, both[1]), "Keep one of them."
        if finding.path and isinstance(finding.path[-1], int):
            hint = "Write one item for each."
        yield Fault("together", f"{' and '.join(both)} cannot stand in one mapping", hint, where)
    else:
        hint = _one_of(telling[0], known)
        yield Fault("missing", f"{label(finding.path)} needs {either(telling)}", hint, places.at(*finding.path))


def _one_of(key: str, known: Mapping[str, Json]) -> str:
    """The way out where one of several keys is needed: the first of them, with the form of its value."""
    is_list = types_of_schema(cast("Mapping[str, Json]", known.get(key, {}))) == {"array"}
    return f"Write one of them, such as {key}: {'[…]' if is_list else '…'}."


def _one_text(key: str, value: dict[str, Json], branches: Branches) -> str | None:
    """What to write when a mapping was meant to be a text with a colon in it."""
    inner = value[key]
    if len(value) > 1 or not isinstance(inner, str) or not any(map(_is_free_text, branches)):
        return None
    near = did_you_mean(key, [key for branch in branches for key in keys_of(branch)])
    return near or f'If it is one text, put it in quotes: "{key}: {inner}".'


def keys_of(schema: Mapping[str, Json]) -> list[str]:
    """The keys that a mapping may have."""
    return list(_properties(schema))


def heads(schema: Mapping[str, Json]) -> list[str]:
    """The keys that tell one branch of a union from the others: the first that it needs, or any that it knows."""
    return cast("list[str]", schema.get("required", []))[:1] or keys_of(schema)


def _missing(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    known = _properties(finding.schema)
    for key in cast("list[str]", finding.wanted):
        if key not in cast("dict[str, Json]", finding.value):
            inside = f" in {label(finding.path)}" if finding.path else ""
            about = cast("Mapping[str, Json]", known.get(key, {})).get("description")
            hint = str(about) if about else f"Write {key}: …."
            yield Fault("missing", f"{key} is missing{inside}", hint, places.at(*finding.path))


def _choice(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    values = finding.wanted if isinstance(finding.wanted, list) else [finding.wanted]
    if finding.value is None or (isinstance(values[0], str) and not isinstance(finding.value, str)):
        yield _mistyped(finding, [finding.schema], places)
        return
    known = [value if isinstance(value, str) else json.dumps(value) for value in values]
    shown = json.dumps(finding.value, ensure_ascii=False)
    hint = did_you_mean(finding.value, known) if isinstance(finding.value, str) else None
    yield Fault(
        "value", f"{label(finding.path)} must be {either(known)}, and is {shown}", hint, places.at(*finding.path)
    )


def _empty(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    what = {"minItems": "list", "minLength": "text", "minProperties": "mapping"}[finding.keyword]
    is_item = finding.path and isinstance(finding.path[-1], int)
    hint = "Fill it, or take the item out." if is_item else "Fill it, or leave the key out."
    yield Fault("empty", f"{label(finding.path)} is an empty {what}", hint, places.at(*finding.path))


def _long(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    found = len(str(finding.value))
    message = f"{label(finding.path)} may have {finding.wanted} characters, and has {found:,}"
    yield Fault("too-long", message, "Write a shorter one.", places.at(*finding.path))


def _no_name(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    yield _unfit(finding.value, label(finding.path), places.at(*finding.path))


def _no_key(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    yield _unfit(finding.value, f"a key of {label(finding.path)}", places.key(*finding.path, str(finding.value)))


def _unfit(value: Json, name: str, where: Where) -> Fault:
    """A text that cannot be a name: nobody could tell it from another, or read it in one line."""
    words = str(value).split()
    held = "a tab" if "\t" in str(value) else "a line break"
    one = json.dumps(" ".join(words), ensure_ascii=False)
    hint = f"Write it in one line: {one}." if words else "Write the name, or take it out."
    return Fault("character", f"{name} holds {held}", hint, where)


def _pattern(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    shown = json.dumps(finding.value, ensure_ascii=False)
    hint = finding.schema.get("description")
    message = f"{label(finding.path)} cannot be {shown}"
    yield Fault("value", message, str(hint) if hint else None, places.at(*finding.path))


def _bound(finding: Finding, places: EntryPlaces) -> Iterator[Fault]:
    side = "at least" if finding.keyword == "minimum" else "at most"
    message = f"{label(finding.path)} must be {side} {finding.wanted}, and is {finding.value}"
    hint = finding.schema.get("description")
    yield Fault("value", message, str(hint) if hint else None, places.at(*finding.path))


_WORDINGS: Final[dict[str, Callable[[Finding, EntryPlaces], Iterator[Fault]]]] = {
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
"""The keywords that a schema may use to refuse a value; every one of them has its words."""


def _sort(value: Json) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return "a number" if isinstance(value, int | float) else _A[next(iter(types_of(value)))]


def _described(branches: Branches) -> list[str]:
    """What may stand here: the values where only some will do, the types otherwise."""
    words: list[str] = []
    for branch in branches:
        if "enum" in branch:
            words += (str(value) for value in cast("list[Json]", branch["enum"]))
            continue
        types = types_of_schema(branch) - {"null"}
        words += (_A[name] for name in _A if name in types and not (name == "number" and "integer" in types))
    return list(dict.fromkeys(words))


def _is_free_text(schema: Mapping[str, Json]) -> bool:
    return "string" in types_of_schema(schema) and "enum" not in schema


def _types(branches: Branches) -> frozenset[str]:
    return _union(types_of_schema(branch) for branch in branches)


def _union(sets: Iterator[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def _properties(schema: Mapping[str, Json]) -> Mapping[str, Json]:
    return cast("Mapping[str, Json]", schema.get("properties", {}))


def _branches(schema: Mapping[str, Json]) -> Branches:
    return cast("Branches", schema.get("oneOf") or schema.get("anyOf") or [])
