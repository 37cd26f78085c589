"""The API as data: its operations, their schemas, and the names and behaviours of a project's dialect.

Nothing here sends a request. Client, sandbox and kinds use `ApiSpec`; `Operation` is one endpoint. The dialect has the
names and behaviours that the API specification leaves open, by key, with a project's overrides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import cast
from urllib.parse import unquote

from msgspec.structs import replace

from lmsconf.api.spec.operations import (
    PATH_PARAMETER,
    ApiDescription,
    Operation,
    Schema,
    dialect_key_of,
    encode_path_segment,
    load_api_description,
    nested_properties,
    path_segment_problem,
    with_names,
    with_wire_names,
)
from lmsconf.api.spec.value_encoding import TIME_ZONE
from lmsconf.errors import Problem, SourceLocation, raise_found
from lmsconf.model.names import grouped
from lmsconf.model.time_formats import is_zone

_TAKEN = {"accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length",
          "content-type", "cookie", "host", "transfer-encoding", "user-agent"}  # fmt: skip


def _problem(description: ApiDescription, key: str, value: object) -> Problem | None:
    """Return the problem of one override, if any."""
    behaviour = description.behaviours.get(key, {})
    if not behaviour and key not in description.names:
        from difflib import get_close_matches  # only a mistyped key needs it

        known = [*description.behaviours, *description.names]
        near = get_close_matches(key, known, cutoff=0.5)
        return Problem(
            code="dialect/unknown-key",
            message=f"dialect has no key {key!r}",
            hint=f"Did you mean {near[0]}?" if near else f"Keys look like {known[0]}.",
        )
    allowed, is_count = cast("list[str] | None", behaviour.get("values")), behaviour.get("type") == "integer"
    is_text = isinstance(value, str) and bool(value if behaviour else value.strip())
    is_header = re.fullmatch("[A-Za-z][A-Za-z0-9-]*", str(value)) and str(value).lower() not in _TAKEN
    quoted = "" if value in ("", None) else f', such as "{value}"'
    rules = (
        (is_count and not re.fullmatch("0{0,9}[1-9][0-9]{0,8}", str(value)), "It is a whole number from 1."),
        (allowed is not None and value not in allowed, f"It is one of {', '.join(allowed or ())}."),
        (allowed is None and not is_count and not is_text, f"It is a text that is not empty{quoted}."),
        (key == TIME_ZONE and not is_zone(str(value)), "It is an IANA time zone, such as Europe/Stockholm."),
        (
            key in description.headers and not is_header,
            "It is a header of its own: letters, digits and hyphens.",
        ),
    )
    hint = next((hint for is_wrong, hint in rules if is_wrong), None)
    if hint is None:
        return None
    return Problem(code="dialect/value", message=f"dialect {key} cannot be {value!r}", hint=hint)


def _clashes(
    description: ApiDescription,
    values: Mapping[str, str],
    overrides: Mapping[str, str | int],
    at: Mapping[str, SourceLocation],
) -> Iterable[Problem]:
    """Yield a problem for each override that gives two properties of one object the same wire name."""
    for key in sorted(overrides.keys() & description.names.keys()):
        if any(
            [values.get(other, name) for name, other in keys.items()].count(values[key]) > 1
            for keys in _objects_by_key().get(key, ())
        ):
            yield Problem(
                code="dialect/clash",
                message=f"dialect {key} cannot be {values[key]!r}: another part of that body has this name",
                hint="Each part of a body needs its own name.",
                source=at.get(key),
            )


@cache
def _objects_by_key() -> Mapping[str, list[Mapping[str, str]]]:
    """Map each dialect key of a property to the objects that have it: property → its dialect key, or ''."""
    objects = [
        {name: dialect_key_of(part) for name, part in properties.items()}
        for operation in load_api_description().operations.values()
        for schema in (operation.body, operation.success)
        for properties in nested_properties(schema or {})
    ]
    known = {key for keys in objects for key in keys.values() if key}
    return {key: [keys for keys in objects if key in keys.values()] for key in known}


__all__ = ["ApiSpec", "Operation", "Schema", "encode_path_segment", "path_segment_problem"]


class ApiSpec:
    """The operations under one project's dialect: key → override. at: where each override is declared.

    Raises ProblemsFound for unknown keys, invalid values and clashing names.
    """

    def __init__(
        self, dialect: Mapping[str, str | int] | None = None, at: Mapping[str, SourceLocation] | None = None
    ) -> None:
        description, self.overrides, places = load_api_description(), dict(dialect or {}), at or {}
        wrong = ((key, _problem(description, key, value)) for key, value in self.overrides.items())
        raise_found([replace(problem, source=places.get(key)) for key, problem in wrong if problem is not None])
        self._values = {
            **description.names,
            **{key: str(schema["default"]) for key, schema in description.behaviours.items()},
            **{key: str(value) for key, value in self.overrides.items()},
        }
        raise_found(list(_clashes(description, self._values, self.overrides, places)))
        renamed = {key for key, name in description.names.items() if self._values[key] != name}
        self.operations: Mapping[str, Operation] = {
            id: with_wire_names(id, names) if names else operation
            for id, operation in description.operations.items()
            for names in [frozenset((key, self._values[key]) for key in renamed & {*operation.dialect_keys})]
        }

    @staticmethod
    @cache
    def default() -> ApiSpec:
        """Return the API without overrides, built once per process."""
        return ApiSpec()

    def with_values(self, values: Mapping[str, str | int]) -> ApiSpec:
        """Return the operations with other values of some keys. Raises ProblemsFound for an invalid dialect."""
        return ApiSpec({**self.overrides, **values}) if values else self

    def __getitem__(self, operation: str) -> Operation:
        return self.operations[operation]

    def behaviour(self, key: str) -> str:
        """Return the value of a dialect key as text: of a behaviour, or the wire name of a body property."""
        return self._values[key]

    def integer_behaviour(self, key: str) -> int:
        """Return the value of a behaviour that is an integer."""
        return int(self._values[key])

    def is_known(self, key: str) -> bool:
        """Return whether the dialect states the value of a key; the value of any other key is assumed."""
        return key in self.overrides

    def body_to_wire(self, operation: str, /, **values: object) -> dict[str, object]:
        """Return a body with wire names for canonical ones, values unchanged. Raises ValueError for unknown names."""
        body = cast("dict[str, object]", with_names(values, self[operation].to_request))
        self[operation].refuse_unknown_names(body)
        return body

    def match_route(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """Return the operation of a request and its decoded path parameters, or None.

        A fixed segment takes precedence over a parameter: /users/search never matches /users/{userId}, even for a
        method that only the latter has.
        """
        for pattern, methods in _routes():
            if found := pattern.fullmatch(path):
                parameters = {name: unquote(value) for name, value in found.groupdict().items()}
                return (self.operations[methods[method]], parameters) if method in methods else None
        return None


@cache
def _routes() -> list[tuple[re.Pattern[str], dict[str, str]]]:
    """Return (pattern of a path, method → operation id), fixed segments first: a brace sorts after letters."""
    by_path = grouped(load_api_description().operations.values(), lambda operation: operation.path)
    return [
        (re.compile(PATH_PARAMETER.sub(r"(?P<\1>[^/]+)", path)), {one.method: one.id for one in same})
        for path, same in sorted(by_path.items())
    ]
