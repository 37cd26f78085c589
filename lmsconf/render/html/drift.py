"""A drift report as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.render import drift_wording
from lmsconf.render.change_summary import (
    count_kinds,
    drop_empty_groups,
    finding_key_changes,
    remedy_commands,
    sort_by_severity,
)
from lmsconf.render.html.components import (
    ExpandableRow,
    RowGroup,
    count_cards,
    definition_list,
    diff_list,
    filterable_rows,
    folded_titles,
    key_summary,
    problem_note,
)
from lmsconf.render.html.document import Child, tag
from lmsconf.render.html.plan import page_header, sections_page
from lmsconf.render.plan_wording import workspace_line
from lmsconf.render.resource_wording import count_noun, count_unmanaged, kind_noun

_STATES = {state.value: drift_wording.COUNTED[state].capitalize() for state in DriftState}
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
        ("attention", "Check this first", [problem_note(problem) for problem in sort_by_severity(drift.problems)]),
        (
            "findings",
            "Findings",
            filterable_rows(list(_groups(drift)), _STATES, state_noun="finding", command="lmsconf drift --format text")
            if drift.findings
            else None,
        ),
        ("not-applied", drift_wording.NOT_APPLIED, _not_applied(drift)),
        ("ignored", "Ignored by the project file", _ignored(drift)),
        ("unmanaged", "Not managed", _unmanaged(drift)),
        ("coverage", "Managed by the manifests", _coverage(drift)),
    ]
    top = [
        page_header("drift", drift.workspace, workspace_line(drift.workspace, drift.url, drift.people)),
        tag("p", drift_wording.drift_summary(drift), class_="verdict"),
        [
            tag("p", line, class_="scope")
            for line in (*drift_wording.base_sentences(drift), *drift_wording.unread_sentences(drift))
        ],
        count_cards(_counts(drift)),
    ]
    manifests = f"{count_noun(len(drift.manifests_files), 'file')}, sha256 {drift.manifests_digest}"
    footer = definition_list([("Compared", drift.created_at), ("Manifests", manifests)])
    return sections_page(f"Drift of {drift.workspace}", top, sections, footer)


def _counts(drift: DriftReport) -> Iterator[tuple[str, int, str]]:
    """Yield (class, count, label) for each state; unmanaged resources that are not findings have no colour."""
    for state in DriftState:
        if state is DriftState.UNMANAGED and not drift.counts_unmanaged:
            yield "uncounted", sum(len(group.addresses) for group in drift.unmanaged), "not managed"
        else:
            yield _COLOURS[state], drift.count(state), drift_wording.COUNTED[state]


def _groups(drift: DriftReport) -> Iterator[RowGroup]:
    numbered = list(enumerate(drift.findings, 1))
    for state in DriftState:
        in_state = [(number, finding) for number, finding in numbered if finding.state is state]
        if in_state:
            heading = f"{_STATES[state.value]}: {count_kinds(finding for _, finding in in_state)}"
            yield RowGroup(heading, [_row(number, finding) for number, finding in in_state])


def _row(number: int, finding: DriftFinding) -> ExpandableRow:
    return ExpandableRow(
        anchor=f"finding-{number}",
        address=finding.address,
        state=finding.state.value,
        sign=drift_wording.SIGNS[finding.state],
        facts=key_summary(finding_key_changes(finding)),
        source=finding.source,
        body=[
            tag("p", drift_wording.finding_headline(finding), class_="lead"),
            [tag("p", line) for line in drift_wording.cause_sentences(finding)],
            _legend(finding),
            diff_list(finding_key_changes(finding)),
            [[tag("p", f"{does}:"), tag("pre", line)] for does, line in remedy_commands(finding)],
        ],
        colour=_COLOURS[finding.state],
    )


def _legend(finding: DriftFinding) -> Child:
    if not finding.fields:
        return None
    return tag("p", "− in the manifests, + in the workspace", class_="soft")  # noqa: RUF001  # as wide as +


def _not_applied(drift: DriftReport) -> Child:
    items = [tag("li", drift_wording.finding_headline(finding)) for finding in drift.not_applied]
    return tag("ul", items, class_="plain") if items else None


def _ignored(drift: DriftReport) -> Child:
    items = [tag("li", drift_wording.ignored_sentence(ignored)) for ignored in drift.ignored]
    return tag("ul", items, class_="plain") if items else None


def _unmanaged(drift: DriftReport) -> list[Child]:
    """List unmanaged resources, unless they are findings and so listed already."""
    groups = () if drift.counts_unmanaged else drop_empty_groups(drift.unmanaged)
    return [folded_titles(count_unmanaged(group), group.addresses) for group in groups]


def _coverage(drift: DriftReport) -> Child:
    items = [
        tag(
            "li",
            tag(
                "meter",
                value=coverage.managed,
                max=max(coverage.live, 1),
                aria_label=kind_noun(coverage.kind),
            ),
            " ",
            line,
        )
        for coverage in drift.coverage
        for line in [drift_wording.managed_share(coverage)]
    ]
    return tag("ul", items, class_="plain") if items else None
