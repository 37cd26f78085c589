"""A drift report as Markdown, for an issue that CI opens or updates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lmsconf.model.drift import DriftFinding, DriftReport, DriftState, IgnoredFinding, ManagedShare
from lmsconf.render import drift_wording
from lmsconf.render.change_summary import count_kinds, finding_key_changes, remedy_commands, sort_by_severity
from lmsconf.render.escape import escape_markdown, markdown_code, markdown_fence
from lmsconf.render.markdown.plan import (
    comment_marker,
    fit_comment,
    paragraphs,
    problem_section,
    section_if_any,
    unmanaged_sections,
    workspace_paragraph,
)
from lmsconf.render.markdown.sections import (
    NAME_SIZE,
    MarkdownSection,
    SectionEntry,
    details_block,
    details_summary,
    diff_block,
    source_location,
    summary_row,
    truncate,
)
from lmsconf.render.resource_wording import MAX_SHOWN_ITEMS, NO_VALUE, count_kind, kind_nouns, resource_title
from lmsconf.render.size_limit import UNLIMITED, SizeLimit


def drift_markdown(drift: DriftReport, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render a drift report, findings grouped by state; the counts are complete whatever the limit."""
    head = paragraphs(
        comment_marker("drift", drift.workspace, limit),
        f"### lmsconf drift: {truncate(drift.workspace, markdown_code)}",
        workspace_paragraph(drift.workspace, drift.url, drift.people),
        f"**{drift_wording.drift_summary(drift)}**",
        *map(escape_markdown, drift_wording.base_sentences(drift)),
        _coverage(drift),
        *map(escape_markdown, drift_wording.unread_sentences(drift)),
        "`-` is in the manifests, `+` in the workspace." if drift.findings else "",
    )
    problems = sort_by_severity(drift.problems)
    sections = [
        *problem_section([problem for problem in problems if problem.is_error]),
        *_findings(drift, limit),
        *problem_section([problem for problem in problems if not problem.is_error]),
        *section_if_any(drift_wording.NOT_APPLIED, map(_to_come, drift.not_applied), folded=limit.folds),
        *section_if_any("Ignored by the project file", map(_ignored, drift.ignored), folded=limit.folds),
        *(() if drift.counts_unmanaged else unmanaged_sections(drift.unmanaged, limit)),
    ]
    return fit_comment(head, sections, f"Compared {escape_markdown(drift.created_at)}", limit)


def _coverage(drift: DriftReport) -> str:
    """Return the coverage of each kind as a table."""
    rows = [_covered(share) for share in drift.coverage]
    return "\n".join(["| managed | of | share |", "|--:|:--|--:|", *rows]) if rows else ""


def _covered(coverage: ManagedShare) -> str:
    share = "" if coverage.percent is None else f"{coverage.percent:.1f} %"
    alone = f", {coverage.left_alone:,} left alone" if coverage.left_alone else ""
    rest = f"; not all were read: {coverage.incomplete}" if coverage.incomplete is not None else ""
    of = truncate(f"{count_kind(coverage.live, coverage.kind)}{alone}{rest}", escape_markdown)
    return f"| {coverage.managed:,} | {of} | {share} |"


def _findings(drift: DriftReport, limit: SizeLimit) -> Iterator[MarkdownSection]:
    for state in DriftState:
        in_state = [finding for finding in drift.findings if finding.state is state]
        heading = f"{drift_wording.COUNTED[state].capitalize()}: {count_kinds(in_state)}"
        yield from section_if_any(heading, [_entry(finding, limit) for finding in in_state])


def _entry(finding: DriftFinding, limit: SizeLimit) -> SectionEntry:
    whole = partial(_finding, finding, limit)
    return SectionEntry(
        kind_nouns(finding.address.kind),
        (
            lambda: summary_row(_headline(finding), finding_key_changes(finding), finding.source),
            lambda: whole(MAX_SHOWN_ITEMS),
            lambda: whole(None),
        ),
    )


def _headline(finding: DriftFinding) -> str:
    return f"{truncate(resource_title(finding.address), markdown_code)} {drift_wording.IS[finding.state]}"


def _finding(finding: DriftFinding, limit: SizeLimit, most: int | None) -> str:
    body = "\n\n".join(filter(None, _body(finding, most)))
    if not limit.folds:
        return f"\n{_headline(finding)}\n\n{body}\n"
    return details_block(
        details_summary(drift_wording.SIGNS[finding.state], finding.address, finding_key_changes(finding)), f"{body}\n"
    )


def _body(finding: DriftFinding, most: int | None) -> Iterator[str]:
    yield " · ".join(filter(None, (drift_wording.IS[finding.state].capitalize(), source_location(finding.source))))
    yield "".join(f"- {escape_markdown(line or NO_VALUE)}\n" for line in drift_wording.cause_sentences(finding))
    yield diff_block(finding_key_changes(finding), most)
    ways = [part for does, line in remedy_commands(finding) for part in (f"# {does}", line.replace("\n", "\\n"))]
    yield markdown_fence("\n".join(ways), "sh") if ways else ""


def _to_come(finding: DriftFinding) -> SectionEntry:
    nouns = kind_nouns(finding.address.kind)
    return SectionEntry(
        nouns, (lambda: f"- {truncate(drift_wording.finding_headline(finding), escape_markdown, 2 * NAME_SIZE)}\n",)
    )


def _ignored(ignored: IgnoredFinding) -> SectionEntry:
    nouns = kind_nouns(ignored.finding.address.kind)
    return SectionEntry(
        nouns, (lambda: f"- {truncate(drift_wording.ignored_sentence(ignored), escape_markdown, 2 * NAME_SIZE)}\n",)
    )
