"""A drift report as text for a terminal. All names are escaped by `escape_terminal`."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.model.drift import DriftFinding, DriftReport, FieldDrift
from lmsconf.render import drift_wording
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import workspace_line
from lmsconf.render.resource_wording import count_unmanaged
from lmsconf.render.text.blocks import item_lines, join_blocks, problem_lines, unchanged_lines


def drift_text(drift: DriftReport, *, color: bool = False) -> str:
    """Render a drift report: findings, ignored differences, unmanaged resources, coverage."""
    return join_blocks(
        [
            [
                escape_terminal(workspace_line(drift.workspace, drift.url, drift.people)),
                *drift_wording.base_sentences(drift),
            ],
            (line for problem in drift.problems for line in problem_lines(problem)),
            *map(_finding, drift.findings),
            _not_applied(drift),
            _ignored(drift),
            _unmanaged(drift),
            _coverage(drift),
            drift_wording.unread_sentences(drift),
            [drift_wording.drift_summary(drift)],
        ],
        color,
    )


def _finding(finding: DriftFinding) -> Iterator[str]:
    yield escape_terminal(f"  {drift_wording.SIGNS[finding.state]} {drift_wording.finding_headline(finding)}")
    if finding.source is not None:
        yield escape_terminal(f"      {finding.source}")
    yield from (escape_terminal(f"      {line}") for line in drift_wording.cause_sentences(finding))
    for field in finding.fields:
        yield from _field(field)
    yield from (escape_terminal(f"      {line}") for line in drift_wording.remedy_lines(finding))


def _field(field: FieldDrift) -> Iterator[str]:
    yield escape_terminal(f"      ~ {drift_wording.field_sentence(field)}")
    yield from item_lines(field.missing, "-")
    yield from item_lines(field.extra, "+")


def _not_applied(drift: DriftReport) -> Iterator[str]:
    if drift.not_applied:
        yield f"{drift_wording.NOT_APPLIED}:"
    for finding in drift.not_applied:
        yield escape_terminal(
            f"    {drift_wording.finding_headline(finding)}{f' ({finding.source})' if finding.source else ''}"
        )


def _ignored(drift: DriftReport) -> Iterator[str]:
    if drift.ignored:
        yield "Ignored by the project file:"
        yield from (escape_terminal(f"    {drift_wording.ignored_sentence(one)}") for one in drift.ignored)


def _unmanaged(drift: DriftReport) -> Iterator[str]:
    """Yield unmanaged resources, unless they are findings and so listed already."""
    for group in () if drift.counts_unmanaged else drift.unmanaged:
        if group.addresses or group.left_alone:
            yield escape_terminal(count_unmanaged(group))
            yield from unchanged_lines(group.addresses)


def _coverage(drift: DriftReport) -> Iterator[str]:
    if drift.coverage:
        yield "Managed by the manifests:"
        yield from (escape_terminal(f"    {drift_wording.managed_share(share)}") for share in drift.coverage)
