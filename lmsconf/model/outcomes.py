"""The result of each call, what was verified after a run, and the result of the whole run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

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
    """

    id: str | None = None
    people: tuple[str, ...] = ()
    unsure: bool = False


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

    def count(self, status: CallStatus) -> int:
        return sum(outcome.status is status for outcome in self.outcomes)
