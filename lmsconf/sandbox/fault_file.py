"""Fault scripts from a YAML or JSON file: a list with one entry per fault, with the keys of Fault.

- {operation: "manual-groups.*", status: 429, headers: {retry-after: 2}, times: 3}
- {calls: [5, 9], cut: true}
- {operation: users.list, chance: 0.05, seed: 7, times: always, stale: true}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lmsconf.errors import ProblemsFound
from lmsconf.sandbox.faults import ALWAYS, BodyCorruption, Fault, FaultScript
from lmsconf.sandbox.text_only_yaml import file_problem, read_yaml

_KEYS: Final = Fault.__struct_fields__
_LONGEST_DELAY: Final = 3600.0
_Entry = Mapping[str, object]  # every scalar is text


def load_fault_script(path: Path) -> FaultScript:
    """Load the script of a file. Raises as `parse_faults` does."""
    return FaultScript(*parse_faults(path))


def parse_faults(path: Path) -> list[Fault]:
    """Parse the faults of a file. Raises ProblemsFound with every error in it, LmsconfError if it cannot be read."""
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
