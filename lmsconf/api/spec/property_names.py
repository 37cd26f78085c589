"""Translate property names of bodies and responses, at any depth.

Canonical names are those of `schemas/openapi.json`; wire names are those of a project's dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias, cast

from msgspec import Struct, field

Schema: TypeAlias = "Mapping[str, object]"
"""A JSON Schema whose every `$ref` is resolved."""
Tree: TypeAlias = "Mapping[str, tuple[str, Tree]]"
"""Name → (its new name, the tree of its value). Omits what keeps its names."""


class NameMapping(Struct, frozen=True):
    """The property names of one JSON value: canonical ⇄ wire.

    Values that are not JSON, such as a reference not yet replaced by its id, pass unchanged.
    """

    _outward: Tree = field(default_factory=dict)
    _inward: Tree = field(default_factory=dict)

    @classmethod
    def for_schema(cls, schema: Schema | None, wire_names: Mapping[str, str]) -> NameMapping:
        """Return the mapping for values of a schema. wire_names: dialect key → wire name."""
        return cls(_tree(schema or {}, wire_names, inward=False), _tree(schema or {}, wire_names, inward=True))

    def to_wire(self, value: object) -> object:
        """Return the value with wire names."""
        return _with_names(value, self._outward)

    def from_wire(self, value: object) -> object:
        """Return the value with canonical names."""
        return _with_names(value, self._inward)


def object_properties(schema: Schema) -> dict[str, Schema]:
    """Return name → schema of the properties of an object, or of the objects in an array."""
    properties = dict(cast("Mapping[str, Schema]", schema.get("properties", {})))
    inside = [
        *cast("list[Schema]", schema.get("allOf", [])),
        *([cast("Schema", schema["items"])] if "items" in schema else []),
    ]
    for one in inside:
        properties |= object_properties(one)
    return properties


def nested_properties(schema: Schema) -> Iterator[dict[str, Schema]]:
    """Yield the properties of each object in the schema, outer objects first."""
    if properties := object_properties(schema):
        yield properties
    for part in properties.values():
        yield from nested_properties(part)


def dialect_key_of(part: Schema) -> str:
    """Return the dialect key of a property whose name is assumed; empty if the specification shows the name."""
    return str(part.get("x-dialect", ""))


def rename_properties(schema: Schema, wire_names: Mapping[str, str]) -> Schema:
    """Return the schema with wire names for its properties; other keywords are kept. wire_names: by dialect key."""
    changed = dict(schema)
    if "properties" in schema:
        held = cast("Mapping[str, Schema]", schema["properties"])
        new_names = {name: wire_names.get(dialect_key_of(part), name) for name, part in held.items()}
        changed["properties"] = {new_names[name]: rename_properties(part, wire_names) for name, part in held.items()}
        if "required" in schema:
            changed["required"] = [new_names[name] for name in cast("list[str]", schema["required"])]
    if "items" in schema:
        changed["items"] = rename_properties(cast("Schema", schema["items"]), wire_names)
    if "allOf" in schema:
        changed["allOf"] = [rename_properties(one, wire_names) for one in cast("list[Schema]", schema["allOf"])]
    return changed


def _tree(schema: Schema, names: Mapping[str, str], *, inward: bool) -> Tree:
    """Return the tree of names to change in values of this schema."""
    tree: dict[str, tuple[str, Tree]] = {}
    for name, part in object_properties(schema).items():
        wire_name = names.get(dialect_key_of(part), name)
        below = _tree(part, names, inward=inward)
        if wire_name != name or below:
            tree[wire_name if inward else name] = (name if inward else wire_name, below)
    return tree


def _with_names(value: object, tree: Tree) -> object:
    """Return the value with its names changed."""
    if not tree:
        return value
    if isinstance(value, list):
        return [_with_names(item, tree) for item in value]
    if isinstance(value, dict):
        return {to: _with_names(part, below) for key, part in value.items() for to, below in [tree.get(key, (key, {}))]}
    return value
