"""Validate requests against the API description. Anything unknown is rejected with 400, by name."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import unquote_plus

from lmsconf.api.spec import Operation, Schema
from lmsconf.sandbox.request_context import Json, Request, bad_request

if TYPE_CHECKING:
    import fastjsonschema

_WHOLE_NUMBER: Final = re.compile(r"-?\d{1,10}", re.ASCII)
_INT32: Final = range(-(2**31), 2**31)
_BRANCHES: Final = {"oneOf": "exactly", "anyOf": "at least"}
_TRUTH: Final = {"true": True, "false": False}


class RequestValidator:
    """Validates one operation's requests. The body's schema is compiled once."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._allowed = {name: values for name, schema in operation.path_schemas.items() if (values := _values(schema))}
        self._validate = None if operation.body is None else _compiled(json.dumps(operation.body))

    def validate(self, path: Mapping[str, str], query: str, content_type: str, body: bytes) -> Request:
        """Return the request, with the description's own names. Raises Refusal if it does not match the description."""
        for name, values in self._allowed.items():
            if path[name] not in values:
                raise bad_request(f"path parameter {name!r} must be one of {', '.join(values)}, not {path[name]!r}")
        return Request(path, self._query(query), self._body(content_type, body))

    def _query(self, text: str) -> dict[str, Json]:
        """The query's values by name: only known names, each once unless it is an array, with its type."""
        known = self._operation.query
        values: dict[str, Json] = {}
        for name, value in _pairs(text):
            if name not in known:
                raise bad_request(f"unknown query parameter {name!r}")
            if known[name]["type"] == "array":
                values[name] = [*cast("list[Json]", values.get(name, [])), value]
            elif name in values:
                raise bad_request(f"query parameter {name!r} is given twice")
            else:
                values[name] = _parameter(name, value, known[name])
        if missing := sorted(self._operation.required_query - values.keys()):
            raise bad_request(f"query parameter {missing[0]!r} is missing")
        return values

    def _body(self, content_type: str, body: bytes) -> dict[str, Json]:
        """The body's values, under the description's own names at every depth."""
        if self._validate is None:
            if body:
                raise bad_request(f"{self._operation.method} {self._operation.path} takes no body")
            return {}
        if content_type.partition(";")[0].strip().lower() != "application/json":
            raise bad_request(f"the content type must be application/json, not {content_type or 'left out'!r}")
        value = parse_json(body)
        self._validate(value)
        return cast("dict[str, Json]", self._operation.request_names.from_wire(value))


def _values(schema: Schema) -> list[str]:
    """The allowed values of a path parameter; empty if it can be any text."""
    return list(_TRUTH) if schema["type"] == "boolean" else cast("list[str]", schema.get("enum", []))


def parse_json(body: bytes) -> Json:
    """Parse a body strictly: UTF-8, no duplicate key, no NaN, no lone surrogate. Raises Refusal."""
    try:
        value: Json = json.loads(body.decode(), object_pairs_hook=_no_key_twice, parse_constant=_no_constant)
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body is not JSON: {error}") from error
    return value


def _no_key_twice(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(name for name in names if names.count(name) > 1)!r} is a duplicate")
    return mapping


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is not a JSON number")


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    """Names and values of a query, percent-decoded."""
    for pair in text.split("&") if text else ():
        name, _, value = pair.partition("=")
        try:
            yield unquote_plus(name, errors="strict"), unquote_plus(value, errors="strict")
        except UnicodeDecodeError as error:
            raise bad_request(f"the query is not UTF-8: {pair}") from error


def _parameter(name: str, value: str, schema: Schema) -> Json:
    """Parse one query value as its type. Raises Refusal if it is not of that type."""
    if schema["type"] == "boolean":
        if value not in _TRUTH:
            raise bad_request(f"query parameter {name!r} must be true or false, not {value!r}")
        return _TRUTH[value]
    if schema["type"] != "integer":
        return value
    if not _WHOLE_NUMBER.fullmatch(value) or int(value) not in _INT32:
        raise bad_request(f"query parameter {name!r} must be a whole number, not {value!r}")
    if int(value) < cast(int, schema.get("minimum", _INT32.start)):
        raise bad_request(f"query parameter {name!r} must be at least {schema['minimum']}, not {value}")
    return int(value)


@cache
def _compiled(schema: str) -> Callable[[Json], None]:
    """Return a function that rejects bodies that do not match the schema, with the path in the body."""
    import fastjsonschema  # slow to import, and no read of a plan has a body

    # The key is the schema's text: compiling takes milliseconds, and many workspaces share the same few schemas.
    validate = fastjsonschema.compile(json.loads(schema), use_default=False)

    def check(value: Json) -> None:
        try:
            validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            raise bad_request(_wording(error)) from error

    return check


def _wording(error: fastjsonschema.JsonSchemaValueException) -> str:
    """What is wrong, and where in the body. Lists the names of alternatives."""
    if error.rule in _BRANCHES:
        place = "body" + str(error.name).removeprefix("data")
        names = [name for branch in error.rule_definition for name in branch.get("required", [])]
        if names:
            return f"{place} must contain {_BRANCHES[error.rule]} one of {', '.join(names)}"
    return "body" + str(error.message).removeprefix("data")
