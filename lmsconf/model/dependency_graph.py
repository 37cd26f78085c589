"""The dependency graph of declared resources, for rendering."""

from __future__ import annotations

from dataclasses import dataclass

from lmsconf.model.address import Address


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """`leans` depends on `on`; from content to the audience it is assigned to, with whether it is mandatory."""

    leans: Address
    on: Address
    mandatory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Nodes and their dependencies. declared: the nodes that the manifests declare.

    to_people: the number of assignments to individual people, which are left out.
    """

    nodes: tuple[Address, ...]
    edges: tuple[Edge, ...]
    declared: frozenset[Address]
    to_people: int = 0
