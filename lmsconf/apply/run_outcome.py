"""What the outcome of a run means: its exit code, and hints for refused updates."""

from __future__ import annotations

from lmsconf.apply.scheduler import RunResult
from lmsconf.errors import ExitCode, LmsconfError, Terminated, Unauthorized, WrongAssumption
from lmsconf.kinds.content_target.steps import ON_EXISTING
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET
from lmsconf.model.calls import CallStatus
from lmsconf.model.outcomes import CallOutcome
from lmsconf.model.plan import Action, Plan


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
