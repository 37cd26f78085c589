"""Plan → outcomes: run the calls in dependency order, at most `width` at a time, and tell what happens.

Makes no decisions about the plan. A failure blocks only the calls that depend on it, and so does a 403 for a missing
right; a rejected credential, a duplicate resource, or an unreachable service stops all calls not yet started. Calls
that may be refused and need no other are sent before the rest.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from graphlib import TopologicalSorter
from heapq import heappop, heappush
from itertools import count
from queue import Empty, SimpleQueue
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import (
    DuplicateResource,
    LmsconfError,
    NoEffect,
    Unauthorized,
    Unreachable,
    WriteOutcomeUnknown,
    WrongAssumption,
)
from lmsconf.model.address import Ref
from lmsconf.model.calls import Call, CallStatus, Report, RunProgress
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.support.interrupts import Interrupts

Phase: TypeAlias = Callable[[str], AbstractContextManager[Report]]
"""A phase with this label begins. The context's value receives its progress."""


def unreported(label: str) -> AbstractContextManager[Report]:
    """A phase whose progress nobody receives."""
    return nullcontext(lambda progress: None)


class Waiting(Struct, frozen=True):
    """The run waits for at most so many seconds; None: until somebody has answered. reason: as in events."""

    reason: str
    message: str
    seconds: float | None = None


ApplyEvent: TypeAlias = "Plan | Snapshot | Waiting | Call | CallOutcome | str | ApplyReport | KeyboardInterrupt"
"""What happens while a plan is applied.

Plan            it is made or loaded, and nothing has been checked yet
Snapshot        the workspace, or the part that is needed, was read
Waiting         for the service, for somebody, or for what an earlier run has sent
Call            it is about to be sent, or sent again
CallOutcome     a call has ended, or is not sent because an earlier one failed or the run stopped
str             a sentence for people, such as that a lock could not be removed
ApplyReport     the run ends before its first call with an error, which is raised next
KeyboardInterrupt
                Ctrl-C or SIGTERM before the first call
"""


class ApplyEvents(Struct, frozen=True):
    """What an apply calls while it runs; by default nothing.

    phase: Reading, Checking, Applying or Verifying begins. record: called for each event, by several threads.
    """

    phase: Phase = unreported
    record: Callable[[ApplyEvent], None] = lambda event: None


class CallCounter:
    """Progress of Applying, in calls: all of them are known from the start. Thread-safe."""

    def __init__(self, calls: int, report: Report) -> None:
        self._report, self._lock = report, threading.Lock()
        self._progress = RunProgress(done=0, total=calls, is_final=True)

    def count(self, outcome: CallOutcome) -> None:
        """Count a call that was attempted or blocked, and report."""
        with self._lock:
            self._progress = replace(
                self._progress, done=self._progress.done + (outcome.status is not CallStatus.NOT_ATTEMPTED)
            )
            self._report(self._progress)

    def report(self, progress: RunProgress) -> None:
        """Report what limits the rate of requests. Their number is not shown: one call can take several."""
        with self._lock:
            self._progress = replace(self._progress, limit=progress.limit)
            if progress.limit is not None:
                self._report(self._progress)


Learnt: TypeAlias = "Mapping[Ref, str]"
"""The ids that a response returned, by reference."""
BeforeCall: TypeAlias = "Callable[[Call], None]"
"""Called before a call is sent. A LmsconfError from it stops the run."""
LAST: Final = 1000
"""The weight from which a call waits until no other call is under way: lighter ones may follow from those."""


class RunResult(Struct, kw_only=True):
    """The result of a run: one outcome per call, in plan order, and why it stopped early, if it did.

    is_abandoned: calls are still under way after a second interruption.
    """

    outcomes: tuple[CallOutcome, ...] = ()
    stopped_by: LmsconfError | None = None
    interrupted_by: KeyboardInterrupt | None = None
    is_abandoned: bool = False
    errors: list[LmsconfError] = field(default_factory=list)

    @property
    def may_have_written(self) -> bool:
        """Whether anything was, or may have been, changed."""
        return any(outcome.status is CallStatus.DONE for outcome in self.outcomes) or any(
            isinstance(error, WriteOutcomeUnknown | DuplicateResource | NoEffect) for error in self.errors
        )


def unstarted_run(plan: Plan, error: LmsconfError) -> RunResult:
    """Return the result of a run that an error stops before its first call."""
    return RunResult(
        outcomes=tuple(
            CallOutcome(
                call=call.id,
                address=call.address,
                operation=call.operation,
                status=CallStatus.NOT_ATTEMPTED,
                reason=error.message,
                hint=error.hint,
                people=call.people,
            )
            for call in plan.calls
        ),
        stopped_by=error,
    )


def _ends_all(error: LmsconfError) -> bool:
    """Whether every other call would fail the same way, or make things worse."""
    return isinstance(error, Unreachable | DuplicateResource) or (
        isinstance(error, Unauthorized) and not error.is_forbidden
    )


def _unexpected(call: Call, error: Exception) -> WriteOutcomeUnknown:
    """Return the error for an exception that no part of lmsconf expects; it keeps the exception as its cause."""
    unknown = WriteOutcomeUnknown(
        f"an unexpected {type(error).__name__} ended the call: {error}",
        hint="This is a defect of lmsconf; please report it. Plan again to see what remains.",
        operation=call.operation,
    )
    unknown.__cause__ = error
    return unknown


class CallRun:
    """One execution of a plan. submit: sends a call with the ids known so far. tell: called with each outcome.

    On Ctrl-C, calls under way finish and no other starts; `stop_waiting` is called then. A second Ctrl-C ends the run
    at once: it is not known then whether the calls under way were done. weight: of the calls that can be sent, the
    lightest are sent first. is_serial: of those for which it holds, one is sent at a time.
    """

    def __init__(
        self,
        plan: Plan,
        submit: Callable[[Call, Learnt], Future[Learnt]],
        *,
        width: int,
        tell: Callable[[CallOutcome], None] = lambda _: None,
        begin: BeforeCall = lambda _: None,
        stop_waiting: Callable[[], None] = lambda: None,
        weight: Callable[[Call], int] = lambda _: 0,
        is_serial: Callable[[Call], bool] = lambda _: False,
    ) -> None:
        self.calls = {call.id: call for call in plan.calls}
        self.submit, self.width, self.tell, self.begin, self.stop_waiting = submit, width, tell, begin, stop_waiting
        self.graph = TopologicalSorter({call.id: call.needs for call in plan.calls})
        self.graph.prepare()
        self.weight, self.is_serial, self.arrived = weight, is_serial, count()
        self.ready: list[tuple[int, int, str]] = []
        self.failed: set[str] = set()
        self.ids: dict[Ref, str] = {}
        self.outcomes: dict[str, CallOutcome] = {}
        self.ended: SimpleQueue[tuple[str, Future[Learnt]]] = SimpleQueue()
        self.in_flight: dict[str, bool] = {}
        self.result = RunResult()

    def run(self, interrupts: Interrupts) -> RunResult:
        """Send the calls; return what became of them."""
        # An interruption raised between a response and its recording would leave a call that is never waited for.
        with interrupts.installed():
            try:
                with interrupts.passed_to(self._interrupt):
                    roots = self.graph.get_ready()
                    # Those that may be refused are done before all others.
                    for is_refusable in (True, False):
                        self._run_from(id for id in roots if self.calls[id].may_be_refused is is_refusable)
            except KeyboardInterrupt as cut:
                self.result.interrupted_by = self.result.interrupted_by or cut
                for id in self.in_flight.keys() - self.outcomes.keys():
                    self.result.is_abandoned = True
                    self._note_failed(
                        self.calls[id],
                        WriteOutcomeUnknown(
                            "the run was interrupted twice before its answer",
                            hint="Apply again: what was done is detected, and only the rest is done.",
                        ),
                    )
            for call in self.calls.values():
                if call.id not in self.outcomes:
                    self._note_unsent(call)
        self.result.outcomes = tuple(self.outcomes[id] for id in self.calls)
        return self.result

    def _interrupt(self, cut: KeyboardInterrupt) -> None:
        """Let calls under way finish; a second interruption is immediate."""
        if self.result.interrupted_by is not None:
            raise cut
        self.result.interrupted_by = cut
        self.stop_waiting()

    def _run_from(self, ids: Iterable[str]) -> None:
        """Send these calls, and those that become ready, until none is under way."""
        self._add_ready(ids)
        while True:
            # What has ended is recorded first, and may stop the others.
            while self.ready and self._has_room and self.ended.empty() and not self._stopped:
                self._start(self.calls[heappop(self.ready)[-1]])
            if not self.in_flight:
                return
            id, future = self._next_ended()
            self._finish(self.calls[id], future)
            # Not before its outcome is recorded: an interruption between both would take it for one not sent.
            del self.in_flight[id]

    def _next_ended(self) -> tuple[str, Future[Learnt]]:
        """Wait for a call to end."""
        while True:
            # A signal that the kernel gives to another thread does not end the wait of this one, which handles it.
            with suppress(Empty):
                return self.ended.get(timeout=0.2)

    @property
    def _has_room(self) -> bool:
        """Whether the next call can be sent beside those under way."""
        call = self.calls[self.ready[0][-1]]
        return (
            len(self.in_flight) < self.width
            and not (self.in_flight and self.weight(call) >= LAST)
            and not (any(self.in_flight.values()) and self.is_serial(call))
        )

    @property
    def _stopped(self) -> bool:
        return self.result.stopped_by is not None or self.result.interrupted_by is not None

    def _start(self, call: Call) -> None:
        try:
            self.begin(call)
        except LmsconfError as error:
            self.result.stopped_by = self.result.stopped_by or error
            return
        self.in_flight[call.id] = self.is_serial(call)
        self.submit(call, self.ids).add_done_callback(lambda done: self.ended.put((call.id, done)))

    def _finish(self, call: Call, future: Future[Learnt]) -> None:
        try:
            learnt = future.result()
        except LmsconfError as error:
            self._fail(call, error, ends_all=_ends_all(error))
        except Exception as error:
            # After a defect nothing else is sent, either: what was done before is reported.
            self._fail(call, _unexpected(call, error), ends_all=True)
        else:
            self.ids.update(learnt)
            self._note(call, CallStatus.DONE, id=learnt.get(Ref(call.address)))
            self.graph.done(call.id)
            self._add_ready(self.graph.get_ready())

    def _fail(self, call: Call, error: LmsconfError, *, ends_all: bool) -> None:
        """Record a call that failed, or was not sent any more. ends_all: whether the run stops there."""
        self.failed.add(call.id)
        if isinstance(error, WrongAssumption) and not error.sent:
            self._note(call, CallStatus.NOT_ATTEMPTED, reason=error.message)
            return
        if ends_all:
            self.result.stopped_by = self.result.stopped_by or error
        self._note_failed(call, error)

    def _note_failed(self, call: Call, error: LmsconfError) -> None:
        """Report a call that failed, or whose result is not known."""
        self.result.errors.append(error)
        self._note(
            call,
            CallStatus.FAILED,
            reason=error.message,
            hint=error.hint,
            unsure=isinstance(error, WriteOutcomeUnknown | WrongAssumption),
            carried_out=isinstance(error, WrongAssumption) and error.is_done,
        )

    def _add_ready(self, ids: Iterable[str]) -> None:
        for id in ids:
            heappush(self.ready, (self.weight(self.calls[id]), next(self.arrived), id))

    def _note_unsent(self, call: Call) -> None:
        """Report a call that was not sent: it depends on one that failed, directly or not, or the run ended before."""
        # In the order of the plan, what a call needs comes before it.
        cause = next((self.calls[need] for need in call.needs if need in self.failed), None)
        status, reason = CallStatus.NOT_ATTEMPTED, "the run ended before it"
        if cause is not None:
            self.failed.add(call.id)
            status, reason = CallStatus.BLOCKED, f"it needs {cause.id} ({cause.address}), which was not done"
        elif self.result.interrupted_by is not None:
            reason = "the run was interrupted before it"
        elif self.result.stopped_by is not None:
            reason = f"the run stopped before it: {self.result.stopped_by.message}"
        self._note(call, status, reason=reason)

    def _note(
        self,
        call: Call,
        status: CallStatus,
        *,
        reason: str | None = None,
        hint: str | None = None,
        id: str | None = None,
        unsure: bool = False,
        carried_out: bool = False,
    ) -> None:
        self.outcomes[call.id] = outcome = CallOutcome(
            call=call.id,
            address=call.address,
            operation=call.operation,
            status=status,
            reason=reason,
            hint=hint,
            id=id,
            people=call.people,
            unsure=unsure,
            carried_out=carried_out,
        )
        self.tell(outcome)
