"""Dependency graph of the declarations: fields, groups, smart groups and the content assigned to them.

People are left out, because a graph with a node per person is unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from lmsconf.kinds.content_target.values import Assignment
from lmsconf.kinds.shared.names import CONTENT, CONTENT_TARGET, USER
from lmsconf.model.address import Address
from lmsconf.model.dependency_graph import Edge, Network
from lmsconf.model.values import DesiredResource
from lmsconf.planner.kind import AnyKind


def network(kinds: Mapping[str, AnyKind], declared: Iterable[DesiredResource[Any]]) -> Network:
    """Return the graph of these declarations, sorted, so that their order does not matter.

    Assignments to single people are only counted.
    """
    edges: set[Edge] = set()
    own: set[Address] = set()
    to_people = 0
    for one in declared:
        if one.address.kind == CONTENT_TARGET:
            spec = cast(Assignment, one.spec)
            own.add(at := Address.of(CONTENT, spec.content))
            edge = Edge(at, spec.audience, spec.mandatory)
            to_people += spec.audience.kind == USER
            edges |= set() if spec.audience.kind == USER else {edge}
        elif one.address.kind != USER:
            own.add(one.address)
            leans = kinds[one.address.kind].dependencies(one)
            edges.update(Edge(one.address, other) for other in leans if other.kind != USER)
    nodes = own | {edge.on for edge in edges}
    return Network(nodes=tuple(sorted(nodes)), edges=tuple(sorted(edges)), declared=frozenset(own), to_people=to_people)
