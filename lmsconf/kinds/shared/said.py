"""The declarations of a set of manifests, as a value that can be merged with another version and filtered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from lmsconf.kinds.manual_group.values import ManualGroupSpec
from lmsconf.kinds.shared.names import USER
from lmsconf.kinds.smart_group.values import SmartGroupSpec
from lmsconf.model.values import DeleteEntry, DesiredResource


class Said(NamedTuple):
    """Declared resources, and resources to delete."""

    declared: Sequence[DesiredResource[Any]]
    absent: Sequence[DeleteEntry[Any]]

    def of(self, kind: str) -> tuple[list[DesiredResource[Any]], list[DeleteEntry[Any]]]:
        """Return the entries of one kind."""
        declared = [one for one in self.declared if one.address.kind == kind]
        return declared, [one for one in self.absent if one.address.kind == kind]

    def joined(self, other: Said) -> Said:
        """Return the entries of both; of a person declared in both, only the entry of this one."""
        people = {one.address for one in self.declared if one.address.kind == USER}
        more = [one for one in other.declared if one.address not in people]
        return Said([*self.declared, *more], [*self.absent, *other.absent])

    def within(self, workspace: str) -> Said:
        """Return the entries that apply in a workspace (`only_in`)."""
        declared = [one for one in self.declared if one.applies_in(workspace)]
        return Said(declared, [one for one in self.absent if one.applies_in(workspace)])


def lists_people(spec: object) -> bool:
    """Return whether the spec declares a list of members or managers."""
    if isinstance(spec, ManualGroupSpec):
        return spec.members is not None or spec.managers is not None
    return isinstance(spec, SmartGroupSpec) and spec.managers is not None
