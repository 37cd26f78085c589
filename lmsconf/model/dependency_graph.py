"""The dependency graph of declared resources, for rendering."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from lmsconf.model.address import Address
from lmsconf.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """`leans` depends on `on`; from content to the audience it is assigned to, with whether it is mandatory."""

    leans: Address
    on: Address
    mandatory: bool = False


class EdgeType(NamedTuple):
    """A sort of edge, by display names: noun of the kind that declares it, plural of the kind that it leads to."""

    noun: str
    plural: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DependencyGraph:
    """Nodes and their dependencies. declared: the nodes that the manifests declare.

    shapes: node → its shape, in the words of DOT. left_out: the number of edges of relations that are not shown.
    """

    nodes: tuple[Address, ...]
    edges: tuple[Edge, ...]
    declared: frozenset[Address]
    shapes: Mapping[Address, str]
    left_out: Mapping[EdgeType, int] = field(default_factory=dict)
