"""A drift report as text for a terminal. All names are escaped by `safe`."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.model.drift import DriftFinding, DriftReport, FieldDrift
from lmsconf.render import drift_words, phrases
from lmsconf.render.blocks import item_lines, listed, page, problem_lines
from lmsconf.render.escape import safe


def drift_text(drift: DriftReport, *, color: bool = False) -> str:
    """Render a drift report: findings, ignored differences, unmanaged resources, coverage."""
    return page(
        [
            [safe(phrases.first_line(drift.workspace, drift.url, drift.people)), *drift_words.compared(drift)],
            (line for problem in drift.problems for line in problem_lines(problem)),
            *map(_finding, drift.findings),
            _not_applied(drift),
            _ignored(drift),
            _unmanaged(drift),
            _coverage(drift),
            drift_words.partial(drift),
            [drift_words.closing(drift)],
        ],
        color,
    )


def _finding(finding: DriftFinding) -> Iterator[str]:
    yield safe(f"  {drift_words.SIGNS[finding.state]} {drift_words.headline(finding)}")
    if finding.source is not None:
        yield safe(f"      {finding.source}")
    yield from (safe(f"      {line}") for line in drift_words.why(finding))
    for field in finding.fields:
        yield from _field(field)
    yield from (safe(f"      {line}") for line in drift_words.ways_out(finding))


def _field(field: FieldDrift) -> Iterator[str]:
    yield safe(f"      ~ {drift_words.field(field)}")
    yield from item_lines(field.missing, "-")
    yield from item_lines(field.extra, "+")


def _not_applied(drift: DriftReport) -> Iterator[str]:
    if drift.not_applied:
        yield f"{drift_words.NOT_APPLIED}:"
    for finding in drift.not_applied:
        yield safe(f"    {drift_words.headline(finding)}{f' ({finding.source})' if finding.source else ''}")


def _ignored(drift: DriftReport) -> Iterator[str]:
    if drift.ignored:
        yield "Ignored by the project file:"
        yield from (safe(f"    {drift_words.ignored(one)}") for one in drift.ignored)


def _unmanaged(drift: DriftReport) -> Iterator[str]:
    """Yield unmanaged resources, unless they are findings and so listed already."""
    for group in () if drift.counts_unmanaged else drift.unmanaged:
        if group.addresses or group.left_alone:
            yield safe(phrases.unmanaged(group))
            yield from listed(group.addresses)


def _coverage(drift: DriftReport) -> Iterator[str]:
    if drift.coverage:
        yield "Managed by the manifests:"
        yield from (safe(f"    {drift_words.coverage(one)}") for one in drift.coverage)
