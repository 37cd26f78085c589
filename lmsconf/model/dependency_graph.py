"""What leans on what, as a value for pictures."""

from __future__ import annotations

from dataclasses import dataclass

from lmsconf.model.address import Address


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """One thing that leans on another; for content, whom it is assigned to, and whether it must be taken."""

    leans: Address
    on: Address
    mandatory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Things and what they lean on. declared: which of the nodes the manifests declare.

    to_people: how many assignments to single people are left out.
    """

    nodes: tuple[Address, ...]
    edges: tuple[Edge, ...]
    declared: frozenset[Address]
    to_people: int = 0
