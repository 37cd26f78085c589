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
from itertools import repeat
from math import inf
from pathlib import Path
from random import Random
from typing import Annotated, Final, Literal, TypeAlias

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from lmsconf.errors import ProblemsFound, raise_found

Count: TypeAlias = Annotated[int, Meta(ge=0)]
ALWAYS: Final = "always"


class ConnectionLost(ConnectionError):
    """The connection broke before the response. The adapters for httpx and for a port make a network error of it."""


class Fault(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    times: Literal["always"] | Count = 1
    status: Annotated[int, Meta(ge=200, le=599)] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: Annotated[float, Meta(ge=0, le=3600)] = 0.0
    cut: bool = False
    lose_answer: bool = False
    spoil: Literal["truncated", "html"] | None = None
    stale: bool = False
    after: Count = 0
    calls: Count | frozenset[Count] = frozenset()
    chance: Annotated[float, Meta(ge=0, le=1)] = 1.0
    seed: Count = 0


class FaultScript:
    """A fault script. Each request gets at most one fault: the first that matches and is not used up."""

    def __init__(self, *script: Fault) -> None:
        self._script = [(fault, _decisions(fault)) for fault in script]
        self._lock = threading.Lock()
        self._calls = 0
        self.has_stale_reads = any(fault.stale for fault in script)

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Return the fault of this request, and count it as used."""
        with self._lock:
            self._calls += 1
            for fault, decisions in self._script:
                calls = {fault.calls} if isinstance(fault.calls, int) else fault.calls
                is_spared = (calls and self._calls not in calls) or (fault.stale and writes)
                if not is_spared and fnmatchcase(operation, fault.operation) and next(decisions, False):
                    return fault
        return None


def _decisions(fault: Fault) -> Iterator[bool]:
    """Yield for each matching request whether it gets the fault, until that is used up."""
    yield from repeat(False, fault.after)
    dice, left = Random(fault.seed), inf if fault.times == ALWAYS else fault.times  # noqa: S311  the same script must give the same faults
    while left:
        is_struck = fault.chance >= 1 or dice.random() < fault.chance
        left -= is_struck
        yield is_struck


def parse_faults(path: Path) -> list[Fault]:
    """Parse the faults of a file. Raises ProblemsFound with every error in it, LmsconfError if it cannot be read."""
    from lmsconf.sandbox.seed import file_problem, read_yaml  # YAML is only needed here
    from lmsconf.sandbox.seed_format import InvalidSeedValue, read_entry

    entries = read_yaml(path, "faults") or []
    if not isinstance(entries, list):
        raise ProblemsFound([file_problem("faults", str(path), "it has no list of faults")])
    problems: list[str] = []
    script: list[Fault] = []
    for place, entry in enumerate(entries):
        try:
            fault = read_entry(entry, Fault)
            script.append(replace(fault, headers={name.lower(): text for name, text in fault.headers.items()}))
        except InvalidSeedValue as error:
            problems.append(f"[{place}]: {error}")
    raise_found([file_problem("faults", str(path), message) for message in problems])
    return script
