"""What goes wrong, on script: requests refused, slowed or cut, answers lost, spoilt or out of date."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from random import Random
from typing import Final, Literal, TypeAlias

Spoilt: TypeAlias = 'Literal["truncated", "html"]'
ALWAYS: Final = 2**31
"""Times enough for any script."""


class Lost(Exception):
    """The connection broke before an answer came; the adapters turn it into what a network would show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One mishap, for the next `times` requests to an operation that fits the shell pattern.

    status       this answer instead of the real one, with `headers` (such as retry-after); nothing is done
    delay        seconds before anything happens
    cut          the connection breaks; nothing is done
    lose_answer  everything is done, then the connection breaks
    spoil        everything is done, and the answer's body is cut in half ("truncated") or no JSON at all ("html")
    stale        a read sees the workspace as it was before the last change; a write is not touched

    after        requests that fit and go well before it strikes
    calls        only these requests, counted from 1 over all operations
    chance       how likely it strikes a request that fits, from a generator of its own that begins with `seed`
    """

    operation: str = "*"
    times: int = 1
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    lose_answer: bool = False
    spoil: Spoilt | None = None
    stale: bool = False
    after: int = 0
    calls: frozenset[int] = frozenset()
    chance: float = 1.0
    seed: int = 0


class Faults:
    """A script of faults. Each request takes at most one: the first that fits and is not used up."""

    def __init__(self, *script: Fault) -> None:
        self._script = [_Waiting(fault) for fault in script]
        self._lock = threading.Lock()
        self._calls = 0
        self.looks_back = any(fault.stale for fault in script)

    def strike(self, operation: str, *, writes: bool = False) -> Fault | None:
        """The fault that this request meets, which is then used up by one."""
        with self._lock:
            self._calls += 1
            for waiting in self._script:
                if waiting.strikes(self._calls, operation, writes):
                    return waiting.fault
        return None


class _Waiting:
    """A fault with what is left of it."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self._left = fault.times
        self._spared = fault.after
        self._dice = Random(fault.seed)  # noqa: S311  the same script is to go wrong in the same way

    def strikes(self, call: int, operation: str, writes: bool) -> bool:
        """Whether this request meets it. The dice are thrown for requests that fit, and for no other."""
        if self._left < 1 or not self._fits(call, operation, writes):
            return False
        if self._spared:
            self._spared -= 1
            return False
        if self.fault.chance < 1 and self._dice.random() >= self.fault.chance:
            return False
        self._left -= 1
        return True

    def _fits(self, call: int, operation: str, writes: bool) -> bool:
        if (self.fault.calls and call not in self.fault.calls) or (self.fault.stale and writes):
            return False
        return fnmatchcase(operation, self.fault.operation)
