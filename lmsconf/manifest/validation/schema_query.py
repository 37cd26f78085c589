"""Queries of a JSON Schema: the types, keys and branches that it accepts, and samples of what people write for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias, cast

from lmsconf.errors import SHOWN
from lmsconf.manifest.yaml.scalars import resolve_scalar
from lmsconf.model.canonical_json import Json

Schema: TypeAlias = Mapping[str, Json]
_TYPES: Final[dict[type, frozenset[str]]] = {
    bool: frozenset(["boolean"]),
    int: frozenset(["integer", "number"]),
    float: frozenset(["number"]),
    str: frozenset(["string"]),
    type(None): frozenset(["null"]),
}
TYPE_NAMES: Final = {
    "string": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}
"""Names of the JSON types in messages."""
_PLAIN: Final = re.compile(r"[^\W\d_][\w.@+/&()'-]*(?: [\w.@+/&()'-]+)*|\d{4}-\d{2}-\d{2}")
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


def all_property_names(branches: Iterable[Schema]) -> list[str]:
    """Return the keys that a mapping of any of the branches may have."""
    return list(dict.fromkeys(key for branch in branches for key in properties(branch)))


def identifying_keys(schema: Schema) -> list[str]:
    """Return the keys that identify a branch of a union: its first required key, or else all its keys."""
    return required_keys(schema)[:1] or [*properties(schema)]


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


def quote_if_needed(text: str) -> str:
    """Format a text for use within brackets, quoted only where needed."""
    if len(text) > SHOWN:
        return "…"
    bare = _PLAIN.fullmatch(text) and isinstance(resolve_scalar(text), str)
    return text if bare else json.dumps(text, ensure_ascii=False)


def join_with_or(words: list[str]) -> str:
    """Join words: `a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def suggest_from_schema(schema: Schema) -> str:
    """Return the suggestion that follows from the schema alone."""
    branches = alternative_schemas(schema)
    samples = [sample for branch in _harmless(branches) for sample in _samples(branch)]
    return f"Write {join_with_or(list(dict.fromkeys(samples)))}."


def _harmless(branches: list[Schema]) -> list[Schema]:
    """Drop branches whose key or value is a constant such as `everyone`, so that none is suggested by mistake."""
    words = {
        key for branch in branches for key in identifying_keys(branch)[:1] if "const" in property_schema(branch, key)
    }
    kept = [
        branch
        for branch in branches
        if not words.intersection(identifying_keys(branch)[:1])
        and not words.intersection(cast("list[str]", branch.get("enum", [])))
    ]
    return kept or branches


def _samples(schema: Schema) -> Iterator[str]:
    """Yield samples of what a schema accepts, in the form in which people write them."""
    if "enum" in schema or "const" in schema:
        values = cast("list[Json]", schema.get("enum", [schema.get("const")]))
        yield from (value if isinstance(value, str) else json.dumps(value) for value in values)
        return
    types = types_of_schema(schema) - {"null"}
    if "object" in types:
        yield mapping_sample(schema)
    if "array" in types:
        yield f"a list: [{first_item_sample(item_schemas(schema))}]"
    yield from (TYPE_NAMES[name] for name in ("string", "boolean") if name in types)
    if types & {"integer", "number"}:
        low, high = schema.get("minimum"), schema.get("maximum")
        number = TYPE_NAMES["number" if "number" in types else "integer"]
        yield f"{number} from {low} {'on' if high is None else f'to {high}'}" if low is not None else number


def first_item_sample(items: list[Schema]) -> str:
    mappings = [item for item in items if "object" in types_of_schema(item)]
    return mapping_sample(mappings[0]) if items and len(mappings) == len(items) else "…"


def mapping_sample(schema: Schema, first_value: str | None = None) -> str:
    """Return a sample mapping with its required keys, the first of them with the value `first_value`."""
    below = schema.get("additionalProperties")
    if isinstance(below, dict) and types_of_schema(below) == {"array"}:
        return "{name: […]}"
    keys = required_keys(schema) or identifying_keys(schema)[:1] or ["key"]
    more = next((required_keys(branch) for branch in branches_of(schema)), []) if required_keys(schema) else []
    parts = [
        f"{key}: {'[…]' if types_of_schema(property_schema(schema, key)) == {'array'} else '…'}" for key in keys + more
    ]
    if first_value is not None:
        parts[0] = f"{keys[0]}: {first_value}"
    return f"{{{', '.join(parts)}}}"
