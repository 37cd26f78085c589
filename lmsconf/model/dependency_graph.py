"""The dependency graph of declared resources, for rendering."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field

from lmsconf.model.address import Address


class Edge(Struct, frozen=True, order=True):
    """`leans` depends on `on`; from content to the audience it is assigned to, with whether it is mandatory."""

    leans: Address
    on: Address
    mandatory: bool = False


class EdgeType(NamedTuple):
    """A sort of edge, by display names: noun of the kind that declares it, plural of the kind that it leads to."""

    noun: str
    plural: str


class DependencyGraph(Struct, frozen=True, kw_only=True):
    """Nodes and their dependencies. declared: the nodes that the manifests declare.

    shapes: node → its shape, in the words of DOT. left_out: the number of edges of relations that are not shown.
    """

    nodes: tuple[Address, ...]
    edges: tuple[Edge, ...]
    declared: frozenset[Address]
    shapes: Mapping[Address, str]
    left_out: Mapping[EdgeType, int] = field(default_factory=dict)
