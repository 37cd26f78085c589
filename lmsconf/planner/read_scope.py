"""What to read of a workspace: the declarations of the manifests and of a base, and their policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.policy import Policy
from lmsconf.planner.kind import Kind


class Declarations(NamedTuple):
    """What manifests say: declared resources, and resources to delete."""

    declared: Sequence[DesiredResource[Any]]
    absent: Sequence[DeleteEntry[Any]]

    def of_kind(self, kind: str) -> tuple[list[DesiredResource[Any]], list[DeleteEntry[Any]]]:
        """Return the entries of one kind."""
        declared = [resource for resource in self.declared if resource.address.kind == kind]
        return declared, [entry for entry in self.absent if entry.address.kind == kind]

    def merge(self, other: Declarations, kinds: Mapping[str, Kind]) -> Declarations:
        """Return the entries of both; of a person, only this one's where both have an address.

        An earlier name is an address too: otherwise the other's entry would match the resource that this one renames.
        """
        declared_once = {
            address
            for one in self.declared
            if kinds[one.address.kind].is_person
            for address in (one.address, *(Address.of(one.address.kind, name) for name in one.previously))
        }
        more = [resource for resource in other.declared if resource.address not in declared_once]
        return Declarations([*self.declared, *more], [*self.absent, *other.absent])

    def in_workspace(self, workspace: str) -> Declarations:
        """Return the entries that apply in a workspace (`only_in`)."""
        declared = [resource for resource in self.declared if resource.applies_in(workspace)]
        return Declarations(declared, [entry for entry in self.absent if entry.applies_in(workspace)])


class ReadScope(Struct, frozen=True, kw_only=True):
    """What to read of a workspace.

    everything: also what is neither declared nor owned. edits: also the last editor of each resource, where the service
    returns it. beside: the declarations of a base, which are planned separately on the same snapshot. people: ids that
    people in the declarations had when a plan was made, to look them up instead of all people.
    """

    declared: tuple[DesiredResource[Any], ...] = ()
    absent: tuple[DeleteEntry[Any], ...] = ()
    policy: Policy
    everything: bool = False
    edits: bool = False
    beside: Declarations | None = None
    people: frozenset[RemoteId] = frozenset()
