"""What manifests declare: resources, resources to delete, and the graph of what depends on what.

None means "not declared", empty means empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.access import AccessTest
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import InWorkspaces


class SourceMap(Protocol):
    """Source locations of the parts of a manifest entry."""

    def at(self, *path: str | int) -> SourceLocation:
        """Return the location of the value at `path` below the entry, or of its nearest ancestor that has one."""

    def find(self, text: str, *path: str | int) -> SourceLocation:
        """Return the location of the list item equal to `text` at or below `path`; that of `path` if there is none."""


class PlacesBelow(Struct, frozen=True):
    """The SourceMap of a part of an entry: what the part does not say, its entry may say for all of them."""

    places: SourceMap
    path: tuple[str | int, ...]

    def at(self, *path: str | int) -> SourceLocation:
        own = self.places.at(*self.path, *path)
        if not path or own != self.places.at(*self.path):
            return own
        default = self.places.at(*path)
        return own if default == self.places.at() else default

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self.places.find(text, *self.path, *path)


class FixedSource(Struct, frozen=True):
    """The SourceMap of what no entry of its own declares: all of it is located at one place."""

    place: SourceLocation

    def at(self, *path: str | int) -> SourceLocation:
        return self.place

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self.place


Spec_co = TypeVar("Spec_co", covariant=True)
"""What a kind's manifest entry declares, parsed: a frozen value of the kind's own."""


class _Entry(InWorkspaces, Generic[Spec_co], frozen=True, kw_only=True):
    """One manifest entry. pins: workspace → id; the key "" applies to every workspace."""

    address: Address
    spec: Spec_co
    places: SourceMap
    pins: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> SourceLocation:
        return self.places.at()

    def shares_workspace(self, other: _Entry[Any]) -> bool:
        """Whether there is a workspace in which both entries apply."""
        return self.only_in is None or other.only_in is None or bool(self.only_in & other.only_in)

    def pin(self, workspace: str) -> RemoteId | None:
        """Return the id that the resource is pinned to in a workspace, or None."""
        return pin_in(self.pins, workspace)


def pin_in(pins: Mapping[str, str], workspace: str) -> RemoteId | None:
    """Return the pin of a workspace: its own, else the one for every workspace, else None."""
    pin = pins.get(workspace, pins.get(""))
    return None if pin is None else RemoteId(pin)


class DesiredResource(_Entry[Spec_co], Struct, frozen=True, kw_only=True):
    """One resource as declared in a manifest. reason: why it changes, if no entry of its own declares it."""

    previously: tuple[str, ...] = ()
    about: Mapping[str, Json] | None = None
    reason: str | None = None


class DeleteEntry(_Entry[Spec_co], Struct, frozen=True, kw_only=True):
    """One resource to delete, under `absent`. until: the last day of the entry; later it is reported as expired."""

    until: date | None = None


class Manifests(Struct, frozen=True, kw_only=True):
    """The content of all manifests, with their files, and one digest of these."""

    declared: tuple[DesiredResource[Any], ...] = ()
    absent: tuple[DeleteEntry[Any], ...] = ()
    tests: tuple[AccessTest, ...] = ()
    problems: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    digest: str = ""

    def of_kind(self, kind: str) -> tuple[list[DesiredResource[Any]], list[DeleteEntry[Any]]]:
        """Return what is declared of one kind, and what is to be deleted."""
        return (
            [resource for resource in self.declared if resource.address.kind == kind],
            [entry for entry in self.absent if entry.address.kind == kind],
        )

    def in_workspace(self, workspace: str) -> Manifests:
        """Return the manifests with the entries and tests that apply in a workspace (`only_in`).

        Entries are sorted by address, so that the order of files decides nothing.
        """
        declared = sorted(self.declared, key=lambda one: one.address)
        absent = sorted(self.absent, key=lambda one: one.address)
        return replace(
            self,
            declared=tuple(resource for resource in declared if resource.applies_in(workspace)),
            absent=tuple(entry for entry in absent if entry.applies_in(workspace)),
            tests=tuple(test for test in self.tests if test.applies_in(workspace)),
        )


class Edge(Struct, frozen=True, order=True):
    """`leans` depends on `on`; from content to the audience it is assigned to, with whether it is mandatory."""

    leans: Address
    on: Address
    mandatory: bool = False


class DependencyGraph(Struct, frozen=True, kw_only=True):
    """Nodes and their dependencies. declared: the nodes that the manifests declare.

    shapes: node → its shape, in the words of DOT. hidden_edges: the number of edges of relations that are not shown, by
    the noun of the kind that declares them and the plural of the kind that they lead to.
    """

    edges: tuple[Edge, ...]
    declared: frozenset[Address]
    shapes: Mapping[Address, str]
    hidden_edges: Mapping[tuple[str, str], int] = field(default_factory=dict)
