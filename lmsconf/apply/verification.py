"""Verify the workspace after a run: plan again everything that the plan was made from, or only what it touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver
from lmsconf.apply.scheduler import RunResult
from lmsconf.errors import LmsconfError, Problem, ProblemsFound
from lmsconf.model.outcomes import VerifiedScope, VerifyMode, count_skipped_people, is_already_accepted
from lmsconf.model.plan import Change, Plan

TOUCHED_ONLY: Final = "Nothing else was checked (--verify touched)."
OTHER_MANIFESTS: Final = (
    "The local manifests differ from those that this plan was made from, so nothing else was checked."
)
UNDONE: Final = "The plan undoes a run, so only what it touched was checked."
NO_MANIFESTS: Final = "There are no readable local manifests, so only what this plan touched was checked."

Whole = Callable[[], tuple[Plan, tuple[Problem, ...]]]
"""Re-plan everything in the plan's selection; also return the errors of what cannot be planned."""


class VerificationResult(Struct, frozen=True, kw_only=True):
    """The result of a verification. converged: None if it was not possible.

    residue: the changes that a fresh plan still contains. problems: errors of what could not be planned or read.
    """

    verified: VerifiedScope
    converged: bool | None
    residue: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()


def skipped_verification(reason: str) -> VerificationResult:
    """The result when nothing was read, with the reason."""
    return VerificationResult(verified=VerifiedScope(reason=reason), converged=None)


def verify_by_replanning(
    plan: Plan,
    run: RunResult,
    resolver: AmbiguousWriteResolver,
    *,
    touched: Callable[[], Plan],
    whole: Whole | None,
    reason: str | None,
) -> VerificationResult:
    """Plan again. Everything is read once; acknowledged writes may become visible late, and only those are read again.

    whole: None if only what the plan touched is verified, for that `reason`.
    """
    addresses = {outcome.address for outcome in run.outcomes}
    verified = VerifiedScope(
        scope=VerifyMode.TOUCHED if whole is None else VerifyMode.ALL,
        resources=len({change.address for change in plan.changes}),
        partial=plan.partial,
        reason=reason,
    )
    changes: tuple[Change, ...] = ()
    others: tuple[Change, ...] = ()
    errors: tuple[Problem, ...] = ()
    was_read = False
    for _ in resolver.poll_visibility():
        try:
            if whole is None or was_read:
                changes = touched().changes
            else:
                now, errors = whole()
                changes = tuple(change for change in now.changes if change.address in addresses)
                others = tuple(change for change in now.changes if change.address not in addresses)
                verified = replace(verified, skipped=count_skipped_people(now.all_problems), left_out=len(now.left_out))
            was_read = True
        except ProblemsFound as error:
            wrong = tuple(problem for problem in error.problems if problem.is_error)
            return VerificationResult(verified=verified, converged=False, residue=others, problems=(*errors, *wrong))
        except LmsconfError as error:
            return replace(skipped_verification(error.message), problems=error.problems)
        if not any(change.address in addresses and is_already_accepted(change, run.outcomes) for change in changes):
            break
    residue = (*changes, *others)
    return VerificationResult(verified=verified, converged=not (residue or errors), residue=residue, problems=errors)
