"""The rehearsal of a plan as text: its result, what was not done, what is left, and what it rests on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lmsconf.model.plan import FailedCall, Plan, Rehearsal
from lmsconf.render.escape import escape_terminal
from lmsconf.render.rehearsal_wording import (
    ASSUMPTIONS_HEADING,
    GROUPS_HEADING,
    HEADING,
    REMAINING_HEADING,
    assumption_line,
    failed_call_line,
    group_line,
    rehearsal_sentences,
    remaining_line,
    reminder_line,
)
from lmsconf.render.text.blocks import indent_lines, problem_lines


def rehearsal_blocks(plan: Plan) -> Iterator[Iterable[str]]:
    """Yield the blocks of a plan's rehearsal; none for a plan that was not rehearsed."""
    rehearsal = plan.rehearsal
    if rehearsal is None:
        return
    yield _head(plan, rehearsal)
    yield from (_failed(call) for call in rehearsal.failed)
    yield _listed(REMAINING_HEADING, map(remaining_line, rehearsal.remaining))
    for problem in rehearsal.problems:
        yield problem_lines(problem)
    yield _listed(GROUPS_HEADING, map(group_line, rehearsal.memberships))
    yield _listed(ASSUMPTIONS_HEADING, map(assumption_line, rehearsal.assumptions))


def rehearsal_reminder(plan: Plan) -> Iterator[str]:
    """Yield the result of the rehearsal, for the end of the plan."""
    if plan.rehearsal is not None:
        yield reminder_line(plan.rehearsal)


def _head(plan: Plan, rehearsal: Rehearsal) -> Iterator[str]:
    yield f"{HEADING}, as it was read at {rehearsal.taken_at}:"
    yield from (f"  {sentence}" for sentence in rehearsal_sentences(plan, rehearsal))


def _failed(call: FailedCall) -> Iterator[str]:
    yield escape_terminal(f"  {failed_call_line(call)}")
    yield from indent_lines(call.reason, indent="      ")
    yield from indent_lines(call.hint, indent="      ")


def _listed(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines under a heading; nothing without lines."""
    for number, line in enumerate(lines):
        if not number:
            yield f"{heading}:"
        yield escape_terminal(f"  {line}")
