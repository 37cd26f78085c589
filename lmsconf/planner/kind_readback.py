"""What a kind says about live rows that were read: what a declaration compares of one, and who is in a group.

`Kind` inherits this.
"""

from __future__ import annotations

from typing import Generic

from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api
from lmsconf.model.snapshot import Row
from lmsconf.planner.context import Deletion, Match, PlanContext, Spec


class KindReadback(Generic[Spec, Row]):
    """The part of a kind that looks at live rows, without comparing or changing them.

    has_members: the service lists members of its resources.
    """

    has_members = False

    def compared_row(self, planning: PlanContext, subject: Match[Spec, Row] | Deletion[Row]) -> Row | None:
        """Return the row of a match or a deletion as its fingerprint has it: equal, however the workspace was read.

        A kind whose rows hold more where everything is read, or where they are read in another way, overrides this. A
        row of most kinds is read as a whole as soon as its resource changes.
        """
        return subject.row

    def live_members(self, api: Api, name: str, id: RemoteId | None) -> frozenset[RemoteId] | None:
        """Return the ids of the members that the service lists for a resource; None if it is not there.

        id: None for one that is found by its name alone. Archived people may be among them. May raise ApiError. Only
        called for a kind with `has_members`.
        """
        return None
