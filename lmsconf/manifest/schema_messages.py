"""Schema findings → problems in the manifest's terms: what is wrong, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeAlias, cast

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.manifest import suggestions
from lmsconf.manifest.nodes import EntrySourceMap, KeyPath
from lmsconf.manifest.schema_check import (
    NAME,
    NEEDED,
    TYPE_NAMES,
    Schema,
    SchemaFinding,
    branches_of,
    forbidden_character,
    identifying_keys,
    properties,
    property_schema,
    types_of_branches,
    types_of_schema,
    types_of_value,
)
from lmsconf.manifest.suggestions import is_free_text, suggest_from_schema
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import join_words

_Draft: TypeAlias = "tuple[str, str, str | None, SourceLocation]"
"""The end of a problem's code, the end of its message, its hint, and its location."""


def path_label(path: KeyPath) -> str:
    """Name the value at `path` by its keys; the index of an item is left out, since the location shows it."""
    keys = ".".join(str(step) for step in path if isinstance(step, str))
    if path and isinstance(path[-1], int):
        return f"an item of {keys}" if keys else "an item"
    return keys or "this"


def _at_value(finding: SchemaFinding, here: EntrySourceMap, code: str, rest: str, hint: Json) -> _Draft:
    """Return a problem at the rejected value, whose name begins the message. hint: None for the schema's samples."""
    shown = None if hint is None else str(hint)
    return (code, f"{path_label(finding.path)} {rest}", shown, here.at())


def _shown(value: Json) -> str:
    return json.dumps(shorten(value) if isinstance(value, str) else value, ensure_ascii=False)


def problems_of(
    finding: SchemaFinding,
    places: EntrySourceMap,
    within: str = "",
    *,
    area: str = "manifest",
    address: str | None = None,
) -> Iterator[Problem]:
    """Convert a finding to problems.

    within: prefix of the messages. area: first part of the codes. address: of the resource, if it is known.
    """
    return (
        Problem(
            code=f"{area}/{code}",
            message=f"{within}: {message}" if within else message,
            hint=hint or suggest_from_schema(finding.schema),
            source=where,
            address=address,
        )
        for code, message, hint, where in _WORDINGS[finding.keyword](finding, places.below(*finding.path))
    )


def _unknown(finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    known = properties(finding.schema)
    patterns = cast("Mapping[str, Json]", finding.schema.get("patternProperties", {}))
    return (
        _unknown_key(key, value, known, finding, here)
        for key, value in members(finding.value).items()
        if key not in known and not any(re.search(pattern, key) for pattern in patterns)
    )


def _missing(finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    for key in cast("list[str]", finding.keyword_value):
        if key not in cast("dict[str, Json]", finding.value):
            inside = f" in {path_label(finding.path)}" if finding.path else ""
            about = property_schema(finding.schema, key).get("description")
            hint = f"Add {key}: {_lowercased(str(about))}" if about else f"Write {key}: …."
            yield ("missing", f"{key} is missing{inside}", hint, here.at())


def _lowercased(sentence: str) -> str:
    """Return a sentence as the rest of another; a name or an abbreviation at its start keeps its capitals."""
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() or sentence[1:2] == " " else sentence


def _choice(finding: SchemaFinding, here: EntrySourceMap) -> list[_Draft]:
    values = finding.keyword_value if isinstance(finding.keyword_value, list) else [finding.keyword_value]
    if finding.value is None or (isinstance(values[0], str) and not isinstance(finding.value, str)):
        return [_mistyped(finding, [finding.schema], here)]
    known = [value if isinstance(value, str) else json.dumps(value) for value in values]
    others = [branch for branch in finding.union_branches if branch is not finding.schema]
    near = suggestions.suggest_choice(finding.value, known) if isinstance(finding.value, str) else None
    wanted = join_words(known if near else [*dict.fromkeys([*known, *_accepted(others)])])
    hint = near or _of_choice(finding, others)
    return [_at_value(finding, here, "value", f"must be {wanted}, and is {_shown(finding.value)}", hint)]


def _of_choice(finding: SchemaFinding, others: list[Schema]) -> str | None:
    if finding.keyword == "const" and finding.keyword_value is True and finding.path:
        return _only_true(finding.path[-1])
    if not isinstance(finding.value, str) or not others:
        return None
    forms = suggestions.accepted_spellings(finding.value, others)
    return (
        f"Write {join_words(forms)}." if forms else suggest_from_schema({"oneOf": cast(Json, finding.union_branches)})
    )


_LIMITS: Final = {
    "minimum": "must be at least {}, and is {}",
    "maximum": "must be at most {}, and is {}",
    "minItems": "needs at least {} items, and has {}",
    "maxItems": "needs at most {} items, and has {}",
    "maxLength": "may have {} characters, and has {}",
}


def _limit(finding: SchemaFinding, here: EntrySourceMap) -> Iterable[_Draft]:
    """A number, or the size of a list or a text, beyond a limit; a list without any items is empty."""
    value = finding.value
    if value == []:
        return _empty(finding, here)
    size = f"{len(value):,}" if isinstance(value, list | str) else value
    rest = _LIMITS[finding.keyword].format(finding.keyword_value, size)
    if isinstance(value, str):
        return [_at_value(finding, here, "too-long", rest, "Write a shorter one.")]
    return [_at_value(finding, here, "value", rest, finding.schema.get("description"))]


def _empty(finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    noun = {"minItems": "list", "minLength": "text", "minProperties": "mapping"}[finding.keyword]
    yield _at_value(
        finding,
        here,
        "empty",
        f"is an empty {noun}",
        "Fill it, or remove the item." if finding.is_item else f"Fill it{_ending_if_optional(finding)}",
    )


def _no_name(finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    if finding.keyword_value == NAME:
        yield _unfit(finding.value, path_label(finding.path), here.at())
    else:
        held = forbidden_character(finding.value, str(finding.keyword_value)) or " "
        yield _at_value(finding, here, "character", f"holds the control character U+{ord(held):04X}", "Remove it.")


def _no_key(finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    key, schema = str(finding.value), finding.schema
    label, where = f"a key of {path_label(finding.path)}", here.key(key)
    match schema:
        case {"enum": [*known]}:
            yield _unknown_key(key, {}, dict.fromkeys(map(str, known)), finding, here)
        case {"pattern": _}:
            yield ("value", f"{label} cannot be {_shown(key)}", cast("str | None", schema.get("description")), where)
        case _:
            yield _unfit(key, label, where)


def _unfit(value: Json, name: str, where: SourceLocation) -> _Draft:
    """A text that cannot be a name, since it has a tab or a line break."""
    held, exact = "a tab" if "\t" in str(value) else "a line break", _shown(str(value))
    words = " ".join(str(value).split())
    hint = f"Write it in one line: {_shown(words)}." if words else "Write the name, or remove it."
    hint += f" If the live name has it, write {exact} in YAML." if len(exact) < 100 else ""
    return ("character", f"{name} holds {held}", hint, where)


def _pattern(finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    hint = (
        suggestions.suggest_date(finding.schema, str(finding.value))
        or _several(finding)
        or _email_inside(finding)
        or finding.schema.get("description")
    )
    yield _at_value(finding, here, "value", f"cannot be {_shown(finding.value)}", hint)


def _several(finding: SchemaFinding) -> str | None:
    """Return the hint for an item that contains several values, each of which is valid."""
    items = re.split(r"[\s;,]+", str(finding.value).strip(";, "))
    fits = re.compile(str(finding.schema["pattern"]))
    are_several = finding.is_item and len(items) > 1 and all(map(fits.search, items))
    return f"Put a comma between them: {', '.join(items)}." if are_several else None


def _email_inside(finding: SchemaFinding) -> str | None:
    """Return the hint for a text with one e-mail and more in it, such as a name or an invisible character."""
    emails = re.findall(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", shorten(str(finding.value)))
    return f"Write {emails[0]} alone." if len(emails) == 1 and "@" in str(finding.schema["pattern"]) else None


def _unknown_key(
    key: str,
    value: Json,
    known: Mapping[str, Json],
    finding: SchemaFinding,
    here: EntrySourceMap,
    hint: str | None = None,
) -> _Draft:
    inside = f" in {path_label(finding.path)}" if finding.path else ""
    hint = hint or suggestions.suggest_known_key(key, known, value) or f"Known here: {', '.join(known)}."
    return ("unknown-key", f'unknown key "{shorten(key)}"{inside}', hint, here.key(key))


def _mistyped(finding: SchemaFinding, branches: list[Schema], here: EntrySourceMap) -> _Draft:
    """A value of the wrong type, with what to write instead where that can be derived."""
    value, wanted = finding.value, f"must be {join_words(_accepted(branches))}"
    if value is None:
        return _nothing(finding, branches, here)
    if finding.schema.get("x-secret"):
        return _at_value(finding, here, "type", wanted, finding.schema["description"])
    time = suggestions.DATE if finding.schema.get("x-time") else None
    if isinstance(value, dict | list | str):
        actual = f"{_shown(value)} is text" if isinstance(value, str) else f"it is {_sort(value)}"
        return _at_value(
            finding,
            here,
            "type",
            f"{wanted}, and {actual}",
            (time if isinstance(value, dict) else None) or suggestions.suggest_replacement(value, branches),
        )
    word = shorten(here.written())
    return _at_value(
        finding,
        here,
        "type",
        f"{wanted}, and {word} is {_sort(value)}",
        time or _in_quotes(word, branches) or suggestions.suggest_replacement(value, branches, word),
    )


def _in_quotes(word: str, branches: list[Schema]) -> str | None:
    """Return the hint for a number, boolean or null where free text is accepted."""
    free = next((branch for branch in branches if is_free_text(branch)), None)
    if free is None or types_of_branches(branches) & {"boolean", "integer", "number"}:
        return None
    if "pattern" in free:
        return suggestions.suggest_date(free, word) or str(free["description"])
    return f'Write "{word}" with the quotes.'


def _nothing(finding: SchemaFinding, branches: list[Schema], here: EntrySourceMap) -> _Draft:
    """Null, or no value after the colon, where null is not accepted."""
    word, key = shorten(here.written()), finding.path[-1] if finding.path else None
    quoted = word and any(is_free_text(branch) and "pattern" not in branch for branch in branches)
    may_be_empty = "array" in types_of_branches(branches) and not _filled(finding.schema)
    end, is_time = _ending_if_optional(finding), finding.schema.get("x-time")
    nobody = "nobody" if finding.schema.get("x-people") else "an empty list"
    hints = (
        (finding.is_item and not word, "Remove the dash."),
        (finding.is_item and quoted, f'Write "{word}" with the quotes, or remove the item.'),
        (finding.is_item, "Remove the item."),
        (finding.schema.get("const") is True, _only_true(key)),
        (key is None and word, "Remove it."),
        (key is None, "Write its content, or remove it."),
        (quoted and not is_time, f'Write "{word}" with the quotes if that is the text{end}'),
        (may_be_empty, f'Remove the key to leave it unmanaged; "{key}: []" means {nobody}.'),
        (True, f"Give it a value{end}"),
    )
    return _at_value(finding, here, "null", "has no value", next(hint for holds, hint in hints if holds))


def _ending_if_optional(finding: SchemaFinding) -> str:
    """Return the end of a hint: that the key may be left out, if it is optional."""
    return "." if NEEDED in finding.schema else ", or remove the key."


def _filled(schema: Mapping[str, Json]) -> bool:
    """Whether a list must not be empty."""
    return bool(schema.get("minItems")) or any(_filled(branch) for branch in branches_of(schema))


def _union(finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    """A value for which no branch of a union is certain: a type that none has, or keys of no or several branches."""
    branches = cast("list[Schema]", finding.keyword_value)
    if all("required" in branch and "properties" not in branch for branch in branches):
        yield _needs_one(
            finding, [identifying_keys(branch)[0] for branch in branches], properties(finding.schema), here
        )
    elif isinstance(finding.value, dict) and "object" in types_of_branches(branches):
        yield from _unmeant(branches, finding, here)
    else:
        yield _mistyped(finding, branches, here)


def _unmeant(branches: list[Schema], finding: SchemaFinding, here: EntrySourceMap) -> Iterator[_Draft]:
    """A mapping whose keys fit no branch of a union, or several."""
    value = cast("dict[str, Json]", finding.value)
    mappings = [branch for branch in branches if "properties" in branch]
    known = {key: wanted for branch in mappings for key, wanted in properties(branch).items()}
    telling = list(dict.fromkeys(key for branch in mappings for key in identifying_keys(branch)))
    both = [key for key in telling if key in value]
    strange = [key for key in value if key not in known]
    if strange:
        for key in strange:
            hint = suggestions.suggest_text_for_mapping(key, value, branches)
            yield _unknown_key(key, value[key], known, finding, here, hint)
    elif both:
        hint = "Write one item for each." if finding.is_item else "Keep one of them."
        yield ("together", f"{' and '.join(both)} exclude each other", hint, here.key(both[1]))
    else:
        yield _needs_one(finding, telling, known, here)


def _needs_one(finding: SchemaFinding, keys: list[str], known: Mapping[str, Json], here: EntrySourceMap) -> _Draft:
    """One of several keys is required; the hint shows the first of them, with the form of its value."""
    is_list = types_of_schema(cast(Schema, known.get(keys[0], {}))) == {"array"}
    return _at_value(
        finding,
        here,
        "missing",
        f"needs {join_words(keys)}",
        f"Write one of them, such as {keys[0]}: {'[…]' if is_list else '…'}.",
    )


def _only_true(key: Json) -> str:
    """Return the hint for a key whose only value is true.

    To remove the key is suggested first, since true may reach everybody.
    """
    return f"Remove {key}: it cannot be false. Write true only if you mean {key}."


def _sort(value: Json) -> str:
    """Return what a value is: of a whole number, which has two types, only that it is a number."""
    return {**TYPE_NAMES, "boolean": "a boolean", "integer": "a number"}[next(iter(types_of_value(value)))]


def _accepted(branches: list[Schema]) -> list[str]:
    """Describe what is accepted: the values of an enum, the types otherwise."""
    return list(dict.fromkeys(word for branch in branches for word in _accepted_by(branch)))


def _accepted_by(branch: Schema) -> Iterable[str]:
    types = types_of_schema(branch) - {"null"}
    if "enum" in branch:
        return map(str, cast("list[Json]", branch["enum"]))
    types -= {"number"} if "integer" in types else set()
    return (TYPE_NAMES[name] for name in TYPE_NAMES if name in types)


_WORDINGS: Final[dict[str, Callable[[SchemaFinding, EntrySourceMap], Iterable[_Draft]]]] = {
    "additionalProperties": _unknown,
    "type": lambda finding, here: [_mistyped(finding, [finding.schema], here)],
    "union": _union,
    "required": _missing,
    "enum": _choice,
    "const": _choice,
    "minLength": _empty,
    "minProperties": _empty,
    "pattern": _pattern,
    "format": _no_name,
    "propertyNames": _no_key,
    **dict.fromkeys(_LIMITS, _limit),
}
WORDED: Final = frozenset(_WORDINGS)
"""The keywords that a schema may reject a value by; each has a message."""
