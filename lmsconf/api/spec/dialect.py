"""The dialect: names and behaviours that the API specification leaves open, by key, with a project's overrides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import cast

from msgspec.structs import replace

from lmsconf.api.spec.operations import ApiDescription, Operation
from lmsconf.errors import Problem, ProblemsFound, SourceLocation

_COUNT = re.compile(r"0{0,9}[1-9][0-9]{0,8}")
_HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")
_TAKEN = {"accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length",
          "content-type", "cookie", "host", "transfer-encoding", "user-agent"}  # fmt: skip


class Dialect:
    """Every dialect key with its value, default or override. at: where each override is declared.

    Raises ProblemsFound for unknown keys, invalid values and clashing names.
    """

    def __init__(
        self,
        description: ApiDescription,
        overrides: Mapping[str, str | int],
        at: Mapping[str, SourceLocation] | None = None,
    ) -> None:
        self._description = description
        self._at = at or {}
        problems = [
            replace(problem, source=self._at.get(key))
            for key, value in overrides.items()
            if (problem := self._problem(key, value))
        ]
        if problems:
            raise ProblemsFound(problems)
        defaults = {key: str(schema["default"]) for key, schema in description.behaviours.items()}
        self._values = {**description.names, **defaults, **{key: str(value) for key, value in overrides.items()}}
        self._overridden = overrides.keys() & description.names.keys()
        problems = list(self._clashes())
        if problems:
            raise ProblemsFound(problems)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def overridden_names(self, operation: Operation) -> dict[str, str]:
        """Return key → wire name for the names of the operation that are overridden."""
        return {key: self[key] for key in operation.dialect_keys if key in self._overridden}

    def _problem(self, key: str, value: object) -> Problem | None:
        """Return the problem of one override, if any."""
        if key in self._description.behaviours:
            return _behaviour_problem(key, value, self._description.behaviours[key])
        if key in self._description.names:
            if not isinstance(value, str) or not value.strip():
                return _not_text(key, value)
            return _header_problem(key, value) if key in self._description.headers else None
        return Problem(
            code="dialect/unknown-key",
            message=f"dialect has no key {key!r}",
            hint=_nearest(key, [*self._description.behaviours, *self._description.names]),
        )

    def _clashes(self) -> Iterable[Problem]:
        """Yield a problem for each override that gives two properties of one object the same wire name."""
        for key in sorted(self._overridden):
            among = self._description.siblings.get(key, ())
            if any([self._values.get(other, name) for name, other in level].count(self[key]) > 1 for level in among):
                yield Problem(
                    code="dialect/clash",
                    message=f"dialect {key} cannot be {self[key]!r}: another part of that body has this name",
                    hint="Each part of a body needs its own name.",
                    source=self._at.get(key),
                )


def _behaviour_problem(key: str, value: object, schema: Mapping[str, object]) -> Problem | None:
    """Return the problem of a behaviour's value: not one of those allowed, not an integer from 1, not a string."""
    if schema.get("type") == "integer":
        return None if _is_count(value) else _bad_value(key, value, "It is a whole number from 1.")
    allowed = cast("list[str] | None", schema["values"])
    if allowed is None:
        return None if isinstance(value, str) and value else _not_text(key, value)
    return None if value in allowed else _bad_value(key, value, f"It is one of {', '.join(allowed)}.")


def _header_problem(key: str, value: str) -> Problem | None:
    """Return the problem of a header name: not a valid name, or a reserved one."""
    if _HEADER.fullmatch(value) and value.lower() not in _TAKEN:
        return None
    return _bad_value(key, value, "It is a header of its own: letters, digits and hyphens.")


def _is_count(value: object) -> bool:
    """Return whether the value is an integer from 1, also as text."""
    if isinstance(value, str):
        return _COUNT.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _bad_value(key: str, value: object, hint: str) -> Problem:
    return Problem(code="dialect/value", message=f"dialect {key} cannot be {value!r}", hint=hint)


def _not_text(key: str, value: object) -> Problem:
    quoted = "" if value in ("", None) else f', such as "{value}"'
    return _bad_value(key, value, f"It is a text that is not empty{quoted}.")


def _nearest(key: str, known: list[str]) -> str:
    """Suggest the most similar key, or show an example of a key."""
    from difflib import get_close_matches  # only a mistyped key needs it

    near = get_close_matches(key, known, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"Keys look like {known[0]}."
