"""Plans as HTML pages: what their template is given, and the graph of a plan's calls, which is laid out here.

The pages of other values are templates alone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from itertools import accumulate
from statistics import fmean

from lmsconf.documents.plan_file import plan_digest
from lmsconf.model.calls import Call
from lmsconf.model.names import grouped
from lmsconf.model.plan import Plan
from lmsconf.render.jinja import html_page
from lmsconf.render.resource_wording import MOST_ROWS, RowGroup, apply_command, first_rows, group_by_risk, risk_heading


def plan_html(plan: Plan) -> str:
    """Render a plan as an HTML page."""
    digest, is_cut = plan_digest(plan), len(plan.changes) > MOST_ROWS
    numbers = {str(change.address): number for number, change in enumerate(plan.changes, 1)}
    groups = [
        RowGroup(risk, risk_heading(risk, group), [(numbers[str(change.address)], change) for change in group])
        for risk, group in group_by_risk(plan.changes).items()
    ]
    anchors = {str(change.address): f"change-{number}" for group in first_rows(groups) for number, change in group.rows}
    return html_page(
        "plan.html.j2",
        plan=plan,
        digest=digest,
        command=apply_command(plan, digest),
        groups=groups,
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
