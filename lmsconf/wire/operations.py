"""Operations: `schemas/openapi.json` as frozen values, one for each call that the service knows.

The description is the only place that knows methods, paths and names. Client and sandbox both read it here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TypeAlias, cast
from urllib.parse import quote

from lmsconf.resources import schema_text

Schema: TypeAlias = "Mapping[str, object]"
"""A JSON Schema with nothing left to look up: every `$ref` is replaced by what it names."""

_PLACE = re.compile(r"\{(\w+)\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
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

    path_names, query   the parameters: names in the path, and query name → schema
    body                the schema of the request's JSON, in the names of the dialect; None: the call carries none
    success             the schema of the answer's JSON; None: the answer carries nothing
    names               canonical name of a body property → its name on the wire
    leans_on            the dialect keys that this call depends on
    writes              it changes the workspace
    """

    id: str
    method: str
    path: str
    group: str
    summary: str
    path_names: tuple[str, ...]
    query: Mapping[str, Schema]
    required_query: frozenset[str]
    body: Schema | None
    success: Schema | None
    names: Mapping[str, str]
    leans_on: tuple[str, ...]
    writes: bool

    def fill(self, path: Mapping[str, str]) -> str:
        """The path with its parameters in place, each kept to one segment. Raises ValueError for wrong ones."""
        if path.keys() != set(self.path_names):
            raise ValueError(f"{self.id} takes the path parameters {list(self.path_names)}, not {sorted(path)}")
        return _PLACE.sub(lambda place: segment(path[place[1]]), self.path)

    @property
    def required_body(self) -> frozenset[str]:
        """The wire names of the body properties that must be there."""
        return frozenset(cast("list[str]", (self.body or {}).get("required", [])))

    def renamed(self, names: Mapping[str, str]) -> Operation:
        """This operation with other wire names for some of its canonical body properties."""
        if self.body is None:
            return self
        merged = {**self.names, **names}
        to_wire = {self.names[canonical]: wire for canonical, wire in merged.items()}
        properties = cast("Schema", self.body["properties"])
        body = {**self.body, "properties": {to_wire[name]: schema for name, schema in properties.items()}}
        if self.required_body:
            body["required"] = sorted(to_wire[name] for name in self.required_body)
        return replace(self, body=body, names=MappingProxyType(merged))


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """All of it: operations by id, behaviours by dialect key, and each wire name that is left open with its default."""

    operations: Mapping[str, Operation]
    behaviours: Mapping[str, Schema]
    names: Mapping[str, str]


@cache
def description() -> Description:
    """The description that travels with lmsconf, read once."""
    document = json.loads(schema_text("openapi.json"))
    operations = {found.id: found for found in _operations(document)}
    names = {
        key: key.removeprefix(f"{operation.id}.")
        for operation in operations.values()
        for key in operation.leans_on
        if key not in document["x-dialect"]
    }
    return Description(
        operations=MappingProxyType(operations),
        behaviours=MappingProxyType(document["x-dialect"]),
        names=MappingProxyType(names),
    )


def _operations(document: Mapping[str, Mapping[str, Mapping[str, object]]]) -> Iterator[Operation]:
    """Every operation of the document, in its order."""
    resolve = _Resolver(document)
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                yield _operation(path, method.upper(), cast("dict[str, object]", resolve(item[method])))


def _operation(path: str, method: str, said: Mapping[str, object]) -> Operation:
    """One operation from what the document says, its references already resolved."""
    parameters = cast("list[dict[str, object]]", said.get("parameters", []))
    query = [parameter for parameter in parameters if parameter["in"] == "query"]
    body = _content(said.get("requestBody"))
    properties = cast("Mapping[str, Schema]", (body or {}).get("properties", {}))
    behaviours = cast("list[str]", said.get("x-dialect", []))
    return Operation(
        id=str(said["operationId"]),
        method=method,
        path=path,
        group=cast("list[str]", said["tags"])[0],
        summary=str(said["summary"]),
        path_names=tuple(_PLACE.findall(path)),
        query=MappingProxyType({str(one["name"]): cast("Schema", one["schema"]) for one in query}),
        required_query=frozenset(str(one["name"]) for one in query if one.get("required")),
        body=body,
        success=_content(cast("Mapping[str, object]", said["responses"]).get("200")),
        names=MappingProxyType({name: name for name in properties}),
        leans_on=(*(str(one["x-dialect"]) for one in properties.values() if "x-dialect" in one), *behaviours),
        writes=method != "GET" and not said.get("x-reads", False),
    )


def _content(holder: object) -> Schema | None:
    """The schema of the JSON in a request body or a response, if it carries any."""
    content = cast("Mapping[str, Mapping[str, Schema]]", holder or {}).get("content", {})
    return content["application/json"]["schema"] if content else None  # type: ignore[return-value]


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
