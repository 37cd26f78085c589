"""Scripted faults: requests rejected, delayed or cut; responses lost, corrupted or stale.

A script is read from a YAML or JSON file: a list with one entry per fault, with the keys of Fault.

- {operation: "manual-groups.*", status: 429, headers: {retry-after: 2}, times: 3}
- {calls: [5, 9], cut: true}
- {operation: users.list, chance: 0.05, seed: 7, times: always, stale: true}
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, Literal, TypeAlias

from msgspec import Struct, convert, field

from lmsconf.errors import ProblemsFound

BodyCorruption: TypeAlias = Literal["truncated", "html"]
ALWAYS: Final = 2**31
"""More than any script needs."""


class ConnectionLost(ConnectionError):
    """The connection broke before the response. The adapters for httpx and for a port make a network error of it."""

    def __init__(self) -> None:
        super().__init__("the connection broke before an answer came")


class Fault(Struct, frozen=True, kw_only=True):
    """One fault, for the next `times` requests whose operation matches the shell pattern.

    status       returns this status, with `headers` (such as retry-after); the request is not carried out
    delay        seconds before anything happens
    cut          the connection breaks; the request is not carried out
    lose_answer  the request is carried out, then the connection breaks
    spoil        the request is carried out; the body is cut in half ("truncated") or not JSON ("html")
    stale        a read returns the workspace before the last change; writes are not affected
    after        matching requests that succeed first
    calls        only these requests, counted from 1 over all operations
    chance       probability for a matching request, from a random generator of its own, seeded with `seed`
    """

    operation: str = "*"
    times: int = 1
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    lose_answer: bool = False
    spoil: BodyCorruption | None = None
    stale: bool = False
    after: int = 0
    calls: frozenset[int] = frozenset()
    chance: float = 1.0
    seed: int = 0


class FaultScript:
    """A fault script. Each request gets at most one fault: the first that matches and is not used up."""

    def __init__(self, *script: Fault) -> None:
        self._script = [_PendingFault(fault) for fault in script]
        self._lock = threading.Lock()
        self._calls = 0
        self.has_stale_reads = any(fault.stale for fault in script)

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Return the fault of this request, and count it as used."""
        with self._lock:
            self._calls += 1
            fitting = (one.fault for one in self._script if one.applies_to(self._calls, operation, writes))
            return next(fitting, None)


class _PendingFault:
    """A fault with its remaining count."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self._left = fault.times
        self._spared = fault.after
        self._dice = Random(fault.seed)  # noqa: S311  the same script must give the same faults

    def applies_to(self, call: int, operation: str, writes: bool) -> bool:
        """Whether the request gets this fault. Random numbers are drawn only for matching requests."""
        if self._left < 1 or not self._matches(call, operation, writes):
            return False
        if self._spared:
            self._spared -= 1
            return False
        if self.fault.chance < 1 and self._dice.random() >= self.fault.chance:
            return False
        self._left -= 1
        return True

    def _matches(self, call: int, operation: str, writes: bool) -> bool:
        if (self.fault.calls and call not in self.fault.calls) or (self.fault.stale and writes):
            return False
        return fnmatchcase(operation, self.fault.operation)


_KEYS: Final = Fault.__struct_fields__
_LONGEST_DELAY: Final = 3600.0


def parse_faults(path: Path) -> list[Fault]:
    """Parse the faults of a file. Raises ProblemsFound with every error in it, LmsconfError if it cannot be read."""
    from lmsconf.sandbox.seed import file_problem, read_yaml  # YAML is only needed here

    entries = read_yaml(path, "faults") or []
    if not isinstance(entries, list):
        raise ProblemsFound([file_problem("faults", str(path), "it has no list of faults")])
    problems: list[str] = []
    script: list[Fault] = []
    for place, entry in enumerate(entries):
        try:
            script.append(_fault(entry))
        except ValueError as error:
            problems.append(f"[{place}]: {error}")
    if problems:
        raise ProblemsFound([file_problem("faults", str(path), message) for message in problems])
    return script


def _fault(entry: object) -> Fault:
    """Parse one entry. Raises ValueError with the key that is invalid."""
    if not isinstance(entry, dict):
        raise ValueError("it is not a mapping")
    if unknown := [key for key in entry if key not in _KEYS]:
        raise ValueError(f"unknown key {unknown[0]!r}; there are {', '.join(_KEYS)}")
    return convert({key: _READERS[key](key, entry[key]) for key in _KEYS if key in entry}, Fault)


def _text(pattern: str, wrong: str, convert: Callable[[str], object]) -> Callable[[str, object], object]:
    """What converts a text of that pattern, and raises ValueError for anything else."""

    def read(key: str, value: object) -> object:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"{key} is {wrong}: {value}")
        return convert(value)

    return read


def _headers(_: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ValueError("headers is not a mapping of texts")
    return {name.lower(): text for name, text in value.items()}


_COUNT: Final = _text("[0-9]{1,9}", "not a count", int)
_FLAG: Final = _text("true|false", "neither true nor false", "true".__eq__)


def _calls(key: str, value: object) -> list[object]:
    return [_COUNT(key, call) for call in (value if isinstance(value, list) else [value])]


def _fraction(most: float, key: str, text: object) -> float:
    try:
        value = float(str(text))
    except ValueError:
        raise ValueError(f"{key} is not a number: {text}") from None
    if not 0 <= value <= most:
        raise ValueError(f"{key} is not from 0 to {most:g}: {text}")
    return value


_READERS: Final[Mapping[str, Callable[[str, object], object]]] = {
    "operation": lambda _, value: str(value),
    "times": _text("always|[0-9]{1,9}", "not a count", lambda text: ALWAYS if text == "always" else int(text)),
    "status": _text("[2-5][0-9]{2}", "not an HTTP status", int),
    "headers": _headers,
    "delay": partial(_fraction, _LONGEST_DELAY),
    **dict.fromkeys(("cut", "lose_answer", "stale"), _FLAG),
    "spoil": _text("truncated|html", "neither truncated nor html", str),
    **dict.fromkeys(("after", "seed"), _COUNT),
    "calls": _calls,
    "chance": partial(_fraction, 1.0),
}
"""Key of an entry → what reads its value; it raises ValueError."""
