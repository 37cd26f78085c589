"""Operations: `schemas/openapi.json` as frozen values, one for each call that the service knows.

The description is the only place that knows methods, paths and names. Client and sandbox both read it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import cast
from urllib.parse import quote

from lmsconf.api.spec.names import NameMapping, Schema, key_of, levels, renamed
from lmsconf.support.package_data import schema_text

_PLACE = re.compile(r"\{(\w+)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_TRUTH = ("true", "false")
_METHODS = ("get", "post", "put", "patch", "delete")


def segment(value: str) -> str:
    """One path segment that holds exactly `value`. Raises ValueError for what could reach another path."""
    if value in ("", ".", ".."):
        raise ValueError(f"{value!r} cannot stand in a path")
    if _CONTROL.search(value):
        raise ValueError(f"{value!r} cannot stand in a path: it holds a control character")
    return quote(value, safe="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One call of the API.

    path_schemas        name in the path → schema
    query               name in the query → schema
    headers             canonical name of a header → its name on the wire; none of them is required
    body                the schema of the request's JSON, in the names of the dialect; None: the call carries none
    success             the schema of the answer's JSON, likewise; None: the answer carries nothing
    names               canonical name of a body property → its name on the wire
    said, heard         how a body goes out and an answer comes in, where names below the first level differ too
    dialect_keys        the dialect keys that this call depends on
    writes              it changes the workspace
    """

    id: str
    method: str
    path: str
    group: str
    summary: str
    path_schemas: Mapping[str, Schema]
    headers: Mapping[str, str]
    query: Mapping[str, Schema]
    required_query: frozenset[str]
    body: Schema | None
    success: Schema | None
    names: Mapping[str, str]
    dialect_keys: tuple[str, ...]
    writes: bool
    said: NameMapping = field(default_factory=NameMapping)
    heard: NameMapping = field(default_factory=NameMapping)

    @property
    def path_names(self) -> tuple[str, ...]:
        return tuple(self.path_schemas)

    def fill(self, path: Mapping[str, str]) -> str:
        """The path with its parameters in place, each kept to one segment. Raises ValueError for wrong ones."""
        if path.keys() != self.path_schemas.keys():
            raise ValueError(f"{self.id} takes the path parameters {list(self.path_names)}, not {sorted(path)}")
        for name, schema in self.path_schemas.items():
            allowed = _texts(schema)
            if allowed and path[name] not in allowed:
                raise ValueError(f"{self.id}: {name} is one of {', '.join(allowed)}")
        return _PLACE.sub(lambda place: segment(path[place[1]]), self.path)

    @property
    def required_body(self) -> frozenset[str]:
        """The wire names of the body properties that must be there."""
        return frozenset(cast("list[str]", (self.body or {}).get("required", [])))

    @property
    def takes_any_name(self) -> bool:
        """Whether the body is a map whose names are ids, not known in advance."""
        return self.body is not None and self.body.get("additionalProperties") is not False

    def renamed(self, names: Mapping[str, str]) -> Operation:
        """This operation in other words: dialect key → name on the wire."""
        properties = cast("Mapping[str, Schema]", (self.body or {}).get("properties", {}))
        return replace(
            self,
            body=self.body and renamed(self.body, names),
            success=self.success and renamed(self.success, names),
            headers={name: names.get(f"{self.id}.{name}", name) for name in self.headers},
            names=MappingProxyType({name: names.get(key_of(part), name) for name, part in properties.items()}),
            said=NameMapping.of(self.body, names),
            heard=NameMapping.of(self.success, names),
        )


def _texts(schema: Schema) -> Sequence[str]:
    """The only texts that a path parameter may be; empty: any."""
    return _TRUTH if schema["type"] == "boolean" else cast("Sequence[str]", schema.get("enum", ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of it: operations by id, behaviours by dialect key, and each wire name that is left open with its default.

    headers: the keys of the names that are a header's. siblings: key → the objects of bodies and answers that hold
    its name, each as (name, key) of every part; the key is empty where the specification shows the name.
    """

    operations: Mapping[str, Operation]
    behaviours: Mapping[str, Schema]
    names: Mapping[str, str]
    headers: frozenset[str]
    siblings: Mapping[str, Sequence[Sequence[tuple[str, str]]]]


@cache
def description() -> Description:
    """The description that travels with lmsconf, read once."""
    document = json.loads(schema_text("openapi.json"))
    operations = {found.id: found for found in _operations(document)}
    names = {
        key: key.rpartition(".")[2]
        for operation in operations.values()
        for key in operation.dialect_keys
        if key not in document["x-dialect"]
    }
    return Description(
        operations=MappingProxyType(operations),
        behaviours=MappingProxyType(document["x-dialect"]),
        names=MappingProxyType(names),
        headers=frozenset(f"{one.id}.{header}" for one in operations.values() for header in one.headers),
        siblings=_siblings(operations.values()),
    )


def _siblings(operations: Iterable[Operation]) -> dict[str, list[list[tuple[str, str]]]]:
    found: dict[str, list[list[tuple[str, str]]]] = {}
    schemas = [schema for one in operations for schema in (one.body, one.success) if schema]
    for level in (level for schema in schemas for level in levels(schema)):
        parts = [(name, key_of(part)) for name, part in level.items()]
        for key in {key for _, key in parts if key}:
            found.setdefault(key, []).append(parts)
    return found


def _operations(document: Mapping[str, Mapping[str, Mapping[str, object]]]) -> Iterator[Operation]:
    """Every operation of the document, in its order."""
    resolve = _Resolver(document)
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield _operation(path, method.upper(), cast("dict[str, object]", resolve(item[method])))


def _operation(path: str, method: str, said: Mapping[str, object]) -> Operation:
    """One operation from what the document says, its references already resolved."""
    given = cast("list[Schema]", said.get("parameters", []))
    schemas = {(str(one["in"]), str(one["name"])): cast("Schema", one["schema"]) for one in given}
    body = _content(said.get("requestBody"))
    success = _content(cast("Mapping[str, object]", said["responses"]).get("200"))
    properties = cast("Mapping[str, Schema]", (body or {}).get("properties", {}))
    return Operation(
        id=str(said["operationId"]),
        method=method,
        path=path,
        group=cast("list[str]", said["tags"])[0],
        summary=str(said["summary"]),
        path_schemas=MappingProxyType({name: schemas["path", name] for name in _PLACE.findall(path)}),
        headers=MappingProxyType({name: name for where, name in schemas if where == "header"}),
        query=MappingProxyType({name: schema for (where, name), schema in schemas.items() if where == "query"}),
        required_query=frozenset(str(one["name"]) for one in given if one["in"] == "query" and one.get("required")),
        body=body,
        success=success,
        names=MappingProxyType({name: name for name in properties}),
        dialect_keys=_dialect_keys(
            [*_parts(body), *given, *_parts(success)], cast("list[str]", said.get("x-dialect", []))
        ),
        writes=method != "GET" and not said.get("x-reads", False),
    )


def _parts(schema: Schema | None) -> list[Schema]:
    """All that a body or an answer holds, at any depth."""
    return [part for level in levels(schema or {}) for part in level.values()]


def _dialect_keys(parts: Iterable[Schema], behaviours: Iterable[str]) -> tuple[str, ...]:
    """The dialect keys of what is assumed, each once."""
    return tuple(dict.fromkeys([*filter(None, map(key_of, parts)), *behaviours]))


def _content(holder: object) -> Schema | None:
    """The schema of the JSON in a request body or a response, if it carries any."""
    content = cast("Mapping[str, Mapping[str, Schema]]", holder or {}).get("content", {})
    return content["application/json"]["schema"] if content else None  # type: ignore[return-value]  # as OpenAPI has it


class _Resolver:
    """Puts what it names in the place of every `$ref`. What is named twice is built once and shared."""

    def __init__(self, document: Mapping[str, object]) -> None:
        self._document = document
        self._named: dict[str, object] = {}

    def __call__(self, node: object) -> object:
        if isinstance(node, dict):
            return self._look_up(node["$ref"]) if "$ref" in node else {key: self(value) for key, value in node.items()}
        if isinstance(node, list):
            return [self(item) for item in node]
        return node

    def _look_up(self, pointer: str) -> object:
        if pointer not in self._named:
            node: object = self._document
            for step in pointer.removeprefix("#/").split("/"):
                node = cast("Mapping[str, object]", node)[step]
            self._named[pointer] = self(node)
        return self._named[pointer]
