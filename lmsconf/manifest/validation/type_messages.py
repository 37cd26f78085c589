"""Problems of values of the wrong type: null, another type than the schema's, or no branch of a union."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, cast

from msgspec.structs import replace

from lmsconf.errors import shorten
from lmsconf.manifest.validation import suggestions
from lmsconf.manifest.validation.key_suggestions import suggest_known_key
from lmsconf.manifest.validation.schema_finding import ProblemDraft, SchemaFinding, path_label
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
from lmsconf.manifest.validation.schema_samples import TYPE_NAMES, join_with_or
from lmsconf.manifest.yaml.nodes import EntrySourceMap, KeyPath
from lmsconf.model.canonical_json import Json

_UNQUOTED: Final = frozenset(["boolean", "integer", "number"])


def unknown_key_problem(
    key: str, value: Json, known: Mapping[str, Json], path: KeyPath, places: EntrySourceMap
) -> ProblemDraft:
    inside = f" in {path_label(path)}" if path else ""
    hint = suggest_known_key(key, known, value) or f"Known here: {', '.join(known)}."
    return ProblemDraft("unknown-key", f'unknown key "{shorten(key)}"{inside}', hint, places.key(*path, key))


def wrong_type_problem(finding: SchemaFinding, branches: list[Schema], places: EntrySourceMap) -> ProblemDraft:
    """A value of the wrong type, with what to write instead where that can be derived."""
    value, name, where = finding.value, path_label(finding.path), places.at(*finding.path)
    wanted = f"{name} must be {join_with_or(describe_accepted(branches))}"
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
        hint = f'Write "{word}" with the quotes, or remove the item.' if quoted else "Remove the item."
        hint = hint if word else "Remove the dash."
    elif finding.schema.get("const") is True:
        hint = only_true_hint(key)
    elif key is None:
        hint = "Remove it." if word else "Write its content, or remove it."
    elif quoted and not finding.schema.get("x-time"):
        hint = f'Write "{word}" with the quotes if that is the text{ending_if_optional(finding)}'
    elif "array" in types_of_branches(branches) and not _filled(finding.schema):
        nobody = "nobody" if finding.schema.get("x-people") else "an empty list"
        hint = f'Remove the key to leave it unmanaged; "{key}: []" means {nobody}.'
    else:
        hint = f"Give it a value{ending_if_optional(finding)}"
    return ProblemDraft("null", f"{name} has no value", hint, where)


def ending_if_optional(finding: SchemaFinding) -> str:
    """Return the end of a hint: that the key may be left out, if it is optional."""
    return "." if finding.is_required else ", or remove the key."


def _filled(schema: Mapping[str, Json]) -> bool:
    """Whether a list must not be empty."""
    return bool(schema.get("minItems")) or any(_filled(branch) for branch in branches_of(schema))


def union_problems(finding: SchemaFinding, places: EntrySourceMap) -> Iterator[ProblemDraft]:
    """A value for which no branch of a union is certain: a type that none has, or keys of no or several branches."""
    branches = cast("list[Schema]", finding.keyword_value)
    if all(set(branch) == {"required"} for branch in branches):
        keys = join_with_or([identifying_keys(branch)[0] for branch in branches])
        hint = _one_of(identifying_keys(branches[0])[0], properties(finding.schema))
        yield ProblemDraft("missing", f"{path_label(finding.path)} needs {keys}", hint, places.at(*finding.path))
        return
    if not isinstance(finding.value, dict) or not any("object" in types_of_schema(branch) for branch in branches):
        yield wrong_type_problem(finding, branches, places)
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
            fault = unknown_key_problem(key, value[key], known, finding.path, places)
            yield replace(fault, hint=suggestions.suggest_text_for_mapping(key, value, branches) or fault.hint)
    elif both:
        where, hint = places.key(*finding.path, both[1]), "Keep one of them."
        if finding.path and isinstance(finding.path[-1], int):
            hint = "Write one item for each."
        yield ProblemDraft("together", f"{' and '.join(both)} exclude each other", hint, where)
    else:
        hint = _one_of(telling[0], known)
        yield ProblemDraft(
            "missing", f"{path_label(finding.path)} needs {join_with_or(telling)}", hint, places.at(*finding.path)
        )


def _one_of(key: str, known: Mapping[str, Json]) -> str:
    """Return the hint where one of several keys is required: the first of them, with the form of its value."""
    is_list = types_of_schema(cast("Mapping[str, Json]", known.get(key, {}))) == {"array"}
    return f"Write one of them, such as {key}: {'[…]' if is_list else '…'}."


def only_true_hint(key: Json) -> str:
    """Return the hint for a key whose only value is true.

    To remove the key is suggested first, since true may reach everybody.
    """
    return f"Remove {key}: it cannot be false. Write true only if you mean {key}."


def _sort(value: Json) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return "a number" if isinstance(value, int | float) else TYPE_NAMES[next(iter(types_of_value(value)))]


def describe_accepted(branches: list[Schema]) -> list[str]:
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
