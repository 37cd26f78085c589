"""The faults of a rehearsal: a script that strikes only while a plan is applied, and what it did to which call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lmsconf.model.outcomes import CallOutcome, CallStatus
from lmsconf.model.rehearsal import FaultedCall
from lmsconf.sandbox.faults import Fault, FaultScript

if TYPE_CHECKING:
    from lmsconf.api.client import Exchange


class RehearsedFaults(FaultScript):
    """A fault script that can be switched on, and keeps which call of the plan met which fault.

    One request is under way at a time, so that the fault of a request is the last one that was taken. reads: requests
    of no call of the plan that met one.
    """

    def __init__(self, script: Iterable[Fault]) -> None:
        super().__init__(*script)
        self.reads = 0
        self._active = False
        self._last: Fault | None = None
        self._met: defaultdict[str, list[str]] = defaultdict(list)
        self._sent: defaultdict[str, int] = defaultdict(int)
        self._has_response: dict[str, bool] = {}

    @contextmanager
    def active(self) -> Iterator[None]:
        """Let faults strike inside the block."""
        self._active = True
        try:
            yield
        finally:
            self._active = False

    def take_fault(self, operation: str, *, writes: bool = False) -> Fault | None:
        """Return the fault of this request, and count it as used; outside of `active`, there is none."""
        self._last = super().take_fault(operation, writes=writes) if self._active else None
        return self._last

    def record(self, exchange: Exchange) -> None:
        """Record one attempt of a request."""
        fault, self._last = self._last, None
        if not self._active:
            return
        if exchange.label is None:
            self.reads += fault is not None
            return
        self._sent[exchange.label] += 1
        usable = exchange.status is not None and (fault is None or fault.spoil is None)
        self._has_response[exchange.label] = usable
        if fault is not None:
            self._met[exchange.label].append(describe_fault(fault))

    def faulted_calls(self, outcomes: Iterable[CallOutcome]) -> tuple[FaultedCall, ...]:
        """Return the calls that met faults, and how they ended."""
        return tuple(
            FaultedCall(
                call=outcome.call,
                address=outcome.address,
                operation=outcome.operation,
                faults=tuple(self._met[outcome.call]),
                sent=self._sent[outcome.call],
                status=outcome.status,
                adopted=outcome.status is CallStatus.DONE and not self._has_response[outcome.call],
            )
            for outcome in outcomes
            if outcome.call in self._met
        )


def describe_fault(fault: Fault) -> str:
    """Return a fault in the words of its file."""
    parts = [
        f"status {fault.status}" if fault.status is not None else "",
        "cut" if fault.cut else "",
        "lose_answer" if fault.lose_answer else "",
        f"spoil: {fault.spoil}" if fault.spoil else "",
        f"delay {fault.delay:g} s" if fault.delay else "",
        "stale" if fault.stale else "",
    ]
    return ", ".join(filter(None, parts)) or "nothing"
