"""Operations: `schemas/openapi.json`, the API description, as frozen values.

It is the only source of methods, paths and names, for the client and the sandbox alike. Canonical names of properties
are those of the description; wire names are those of a project's dialect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial, reduce
from operator import getitem
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast
from urllib.parse import quote

from msgspec import Struct, field
from msgspec.json import decode
from msgspec.structs import replace

from lmsconf.model.calls import ListOperation
from lmsconf.support.files import read_schema

Schema: TypeAlias = "Mapping[str, object]"
"""A JSON Schema whose every `$ref` is resolved."""
Tree: TypeAlias = "Mapping[str, tuple[str, Tree]]"
"""Name → (its new name, the tree of its value). Omits what keeps its names."""


def object_properties(schema: Schema) -> dict[str, Schema]:
    """Return name → schema of the properties of an object, or of the objects in an array."""
    properties = dict(_properties(schema))
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
    held = _properties(schema)
    new_names = {name: wire_names.get(dialect_key_of(part), name) for name, part in held.items()}
    renamed = partial(rename_properties, wire_names=wire_names)
    changed: dict[str, object] = {
        "properties": {new_names[name]: renamed(part) for name, part in held.items()},
        "required": [new_names.get(name, name) for name in cast("list[str]", schema.get("required", []))],
        "items": renamed(cast("Schema", schema["items"])) if "items" in schema else None,
        "allOf": [*map(renamed, cast("list[Schema]", schema.get("allOf", [])))],
    }
    return {key: changed.get(key, value) for key, value in schema.items()}


def _tree(schema: Schema | None, names: Mapping[str, str], *, inward: bool) -> Tree:
    """Return the names to change in values of this schema; `inward`: from wire to canonical names."""
    tree: dict[str, tuple[str, Tree]] = {}
    for name, part in object_properties(schema or {}).items():
        wire_name = names.get(dialect_key_of(part), name)
        below = _tree(part, names, inward=inward)
        if wire_name != name or below:
            tree[wire_name if inward else name] = (name if inward else wire_name, below)
    return tree


def with_names(value: object, tree: Tree) -> object:
    """Return a JSON value with its names changed. What is not JSON, such as a Ref, stays."""
    if not tree:
        return value
    if isinstance(value, list):
        return [with_names(item, tree) for item in value]
    if isinstance(value, dict):
        return {to: with_names(part, below) for key, part in value.items() for to, below in [tree.get(key, (key, {}))]}
    return value


MATCH_COUNT: Final = "users.list.match-count"
"""Whether listings of users count the people that they list, or also archived ones that they leave out."""
USERS: Final = ListOperation("users.list", "users", "userId", "matchCount", counted=MATCH_COUNT)
EXTENDED_INFO: Final = ListOperation("users.extended-info", "users", "userId", "matchCount", counted=MATCH_COUNT)
"""GET /users/extended-info: users with their groups and rights."""
CUSTOM_FIELDS: Final = ListOperation("custom-fields.list", "customFields", "customFieldId")
MANUAL_GROUPS: Final = ListOperation("manual-groups.list", "groups", "groupId", reserved="content-targets.everyone")
SMART_GROUPS: Final = ListOperation("smart-groups.list", "smartGroups", "smartGroupId")
CATALOG: Final = ListOperation("content.list", "courses", "courseId", "total")

PATH_PARAMETER = re.compile(r"\{(\w+)\}")


def encode_path_segment(value: str) -> str:
    """Percent-encode a value as one path segment. Raises ValueError for what could reach another path."""
    if why := path_segment_problem(value):
        raise ValueError(why)
    return quote(value, safe="")


def path_segment_problem(value: str) -> str | None:
    """Return why a value, encoded as one path segment, could reach another path; None if it cannot."""
    if value in ("", ".", ".."):
        return f"{value!r} is not allowed in a path"
    if re.search(r"[\x00-\x1f\x7f-\x9f]", value):
        return f"{value!r} is not allowed in a path: it contains a control character"
    return None


class Operation(Struct, frozen=True, kw_only=True):
    """One operation of the API: method, path and schemas.

    path_schemas        path parameter → schema
    query               query parameter → schema
    headers             canonical header name → wire name; all are optional
    body                schema of the request body, with wire names; None: no body
    success             schema of the response body, likewise; None: no body
    to_request          the changes from canonical to wire names in a request body; from_request: back
    to_response         those in a response body; from_response: back
    dialect_keys        the dialect keys that this operation depends on
    writes              the operation changes the workspace
    """

    id: str
    method: str
    path: str
    path_schemas: Mapping[str, Schema]
    headers: Mapping[str, str]
    query: Mapping[str, Schema]
    required_query: frozenset[str]
    body: Schema | None
    success: Schema | None
    dialect_keys: tuple[str, ...]
    writes: bool
    to_request: Tree = field(default_factory=dict)
    from_request: Tree = field(default_factory=dict)
    to_response: Tree = field(default_factory=dict)
    from_response: Tree = field(default_factory=dict)

    def fill_path(self, parameters: Mapping[str, str]) -> str:
        """Return the path with its parameters filled in, one segment each. Raises ValueError for wrong parameters."""
        if parameters.keys() != self.path_schemas.keys():
            raise ValueError(f"{self.id} takes the path parameters {list(self.path_schemas)}, not {sorted(parameters)}")
        for name, schema in self.path_schemas.items():
            is_boolean = schema["type"] == "boolean"
            allowed = ("true", "false") if is_boolean else cast("Sequence[str]", schema.get("enum", ()))
            if allowed and parameters[name] not in allowed:
                raise ValueError(f"{self.id}: {name} is one of {', '.join(allowed)}")
        return PATH_PARAMETER.sub(lambda place: encode_path_segment(parameters[place[1]]), self.path)

    @property
    def required_body_names(self) -> frozenset[str]:
        """The wire names of the required body properties."""
        return frozenset(cast("list[str]", (self.body or {}).get("required", [])))

    def refuse_unknown_names(self, body: Mapping[str, object]) -> None:
        """Raise ValueError for a property that is not one of the request body, by its wire name."""
        # A body may allow properties that its schema does not list, such as ids.
        if self.body is None or self.body.get("additionalProperties") is False:
            self.refuse("has no body property", body.keys() - _properties(self.body).keys())

    def refuse(self, problem: str, names: Collection[str]) -> None:
        """Raise ValueError if there are names to which the problem applies."""
        if names:
            raise ValueError(f"{self.id} {problem} {sorted(names)}")


@cache
def compile_schema(schema: bytes, *, formats: bool) -> Callable[[object], None]:
    """Return a function that raises ValueError for what does not match a schema, which is given as JSON.

    The error names the place and the rule, but not the value: it may be personal data. formats: those of texts count.
    """
    import fastjsonschema  # slow to import, and no plan needs it

    validate = fastjsonschema.compile(json.loads(schema), use_default=False, use_formats=formats)

    def check(value: object) -> None:
        try:
            validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            place, message = (str(text).removeprefix("data.") for text in (error.name, error.message))
            branches = error.rule_definition if error.rule in ("oneOf", "anyOf") else ()
            if names := [name for branch in branches for name in branch.get("required", [])]:
                number = "exactly" if error.rule == "oneOf" else "at least"
                message = f"{place} must contain {number} one of {', '.join(names)}"
            raise ValueError(message) from None

    return check


class ApiDescription(Struct, frozen=True, kw_only=True):
    """The API description.

    operations  operation id → operation
    behaviours  dialect key → schema of the behaviour
    names       dialect key of a name that the specification leaves open → default wire name
    headers     the keys in `names` that name a header
    """

    operations: Mapping[str, Operation]
    behaviours: Mapping[str, Schema]
    names: Mapping[str, str]
    headers: frozenset[str]


@cache
def load_api_description() -> ApiDescription:
    """Return the API description packaged with lmsconf, read once per process."""
    document = decode(read_schema("openapi.json"))
    listed = (
        _operation(path, method.upper(), cast("Schema", _resolved(methods[method], document)))
        for path, methods in document["paths"].items()
        for method in ("get", "post", "put", "patch", "delete")
        if method in methods
    )
    operations = {operation.id: operation for operation in listed}
    names = {
        key: key.rpartition(".")[2]
        for operation in operations.values()
        for key in operation.dialect_keys
        if key not in document["x-dialect"]
    }
    return ApiDescription(
        operations=MappingProxyType(operations),
        behaviours=MappingProxyType(document["x-dialect"]),
        names=MappingProxyType(names),
        headers=frozenset(f"{one.id}.{header}" for one in operations.values() for header in one.headers),
    )


@lru_cache(maxsize=512)  # a probe makes the same few operations for each of its tries
def with_wire_names(id: str, wire_names: frozenset[tuple[str, str]]) -> Operation:
    """Return an operation with other wire names. wire_names: dialect keys with their wire names."""
    operation, known = load_api_description().operations[id], dict(wire_names)
    return replace(
        operation,
        body=operation.body and rename_properties(operation.body, known),
        success=operation.success and rename_properties(operation.success, known),
        headers={name: known.get(f"{id}.{name}", name) for name in operation.headers},
        to_request=_tree(operation.body, known, inward=False),
        from_request=_tree(operation.body, known, inward=True),
        to_response=_tree(operation.success, known, inward=False),
        from_response=_tree(operation.success, known, inward=True),
    )


def _operation(path: str, method: str, definition: Mapping[str, object]) -> Operation:
    """Return one operation from its OpenAPI object, references resolved."""
    given = cast("list[Schema]", definition.get("parameters", []))
    schemas = {(str(one["in"]), str(one["name"])): cast("Schema", one["schema"]) for one in given}
    body = _content(definition.get("requestBody"))
    success = _content(cast("Mapping[str, object]", definition["responses"]).get("200"))
    keys = filter(None, map(dialect_key_of, (*_parts(body), *given, *_parts(success))))
    return Operation(
        id=str(definition["operationId"]),
        method=method,
        path=path,
        path_schemas=MappingProxyType({name: schemas["path", name] for name in PATH_PARAMETER.findall(path)}),
        headers=MappingProxyType({name: name for where, name in schemas if where == "header"}),
        query=MappingProxyType({name: schema for (where, name), schema in schemas.items() if where == "query"}),
        required_query=frozenset(str(one["name"]) for one in given if one["in"] == "query" and one.get("required")),
        body=body,
        success=success,
        dialect_keys=tuple(dict.fromkeys([*keys, *cast("list[str]", definition.get("x-dialect", []))])),
        writes=method != "GET" and not definition.get("x-reads", False),
    )


def _properties(schema: Schema | None) -> Mapping[str, Schema]:
    return cast("Mapping[str, Schema]", (schema or {}).get("properties", {}))


def _parts(schema: Schema | None) -> list[Schema]:
    """Return the properties of a body, at any depth."""
    return [part for level in nested_properties(schema or {}) for part in level.values()]


def _content(holder: object) -> Schema | None:
    """Return the schema of the JSON in a request body or a response, None without one."""
    content = cast("Mapping[str, Mapping[str, Schema]]", holder or {}).get("content", {})
    return content["application/json"]["schema"] if content else None  # type: ignore[return-value]  # as OpenAPI has it


def _resolved(node: object, document: Mapping[str, Any]) -> object:
    """Replace every `$ref` by its target."""
    if isinstance(node, list):
        return [_resolved(item, document) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _resolved(reduce(getitem, node["$ref"].removeprefix("#/").split("/"), document), document)
    return {key: _resolved(value, document) for key, value in node.items()}
