"""A drift report as Markdown, for an issue that CI opens or updates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lmsconf.model.drift import DriftFinding, DriftReport, DriftState, IgnoredFinding, ManagedShare
from lmsconf.render import drift_words, phrases
from lmsconf.render.change_summary import differs, kinds, ways_out, worst_first
from lmsconf.render.escape import code, fence, md
from lmsconf.render.markdown.parts import NAME_SIZE, Section, SummaryRow, diff, fold, place, row, summary, within
from lmsconf.render.markdown.plan import (
    first_line,
    fitted,
    marker,
    paragraphs,
    problem_section,
    section_of,
    unmanaged_sections,
)
from lmsconf.render.size_budget import WHOLE, SizeLimit


def drift_markdown(drift: DriftReport, *, limit: SizeLimit = WHOLE) -> str:
    """Render a drift report, findings grouped by state; the counts are complete whatever the limit."""
    head = paragraphs(
        marker("drift", drift.workspace, limit),
        f"### lmsconf drift: {within(drift.workspace, code)}",
        f"**{drift_words.closing(drift)}**",
        first_line(drift.workspace, drift.url, drift.people),
        *map(md, drift_words.compared(drift)),
        _coverage(drift),
        *map(md, drift_words.partial(drift)),
        "`-` is what the manifests say, `+` what the workspace has." if drift.findings else "",
    )
    problems = worst_first(drift.problems)
    sections = [
        *problem_section([problem for problem in problems if problem.is_error]),
        *_findings(drift, limit),
        *problem_section([problem for problem in problems if not problem.is_error]),
        *section_of(drift_words.NOT_APPLIED, map(_to_come, drift.not_applied), folded=limit.folds),
        *section_of("IgnoredFinding by the project file", map(_ignored, drift.ignored), folded=limit.folds),
        *(() if drift.counts_unmanaged else unmanaged_sections(drift.unmanaged, limit)),
    ]
    return fitted(head, sections, f"Looked at {md(drift.created_at)}", limit)


def _coverage(drift: DriftReport) -> str:
    """Return the coverage of each kind as a table."""
    rows = [_covered(one) for one in drift.coverage]
    return "\n".join(["| managed | of | share |", "|--:|:--|--:|", *rows]) if rows else ""


def _covered(coverage: ManagedShare) -> str:
    share = "" if coverage.percent is None else f"{coverage.percent:.1f} %"
    alone = f", {coverage.left_alone:,} left alone" if coverage.left_alone else ""
    rest = f"; not all were read: {coverage.incomplete}" if coverage.incomplete is not None else ""
    of = within(f"{phrases.count_of(coverage.live, coverage.kind)}{alone}{rest}", md)
    return f"| {coverage.managed:,} | {of} | {share} |"


def _findings(drift: DriftReport, limit: SizeLimit) -> Iterator[Section]:
    for state in DriftState:
        in_state = [finding for finding in drift.findings if finding.state is state]
        heading = f"{drift_words.COUNTED[state].capitalize()}: {kinds(in_state)}"
        yield from section_of(heading, [_entry(finding, limit) for finding in in_state])


def _entry(finding: DriftFinding, limit: SizeLimit) -> SummaryRow:
    whole = partial(_finding, finding, limit)
    return SummaryRow(
        phrases.nouns(finding.address.kind),
        (
            lambda: row(_headline(finding), differs(finding), finding.source),
            lambda: whole(phrases.FIRST_ITEMS),
            lambda: whole(None),
        ),
    )


def _headline(finding: DriftFinding) -> str:
    return f"{within(phrases.title(finding.address), code)} {drift_words.IS[finding.state]}"


def _finding(finding: DriftFinding, limit: SizeLimit, most: int | None) -> str:
    body = "\n\n".join(filter(None, _body(finding, most)))
    if not limit.folds:
        return f"\n{_headline(finding)}\n\n{body}\n"
    return fold(summary(drift_words.SIGNS[finding.state], finding.address, differs(finding)), f"{body}\n")


def _body(finding: DriftFinding, most: int | None) -> Iterator[str]:
    yield " · ".join(filter(None, (drift_words.IS[finding.state].capitalize(), place(finding.source))))
    yield "".join(f"- {md(line or phrases.NOTHING)}\n" for line in drift_words.why(finding))
    yield diff(differs(finding), most)
    ways = [part for does, line in ways_out(finding) for part in (f"# {does}", line.replace("\n", "\\n"))]
    yield fence("\n".join(ways), "sh") if ways else ""


def _to_come(finding: DriftFinding) -> SummaryRow:
    nouns = phrases.nouns(finding.address.kind)
    return SummaryRow(nouns, (lambda: f"- {within(drift_words.headline(finding), md, 2 * NAME_SIZE)}\n",))


def _ignored(ignored: IgnoredFinding) -> SummaryRow:
    nouns = phrases.nouns(ignored.finding.address.kind)
    return SummaryRow(nouns, (lambda: f"- {within(drift_words.ignored(ignored), md, 2 * NAME_SIZE)}\n",))
