"""The rehearsal of a plan on its page: the result at the top, and a section with all of it."""

from __future__ import annotations

from lmsconf.model.plan import Plan
from lmsconf.model.rehearsal import FailedCall, RehearsalOutcome
from lmsconf.render.html.components import headed_list, hint_paragraph, problem_note
from lmsconf.render.html.document import Child, Markup, tag
from lmsconf.render.rehearsal_wording import (
    ASSUMPTIONS_HEADING,
    FAILED_HEADING,
    GROUPS_HEADING,
    REMAINING_HEADING,
    assumption_line,
    failed_call_line,
    group_line,
    rehearsal_sentences,
    remaining_line,
    reminder_line,
)


def rehearsal_verdict(plan: Plan) -> Child:
    """Return the result of a plan's rehearsal, for the top of the page; None for a plan that was not rehearsed."""
    if plan.rehearsal is None:
        return None
    line = reminder_line(plan.rehearsal)
    if plan.rehearsal.receipt.outcome is RehearsalOutcome.SUCCESS:
        return tag("p", line, class_="scope")
    return tag("div", tag("p", tag("span", "Rehearsal", class_="kind"), " · ", line), class_="note stop")


def rehearsal_section(plan: Plan) -> Child:
    """Return everything that the rehearsal showed, and what it rests on."""
    rehearsal = plan.rehearsal
    if rehearsal is None:
        return None
    return [
        [tag("p", sentence) for sentence in rehearsal_sentences(plan, rehearsal)],
        [tag("p", tag("b", f"{FAILED_HEADING}:")), list(map(_failed, rehearsal.failed))] if rehearsal.failed else None,
        headed_list(REMAINING_HEADING, map(remaining_line, rehearsal.remaining)),
        [problem_note(problem) for problem in rehearsal.problems],
        headed_list(GROUPS_HEADING, map(group_line, rehearsal.groups)),
        _folded(ASSUMPTIONS_HEADING, [assumption_line(assumption) for assumption in rehearsal.assumptions]),
        tag("p", "Snapshot ", tag("code", rehearsal.receipt.snapshot_digest), class_="scope"),
    ]


def _failed(call: FailedCall) -> Markup:
    reason = tag("p", call.reason) if call.reason is not None else None
    return tag("div", tag("p", failed_call_line(call)), reason, hint_paragraph(call.hint), class_="note error")


def _folded(heading: str, lines: list[str]) -> Child:
    items = [tag("li", line) for line in lines]
    return (
        tag("details", tag("summary", f"{heading}: {len(items)}"), tag("ul", items), class_="fold") if items else None
    )
