"""What a journal tells of a run, as plain values: which calls were begun, what became of them, whether it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lmsconf.model.scope import Verify
from lmsconf.model.values import Status, is_creation


class State(StrEnum):
    """What is known of a call. `in_flight`: it was begun, and nobody knows what became of it."""

    DONE = Status.DONE.value
    FAILED = Status.FAILED.value
    BLOCKED = Status.BLOCKED.value
    IN_FLIGHT = "in_flight"
    NOT_ATTEMPTED = Status.NOT_ATTEMPTED.value


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """One call that a journal speaks of. begun: when it was sent last; None when it never was, or its line is lost.

    id: what the service called the new resource. people: the e-mails of those whom it puts in or takes out.
    """

    call: str
    address: str
    operation: str
    state: State
    begun: datetime | None = None
    ended: datetime | None = None
    reason: str | None = None
    id: str | None = None
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is known of a run before its first call. calls: how many its plan has."""

    digest: str
    workspace: str
    url: str
    started: datetime
    tool: str
    calls: int
    meta: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a run ended. verified: at what it looked then. converged: whether that was as planned; None when it did not.

    seen: whether a look has shown all that it did.
    """

    at: datetime
    exit: int
    verified: Verify
    converged: bool | None
    seen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """One run as its journal tells it.

    name     what it is called, which is the name of its journal
    opening  None when the first line cannot be read
    calls    those that the journal speaks of, in the order in which it first did
    ending   None when the run was cut short
    damaged  how many lines cannot be read
    """

    name: str
    opening: Opening | None = None
    calls: tuple[RecordedCall, ...] = ()
    ending: Ending | None = None
    damaged: int = 0

    @property
    def summary(self) -> Mapping[State, int]:
        """How many calls are in which state."""
        counts = dict.fromkeys(State, 0)
        for call in self.calls:
            counts[call.state] += 1
        if self.opening is not None:
            # Of a run that was cut short, nothing is written of the calls that it never came to.
            counts[State.NOT_ATTEMPTED] += max(0, self.opening.calls - len(self.calls))
        return counts

    @property
    def in_flight(self) -> tuple[RecordedCall, ...]:
        """The calls of which nobody knows what became: the run was cut short, or their answers never came."""
        return tuple(call for call in self.calls if call.state is State.IN_FLIGHT)

    @property
    def unseen(self) -> tuple[RecordedCall, ...]:
        """The calls that made something new which no look at the workspace has shown."""
        if self.ending is not None and self.ending.seen:
            return ()
        return tuple(call for call in self.calls if call.state is State.DONE and is_creation(call.operation))
