"""The rehearsal of a plan in a Markdown comment: a paragraph at its head, and sections that are shortened if needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from lmsconf.model.plan import Plan
from lmsconf.model.rehearsal import FailedCall, Rehearsal, RehearsalOutcome
from lmsconf.render.escape import escape_markdown
from lmsconf.render.markdown.sections import (
    NAME_SIZE,
    MarkdownSection,
    SectionEntry,
    problem_entry,
    truncate,
)
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
from lmsconf.render.size_limit import SizeLimit


def rehearsal_paragraph(plan: Plan) -> str:
    """Return the result of a plan's rehearsal; empty for a plan that was not rehearsed."""
    if plan.rehearsal is None:
        return ""
    mark = "" if plan.rehearsal.receipt.outcome is RehearsalOutcome.SUCCESS else "⛔ "
    return f"{mark}**{escape_markdown(reminder_line(plan.rehearsal))}**"


def rehearsal_sections(plan: Plan, limit: SizeLimit) -> Iterator[MarkdownSection]:
    """Yield what was not done, what is left, and what the rehearsal rests on; the latter folded."""
    rehearsal = plan.rehearsal
    if rehearsal is None:
        return
    if rehearsal.failed:
        yield MarkdownSection(FAILED_HEADING, [_failed_entry(call) for call in rehearsal.failed])
    if rehearsal.remaining:
        yield _lines(REMAINING_HEADING, map(remaining_line, rehearsal.remaining), ("change", "changes"))
    if rehearsal.problems:
        yield MarkdownSection("After the rehearsal", [problem_entry(problem) for problem in rehearsal.problems])
    yield _lines(f"About the rehearsal of {rehearsal.taken_at}", _about(plan, rehearsal), ("line", "lines"), limit)
    if rehearsal.assumptions:
        lines = map(assumption_line, rehearsal.assumptions)
        yield _lines(ASSUMPTIONS_HEADING, lines, ("assumption", "assumptions"), limit)


def _about(plan: Plan, rehearsal: Rehearsal) -> Iterator[str]:
    yield from rehearsal_sentences(plan, rehearsal)
    yield from (f"{GROUPS_HEADING}, {group_line(group)}" for group in rehearsal.groups)


def _failed_entry(call: FailedCall) -> SectionEntry:
    title = truncate(failed_call_line(call), escape_markdown, 2 * NAME_SIZE)
    more = [escape_markdown(line) for text in (call.reason, call.hint) for line in (text or "").split("\n") if line]
    return SectionEntry(("call", "calls"), (lambda: f"- {title}\n", lambda: "\n  ".join([f"- {title}", *more]) + "\n"))


def _lines(
    heading: str, lines: Iterable[str], nouns: tuple[str, str], limit: SizeLimit | None = None
) -> MarkdownSection:
    """Return a section of single lines; folded with a limit that folds."""
    entries = [SectionEntry(nouns, (partial(_line, line),)) for line in lines]
    return MarkdownSection(heading, entries, folded=limit is not None and limit.folds)


def _line(text: str) -> str:
    return f"- {truncate(text, escape_markdown, 2 * NAME_SIZE)}\n"
