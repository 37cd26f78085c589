"""Names at every depth of a body or an answer: the description's own on one side, a dialect's on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

Schema: TypeAlias = "Mapping[str, object]"
"""A JSON Schema with nothing left to look up: every `$ref` is replaced by what it names."""
Tree: TypeAlias = "Mapping[str, tuple[str, Tree]]"
"""Name → the name to say instead, and the same for what it holds. What keeps its names is left out."""


@dataclass(frozen=True, slots=True)
class NameMapping:
    """How one JSON value is said on the wire. Names of the description go out, names of the wire come in.

    What is no JSON, as a name that still waits for its id, passes untouched.
    """

    _outward: Tree = field(default_factory=dict)
    _inward: Tree = field(default_factory=dict)

    @classmethod
    def of(cls, schema: Schema | None, names: Mapping[str, str]) -> NameMapping:
        """The words of a value of this schema, where `names` are dialect keys with their names on the wire."""
        return cls(_tree(schema or {}, names, inward=False), _tree(schema or {}, names, inward=True))

    def to_wire(self, value: object) -> object:
        """The value with the names of the wire."""
        return _said(value, self._outward)

    def from_wire(self, value: object) -> object:
        """The value with the description's own names."""
        return _said(value, self._inward)


def parts(schema: Schema) -> dict[str, Schema]:
    """Name → schema of what an object of this schema holds, or each object of a list."""
    found = dict(cast("Mapping[str, Schema]", schema.get("properties", {})))
    inside = [
        *cast("list[Schema]", schema.get("allOf", [])),
        *([cast("Schema", schema["items"])] if "items" in schema else []),
    ]
    for one in inside:
        found |= parts(one)
    return found


def levels(schema: Schema) -> Iterator[dict[str, Schema]]:
    """What each object of this schema holds, the outer ones first."""
    if found := parts(schema):
        yield found
    for part in found.values():
        yield from levels(part)


def key_of(part: Schema) -> str:
    """The dialect key of a name that is assumed; empty for one that the specification shows."""
    return str(part.get("x-dialect", ""))


def renamed(schema: Schema, names: Mapping[str, str]) -> Schema:
    """The schema with the names of the wire. Bounds that name no part stay as they are."""
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
    """What has to be said otherwise in a value of this schema."""
    found: dict[str, tuple[str, Tree]] = {}
    for name, part in parts(schema).items():
        wire = names.get(key_of(part), name)
        below = _tree(part, names, inward=inward)
        if wire != name or below:
            found[wire if inward else name] = (name if inward else wire, below)
    return found


def _said(value: object, tree: Tree) -> object:
    """The value, said otherwise."""
    if not tree:
        return value
    if isinstance(value, list):
        return [_said(item, tree) for item in value]
    if isinstance(value, dict):
        return {to: _said(part, below) for key, part in value.items() for to, below in [tree.get(key, (key, {}))]}
    return value
