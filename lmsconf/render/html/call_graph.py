"""The calls of a plan in HTML: a list with request bodies, and the dependency graph as SVG."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from msgspec import Struct

from lmsconf.documents.plan_values import request_body_json
from lmsconf.model.calls import Call
from lmsconf.model.plan import Action, Plan
from lmsconf.render.html.components import MOST_ROWS
from lmsconf.render.html.document import Child, Markup, tag
from lmsconf.render.resource_wording import count_kind, count_noun, resource_title, short_title

MAX_NODES = 300
"""The maximum number of boxes in the graph; above it, boxes are resources, or kinds, instead of calls."""

_WIDE, _HIGH, _GAP, _ALLEY, _EDGE = 250, 30, 10, 70, 16


def call_anchors(plan: Plan, resource_anchors: Mapping[str, str]) -> Mapping[str, str]:
    """Return call id → HTML anchor; if the page does not show all changes, only of the calls of those it shows.

    resource_anchors: address → HTML anchor of its row.
    """
    whole = len(plan.changes) <= MOST_ROWS
    numbered = enumerate(plan.calls, 1)
    return {call.id: f"call-{number}" for number, call in numbered if whole or str(call.address) in resource_anchors}


def call_list(calls: Sequence[Call], anchors: Mapping[str, str], resource_anchors: Mapping[str, str]) -> Markup:
    """Render every call that has an anchor, in the plan's order."""
    numbers = _numbers(calls)
    rows = [
        _call(call, anchors, numbers, resource_anchors.get(str(call.address))) for call in calls if call.id in anchors
    ]
    return tag("div", rows, class_="list")


def _numbers(calls: Sequence[Call]) -> Mapping[str, int]:
    return {call.id: number for number, call in enumerate(calls, 1)}


def _call(call: Call, names: Mapping[str, str], numbers: Mapping[str, int], resource: str | None) -> Markup:
    title = resource_title(call.address)
    summary = tag(
        "summary",
        tag("span", f"{numbers[call.id]:,}", class_="number"),
        tag("span", call.method, class_="verb"),
        tag("span", call.path, class_="path"),
        tag("span", title, class_="to"),
    )
    waits = [[" ", call_link(need, names, numbers)] for need in call.needs if need in numbers]
    body = tag(
        "div",
        tag("p", tag("code", call.operation), " for ", tag("a", title, href=f"#{resource}") if resource else title),
        tag("p", "Waits for", waits) if waits else None,
        tag("p", "May be refused.") if call.may_be_refused else None,
        tag("pre", _json(dict(call.query))) if call.query else None,
        tag("pre", _json(request_body_json(call.body))) if call.body is not None else None,
        class_="body",
    )
    return tag("details", summary, body, class_="row call", id=names[call.id])


def call_link(call: str, anchors: Mapping[str, str], numbers: Mapping[str, int]) -> Child:
    text = f"#{numbers[call]:,}"
    return tag("a", text, href=f"#{anchors[call]}") if call in anchors else text


def _json(value: object) -> list[Child]:
    """Return indented JSON. Its newlines are markup; any other line break, inside a name, is escaped."""
    lines = json.dumps(value, ensure_ascii=False, indent=2).split("\n")
    return [child for line in lines for child in (line, Markup("\n"))]


def call_links(plan: Plan, anchors: Mapping[str, str]) -> Mapping[str, Markup]:
    """Return address → links to its calls."""
    numbers = _numbers(plan.calls)
    links: defaultdict[str, list[Child]] = defaultdict(list)
    for call in plan.calls:
        item = tag("li", call_link(call.id, anchors, numbers), f" {call.method} ", tag("code", call.path))
        links[str(call.address)].append(item)
    return {address: tag("ul", items, class_="calls-of") for address, items in links.items()}


class GraphNode(Struct, frozen=True):
    """A node of the graph: label, action (CSS class of its colour), and anchor that it links to."""

    label: str
    action: str
    href: str | None


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


def graph_svg(plan: Plan, call_anchors: Mapping[str, str], resource_anchors: Mapping[str, str]) -> Child:
    """Render the dependency graph left to right, by call, resource or kind: the finest with at most DRAWN boxes."""
    actions = {str(change.address): change.action.value for change in plan.changes}
    drawings = (
        ("calls", _by_call(plan, actions, call_anchors)),
        ("resources", _by_resource(plan, actions, resource_anchors)),
        ("kinds", _by_kind(plan, actions)),
    )
    for grain, drawing in drawings:
        linked = drawing.without_isolated()
        if len(linked.boxes) <= MAX_NODES or grain == "kinds":
            break
    if not linked.boxes:
        return tag("p", "No call waits for another.")
    loose = len(drawing.boxes) - len(linked.boxes)
    return [
        tag("p", _caption(grain, len(linked.boxes), loose), class_="soft"),
        tag("div", _svg(linked), class_="graph", role="region", aria_label="Call order", tabindex=0),
    ]


def _caption(grain: str, drawn: int, loose: int) -> str:
    captions = {
        "calls": "Each box is a call. It is sent once those to its left that lead to it are done.",
        "resources": f"There are more calls than a picture can hold, so each of the {drawn:,} boxes is a resource.",
        "kinds": "There are more resources than a picture can hold, so each box is all that is done to one kind.",
    }
    rest = f" {count_noun(loose, grain[:-1])} that nothing waits for {'is' if loose == 1 else 'are'} not drawn."
    return captions[grain] + (rest if loose else "")


def _by_call(plan: Plan, actions: Mapping[str, str], anchors: Mapping[str, str]) -> Graph:
    numbers = _numbers(plan.calls)
    return Graph(
        {
            call.id: GraphNode(
                f"{numbers[call.id]} {short_title(call.address)}",
                actions.get(str(call.address), ""),
                anchors.get(call.id),
            )
            for call in plan.calls
        },
        {call.id: {need for need in call.needs if need in numbers} for call in plan.calls},
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


def _svg(drawing: Graph) -> Markup:
    places = _places(_layers(drawing))
    wide = max(x for x, _ in places.values()) + _WIDE + _EDGE
    high = max(y for _, y in places.values()) + _HIGH + _EDGE
    edges = [
        tag("path", class_="edge", d=_curve(places[need], places[box]))
        for box, needs in drawing.waits.items()
        for need in sorted(needs, key=list(drawing.boxes).index)
    ]
    boxes = [_box(box, *places[key]) for key, box in drawing.boxes.items()]
    return tag("svg", edges, boxes, width=wide, height=high, viewBox=f"0 0 {wide} {high}")


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


def _box(box: GraphNode, x: int, y: int) -> Markup:
    inside = [
        tag("title", box.label),
        tag("rect", x=x, y=y, width=_WIDE, height=_HIGH, rx=5),
        tag("rect", class_=f"bar {box.action}", x=x, y=y, width=4, height=_HIGH, rx=2),
        tag("text", _clipped(box.label, 30), x=x + 14, y=y + 19),
    ]
    return tag("a", inside, href=f"#{box.href}") if box.href else tag("g", inside)


def _clipped(text: str, most: int) -> str:
    """Truncate a label to `most` columns; East Asian wide characters count twice."""
    width = 0
    for position, char in enumerate(text):
        width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
        if width > most:
            return f"{text[:position].rstrip()}…"
    return text


ACTIONS = {
    Action.DELETE.value: "Deleted",
    Action.REPLACE.value: "Replaced",
    Action.UPDATE.value: "Changed",
    Action.CREATE.value: "Created",
}
"""Action → its label in the filter."""
