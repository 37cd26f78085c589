"""Queries of a JSON Schema: the types, keys and branches that it accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, cast

from lmsconf.model.canonical_json import Json

Schema: TypeAlias = Mapping[str, Json]
_TYPES: Final[dict[type, frozenset[str]]] = {
    bool: frozenset(["boolean"]),
    int: frozenset(["integer", "number"]),
    float: frozenset(["number"]),
    str: frozenset(["string"]),
    type(None): frozenset(["null"]),
}
_ALL: Final = frozenset(["string", "boolean", "integer", "number", "array", "object", "null"])


def types_of_value(value: Json) -> frozenset[str]:
    """Return the JSON types of a value."""
    if isinstance(value, dict | str):
        return frozenset(["object" if isinstance(value, dict) else "string"])
    return _TYPES.get(type(value), frozenset(["array"]))


def types_of_schema(schema: Schema) -> frozenset[str]:
    """Return the JSON types that a schema accepts; all if it restricts none."""
    if "type" in schema:
        named = schema["type"]
        return frozenset([named] if isinstance(named, str) else cast("list[str]", named))
    if "enum" in schema:
        return _union(types_of_value(value) for value in cast("list[Json]", schema["enum"]))
    if "const" in schema:
        return types_of_value(schema["const"])
    branches = branches_of(schema)
    return types_of_branches(branches) if branches else _ALL


def types_of_branches(branches: Iterable[Schema]) -> frozenset[str]:
    """Return the JSON types that at least one of the schemas accepts."""
    return _union(map(types_of_schema, branches))


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def properties(schema: Schema) -> Mapping[str, Json]:
    """Return the keys that a mapping may have, with the schema of each."""
    return cast("Mapping[str, Json]", schema.get("properties", {}))


def property_schema(schema: Schema, key: str) -> Schema:
    """Return the schema of one key; an empty schema for an unknown key."""
    return cast(Schema, properties(schema).get(key, {}))


def property_names(schema: Schema) -> list[str]:
    """Return the keys that a mapping may have."""
    return list(properties(schema))


def all_property_names(branches: Iterable[Schema]) -> list[str]:
    """Return the keys that a mapping of any of the branches may have."""
    return list(dict.fromkeys(key for branch in branches for key in properties(branch)))


def identifying_keys(schema: Schema) -> list[str]:
    """Return the keys that identify a branch of a union: its first required key, or else all its keys."""
    return required_keys(schema)[:1] or property_names(schema)


def required_keys(schema: Schema) -> list[str]:
    """Return the required keys of a mapping."""
    return cast("list[str]", schema.get("required", []))


def branches_of(schema: Schema) -> list[Schema]:
    """Return the branches of a union; empty if the schema is not one."""
    return cast("list[Schema]", schema.get("oneOf") or schema.get("anyOf") or [])


def item_schemas(schema: Schema) -> list[Schema]:
    """Return the alternative schemas of the items of a list; empty if items are not restricted."""
    items = schema.get("items") or schema.get("x-items")
    return alternative_schemas(items) if isinstance(items, dict) else []


def alternative_schemas(schema: Schema) -> list[Schema]:
    """Return the branches of a union, or the schema alone, also where its union only combines required keys."""
    return [schema] if "properties" in schema else branches_of(schema) or [schema]


def is_free_text(schema: Schema) -> bool:
    """Whether a schema accepts texts other than those it lists."""
    return "string" in types_of_schema(schema) and "enum" not in schema


def accepts_text(schema: Schema, text: str) -> bool:
    """Whether a schema accepts this text."""
    branches = branches_of(schema)
    if branches:
        return any(accepts_text(branch, text) for branch in branches)
    if "enum" in schema:
        return text in cast("list[Json]", schema["enum"])
    pattern = cast(str, schema.get("pattern", ""))
    return "string" in types_of_schema(schema) and bool(text.strip()) and re.search(pattern, text) is not None
