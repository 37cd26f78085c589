"""The API as data: its operations, their schemas, and the names and behaviours of a project's dialect.

Nothing here sends a request. Client, sandbox and kinds use `ApiSpec`; `Operation` is one endpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast
from urllib.parse import unquote

from lmsconf.api.spec.dialect import Dialect
from lmsconf.api.spec.operations import (
    Operation,
    Schema,
    encode_path_segment,
    load_api_description,
    path_segment_problem,
)
from lmsconf.errors import SourceLocation

__all__ = ["ApiSpec", "Operation", "Schema", "encode_path_segment", "path_segment_problem"]


class ApiSpec:
    """The operations under one project's dialect: key → override. at: where each override is declared.

    Raises ProblemsFound for an invalid dialect.
    """

    def __init__(
        self, dialect: Mapping[str, str | int] | None = None, at: Mapping[str, SourceLocation] | None = None
    ) -> None:
        self._dialect = Dialect(load_api_description(), dialect or {}, at)
        self._overrides = dict(dialect or {})
        self.operations: Mapping[str, Operation] = {
            id: operation.with_wire_names(names) if (names := self._dialect.overridden_names(operation)) else operation
            for id, operation in load_api_description().operations.items()
        }

    @staticmethod
    @cache
    def default() -> ApiSpec:
        """Return the API without overrides, built once per process."""
        return ApiSpec()

    def with_values(self, values: Mapping[str, str | int]) -> ApiSpec:
        """Return the operations with other values of some keys. Raises ProblemsFound for an invalid dialect."""
        return ApiSpec({**self._overrides, **values}) if values else self

    def __getitem__(self, operation: str) -> Operation:
        return self.operations[operation]

    def behaviour(self, key: str) -> str:
        """Return the value of a dialect key as text: of a behaviour, or the wire name of a body property."""
        return self._dialect[key]

    def integer_behaviour(self, key: str) -> int:
        """Return the value of a behaviour that is an integer."""
        return int(self._dialect[key])

    def is_known(self, key: str) -> bool:
        """Return whether the dialect states the value of a key; the value of any other key is assumed."""
        return key in self._overrides

    def body_to_wire(self, operation: str, /, **values: object) -> dict[str, object]:
        """Return a body with wire names for canonical ones, values unchanged. Raises ValueError for unknown names."""
        known = self[operation]
        unknown = values.keys() - known.names.keys()
        if unknown and not known.allows_additional_properties:
            raise ValueError(f"{operation} has no body property {sorted(unknown)}")
        return cast("dict[str, object]", known.request_names.to_wire(values))

    def dialect_keys(self, operation: str) -> tuple[str, ...]:
        """Return the dialect keys that this operation depends on: those to check if a call had no effect."""
        return self[operation].dialect_keys

    def match_route(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """Return the operation of a request and its decoded path parameters, or None.

        A fixed segment takes precedence over a parameter: /users/search never matches /users/{userId}, even for a
        method that only the latter has.
        """
        parts = tuple(unquote(part) if "%" in part else part for part in path.split("/"))
        for template, methods in _routes().get((len(parts), *parts[1:2]), ()):
            parameters = _match(template, parts)
            if parameters is not None:
                return (self.operations[methods[method]], parameters) if method in methods else None
        return None


Template = tuple[tuple[str, bool], ...]
"""The segments of a path template: (text, whether it is the name of a parameter)."""


@cache
def _routes() -> Mapping[tuple[int | str, ...], list[tuple[Template, dict[str, str]]]]:
    """Return (number of segments, first segment) → [(template, method → operation id)], fixed segments first."""
    paths: dict[Template, dict[str, str]] = {}
    for operation in load_api_description().operations.values():
        template = tuple((part.strip("{}"), part.startswith("{")) for part in operation.path.split("/"))
        paths.setdefault(template, {})[operation.method] = operation.id
    routes: dict[tuple[int | str, ...], list[tuple[Template, dict[str, str]]]] = {}
    for template in sorted(paths, key=lambda template: [is_parameter for _, is_parameter in template]):
        first = template[1][0]  # no path of the API begins with a parameter
        routes.setdefault((len(template), first), []).append((template, paths[template]))
    return routes


def _match(template: Template, parts: tuple[str, ...]) -> dict[str, str] | None:
    """Return the path parameters if the segments match the template, else None. A parameter is never empty."""
    parameters: dict[str, str] = {}
    for (text, is_parameter), part in zip(template, parts, strict=True):
        if is_parameter and part:
            parameters[text] = part
        elif is_parameter or part != text:
            return None
    return parameters
