"""Samples of what a schema accepts, in the form in which people write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final, cast

from lmsconf.errors import SHOWN
from lmsconf.manifest.validation.schema_query import (
    Schema,
    alternative_schemas,
    branches_of,
    identifying_keys,
    item_schemas,
    property_schema,
    required_keys,
    types_of_schema,
)
from lmsconf.manifest.yaml.scalars import resolve_scalar
from lmsconf.model.canonical_json import Json

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
