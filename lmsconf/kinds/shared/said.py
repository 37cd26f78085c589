"""What manifests say, as a value that can be joined with that of another version and cut down to a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lmsconf.kinds.manual_group.kind import ManualGroup
from lmsconf.kinds.shared.names import USER
from lmsconf.kinds.smart_group.values import SmartGroup
from lmsconf.model.values import DeleteEntry, DesiredResource


class Said(NamedTuple):
    """What manifests declare, and what they want gone."""

    declared: Sequence[DesiredResource]
    absent: Sequence[DeleteEntry]

    def of(self, kind: str) -> tuple[list[DesiredResource], list[DeleteEntry]]:
        """The part of it that is about one kind."""
        declared = [one for one in self.declared if one.address.kind == kind]
        return declared, [one for one in self.absent if one.address.kind == kind]

    def joined(self, other: Said) -> Said:
        """All that either says. Of a person, what this one wants to know."""
        people = {one.address for one in self.declared if one.address.kind == USER}
        more = [one for one in other.declared if one.address not in people]
        return Said([*self.declared, *more], [*self.absent, *other.absent])

    def within(self, workspace: str) -> Said:
        """The part of it that speaks of a workspace."""
        declared = [one for one in self.declared if one.applies_in(workspace)]
        return Said(declared, [one for one in self.absent if one.applies_in(workspace)])


def lists_people(spec: object) -> bool:
    """Whether an entry names people in a list."""
    if isinstance(spec, ManualGroup):
        return spec.members is not None or spec.managers is not None
    return isinstance(spec, SmartGroup) and spec.managers is not None
