"""Translate property names of bodies and responses, at any depth.

Canonical names are those of `schemas/openapi.json`; wire names are those of a project's dialect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

Schema: TypeAlias = "Mapping[str, object]"
"""A JSON Schema whose every `$ref` is resolved."""
Tree: TypeAlias = "Mapping[str, tuple[str, Tree]]"
"""Name → (its new name, the tree of its value). Omits what keeps its names."""


@dataclass(frozen=True, slots=True)
class NameMapping:
    """The property names of one JSON value: canonical ⇄ wire.

    Values that are not JSON, such as a reference not yet replaced by its id, pass unchanged.
    """

    _outward: Tree = field(default_factory=dict)
    _inward: Tree = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema | None, names: Mapping[str, str]) -> NameMapping:
        """Return the mapping for values of a schema. names: dialect key → wire name."""
        return cls(_tree(schema or {}, names, inward=False), _tree(schema or {}, names, inward=True))

    def to_wire(self, value: object) -> object:
        """Return the value with wire names."""
        return _said(value, self._outward)

    def from_wire(self, value: object) -> object:
        """Return the value with canonical names."""
        return _said(value, self._inward)


def parts(schema: Schema) -> dict[str, Schema]:
    """Return name → schema of the properties of an object, or of the objects in an array."""
    found = dict(cast("Mapping[str, Schema]", schema.get("properties", {})))
    inside = [
        *cast("list[Schema]", schema.get("allOf", [])),
        *([cast("Schema", schema["items"])] if "items" in schema else []),
    ]
    for one in inside:
        found |= parts(one)
    return found


def levels(schema: Schema) -> Iterator[dict[str, Schema]]:
    """Yield the properties of each object in the schema, outer objects first."""
    if found := parts(schema):
        yield found
    for part in found.values():
        yield from levels(part)


def key_of(part: Schema) -> str:
    """Return the dialect key of a property whose name is assumed; empty if the specification shows the name."""
    return str(part.get("x-dialect", ""))


def renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """Return the schema with wire names for its properties; other keywords are kept. names: dialect key → wire name."""
    found = dict(schema)
    if "properties" in schema:
        held = cast("Mapping[str, Schema]", schema["properties"])
        to_wire = {name: names.get(key_of(part), name) for name, part in held.items()}
        found["properties"] = {to_wire[name]: renamed(part, names) for name, part in held.items()}
        if "required" in schema:
            found["required"] = [to_wire[name] for name in cast("list[str]", schema["required"])]
    if "items" in schema:
        found["items"] = renamed(cast("Schema", schema["items"]), names)
    if "allOf" in schema:
        found["allOf"] = [renamed(one, names) for one in cast("list[Schema]", schema["allOf"])]
    return found


def _tree(schema: Schema, names: Mapping[str, str], *, inward: bool) -> Tree:
    """Return the tree of names to change in values of this schema."""
    found: dict[str, tuple[str, Tree]] = {}
    for name, part in parts(schema).items():
        wire = names.get(key_of(part), name)
        below = _tree(part, names, inward=inward)
        if wire != name or below:
            found[wire if inward else name] = (name if inward else wire, below)
    return found


def _said(value: object, tree: Tree) -> object:
    """Return the value with its names changed."""
    if not tree:
        return value
    if isinstance(value, list):
        return [_said(item, tree) for item in value]
    if isinstance(value, dict):
        return {to: _said(part, below) for key, part in value.items() for to, below in [tree.get(key, (key, {}))]}
    return value
