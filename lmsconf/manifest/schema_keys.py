"""The keys of a JSON Schema, with their types and meanings in words, for `explain`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias, cast

from lmsconf.model.canonical_json import Json

Schema: TypeAlias = "Mapping[str, Json]"
_WORDS: Final = {
    "string": "text",
    "boolean": "true or false",
    "integer": "whole number",
    "number": "number",
    "object": "mapping",
    "null": "null",
}


def resolved(schema: Schema, definitions: Mapping[str, Json] | None = None) -> Schema:
    """Return a schema with its references to `$defs` written out; what is beside a reference is kept."""
    known = cast("Mapping[str, Json]", schema.get("$defs", {})) if definitions is None else definitions
    return cast(Schema, _written_out(dict(schema), known))


def _written_out(part: Json, definitions: Mapping[str, Json]) -> Json:
    if isinstance(part, list):
        return [_written_out(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    whole = {key: _written_out(value, definitions) for key, value in part.items() if key not in ("$ref", "$defs")}
    if "$ref" not in part:
        return whole
    target = _written_out(definitions[str(part["$ref"]).rpartition("/")[2]], definitions)
    return {**cast("dict[str, Json]", target), **whole}


def alternatives(schema: Schema) -> Iterator[Schema]:
    """Yield the schema and, recursively, its alternatives, the items of a list, and the values of a mapping."""
    yield schema
    for word in ("oneOf", "anyOf", "allOf"):
        for branch in cast("list[Schema]", schema.get(word, [])):
            yield from alternatives(branch)
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from alternatives(cast(Schema, schema[word]))


def keys_of(schema: Schema) -> dict[str, Schema]:
    """Return the keys that may be below a position."""
    keys: dict[str, Schema] = {}
    for alternative in alternatives(schema):
        for name, part in cast("Mapping[str, Schema]", alternative.get("properties", {})).items():
            keys.setdefault(name, part)
    return keys


def values_of(schema: Schema) -> Schema | None:
    """Return the schema of the values of a mapping with names of the user's own; None for any other position."""
    values = (alternative.get("additionalProperties") for alternative in alternatives(schema))
    return next((cast(Schema, value) for value in values if isinstance(value, dict)), None)


def needed_keys(schema: Schema) -> frozenset[str]:
    """Return the keys that every alternative mapping requires, except one that reads its entries from a sheet."""
    needs = [
        frozenset(cast("list[str]", alternative.get("required", [])))
        for alternative in alternatives(schema)
        if "properties" in alternative and not alternative.get("x-sheet")
    ]
    return frozenset.intersection(*needs) if needs else frozenset()


def meaning_in(schema: Schema) -> str:
    """Return the first description in the schema or its alternatives."""
    return next(
        (str(alternative["description"]) for alternative in alternatives(schema) if "description" in alternative), ""
    )


def type_in_words(schema: Schema) -> str:
    """Describe the accepted types in words."""
    for word in ("oneOf", "anyOf") if "type" not in schema else ():
        if word in schema:
            return " or ".join(dict.fromkeys(type_in_words(one) for one in cast("list[Schema]", schema[word])))
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        values = [str(one) for one in cast("list[Json]", schema["enum"])]
        return values[0] if len(values) == 1 else "one of " + ", ".join(values)
    types = schema.get("type")
    if types == "array":
        items = schema.get("items")
        return f"list of {type_in_words(cast(Schema, items))}" if isinstance(items, dict) and items else "list"
    words = types if isinstance(types, list) else [types]
    return " or ".join(_WORDS.get(str(one), "anything") for one in words)
