"""Plans, reports, drift, fleets and snapshots as HTML pages: what their templates are given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain, count, islice, repeat
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import SourceLocation
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.model.fleet import FleetReport
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.render.drift_report import COUNTED, SIGNS, findings_by_state
from lmsconf.render.graphs import call_places, draw_graph
from lmsconf.render.jinja import html_page
from lmsconf.render.outcome_wording import STATUS_TITLES, outcomes_by_status, shared_headline
from lmsconf.render.plan_wording import ACTION_SIGNS
from lmsconf.render.resource_wording import (
    apply_command,
    count_noun,
    group_by_risk,
    risk_heading,
)

MOST_ROWS: Final = 2_000
"""How many rows a page shows."""


class Row(Struct, frozen=True):
    """A row that opens. state: what it is filtered by, and the class of its colour unless `colour` is given.

    value: what it shows in short and in full. calls: those of a change. only_in: the one workspace that has it.
    """

    anchor: str
    state: str
    sign: str
    value: Change | CallOutcome | DriftFinding
    source: SourceLocation | None = None
    colour: str | None = None
    calls: Sequence[Call] = ()
    only_in: str | None = None


class RowGroup(Struct, frozen=True):
    """Rows under a heading. names: the workspaces that have all of them."""

    heading: str
    rows: Sequence[Row]
    names: Sequence[str] = ()


class ShownRows(Struct, frozen=True):
    """The rows that a page shows of all. states: state → label, in the order of the filter."""

    groups: Sequence[RowGroup]
    total: int
    states: Mapping[str, str]


def _first_rows(groups: Iterable[RowGroup], states: Mapping[str, str]) -> ShownRows:
    """Return the first rows of groups."""
    groups = list(groups)
    before = accumulate((len(group.rows) for group in groups), initial=0)
    rooms = (max(MOST_ROWS - number, 0) for number in before)
    shown = (replace(group, rows=group.rows[:room]) for group, room in zip(groups, rooms, strict=False))
    total = sum(len(group.rows) for group in groups)
    return ShownRows([group for group in shown if group.rows], total, states)


_ACTIONS: Final = {
    Action.DELETE.value: "Deleted",
    Action.REPLACE.value: "Replaced",
    Action.UPDATE.value: "Changed",
    Action.CREATE.value: "Created",
}


def plan_html(plan: Plan) -> str:
    """Render a plan as an HTML page."""
    digest, anchors = plan_digest(plan), _anchors(plan.changes)
    is_part = len(plan.changes) > MOST_ROWS
    calls = call_places(plan, anchors if is_part else None)
    return html_page(
        "plan.html.j2",
        plan=plan,
        digest=digest,
        command=apply_command(plan, digest),
        rows=_first_rows(_changes(plan, anchors), _ACTIONS),
        anchors=anchors,
        calls=calls,
        is_part=is_part,
        graph=draw_graph(plan, calls, anchors),
    )


def _anchors(changes: Sequence[Change]) -> Mapping[str, str]:
    """Return address → HTML anchor of its row, of the changes that the page shows: the riskiest."""
    numbers = {str(change.address): number for number, change in enumerate(changes, 1)}
    by_risk = chain.from_iterable(group_by_risk(changes).values())
    return {at: f"change-{numbers[at]}" for at in (str(change.address) for change in islice(by_risk, MOST_ROWS))}


def _changes(plan: Plan, anchors: Mapping[str, str]) -> Iterator[RowGroup]:
    calls: defaultdict[str, list[Call]] = defaultdict(list)
    for call in plan.calls:
        calls[str(call.address)].append(call)
    for risk, group in group_by_risk(plan.changes).items():
        rows = [replace(_change_row(anchors.get(at := str(one.address), ""), one), calls=calls[at]) for one in group]
        yield RowGroup(risk_heading(risk, group), rows)


def _change_row(anchor: str, change: Change) -> Row:
    return Row(anchor, change.action.value, ACTION_SIGNS[change.action], change, change.source)


_CALL_SIGNS: Final = {
    CallStatus.FAILED: "✗",
    CallStatus.BLOCKED: "–",  # noqa: RUF001  # a dash
    CallStatus.NOT_ATTEMPTED: "…",
    CallStatus.DONE: "✓",
}


def apply_html(report: ApplyReport) -> str:
    """Render an apply report as an HTML page, failures first."""
    groups = (
        RowGroup(heading, [Row(f"call-{number}", status.value, _CALL_SIGNS[status], one) for number, one in group])
        for status, heading, group in outcomes_by_status(report)
    )
    cards = [(status.value, report.count(status), title.lower()) for status, title in STATUS_TITLES.items()]
    return html_page("apply.html.j2", report=report, cards=cards, rows=_first_rows(groups, _values(STATUS_TITLES)))


def _values(titles: Mapping[CallStatus, str] | Mapping[DriftState, str]) -> Mapping[str, str]:
    return {key.value: title.capitalize() for key, title in titles.items()}


_DRIFT_COLOURS: Final = {
    DriftState.CHANGED: "update",
    DriftState.MISSING: "delete",
    DriftState.RENAMED: "update",
    DriftState.UNDECLARED: "replace",
    DriftState.UNMANAGED: "create",
}


def drift_html(drift: DriftReport) -> str:
    """Render a drift report as an HTML page: findings, ignored differences, unmanaged resources, coverage."""
    groups = (
        RowGroup(
            heading,
            [
                Row(f"finding-{number}", state.value, SIGNS[state], one, one.source, _DRIFT_COLOURS[state])
                for number, one in group
            ],
        )
        for state, heading, group in findings_by_state(drift)
    )
    rows = _first_rows(groups, _values(COUNTED))
    return html_page("drift.html.j2", drift=drift, cards=list(_drift_cards(drift)), rows=rows)


def _drift_cards(drift: DriftReport) -> Iterator[tuple[str, int, str]]:
    """Yield (class, count, label) for each state; unmanaged resources that are not findings have no colour."""
    for state in DriftState:
        if state is DriftState.UNMANAGED and not drift.counts_unmanaged:
            yield "uncounted", sum(len(group.addresses) for group in drift.unmanaged), "not managed"
        else:
            yield _DRIFT_COLOURS[state], drift.count(state), COUNTED[state]


def fleet_html(report: FleetReport) -> str:
    """Render the results of a fleet as an HTML page: failures first, then the changes that workspaces share."""
    entries = report.index.entries
    return html_page(
        "fleet.html.j2",
        report=report,
        noun=count_noun(len(entries), "workspace"),
        rows=_first_rows(_shared(report), _ACTIONS),
        entries=sorted(entries, key=lambda entry: (not entry.failed, not entry.changes)),
    )


def _shared(report: FleetReport) -> Iterator[RowGroup]:
    numbers = count(1)
    for shared in report.shared:
        names = shared.workspaces if shared.one_each else repeat(None)
        rows = [
            replace(_change_row(f"c{next(numbers)}", change), only_in=name)
            for change, name in zip(shared.changes, names, strict=False)
        ]
        heading = shared_headline(shared, len(report.index.entries))
        yield RowGroup(heading, rows, () if shared.one_each else shared.workspaces)
