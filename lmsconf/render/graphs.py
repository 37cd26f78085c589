"""Two graphs: of the resources that need each other, as Mermaid and DOT, and of a plan's calls, laid out for a page."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from msgspec import Struct

from lmsconf.kinds.shared.kind_names import resource_title, short_title
from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.declarations import DependencyGraph
from lmsconf.model.names import escape_invisible
from lmsconf.model.plan import Plan
from lmsconf.render.jinja import template_text
from lmsconf.render.resource_wording import count_kind, count_noun, kind_noun

_BRACKETS: Final = {"parallelogram": ("[/", "/]"), "ellipse": ("([", "])"), "note": ("[[", "]]")}
"""Shape of a node in DOT → the brackets of a similar one in Mermaid; without, it is a box."""


def graph_mermaid(network: DependencyGraph) -> str:
    """Return a Mermaid flowchart, which GitHub and GitLab render in Markdown."""
    return _graph_text("graph.mermaid.j2", network)


def graph_dot(network: DependencyGraph) -> str:
    """Return a DOT digraph, for Graphviz."""
    return _graph_text("graph.dot.j2", network)


def _graph_text(template: str, network: DependencyGraph) -> str:
    """Return the text of a template, which knows how nodes are called, and how their labels are escaped."""
    return template_text(
        template,
        network=network,
        ids={address: f"n{number}" for number, address in enumerate(network.nodes)},
        notes=_notes(network),
        brackets=_BRACKETS,
        is_declared=partial(_is_declared, network),
        label=_label,
        escaped=_mermaid,
        quoted=_dot,
    )


GRAPH_VIEWS: Final[Mapping[str, Callable[[DependencyGraph], str]]] = {"mermaid": graph_mermaid, "dot": graph_dot}


def _is_declared(network: DependencyGraph, address: Address) -> bool:
    """Whether the node is declared; the node `everyone` exists without a declaration and counts as declared."""
    return address in network.declared or not address.text


def _label(address: Address) -> str:
    """Return a node's label: name and kind."""
    if not address.text:
        return address.kind
    return f"{address.name} ({kind_noun(address.kind)})"


def _notes(network: DependencyGraph) -> list[str]:
    return [
        f"{count_noun(number, relation.noun)} to single {relation.plural} left out"
        for relation, number in network.left_out.items()
    ]


def _mermaid(text: str) -> str:
    """Escape a quoted Mermaid label: quotes, HTML and Markdown characters become numeric entities."""
    return "".join(f"#{ord(char)};" if char in '#"`*_~[]<>&;\\' else char for char in escape_invisible(text))


def _dot(text: str) -> str:
    """Return a quoted DOT string."""
    return '"' + escape_invisible(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


MAX_NODES = 300
"""The maximum number of boxes in the graph; above it, boxes are resources, or kinds, instead of calls."""

_WIDE, _HIGH, _GAP, _ALLEY, _EDGE = 250, 30, 10, 70, 16


class CallPlace(NamedTuple):
    """A call on the page: its number in the plan's order, and its anchor if the page shows it."""

    number: int
    anchor: str | None


def call_places(plan: Plan, shown: Container[str] | None) -> Mapping[str, CallPlace]:
    """Return call id → its place. shown: the addresses whose calls the page shows; None: all."""
    return {
        call.id: CallPlace(number, f"call-{number}" if shown is None or str(call.address) in shown else None)
        for number, call in enumerate(plan.calls, 1)
    }


class GraphNode(Struct, frozen=True):
    """A node of the graph: label, action (CSS class of its colour), and anchor that it links to."""

    label: str
    action: str
    href: str | None

    @property
    def short_label(self) -> str:
        return _clipped(self.label, 30)


class Graph(Struct):
    """A graph: nodes, and node → the nodes that it waits for."""

    boxes: dict[Hashable, GraphNode]
    waits: dict[Hashable, set[Hashable]]

    def without_isolated(self) -> Graph:
        """Return the graph without isolated nodes."""
        kept = {box for waiting, needs in self.waits.items() if needs for box in (waiting, *needs)}
        return Graph(
            {key: box for key, box in self.boxes.items() if key in kept},
            {key: needs for key, needs in self.waits.items() if key in kept},
        )


class Drawing(Struct, frozen=True, kw_only=True):
    """A graph as it is drawn, in pixels. boxes: (node, x, y). edges: the paths between them."""

    caption: str
    boxes: Sequence[tuple[GraphNode, int, int]]
    edges: Sequence[str]
    width: int
    height: int
    box_width: int = _WIDE
    box_height: int = _HIGH


def draw_graph(plan: Plan, calls: Mapping[str, CallPlace], anchors: Mapping[str, str]) -> Drawing:
    """Draw the dependency graph left to right, by call, resource or kind: the finest with at most MAX_NODES boxes.

    anchors: address → HTML anchor of its row. A plan none of whose calls waits for another has no boxes.
    """
    actions = {str(change.address): change.action.value for change in plan.changes}
    graphs = (
        ("calls", _by_call(plan, actions, calls)),
        ("resources", _by_resource(plan, actions, anchors)),
        ("kinds", _by_kind(plan, actions)),
    )
    for grain, graph in graphs:
        linked = graph.without_isolated()
        if len(linked.boxes) <= MAX_NODES or grain == "kinds":
            break
    places = _places(_layers(linked)) if linked.boxes else {}
    order = {box: position for position, box in enumerate(linked.boxes)}
    return Drawing(
        caption=_caption(grain, len(linked.boxes), len(graph.boxes) - len(linked.boxes)),
        boxes=[(box, *places[key]) for key, box in linked.boxes.items()],
        edges=[
            _curve(places[need], places[box])
            for box, needs in linked.waits.items()
            for need in sorted(needs, key=order.__getitem__)
        ],
        width=max((x for x, _ in places.values()), default=0) + _WIDE + _EDGE,
        height=max((y for _, y in places.values()), default=0) + _HIGH + _EDGE,
    )


def _caption(grain: str, drawn: int, loose: int) -> str:
    captions = {
        "calls": "Each box is a call. It is sent once those to its left that lead to it are done.",
        "resources": f"There are more calls than a picture can hold, so each of the {drawn:,} boxes is a resource.",
        "kinds": "There are more resources than a picture can hold, so each box is all that is done to one kind.",
    }
    rest = f" {count_noun(loose, grain[:-1])} that nothing waits for {'is' if loose == 1 else 'are'} not drawn."
    return captions[grain] + (rest if loose else "")


def _by_call(plan: Plan, actions: Mapping[str, str], calls: Mapping[str, CallPlace]) -> Graph:
    return Graph(
        {
            call.id: GraphNode(
                f"{calls[call.id].number} {short_title(call.address)}",
                actions.get(str(call.address), ""),
                calls[call.id].anchor,
            )
            for call in plan.calls
        },
        {call.id: {need for need in call.needs if need in calls} for call in plan.calls},
    )


def _by_resource(plan: Plan, actions: Mapping[str, str], resources: Mapping[str, str]) -> Graph:
    owners = {call.id: str(call.address) for call in plan.calls}
    boxes: dict[Hashable, GraphNode] = {
        str(call.address): GraphNode(
            resource_title(call.address),
            actions.get(str(call.address), ""),
            resources.get(str(call.address)),
        )
        for call in plan.calls
    }
    return Graph(boxes, _collapsed(plan.calls, owners))


def _by_kind(plan: Plan, actions: Mapping[str, str]) -> Graph:
    owners = {call.id: (actions.get(str(call.address), ""), call.address.kind) for call in plan.calls}
    sizes = Counter({(actions.get(str(call.address), ""), call.address.kind, call.address) for call in plan.calls})
    counts = Counter((action, kind) for action, kind, _ in sizes)
    boxes: dict[Hashable, GraphNode] = {
        (action, kind): GraphNode(f"{action} {count_kind(counts[action, kind], kind)}", action, None)
        for action, kind in owners.values()
    }
    return Graph(boxes, _collapsed(plan.calls, owners))


def _collapsed(calls: Iterable[Call], owners: Mapping[str, Hashable]) -> dict[Hashable, set[Hashable]]:
    """Collapse the dependencies of calls to those of their owners (call id → node)."""
    waits: dict[Hashable, set[Hashable]] = {}
    for call in calls:
        owner_needs = waits.setdefault(owners[call.id], set())
        owner_needs.update(owners[need] for need in call.needs if need in owners)
        owner_needs.discard(owners[call.id])
    return waits


def _layers(drawing: Graph) -> list[list[Hashable]]:
    """Assign nodes to layers, each right of its dependencies, and sort each layer by their mean row.

    In a cycle, which collapsing can create, the order of first appearance decides.
    """
    depth: dict[Hashable, int] = {}
    for box in drawing.boxes:
        # Calls are in topological order, so the dependencies of a node (but for a cycle) have a depth already.
        depth[box] = 1 + max((depth[need] for need in drawing.waits[box] if need in depth), default=-1)
    layers: list[list[Hashable]] = [[] for _ in range(max(depth.values()) + 1)]
    for box, place in depth.items():
        layers[place].append(box)
    rows: dict[Hashable, float] = {}
    for layer in layers:
        layer.sort(key=lambda box: _middle([rows[need] for need in drawing.waits[box] if need in rows]))
        rows.update((box, place) for place, box in enumerate(layer))
    return layers


def _middle(rows: Sequence[float]) -> float:
    return sum(rows) / len(rows) if rows else 0.0


def _places(layers: Sequence[Sequence[Hashable]]) -> Mapping[Hashable, tuple[int, int]]:
    return {
        box: (_EDGE + layer * (_WIDE + _ALLEY), _EDGE + row * (_HIGH + _GAP))
        for layer, boxes in enumerate(layers)
        for row, box in enumerate(boxes)
    }


def _curve(start: tuple[int, int], end: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = (start[0] + _WIDE, start[1] + _HIGH // 2), (end[0], end[1] + _HIGH // 2)
    bend = _ALLEY // 2
    return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"


def _clipped(text: str, most: int) -> str:
    """Truncate a label to `most` columns; East Asian wide characters count twice."""
    width = 0
    for position, char in enumerate(text):
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if width > most:
            return f"{text[:position].rstrip()}…"
    return text
