"""What a run came to: the workspace planned again after it, its exit code, hints for refused updates.

Everything that the plan was made from is planned again, or only what the run touched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver
from lmsconf.apply.scheduler import RunResult
from lmsconf.errors import ExitCode, LmsconfError, Problem, ProblemsFound, Terminated, Unauthorized, WrongAssumption
from lmsconf.kinds.content_target.steps import ON_EXISTING
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import CallOutcome, is_already_accepted
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.model.scope import VerifiedScope, VerifyMode, count_skipped_people

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


def hints_on_updates(plan: Plan) -> dict[str, str]:
    """The hint for each call of an update of an assignment, by call id."""
    updated = {
        one.address for one in plan.changes if one.action is Action.UPDATE and one.address.kind == CONTENT_TARGET
    }
    return {call.id: ON_EXISTING for call in plan.calls if call.address in updated}


def exit_code(run: RunResult, converged: bool | None) -> ExitCode:
    """Map a run to its exit code."""
    if run.interrupted_by is not None:
        return run.interrupted_by.exit if isinstance(run.interrupted_by, Terminated) else ExitCode.INTERRUPTED
    failed = any(outcome.status is not CallStatus.DONE for outcome in run.outcomes)
    if failed and not run.may_have_written:
        if run.stopped_by is not None:
            return run.stopped_by.exit
        if any(isinstance(error, Unauthorized) for error in run.errors):
            return ExitCode.UNAUTHORIZED
        return ExitCode.BLOCKED if any(error.code == "refusal/in-use" for error in run.errors) else ExitCode.ERROR
    if failed:
        wrong = any(isinstance(error, WrongAssumption) and not error.refused for error in run.errors)
        return ExitCode.NOT_CONVERGED if wrong else ExitCode.PARTIAL
    # A plan without calls whose manifests are not available leaves nothing to do or to verify.
    return ExitCode.OK if converged or (converged is None and not run.outcomes) else ExitCode.NOT_CONVERGED


def unattempted_calls(plan: Plan, error: LmsconfError) -> tuple[CallOutcome, ...]:
    """The outcomes of a plan's calls after an error before the first of them."""
    return tuple(
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
    )
