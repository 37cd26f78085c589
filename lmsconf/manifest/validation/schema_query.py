"""What a JSON Schema lets through, as far as it says: types, keys, branches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias, cast

from lmsconf.model.values import Json

Schema: TypeAlias = Mapping[str, Json]
_TYPES: Final[dict[type, frozenset[str]]] = {
    bool: frozenset(["boolean"]),
    int: frozenset(["integer", "number"]),
    float: frozenset(["number"]),
    str: frozenset(["string"]),
    type(None): frozenset(["null"]),
}
_ALL: Final = frozenset(["string", "boolean", "integer", "number", "array", "object", "null"])


def types_of(value: Json) -> frozenset[str]:
    """The JSON types that a value has."""
    if isinstance(value, dict):
        return frozenset(["object"])
    return _TYPES.get(type(value), frozenset(["array"]))


def types_of_schema(schema: Schema) -> frozenset[str]:
    """The JSON types that a schema lets through, as far as it says."""
    if "type" in schema:
        named = schema["type"]
        return frozenset([named] if isinstance(named, str) else cast("list[str]", named))
    if "enum" in schema:
        return _union(types_of(value) for value in cast("list[Json]", schema["enum"]))
    if "const" in schema:
        return types_of(schema["const"])
    branches = branches_of(schema)
    return types_of_any(branches) if branches else _ALL


def types_of_any(branches: Iterable[Schema]) -> frozenset[str]:
    """The JSON types that one of several schemas lets through."""
    return _union(map(types_of_schema, branches))


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)


def properties(schema: Schema) -> Mapping[str, Json]:
    """The keys that a mapping may have, with the schema of each."""
    return cast("Mapping[str, Json]", schema.get("properties", {}))


def property_of(schema: Schema, key: str) -> Schema:
    """The schema of one key; of an unknown one, that says nothing."""
    return cast(Schema, properties(schema).get(key, {}))


def keys_of(schema: Schema) -> list[str]:
    """The keys that a mapping may have."""
    return list(properties(schema))


def heads(schema: Schema) -> list[str]:
    """The keys that tell one branch of a union from the others: the first that it needs, or any that it knows."""
    return needed_keys(schema)[:1] or keys_of(schema)


def needed_keys(schema: Schema) -> list[str]:
    """The keys that a mapping must have."""
    return cast("list[str]", schema.get("required", []))


def branches_of(schema: Schema) -> list[Schema]:
    """The schemas of a union, of which one must fit; none where it is no union."""
    return cast("list[Schema]", schema.get("oneOf") or schema.get("anyOf") or [])


def items_of(schema: Schema) -> list[Schema]:
    """The schemas of which each item of a list must fit one; none where nothing is said."""
    items = schema.get("items") or schema.get("x-items")
    return alternatives(items) if isinstance(items, dict) else []


def alternatives(schema: Schema) -> list[Schema]:
    """What a value may be: the branches of a union, or the schema alone, be its keys bound together in a union."""
    return [schema] if "properties" in schema else branches_of(schema) or [schema]


def is_free_text(schema: Schema) -> bool:
    """Whether texts are let through that the schema does not name."""
    return "string" in types_of_schema(schema) and "enum" not in schema


def takes(schema: Schema, text: str) -> bool:
    """Whether a schema lets this text through."""
    branches = branches_of(schema)
    if branches:
        return any(takes(branch, text) for branch in branches)
    if "enum" in schema:
        return text in cast("list[Json]", schema["enum"])
    pattern = cast(str, schema.get("pattern", ""))
    return "string" in types_of_schema(schema) and bool(text.strip()) and re.search(pattern, text) is not None
