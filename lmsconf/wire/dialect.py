"""The dialect: names and behaviours that the API's specification leaves open, by key, with a project's overrides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import cast

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.wire.operations import Description


class Dialect:
    """Every key with its value. Raises ProblemsFound for keys that do not exist and values that they cannot have."""

    def __init__(self, description: Description, overrides: Mapping[str, str | int]) -> None:
        self._description = description
        problems = [problem for key, value in overrides.items() if (problem := self._problem(key, value))]
        if problems:
            raise ProblemsFound(problems)
        defaults = {key: str(said["default"]) for key, said in description.behaviours.items()}
        self._values = {**description.names, **defaults, **{key: str(value) for key, value in overrides.items()}}
        self._overridden = overrides.keys() & description.names.keys()
        problems = list(self._clashes())
        if problems:
            raise ProblemsFound(problems)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def names(self, operation: str) -> dict[str, str]:
        """Canonical name → wire name, for those of the operation's body that the project calls otherwise."""
        start = f"{operation}."
        return {key.removeprefix(start): self[key] for key in sorted(self._overridden) if key.startswith(start)}

    def _problem(self, key: str, value: object) -> Problem | None:
        """What is wrong with one override."""
        if key in self._description.behaviours:
            return _behaviour_problem(key, value, self._description.behaviours[key])
        if key in self._description.names:
            return None if isinstance(value, str) and value.strip() else _not_text(key, value)
        return Problem(
            code="dialect/unknown-key",
            message=f"dialect has no key {key!r}",
            hint=_nearest(key, [*self._description.behaviours, *self._description.names]),
        )

    def _clashes(self) -> Iterable[Problem]:
        """Overrides that give two properties of one body the same wire name."""
        for key in sorted(self._overridden):
            operation = next(one for one in self._description.operations.values() if key in one.leans_on)
            wires = list({**operation.names, **self.names(operation.id)}.values())
            if wires.count(self[key]) > 1:
                yield Problem(
                    code="dialect/clash",
                    message=f"dialect {key} cannot be {self[key]!r}: another part of that body has this name",
                    hint="Each part of a request body needs a name of its own.",
                )


def _behaviour_problem(key: str, value: object, said: Mapping[str, object]) -> Problem | None:
    """What is wrong with the value of a behaviour: not one of its values, not a number, not a text."""
    if said.get("type") == "integer":
        return None if _is_count(value) else _bad_value(key, value, "It is a whole number from 1.")
    allowed = cast("list[str] | None", said["values"])
    if allowed is None:
        return None if isinstance(value, str) and value else _not_text(key, value)
    return None if value in allowed else _bad_value(key, value, f"It is one of {', '.join(allowed)}.")


def _is_count(value: object) -> bool:
    """Whether it is a whole number from 1, also as text."""
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and int(value) >= 1
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _bad_value(key: str, value: object, hint: str) -> Problem:
    return Problem(code="dialect/value", message=f"dialect {key} cannot be {value!r}", hint=hint)


def _not_text(key: str, value: object) -> Problem:
    quoted = "" if value in ("", None) else f', such as "{value}"'
    return _bad_value(key, value, f"It is a text that is not empty{quoted}.")


def _nearest(key: str, known: list[str]) -> str:
    """Points at the known key that looks most like this one, or says what keys look like."""
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"Keys look like {known[0]}."
