"""Rehearsals that show every form a view must word, built by hand."""

from __future__ import annotations

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.effects import Basis
from lmsconf.model.plan import (
    Change,
    FailedCall,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsalReceipt,
    RehearsedAssumption,
    RehearsedGroup,
)

_HASH = "7c" * 32


def refused(address: Address, remaining: tuple[Change, ...], text: str) -> Rehearsal:
    """A rehearsal in which calls were refused and skipped, and groups are not as predicted.

    text: what the service answers, and what everything is called that a service or a file names.
    """
    return Rehearsal(
        receipt=RehearsalReceipt(
            plan_digest=_HASH,
            snapshot_digest=_HASH,
            outcome=RehearsalOutcome.REFUSED,
            at="2026-03-01T08:00:00Z",
            tool="lmsconf 0.1.0",
        ),
        taken_at="2026-03-01T08:00:00Z",
        calls=6,
        done=3,
        failed=(
            _failed("c4", address, CallStatus.FAILED, text, text),
            _failed("c5", address, CallStatus.BLOCKED, "c4 was not done", None),
            _failed("c6", address, CallStatus.NOT_ATTEMPTED, None, None),
        ),
        remaining=remaining,
        problems=(Problem(code="apply/no-effect", message=text, hint=text),),
        assumptions=(
            RehearsedAssumption(key="manual-groups.rename.name", value="name", operations=("x", "y"), declared=False),
            RehearsedAssumption(key="content-targets.everyone", value=text, operations=("z",), declared=True),
        ),
        memberships=(
            RehearsedGroup(address=address, before=2, predicted=3, reached=3, basis=Basis.EXACT),
            RehearsedGroup(address=address, before=2, predicted=3, reached=4, basis=Basis.EXACT),
            RehearsedGroup(address=address, before=None, predicted=None, reached=1_204, basis=Basis.UNKNOWN),
            RehearsedGroup(address=address, before=0, predicted=3, reached=None, basis=Basis.EXACT),
        ),
        pace=RehearsalPace(requests=1_204, rate=5.0, is_limit=True),
    )


def _failed(call: str, address: Address, status: CallStatus, reason: str | None, hint: str | None) -> FailedCall:
    return FailedCall(
        call=call, address=address, operation="manual-groups.rename", status=status, reason=reason, hint=hint
    )
