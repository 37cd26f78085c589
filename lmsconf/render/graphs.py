"""Two graphs: of the resources that need each other, as Mermaid and DOT, and of a plan's calls, laid out for a page."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Final, TypeAlias

from msgspec import Struct

from lmsconf.kinds.shared.kind_names import resource_title, short_title
from lmsconf.model.calls import Call
from lmsconf.model.declarations import DependencyGraph
from lmsconf.model.names import escape_invisible
from lmsconf.model.plan import Plan
from lmsconf.render.jinja import template_text
from lmsconf.render.resource_wording import count_kind, count_noun


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

_WIDE, _HIGH, _GAP, _ALLEY, _EDGE = 250, 30, 10, 70, 16


class CallPlace(Struct, frozen=True):
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
    """A graph as it is drawn, in pixels. boxes: (node, x, y). edges: pairs of places, from a node to one that waits."""

    caption: str
    boxes: Sequence[tuple[GraphNode, int, int]]
    edges: Sequence[tuple[tuple[int, int], tuple[int, int]]]
    box_width: int = _WIDE
    box_height: int = _HIGH
    alley: int = _ALLEY
    margin: int = _EDGE


def draw_graph(plan: Plan, calls: Mapping[str, CallPlace], anchors: Mapping[str, str]) -> Drawing:
    """Draw the dependency graph left to right, by call, resource or kind: the finest with at most MAX_NODES boxes.

    anchors: address → HTML anchor of its row. A plan none of whose calls waits for another has no boxes.
    """
    for grain, nodes in _grains(plan, calls, anchors):
        waits = _waits(plan.calls, nodes)
        needed = set().union(*waits.values())
        linked = {node: needs for node, needs in waits.items() if needs or node in needed}
        caption = _caption(grain, len(linked), len(waits) - len(linked))
        if len(linked) <= MAX_NODES:
            break
    places = {
        box: (_EDGE + layer * (_WIDE + _ALLEY), _EDGE + row * (_HIGH + _GAP))
        for layer, boxes in enumerate(_layers(linked))
        for row, box in enumerate(boxes)
    }
    order = {node: position for position, node in enumerate(linked)}
    return Drawing(
        caption=caption,
        boxes=[(node, *places[node]) for node in linked],
        edges=[
            (places[need], places[node])
            for node, needs in linked.items()
            for need in sorted(needs, key=order.__getitem__)
        ],
    )


def _caption(grain: str, drawn: int, loose: int) -> str:
    captions = {
        "calls": "Each box is a call. It is sent once those to its left that lead to it are done.",
        "resources": f"There are more calls than a picture can hold, so each of the {drawn:,} boxes is a resource.",
        "kinds": "There are more resources than a picture can hold, so each box is all that is done to one kind.",
    }
    rest = f" {count_noun(loose, grain[:-1])} that nothing waits for {'is' if loose == 1 else 'are'} not drawn."
    return captions[grain] + (rest if loose else "")


def _grains(
    plan: Plan, calls: Mapping[str, CallPlace], anchors: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, GraphNode]]]:
    """Yield what a node is, and call id → its node: a call, a resource, and all that is done to one kind."""
    actions = {str(change.address): change.action.value for change in plan.changes}
    done = {call.id: (actions.get(str(call.address), ""), call.address) for call in plan.calls}
    yield (
        "calls",
        {
            id: GraphNode(f"{calls[id].number} {short_title(address)}", action, calls[id].anchor)
            for id, (action, address) in done.items()
        },
    )
    yield (
        "resources",
        {
            id: GraphNode(resource_title(address), action, anchors.get(str(address)))
            for id, (action, address) in done.items()
        },
    )
    counts = Counter((action, address.kind) for action, address in {*done.values()})
    labels = {key: f"{key[0]} {count_kind(number, key[1])}" for key, number in counts.items()}
    yield (
        "kinds",
        {id: GraphNode(labels[action, address.kind], action, None) for id, (action, address) in done.items()},
    )


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
