"""Plans, reports, drift, fleets and snapshots as HTML pages: what their templates are given; and graphs.

Of a plan's calls a page has a graph, laid out here; that of resources that need each other is Mermaid or DOT.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, count, repeat
from statistics import fmean
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents.plan_file import plan_digest
from lmsconf.model.calls import Call
from lmsconf.model.declarations import DependencyGraph
from lmsconf.model.drift import DriftFinding, DriftReport
from lmsconf.model.fleet import FleetReport
from lmsconf.model.names import count_noun, escape_invisible, grouped
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Change, Plan
from lmsconf.render.drift_report import findings_by_state
from lmsconf.render.jinja import html_page, template_text
from lmsconf.render.outcome_wording import outcomes_by_status, shared_headline
from lmsconf.render.resource_wording import apply_command, group_by_risk, risk_heading

MOST_ROWS: Final = 2_000
"""How many rows a page shows."""


class Row(Struct, frozen=True):
    """A row that opens. only_in: the one workspace that has it."""

    anchor: str
    value: Change | CallOutcome | DriftFinding
    only_in: str | None = None


class RowGroup(Struct, frozen=True):
    """Rows under a heading. names: the workspaces that have all of them."""

    heading: str
    rows: Sequence[Row]
    names: Sequence[str] = ()


def _first_rows(groups: Iterable[RowGroup]) -> tuple[Sequence[RowGroup], int]:
    """Return the groups with the first rows, which a page shows, and the number of all rows."""
    every = list(groups)
    above = [*accumulate((len(group.rows) for group in every), initial=0)]
    shown = [
        replace(group, rows=group.rows[: MOST_ROWS - number])
        for group, number in zip(every, above, strict=False)
        if number < MOST_ROWS
    ]
    return shown, above[-1]


def plan_html(plan: Plan) -> str:
    """Render a plan as an HTML page."""
    digest, anchors = plan_digest(plan), _anchors(plan.changes)
    is_cut = len(plan.changes) > MOST_ROWS
    groups = (
        RowGroup(risk_heading(risk, group), [Row(anchors.get(str(one.address), ""), one) for one in group])
        for risk, group in group_by_risk(plan.changes).items()
    )
    return html_page(
        "plan.html.j2",
        plan=plan,
        digest=digest,
        command=apply_command(plan, digest),
        rows=_first_rows(groups),
        anchors=anchors,
        numbers={call.id: number for number, call in enumerate(plan.calls, 1)},
        left_out={call.id for call in plan.calls if is_cut and str(call.address) not in anchors},
        calls_of=grouped(plan.calls, lambda call: str(call.address)),
        is_cut=is_cut,
        boxes=call_boxes(plan.calls),
        most_boxes=MAX_BOXES,
        actions={str(change.address): change.action.value for change in plan.changes},
        short_label=short_label,
    )


def _anchors(changes: Sequence[Change]) -> Mapping[str, str]:
    """Return address → HTML anchor of its row, of the changes that the page shows: the riskiest."""
    numbers = {str(change.address): number for number, change in enumerate(changes, 1)}
    by_risk = [str(change.address) for group in group_by_risk(changes).values() for change in group]
    return {at: f"change-{numbers[at]}" for at in by_risk[:MOST_ROWS]}


def apply_html(report: ApplyReport) -> str:
    """Render an apply report as an HTML page, failures first."""
    groups = (
        RowGroup(heading, [Row(f"call-{number}", one) for number, one in group])
        for _, heading, group in outcomes_by_status(report)
    )
    return html_page("apply.html.j2", report=report, rows=_first_rows(groups))


def drift_html(drift: DriftReport) -> str:
    """Render a drift report as an HTML page: findings, ignored differences, unmanaged resources, coverage."""
    groups = (
        RowGroup(heading, [Row(f"finding-{number}", one) for number, one in group])
        for _, heading, group in findings_by_state(drift)
    )
    return html_page("drift.html.j2", drift=drift, rows=_first_rows(groups))


def fleet_html(report: FleetReport) -> str:
    """Render the results of a fleet as an HTML page: failures first, then the changes that workspaces share."""
    entries = report.index.entries
    return html_page(
        "fleet.html.j2",
        report=report,
        noun=count_noun(len(entries), "workspace"),
        rows=_first_rows(_shared(report)),
        entries=sorted(entries, key=lambda entry: (not entry.failed, not entry.changes)),
    )


def _shared(report: FleetReport) -> Iterator[RowGroup]:
    numbers = count(1)
    for shared in report.shared:
        changes = zip(shared.changes, shared.workspaces if shared.one_each else repeat(None), strict=False)
        rows = [Row(f"c{next(numbers)}", change, name) for change, name in changes]
        names = () if shared.one_each else shared.workspaces
        yield RowGroup(shared_headline(shared, len(report.index.entries)), rows, names)


def _graph_text(template: str, network: DependencyGraph) -> str:
    """Return the text of a template, which knows how nodes are called, and how their labels are escaped."""
    return template_text(
        template,
        network=network,
        ids={address: f"n{number}" for number, address in enumerate(network.shapes)},
        # Shape of a node in DOT → the brackets of a similar one in Mermaid; without, it is a box.
        brackets={"parallelogram": ("[/", "/]"), "ellipse": ("([", "])"), "note": ("[[", "]]")},
        # In Mermaid quotes, and what acts in HTML and Markdown, become numeric entities.
        escaped=lambda text: re.sub(r'[#"`*_~\[\]<>&;\\]', lambda act: f"#{ord(act[0])};", escape_invisible(text)),
        quoted=lambda text: '"' + escape_invisible(text).replace("\\", "\\\\").replace('"', '\\"') + '"',
    )


GRAPH_VIEWS: Final[Mapping[str, Callable[[DependencyGraph], str]]] = {
    "mermaid": partial(_graph_text, "graph.mermaid.j2"),
    "dot": partial(_graph_text, "graph.dot.j2"),
}
"""A Mermaid flowchart, which GitHub and GitLab render in Markdown, and a DOT digraph, for Graphviz."""


MAX_BOXES = 300
"""The maximum number of boxes in the picture of the order of calls."""


def call_boxes(calls: Sequence[Call]) -> Mapping[str, tuple[int, int]]:
    """Return call id → column and row of its box: right of those that it waits for, near the mean of their rows.

    A call that neither waits nor is waited for has none.
    """
    ids = {call.id for call in calls}
    needs = {call.id: ids.intersection(call.needs) for call in calls}
    needed = set().union(*needs.values())
    columns: dict[str, int] = {}
    for id, waits_for in needs.items():  # in the order of the calls: those that it waits for have a column
        if waits_for or id in needed:
            columns[id] = 1 + max((columns.get(need, -1) for need in waits_for), default=-1)
    boxes: dict[str, tuple[int, int]] = {}
    for column, in_column in sorted(grouped(columns, columns.__getitem__).items()):
        in_column.sort(key=lambda id: fmean([boxes[need][1] for need in needs[id] if need in boxes] or [0.0]))
        boxes |= {id: (column, row) for row, id in enumerate(in_column)}
    return boxes


def short_label(label: str) -> str:
    """Return a label in at most 30 columns; East Asian wide characters take two."""
    widths = accumulate(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in label)
    room = sum(width <= 30 for width in widths)
    return label if room == len(label) else f"{label[:room].rstrip()}…"
