"""Plans, reports, drift, fleets and snapshots as HTML pages: what their templates are given; and graphs.

Of a plan's calls a page has a graph, laid out here; that of resources that need each other is Mermaid or DOT.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count, repeat
from statistics import fmean
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import SourceLocation
from lmsconf.kinds.shared.kind_names import resource_title, short_title
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.declarations import DependencyGraph
from lmsconf.model.drift import DriftFinding, DriftReport, DriftState
from lmsconf.model.fleet import FleetReport
from lmsconf.model.names import count_noun, escape_invisible, grouped
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.render.drift_report import COUNTED, SIGNS, findings_by_state
from lmsconf.render.jinja import html_page, template_text
from lmsconf.render.outcome_wording import STATUS_TITLES, outcomes_by_status, shared_headline
from lmsconf.render.plan_wording import ACTION_SIGNS
from lmsconf.render.resource_wording import apply_command, count_kind, group_by_risk, risk_heading

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
    shown: list[RowGroup] = []
    total = 0
    for group in groups:
        if total < MOST_ROWS:
            shown.append(replace(group, rows=group.rows[: MOST_ROWS - total]))
        total += len(group.rows)
    return ShownRows(shown, total, states)


_ACTIONS: Final = {
    Action.DELETE.value: "Deleted",
    Action.REPLACE.value: "Replaced",
    Action.UPDATE.value: "Changed",
    Action.CREATE.value: "Created",
}


def plan_html(plan: Plan) -> str:
    """Render a plan as an HTML page."""
    digest, anchors = plan_digest(plan), _anchors(plan.changes)
    is_cut = len(plan.changes) > MOST_ROWS
    calls = {
        call.id: CallPlace(number, f"call-{number}" if not is_cut or str(call.address) in anchors else None)
        for number, call in enumerate(plan.calls, 1)
    }
    return html_page(
        "plan.html.j2",
        plan=plan,
        digest=digest,
        command=apply_command(plan, digest),
        rows=_first_rows(_changes(plan, anchors), _ACTIONS),
        anchors=anchors,
        calls=calls,
        is_cut=is_cut,
        graph=draw_graph(plan, calls, anchors),
    )


def _anchors(changes: Sequence[Change]) -> Mapping[str, str]:
    """Return address → HTML anchor of its row, of the changes that the page shows: the riskiest."""
    numbers = {str(change.address): number for number, change in enumerate(changes, 1)}
    by_risk = [str(change.address) for group in group_by_risk(changes).values() for change in group]
    return {at: f"change-{numbers[at]}" for at in by_risk[:MOST_ROWS]}


def _changes(plan: Plan, anchors: Mapping[str, str]) -> Iterator[RowGroup]:
    calls = grouped(plan.calls, lambda call: str(call.address))
    for risk, group in group_by_risk(plan.changes).items():
        rows = [
            replace(_change_row(anchors.get(at := str(one.address), ""), one), calls=calls.get(at, ())) for one in group
        ]
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
    titles = {status.value: title for status, title in STATUS_TITLES.items()}
    return html_page("apply.html.j2", report=report, cards=cards, rows=_first_rows(groups, titles))


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
    rows = _first_rows(groups, {state.value: words.capitalize() for state, words in COUNTED.items()})
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


def _graph_text(template: str, network: DependencyGraph) -> str:
    """Return the text of a template, which knows how nodes are called, and how their labels are escaped."""
    return template_text(
        template,
        network=network,
        ids={address: f"n{number}" for number, address in enumerate(network.nodes)},
        # Shape of a node in DOT → the brackets of a similar one in Mermaid; without, it is a box.
        brackets={"parallelogram": ("[/", "/]"), "ellipse": ("([", "])"), "note": ("[[", "]]")},
        escaped=_mermaid,
        quoted=lambda text: '"' + escape_invisible(text).replace("\\", "\\\\").replace('"', '\\"') + '"',
    )


GRAPH_VIEWS: Final[Mapping[str, Callable[[DependencyGraph], str]]] = {
    "mermaid": partial(_graph_text, "graph.mermaid.j2"),
    "dot": partial(_graph_text, "graph.dot.j2"),
}
"""A Mermaid flowchart, which GitHub and GitLab render in Markdown, and a DOT digraph, for Graphviz."""


def _mermaid(text: str) -> str:
    """Escape a quoted Mermaid label: quotes, HTML and Markdown characters become numeric entities."""
    return "".join(f"#{ord(char)};" if char in '#"`*_~[]<>&;\\' else char for char in escape_invisible(text))


MAX_NODES = 300
"""The maximum number of boxes in the graph; above it, boxes are resources, or kinds, instead of calls."""


class CallPlace(Struct, frozen=True):
    """A call on the page: its number in the plan's order, and its anchor if the page shows it."""

    number: int
    anchor: str | None


class GraphNode(Struct, frozen=True):
    """A node of the graph: label, action (CSS class of its colour), and anchor that it links to."""

    label: str
    action: str
    href: str | None

    @property
    def short_label(self) -> str:
        """The label in at most 30 columns; East Asian wide characters take two."""
        width = 0
        for position, char in enumerate(self.label):
            width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
            if width > 30:
                return f"{self.label[:position].rstrip()}…"
        return self.label


Waits: TypeAlias = "dict[GraphNode, set[GraphNode]]"
"""Node → the nodes that it waits for, in the order of the calls."""


class Drawing(Struct, frozen=True, kw_only=True):
    """A graph as it is drawn. boxes: (node, column, row). edges: from a place to one that waits.

    grain: what a box is: a call, a resource or a kind. loose: how many of them nothing waits for.
    """

    grain: str
    loose: int
    boxes: Sequence[tuple[GraphNode, int, int]]
    edges: Sequence[tuple[tuple[int, int], tuple[int, int]]]


def draw_graph(plan: Plan, calls: Mapping[str, CallPlace], anchors: Mapping[str, str]) -> Drawing:
    """Draw the dependency graph left to right, by call, resource or kind: the finest with at most MAX_NODES boxes.

    anchors: address → HTML anchor of its row. A plan none of whose calls waits for another has no boxes.
    """
    for grain, nodes in _grains(plan, calls, anchors).items():
        waits = _waits(plan.calls, nodes)
        needed = set().union(*waits.values())
        linked = {node: needs for node, needs in waits.items() if needs or node in needed}
        if len(linked) <= MAX_NODES or grain == "kind":
            break
    layers = enumerate(_layers(linked))
    places = {box: (layer, row) for layer, boxes in layers for row, box in enumerate(boxes)}
    order = {node: position for position, node in enumerate(linked)}
    return Drawing(
        grain=grain,
        loose=len(waits) - len(linked),
        boxes=[(node, *places[node]) for node in linked],
        edges=[
            (places[need], places[node])
            for node, needs in linked.items()
            for need in sorted(needs, key=order.__getitem__)
        ],
    )


def _grains(
    plan: Plan, calls: Mapping[str, CallPlace], anchors: Mapping[str, str]
) -> Mapping[str, Mapping[str, GraphNode]]:
    """Return what a node is → call id → its node: a call, a resource, or all that is done to one kind."""
    actions = {str(change.address): change.action.value for change in plan.changes}
    done = {call.id: (actions.get(str(call.address), ""), call.address) for call in plan.calls}
    by_call, by_resource, by_kind = dict[str, GraphNode](), dict[str, GraphNode](), dict[str, GraphNode]()
    counts = Counter((action, address.kind) for action, address in {*done.values()})
    for id, (action, address) in done.items():
        by_call[id] = GraphNode(f"{calls[id].number} {short_title(address)}", action, calls[id].anchor)
        by_resource[id] = GraphNode(resource_title(address), action, anchors.get(str(address)))
        alike = count_kind(counts[action, address.kind], address.kind)
        by_kind[id] = GraphNode(f"{action} {alike}", action, None)
    return {"call": by_call, "resource": by_resource, "kind": by_kind}


def _waits(calls: Iterable[Call], nodes: Mapping[str, GraphNode]) -> Waits:
    """Return for which others each node waits, as its calls need those of the others."""
    waits: Waits = {}
    for call in calls:
        needs = waits.setdefault(nodes[call.id], set())
        needs.update(nodes[need] for need in call.needs if need in nodes)
        needs.discard(nodes[call.id])
    return waits


def _layers(waits: Waits) -> Sequence[Sequence[GraphNode]]:
    """Assign nodes to layers, each right of its dependencies, and sort each layer by their mean row.

    In a cycle, which collapsing can create, the order of first appearance decides.
    """
    depth: dict[GraphNode, int] = {}
    layers: dict[int, list[GraphNode]] = {}
    for node, needs in waits.items():
        # Calls are in topological order, so the dependencies of a node (but for a cycle) have a depth already.
        depth[node] = 1 + max((depth[need] for need in needs if need in depth), default=-1)
        layers.setdefault(depth[node], []).append(node)
    rows: dict[GraphNode, float] = {}
    ordered = [layers[number] for number in sorted(layers)]
    for layer in ordered:
        layer.sort(key=lambda node: fmean([rows[need] for need in waits[node] if need in rows] or [0.0]))
        rows.update((node, place) for place, node in enumerate(layer))
    return ordered
