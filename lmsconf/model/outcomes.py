"""The result of each call, what was verified after a run, its whole result, and a run as its journal has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, field

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.calls import CallResult, CallStatus, is_creation
from lmsconf.model.effects import PredictedTotals
from lmsconf.model.forms import OfWorkspace
from lmsconf.model.plan import Action, Change


class VerifyMode(StrEnum):
    """What a run verifies at its end: everything its plan covers, the resources it changed, or nothing."""

    ALL = "all"
    TOUCHED = "touched"
    NONE = "none"


class VerifiedScope(Struct, frozen=True, kw_only=True):
    """What was verified after a run, so that no report claims more.

    resources: how many resources the plan changes. partial: whether the plan covers a selection of resources only.
    skipped: how many references to people who are not live were skipped, as the project allows.
    left_out: how many resources have further changes that `--additive` leaves out.
    reason: why not everything was verified, as a sentence.
    """

    scope: VerifyMode = VerifyMode.NONE
    resources: int = 0
    partial: bool = False
    skipped: int = 0
    left_out: int = 0
    reason: str | None = None


def count_skipped_people(problems: Iterable[Problem]) -> int:
    """Count the references to people who are not live and were skipped."""
    return sum(problem.code == "person/unknown" and not problem.is_error for problem in problems)


class CallOutcome(CallResult, frozen=True, kw_only=True):
    """The result of one call on the service.

    id: the id of the created resource. people: as in the call. unsure: it failed, but may have been carried out.
    carried_out: it did what was planned only when it was sent once more with other values.
    """

    id: str | None = None
    people: tuple[str, ...] = ()
    unsure: bool = False
    carried_out: bool = False


def is_already_accepted(change: Change, outcomes: Iterable[CallOutcome]) -> bool:
    """Whether a change of a fresh plan was already accepted: all calls of its resource are done, or its creation is.

    A resource that was created but does not show yet would be duplicated by a second creation, whatever other call of
    it failed.
    """
    own_outcomes = [outcome for outcome in outcomes if outcome.address == change.address]
    if all(outcome.status is CallStatus.DONE for outcome in own_outcomes):
        return True
    done = (one for one in own_outcomes if one.status is CallStatus.DONE)
    return change.action is Action.CREATE and any(is_creation(one.operation) for one in done)


class ApplyReport(OfWorkspace, frozen=True, kw_only=True):
    """The result of a run: one outcome per call, in the order of the plan, and the verification of the workspace.

    converged: whether the workspace is as planned; None if it was not read back. residue: changes of a fresh plan.
    predicted: the effects on people that the plan predicted, in total; None for a plan without changes.
    undo_command: the command line that plans the way back; shown, not saved. None where nothing was changed.
    """

    plan_digest: str
    started_at: str
    finished_at: str
    outcomes: tuple[CallOutcome, ...]
    verified: VerifiedScope
    converged: bool | None
    residue: tuple[Change, ...]
    problems: tuple[Problem, ...]
    meta: Mapping[str, str]
    exit: int
    predicted: PredictedTotals | None = None
    undo_command: str | None = None

    @property
    def remaining_changes(self) -> tuple[Change, ...]:
        """The remaining changes of resources that this run had calls for."""
        return tuple(change for change in self.residue if change.address in self._touched)

    @property
    def foreign_changes(self) -> tuple[Change, ...]:
        """The remaining changes of other resources, changed by another writer or as a side effect of this run."""
        return tuple(change for change in self.residue if change.address not in self._touched)

    @property
    def _touched(self) -> set[Address]:
        return {outcome.address for outcome in self.outcomes}

    @property
    def everything_seen(self) -> bool:
        """Whether reading back showed everything that was done."""
        if self.converged is not False:
            return self.converged is True
        was_compared = bool(self.residue) and not any(problem.is_error for problem in self.problems)
        return was_compared and not any(is_already_accepted(change, self.outcomes) for change in self.remaining_changes)

    @property
    def summary(self) -> Mapping[CallStatus, int]:
        """The number of calls with each status."""
        return {status: sum(outcome.status is status for outcome in self.outcomes) for status in CallStatus}


class CallState(StrEnum):
    """The recorded state of a call. `in_flight`: it was sent, and its outcome is unknown."""

    DONE = CallStatus.DONE.value
    FAILED = CallStatus.FAILED.value
    BLOCKED = CallStatus.BLOCKED.value
    IN_FLIGHT = "in_flight"
    NOT_ATTEMPTED = CallStatus.NOT_ATTEMPTED.value


class RecordedCall(CallOutcome, frozen=True, kw_only=True):
    """One call recorded in a journal. begun: when it was last sent; None if it never was, or its line is lost."""

    status: CallState  # type: ignore[assignment]  # it may also be in flight
    begun: datetime | None = None
    ended: datetime | None = None

    @property
    def effect(self) -> CallState:
        """Its state in the workspace: done also if it was carried out with other values."""
        return CallState.DONE if self.carried_out else self.status


class ChainLink(Struct, frozen=True, kw_only=True):
    """The place of a run in the hash chain of the runs of its workspace in one project folder.

    number: counts from 1. previous: the run before it, and the SHA-256 of that run's journal; None for the first.
    oldest: the oldest earlier run that was kept when this one began; None if there was none.
    """

    number: int
    previous: str | None
    previous_sha256: str | None
    oldest: str | None


class SnapshotDigest(Struct, frozen=True, kw_only=True):
    """The digest of what was read of a workspace. rows: how many of each listing. incomplete: listings that lack some.

    The same state, read in the same part, has the same sha256.
    """

    sha256: str
    taken_at: str
    rows: Mapping[str, int]
    incomplete: tuple[str, ...] = ()


class ManifestsCommit(Struct, frozen=True, kw_only=True):
    """The git commit of a project when a run began. clean: whether the manifests and the project file are as in it.

    commit: None if there is none to name; reason: why.
    """

    commit: str | None = None
    clean: bool = False
    reason: str | None = None


class JournalHeader(Struct, frozen=True, kw_only=True, rename={"started": "at"}):
    """The first line of a journal, written before any call. calls: how many the plan has.

    pre_image_sha256: that of the part of a snapshot that is kept, too.
    chain, plan_sha256: the run's place among earlier runs, and the SHA-256 of the plan file that is kept beside the
    journal. before: what was read of the workspace and compared with the plan, right before the run. commit: of the
    manifests. All are None in journals of versions that did not record them.
    """

    digest: str
    workspace: str
    url: str
    started: datetime
    tool: str
    calls: int
    meta: Mapping[str, str]
    chain: ChainLink | None = None
    plan_sha256: str | None = None
    before: SnapshotDigest | None = None
    commit: ManifestsCommit | None = None
    pre_image_sha256: str | None = None


class RunEnding(Struct, frozen=True, kw_only=True):
    """How a run ended. verified: what it read back. converged: whether that is as planned; None if nothing was read.

    seen: whether reading back showed everything that the run did. report_sha256: of the report that is kept beside the
    journal; None if it was not kept. after: what was read of the workspace to verify the run; None if nothing was.
    """

    at: datetime
    exit: int
    verified: VerifyMode
    converged: bool | None
    seen: bool = False
    report_sha256: str | None = None
    after: SnapshotDigest | None = None


def undo_command(run: str, command: str = "lmsconf") -> str:
    """Return the command line that plans the way back from a run."""
    return f"{command} plan --undo {run} --out undo.json"


class RecordedRun(Struct, frozen=True, kw_only=True):
    """One run as recorded in its journal.

    name     the name of the journal
    opening  None if the first line cannot be read
    calls    the recorded calls, in the order of their first lines
    ending   None if the run was cut short
    damaged  how many lines cannot be read
    seen     the dialect keys that its calls have shown to be right, with their values
    journal  the file that it was read from; its plan and report are beside it
    """

    name: str
    opening: JournalHeader | None = None
    calls: tuple[RecordedCall, ...] = ()
    ending: RunEnding | None = None
    damaged: int = 0
    seen: Mapping[str, str] = field(default_factory=dict)
    journal: Path | None = None

    @property
    def summary(self) -> Mapping[CallState, int]:
        """The number of calls in each state."""
        counts = {state: sum(call.status is state for call in self.calls) for state in CallState}
        if self.opening is not None:
            # A run that was cut short records nothing about the calls that it did not reach.
            counts[CallState.NOT_ATTEMPTED] += max(0, self.opening.calls - len(self.calls))
        return counts

    @property
    def in_flight(self) -> tuple[RecordedCall, ...]:
        """The calls with an unknown outcome: the run was cut short, or their responses were lost."""
        return tuple(call for call in self.calls if call.status is CallState.IN_FLIGHT)

    @property
    def unconfirmed_creations(self) -> tuple[RecordedCall, ...]:
        """The creations that were done, but not confirmed by reading back."""
        if self.ending is not None and self.ending.seen:
            return ()
        return tuple(call for call in self.calls if call.effect is CallState.DONE and is_creation(call.operation))
