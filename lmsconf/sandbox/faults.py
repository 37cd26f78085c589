"""What goes wrong, on script: answers refused, delayed, cut before anything is done, or lost after it is done."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase


class Lost(Exception):
    """The connection broke before an answer came; the adapters turn it into what a network would show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One mishap, for the next `times` requests to an operation that fits the shell pattern.

    status       this answer instead of the real one, with `headers` (such as retry-after); nothing is done
    delay        seconds before anything happens
    cut          the connection breaks; nothing is done
    lose_answer  everything is done, then the connection breaks
    after        requests that go well before it strikes
    """

    operation: str = "*"
    times: int = 1
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    cut: bool = False
    lose_answer: bool = False
    after: int = 0


class Faults:
    """A script of faults. Each request takes at most one: the first that fits and is not used up."""

    def __init__(self, *script: Fault) -> None:
        self._script = list(script)
        self._lock = threading.Lock()

    def strike(self, operation: str) -> Fault | None:
        """The fault that this request meets, which is then used up by one."""
        with self._lock:
            for place, fault in enumerate(self._script):
                if fault.times < 1 or not fnmatchcase(operation, fault.operation):
                    continue
                if fault.after:
                    self._script[place] = replace(fault, after=fault.after - 1)
                    continue
                self._script[place] = replace(fault, times=fault.times - 1)
                return fault
        return None
