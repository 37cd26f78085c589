"""A drift report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.render import drift_words, phrases
from lmsconf.render.change_summary import differs, kinds, present, ways_out, worst_first
from lmsconf.render.html.page import Child, tag
from lmsconf.render.html.parts import Row, SectionGroup, cards, diff, facts, named, news, note, rows
from lmsconf.render.html.plan import header, sections_page

_STATES = {state.value: drift_words.COUNTED[state].capitalize() for state in DriftState}
_COLOURS = {
    DriftState.CHANGED: "update",
    DriftState.MISSING: "delete",
    DriftState.RENAMED: "update",
    DriftState.UNDECLARED: "replace",
    DriftState.UNMANAGED: "create",
}


def drift_html(drift: DriftReport) -> str:
    """Render a drift report as an HTML page: findings, ignored differences, unmanaged resources, coverage."""
    sections = [
        ("attention", "Look at this first", [note(problem) for problem in worst_first(drift.problems)]),
        ("findings", "Findings", rows(list(_groups(drift)), _STATES, word="finding") if drift.findings else None),
        ("not-applied", drift_words.NOT_APPLIED, _not_applied(drift)),
        ("ignored", "Ignored by the project file", _ignored(drift)),
        ("unmanaged", "Not managed", _unmanaged(drift)),
        ("coverage", "Managed by the manifests", _coverage(drift)),
    ]
    top = [
        header("drift", drift.workspace, phrases.first_line(drift.workspace, drift.url, drift.people)),
        tag("p", drift_words.closing(drift), class_="verdict"),
        [tag("p", line, class_="scope") for line in (*drift_words.compared(drift), *drift_words.partial(drift))],
        cards(_counts(drift)),
    ]
    manifests = f"{phrases.count(len(drift.manifests_files), 'file')}, sha256 {drift.manifests_digest}"
    footer = facts([("Looked at", drift.created_at), ("Manifests", manifests)])
    return sections_page(f"Drift of {drift.workspace}", top, sections, footer)


def _counts(drift: DriftReport) -> Iterator[tuple[str, int, str]]:
    """Yield (class, count, label) for each state; unmanaged resources that are not findings have no colour."""
    for state in DriftState:
        if state is DriftState.UNMANAGED and not drift.counts_unmanaged:
            yield "uncounted", sum(len(group.addresses) for group in drift.unmanaged), "not managed"
        else:
            yield _COLOURS[state], drift.count(state), drift_words.COUNTED[state]


def _groups(drift: DriftReport) -> Iterator[SectionGroup]:
    numbered = list(enumerate(drift.findings, 1))
    for state in DriftState:
        in_state = [(number, finding) for number, finding in numbered if finding.state is state]
        if in_state:
            heading = f"{_STATES[state.value]}: {kinds(finding for _, finding in in_state)}"
            yield SectionGroup(heading, [_row(number, finding) for number, finding in in_state])


def _row(number: int, finding: DriftFinding) -> Row:
    return Row(
        anchor=f"finding-{number}",
        address=finding.address,
        state=finding.state.value,
        sign=drift_words.SIGNS[finding.state],
        facts=news(differs(finding)),
        source=finding.source,
        body=[
            tag("p", drift_words.headline(finding), class_="lead"),
            [tag("p", line) for line in drift_words.why(finding)],
            _legend(finding),
            diff(differs(finding)),
            [[tag("p", f"{does}:"), tag("pre", line)] for does, line in ways_out(finding)],
        ],
        colour=_COLOURS[finding.state],
    )


def _legend(finding: DriftFinding) -> Child:
    if not finding.fields:
        return None
    return tag("p", "− as the manifests say, + as the workspace has it", class_="soft")  # noqa: RUF001  # as wide as +


def _not_applied(drift: DriftReport) -> Child:
    items = [tag("li", drift_words.headline(finding)) for finding in drift.not_applied]
    return tag("ul", items, class_="plain") if items else None


def _ignored(drift: DriftReport) -> Child:
    items = [tag("li", drift_words.ignored(ignored)) for ignored in drift.ignored]
    return tag("ul", items, class_="plain") if items else None


def _unmanaged(drift: DriftReport) -> list[Child]:
    """List unmanaged resources, unless they are findings and so listed already."""
    groups = () if drift.counts_unmanaged else present(drift.unmanaged)
    return [named(phrases.unmanaged(group), group.addresses) for group in groups]


def _coverage(drift: DriftReport) -> Child:
    items = [
        tag(
            "li",
            tag("meter", value=coverage.managed, max=max(coverage.live, 1), aria_label=phrases.noun(coverage.kind)),
            " ",
            line,
        )
        for coverage in drift.coverage
        for line in [drift_words.coverage(coverage)]
    ]
    return tag("ul", items, class_="plain") if items else None
