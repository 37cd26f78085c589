"""Scripted faults: requests rejected, delayed or cut; responses lost, corrupted or stale.

A script is read from a YAML or JSON file: a list with one entry per fault, with the keys of Fault.

- {operation: "manual-groups.*", status: 429, headers: {retry-after: 2}, times: 3}
- {calls: [5, 9], cut: true}
- {operation: users.list, chance: 0.05, seed: 7, times: always, stale: true}
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field

from lmsconf.errors import ProblemsFound

BodyCorruption: TypeAlias = 'Literal["truncated", "html"]'
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
            for waiting in self._script:
                if waiting.applies_to(self._calls, operation, writes):
                    return waiting.fault
        return None


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
_Entry = Mapping[str, object]  # every scalar is text


def load_fault_script(path: Path) -> FaultScript:
    """Load the script of a file. Raises as `parse_faults` does."""
    return FaultScript(*parse_faults(path))


def parse_faults(path: Path) -> list[Fault]:
    """Parse the faults of a file. Raises ProblemsFound with every error in it, LmsconfError if it cannot be read."""
    from lmsconf.sandbox.seed_rows import file_problem, read_yaml  # YAML is only needed here

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
    return Fault(
        operation=str(entry.get("operation", "*")),
        times=ALWAYS if entry.get("times") == "always" else _count(entry, "times", 1),
        status=_status(entry),
        headers=_headers(entry),
        delay=_fraction(entry, "delay", 0.0, _LONGEST_DELAY),
        cut=_flag(entry, "cut"),
        lose_answer=_flag(entry, "lose_answer"),
        spoil=_spoilt(entry),
        stale=_flag(entry, "stale"),
        after=_count(entry, "after", 0),
        calls=frozenset(_calls(entry)),
        chance=_fraction(entry, "chance", 1.0, 1.0),
        seed=_count(entry, "seed", 0),
    )


def _status(entry: _Entry) -> int | None:
    status = _count(entry, "status", 0)
    if status and not 200 <= status <= 599:
        raise ValueError(f"status is not an HTTP status: {status}")
    return status or None


def _headers(entry: _Entry) -> dict[str, str]:
    headers = entry.get("headers", {})
    if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
        raise ValueError("headers is not a mapping of texts")
    return {name.lower(): value for name, value in headers.items()}


def _spoilt(entry: _Entry) -> BodyCorruption | None:
    spoil = entry.get("spoil")
    if spoil not in (None, "truncated", "html"):
        raise ValueError(f"spoil is neither truncated nor html: {spoil}")
    return spoil


def _calls(entry: _Entry) -> Iterator[int]:
    calls = entry.get("calls", [])
    for call in calls if isinstance(calls, list) else [calls]:
        yield _whole("calls", call)


def _flag(entry: _Entry, key: str) -> bool:
    value = entry.get(key, "false")
    if value not in ("true", "false"):
        raise ValueError(f"{key} is neither true nor false: {value}")
    return value == "true"


def _count(entry: _Entry, key: str, default: int) -> int:
    return _whole(key, entry[key]) if key in entry else default


def _whole(key: str, value: object) -> int:
    if not isinstance(value, str) or not (value.isascii() and value.isdigit() and len(value) < 10):
        raise ValueError(f"{key} is not a count: {value}")
    return int(value)


def _fraction(entry: _Entry, key: str, default: float, most: float) -> float:
    text = str(entry.get(key, default))
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{key} is not a number: {text}") from None
    if not 0 <= value <= most:
        raise ValueError(f"{key} is not from 0 to {most:g}: {text}")
    return value
