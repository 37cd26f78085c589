"""The API as data: what calls there are, what they carry, and which names a project says its service uses.

Nothing here sends anything. `ApiSpec` is what client, sandbox and kinds hold; `Operation` is one call.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import cast
from urllib.parse import unquote

from lmsconf.api.spec.dialect import Dialect
from lmsconf.api.spec.names import Schema
from lmsconf.api.spec.operations import Operation, description, segment
from lmsconf.errors import SourceLocation

__all__ = ["Operation", "Schema", "Wire", "segment"]


class ApiSpec:
    """The operations in the words of one project's dialect. at: where each of its overrides was said."""

    def __init__(
        self, dialect: Mapping[str, str | int] | None = None, at: Mapping[str, SourceLocation] | None = None
    ) -> None:
        self._dialect = Dialect(description(), dialect or {}, at)
        self.operations: Mapping[str, Operation] = {
            id: operation.renamed(names) if (names := self._dialect.names(operation)) else operation
            for id, operation in description().operations.items()
        }

    @staticmethod
    @cache
    def default() -> ApiSpec:
        """The wire of a project that overrides nothing."""
        return ApiSpec()

    def __getitem__(self, operation: str) -> Operation:
        return self.operations[operation]

    def behaviour(self, key: str) -> str:
        """What the dialect says of a behaviour, as text. A body's names have keys too and are found the same way."""
        return self._dialect[key]

    def number(self, key: str) -> int:
        """A behaviour that is a whole number."""
        return int(self._dialect[key])

    def body(self, operation: str, /, **values: object) -> dict[str, object]:
        """The body with its canonical names turned into wire names; values are passed on untouched."""
        known = self[operation]
        unknown = values.keys() - known.names.keys()
        if unknown and not known.takes_any_name:
            raise ValueError(f"{operation} has no body property {sorted(unknown)}")
        return cast("dict[str, object]", known.said.to_wire(values))

    def dialect_keys(self, operation: str) -> tuple[str, ...]:
        """The dialect keys that this operation leans on: what to look at when a call had no effect."""
        return self[operation].dialect_keys

    def route(self, method: str, path: str) -> tuple[Operation, dict[str, str]] | None:
        """The operation that a request is for, with its decoded path parameters; None where there is none.

        A fixed path is never an id: /users/search takes what it takes, whatever /users/{userId} does.
        """
        parts = tuple(unquote(part) for part in path.split("/"))
        for template, methods in _routes().get((len(parts), *parts[1:2]), ()):
            found = _match(template, parts)
            if found is not None:
                return (self.operations[methods[method]], found) if method in methods else None
        return None


Template = tuple[tuple[str, bool], ...]
"""A path in parts: each a text, and whether it is a parameter's name."""


@cache
def _routes() -> Mapping[tuple[int | str, ...], list[tuple[Template, dict[str, str]]]]:
    """Number of parts and the first of them → paths, each with its operations by method; fixed parts come first."""
    paths: dict[Template, dict[str, str]] = {}
    for operation in description().operations.values():
        template = tuple((part.strip("{}"), part.startswith("{")) for part in operation.path.split("/"))
        paths.setdefault(template, {})[operation.method] = operation.id
    routes: dict[tuple[int | str, ...], list[tuple[Template, dict[str, str]]]] = {}
    for template in sorted(paths, key=lambda template: [is_parameter for _, is_parameter in template]):
        first = template[1][0]  # no path of the API begins with a parameter
        routes.setdefault((len(template), first), []).append((template, paths[template]))
    return routes


def _match(template: Template, parts: tuple[str, ...]) -> dict[str, str] | None:
    """The parameters, where the parts fit the template. A parameter is never empty."""
    found: dict[str, str] = {}
    for (text, is_parameter), part in zip(template, parts, strict=True):
        if is_parameter and part:
            found[text] = part
        elif is_parameter or part != text:
            return None
    return found
