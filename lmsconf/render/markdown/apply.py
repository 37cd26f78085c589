"""An apply report as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallStatus
from lmsconf.render.apply_wording import (
    REMAINING_CHANGES_HEADING,
    apply_summary,
    describe_call,
    other_changes_heading,
    verification_result,
)
from lmsconf.render.change_summary import (
    sort_by_severity,
)
from lmsconf.render.effects_wording import predicted_line
from lmsconf.render.escape import escape_markdown, markdown_code
from lmsconf.render.markdown.plan import (
    change_sections,
    comment_marker,
    fit_comment,
    paragraphs,
    problem_section,
    section_if_any,
    workspace_paragraph,
)
from lmsconf.render.markdown.sections import (
    NAME_SIZE,
    MarkdownSection,
    SectionEntry,
    truncate,
)
from lmsconf.render.resource_wording import count_noun, resource_title
from lmsconf.render.size_limit import UNLIMITED, SizeLimit


def apply_markdown(report: ApplyReport, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render an apply report, failures first."""
    head = paragraphs(
        comment_marker("apply", report.workspace, limit),
        f"### lmsconf apply: {truncate(report.workspace, markdown_code)}",
        workspace_paragraph(report.workspace, report.url, report.people),
        f"**{apply_summary(report)}** {verification_result(report)}",
        escape_markdown(predicted_line(report.predicted)),
        _statuses(report),
    )
    sections = [
        *problem_section(sort_by_severity(report.problems)),
        *_outcomes(report, limit),
        *(section for _, section in change_sections(report.remaining_changes, limit, f"{REMAINING_CHANGES_HEADING} ")),
        *(
            section
            for _, section in change_sections(report.foreign_changes, limit, f"{other_changes_heading(report)} ")
        ),
        *section_if_any("About this run", map(_noted, sorted(report.meta.items()))),
    ]
    times = f"{escape_markdown(report.started_at)} to {escape_markdown(report.finished_at)}"
    foot = f"Plan {markdown_code(report.plan_digest)} · {times}"
    return fit_comment(head, sections, foot, limit)


def _statuses(report: ApplyReport) -> str:
    """Return the number of calls per status as a table."""
    counts = " | ".join(f"{report.count(status):,}" for status in CallStatus)
    titles = " | ".join(status.value.replace("_", " ") for status in CallStatus)
    return f"| calls | {titles} |\n|:--|{'--:|' * len(CallStatus)}\n| | {counts} |"


_TITLES = {
    CallStatus.FAILED: "Failed",
    CallStatus.BLOCKED: "Skipped",
    CallStatus.NOT_ATTEMPTED: "Not attempted",
    CallStatus.DONE: "Done",
}


def _outcomes(report: ApplyReport, limit: SizeLimit) -> Iterator[MarkdownSection]:
    """Yield the calls by status; all but the failures are folded."""
    for status, title in _TITLES.items():
        outcomes = [outcome for outcome in report.outcomes if outcome.status is status]
        heading = f"{title}: {count_noun(len(outcomes), 'API call')}"
        yield from section_if_any(
            heading, map(_outcome, outcomes), folded=limit.folds and status is not CallStatus.FAILED
        )


def _outcome(outcome: CallOutcome) -> SectionEntry:
    def row(*more: str | None) -> str:
        call = truncate(describe_call(outcome), escape_markdown)
        head = f"- {truncate(resource_title(outcome.address), markdown_code)} ({call})"
        lines = [line for text in more for line in (text or "").split("\n") if line.strip()]
        return "\n  ".join([head, *map(escape_markdown, lines)]) + "\n"

    return SectionEntry(("API call", "API calls"), (row, lambda: row(outcome.reason, outcome.hint)))


def _noted(pair: tuple[str, str]) -> SectionEntry:
    return SectionEntry(
        ("note", "notes"), (lambda: f"- {truncate(': '.join(pair), escape_markdown, 2 * NAME_SIZE)}\n",)
    )
