"""Compare what a deletion rests on once more, right before its call.

Between the comparison at the start of a run and the deletion of a field, whose answers are copied before, people may
answer it again: thousands of calls take minutes. Such a deletion is planned again, with everything read again, and is
sent only if nothing that it depends on is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver
from lmsconf.errors import Problem, ProblemsFound, StalePlan
from lmsconf.kinds.custom_field.parse import is_migrated
from lmsconf.model.calls import Call
from lmsconf.model.plan import Action, Plan

Replay = Callable[[], Plan]
"""Plan the changes of the plan again, on the workspace as it is now."""
LateCheck = Callable[[AmbiguousWriteResolver], None]
"""Raises StalePlan if a call must not be sent any more."""
_HINT = "Plan again and review it: what is done stays, and the rest is planned again."


def late_checks(plan: Plan, replay: Replay) -> dict[str, LateCheck]:
    """Return the checks of the deletions that depend on other calls and that people can invalidate, by call id."""
    deleted = {change.address for change in plan.changes if change.action is Action.DELETE and is_migrated(change)}
    return {call.id: _check(call, replay) for call in plan.calls if call.address in deleted and call.needs}


def _check(call: Call, replay: Replay) -> LateCheck:
    def check(resolver: AmbiguousWriteResolver) -> None:
        differences: tuple[Problem, ...] = ()
        # What this run has written may not be visible in listings yet.
        for _ in resolver.poll_visibility():
            differences = tuple(_what_is_left(call, replay))
            if not differences:
                return
        raise StalePlan(
            f"{call.address} is not deleted, because the workspace has changed during this run: "
            + "; ".join(dict.fromkeys(difference.message for difference in differences)),
            hint=_HINT,
            differences=differences,
        )

    return check


def _what_is_left(call: Call, replay: Replay) -> Iterable[Problem]:
    """Return why a deletion would not be sent now; nothing if it alone is left to do, or is done."""
    try:
        now = replay()
    except ProblemsFound as error:
        return error.problems
    refused = [problem for problem in now.all_problems if problem.is_error and problem.address == str(call.address)]
    same = [one for one in now.calls if one.address == call.address and one.operation == call.operation]
    waits = {id for one in same for id in one.needs}
    left = dict.fromkeys(str(one.address) for one in now.calls if one.id in waits)
    return [
        *refused,
        *(Problem(code=StalePlan.code, message=f"{address} has changed", address=address) for address in left),
    ]
