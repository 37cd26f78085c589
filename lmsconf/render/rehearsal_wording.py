"""Wording of a rehearsal, shared by all formats. Results are not escaped."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.blockers import blockers
from lmsconf.model.calls import CallStatus
from lmsconf.model.plan import (
    Change,
    FailedCall,
    Plan,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsedAssumption,
    RehearsedGroup,
)
from lmsconf.model.time_formats import duration_in_words
from lmsconf.render.plan_wording import ACTION_SIGNS, ACTION_WORDS
from lmsconf.render.resource_wording import count_noun

HEADING = "Rehearsal on a twin of the workspace"
NOT_THE_SERVICE = (
    "The twin is the embedded sandbox, filled with what was read. It has no progress, certificates or times of "
    "creation, and it is not the service: the service may answer otherwise."
)
ASSUMPTIONS_HEADING = "The calls rely on these assumptions about the service, which the rehearsal cannot check"
FAILED_HEADING = "Calls that were not done on the twin"
GROUPS_HEADING = "Active members"
REMAINING_HEADING = "The second plan on the twin still has these changes"


def rehearsal_sentences(plan: Plan, rehearsal: Rehearsal) -> Iterator[str]:
    """Yield the result, how it came about, and what it does not show."""
    yield outcome_sentence(rehearsal)
    if rehearsal.calls:
        if blockers(plan):
            yield "The calls were sent as if nothing stopped an apply; what stops it stands with the plan."
        yield pace_sentence(rehearsal.pace)
    yield NOT_THE_SERVICE


def reminder_line(rehearsal: Rehearsal) -> str:
    """Return the result as a line beside the plan's summary."""
    return f"Rehearsal: {_outcome_clause(rehearsal)}"


def outcome_sentence(rehearsal: Rehearsal) -> str:
    """Return the result in one sentence."""
    clause = _outcome_clause(rehearsal)
    return clause[0].upper() + clause[1:]


def _outcome_clause(rehearsal: Rehearsal) -> str:
    calls = count_noun(rehearsal.calls, "API call")
    match rehearsal.receipt.outcome:
        case RehearsalOutcome.SUCCESS:
            if not rehearsal.calls:
                return "there is no call to rehearse."
            return f"all {calls} were done on the twin, and a second plan is empty."
        case RehearsalOutcome.REFUSED:
            refused = sum(call.status is CallStatus.FAILED for call in rehearsal.failed)
            return f"{rehearsal.done:,} of {calls} were done on the twin, and {refused:,} failed."
        case RehearsalOutcome.NOT_CONVERGED:
            return f"all {calls} were done on the twin, but a second plan is not empty."


def failed_call_line(call: FailedCall) -> str:
    """Return the line of a call that was not done."""
    verb = {CallStatus.FAILED: "Refused", CallStatus.BLOCKED: "Skipped"}.get(call.status, "Not attempted")
    return f"{verb}: {resource_title(call.address)} ({call.operation})"


def remaining_line(change: Change) -> str:
    """Return a change of the second plan in one line: the plan itself, and JSON, have it in full."""
    keys = f": {', '.join(field.path for field in change.fields)}" if change.fields else ""
    return f"{ACTION_SIGNS[change.action]} {resource_title(change.address)} {ACTION_WORDS[change.action]}{keys}"


def remaining_lines(rehearsal: Rehearsal) -> list[str]:
    return list(map(remaining_line, rehearsal.remaining))


def pace_sentence(pace: RehearsalPace) -> str:
    """Return how many requests an apply takes, and how long."""
    number = f"An apply takes about {count_noun(pace.requests, 'request')}, with its checks and reading back"
    if pace.rate is None or pace.seconds is None:
        return (
            f"{number}; how long that takes is not known, since no request was refused as too many, and --max-rate was "
            "not given."
        )
    limit = "--max-rate" if pace.is_limit else "the limit that the service showed"
    return f"{number}: about {duration_in_words(pace.seconds)} at {rate_text(pace.rate)} a second ({limit})."


def rate_text(rate: float) -> str:
    """Return two significant digits, or a whole number."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def assumption_line(one: RehearsedAssumption) -> str:
    """Return a dialect key, its value and the operations that rely on it."""
    where = ", declared in the project file" if one.declared else ""
    return f"{one.key}: {one.value} ({', '.join(one.operations)}{where})"


def group_line(group: RehearsedGroup) -> str:
    """Return the members of a group before, as predicted and as reached."""
    before, predicted, reached = (_number(one) for one in (group.before, group.predicted, group.reached))
    if group.reached is None or group.differs or group.predicted is None:
        return f"{resource_title(group.address)}: {before} → {predicted} predicted, {reached} on the twin"
    return f"{resource_title(group.address)}: {before} → {reached}, as predicted"


def group_lines(rehearsal: Rehearsal) -> list[str]:
    return list(map(group_line, rehearsal.memberships))


def _number(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"
