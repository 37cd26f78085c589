"""The result of a rehearsal: a plan's own calls on a twin of the workspace in memory, and what that rests on.

A twin is not the service: what it shows holds as far as the service behaves as the dialect assumes.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.effects import Basis
from lmsconf.model.outcomes import CallStatus
from lmsconf.model.plan import Change


class RehearsalOutcome(StrEnum):
    """SUCCESS: every call was done, and the second plan is empty. REFUSED: the twin refused a call, or answered none.

    NOT_CONVERGED: every call was done, and the second plan still has changes or errors.
    """

    SUCCESS = "success"
    REFUSED = "refused"
    NOT_CONVERGED = "not_converged"


class RehearsalReceipt(Struct, frozen=True, kw_only=True):
    """Proof, inside a plan file, of what was rehearsed. at: when, in UTC.

    plan_digest: of the plan whose calls were sent. snapshot_digest: of the snapshot file that the twin was made of.
    """

    plan_digest: str
    snapshot_digest: str
    outcome: RehearsalOutcome
    at: str
    tool: str


class FailedCall(Struct, frozen=True, kw_only=True):
    """A call that was not done on the twin. reason: the twin's answer; hint: the fix."""

    call: str
    address: Address
    operation: str
    status: CallStatus
    reason: str | None
    hint: str | None


class RehearsedAssumption(Struct, frozen=True, kw_only=True):
    """A dialect key that the plan's calls rely on, its value, and whether the project file declares it."""

    key: str
    value: str
    operations: tuple[str, ...]
    declared: bool


class RehearsedGroup(Struct, frozen=True, kw_only=True):
    """The active members of a group: predicted by the effects of the plan, and reached on the twin; None: not known."""

    address: Address
    before: int | None
    predicted: int | None
    reached: int | None
    basis: Basis

    @property
    def differs(self) -> bool:
        """Whether both numbers are known and not equal."""
        return self.predicted is not None and self.reached is not None and self.predicted != self.reached


class RehearsalPace(Struct, frozen=True, kw_only=True):
    """How long an apply would take. requests: of the rehearsed apply, with its checks and reading back.

    rate: requests a second, None if not known. is_limit: it is `--max-rate`, and not a limit that the service showed.
    """

    requests: int
    rate: int | float | None = None
    is_limit: bool = False

    @property
    def seconds(self) -> float | None:
        """The time of the requests at this rate; None if the rate is not known."""
        return None if self.rate is None else self.requests / self.rate


class Rehearsal(Struct, frozen=True, kw_only=True):
    """A rehearsed plan.

    taken_at: when the workspace was read. calls: how many the plan has; done: how many were done on the twin.
    failed: the others. remaining: the changes of the second plan. problems: errors of the second plan, and where the
    twin is not as predicted.
    """

    receipt: RehearsalReceipt
    taken_at: str
    calls: int
    done: int
    failed: tuple[FailedCall, ...]
    remaining: tuple[Change, ...]
    problems: tuple[Problem, ...]
    assumptions: tuple[RehearsedAssumption, ...]
    memberships: tuple[RehearsedGroup, ...]
    pace: RehearsalPace
