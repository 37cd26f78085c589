"""Dependency graph of the declarations: what each resource depends on, and what relations link.

Kinds whose resources are too many for a graph, such as people, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.parsing import dependencies
from lmsconf.kinds.shared.kind import BOX, Kind
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET
from lmsconf.model.address import Address
from lmsconf.model.declarations import DependencyGraph, DesiredResource, Edge, EdgeType


def build_graph(declared: Iterable[DesiredResource[Any]]) -> DependencyGraph:
    """Return the graph of these declarations, sorted, so that their order does not matter.

    Edges to kinds that are not shown are left out; those that a relation declares are counted.
    """
    edges: set[Edge] = set()
    own: dict[Address, str] = {}
    left_out: Counter[EdgeType] = Counter()
    for declaration in declared:
        kind = KINDS[declaration.address.kind]
        if kind.is_person:
            continue
        node, on = _node(kind, declaration)
        own[node] = kind.graph_shape
        for edge in on:
            target = KINDS.get(edge.on.kind)
            if target is None or not target.is_person:
                edges.add(edge)
            elif kind.is_relation:
                left_out[EdgeType(kind.noun, target.plural)] += 1
    live = {edge.on: KINDS[edge.on.kind].graph_shape if edge.on.kind in KINDS else BOX for edge in edges}
    shapes = {**live, **own}
    return DependencyGraph(
        nodes=tuple(sorted(shapes)),
        edges=tuple(sorted(edges)),
        declared=frozenset(own),
        shapes=shapes,
        left_out=left_out,
    )


def _node(kind: Kind, declared: DesiredResource[Any]) -> tuple[Address, list[Edge]]:
    """Return the node of a declaration, and the edges from it; an assignment is an edge from content to audience."""
    if kind.name == CONTENT_TARGET:
        content = Address.of(CONTENT, declared.spec.content)
        return content, [Edge(content, declared.spec.audience, declared.spec.mandatory)]
    return declared.address, [Edge(declared.address, other) for other in dependencies(declared)]
