"""What is asked beyond the effects of a plan, with the names that the plan gives to audiences."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from lmsconf.errors import LmsconfError
from lmsconf.kinds.shared.kind_names import GROUP, SMART_GROUP
from lmsconf.model.address import Address, Ref
from lmsconf.model.names import normalize_name
from lmsconf.planner.access_state import NOTHING_ASKED, AccessQuery
from lmsconf.planner.context import NameRegistry
from lmsconf.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from lmsconf.kinds.content_target.effects.facts import AccessFacts
    from lmsconf.kinds.content_target.effects.scope import AudienceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuery:
    """An AccessQuery, with the names after the plan; without a registry, only live names are found."""

    query: AccessQuery = NOTHING_ASKED
    registry: NameRegistry | None = None

    @property
    def audiences(self) -> frozenset[Address]:
        return self.query.audiences

    def wants_content(self, name: str) -> bool:
        return self.query.contents is None or normalize_name(name) in self.query.contents

    def find(self, facts: AccessFacts, address: Address) -> AudienceKey | None:
        """Return the kind and id of a group or smart group: by its name after the plan, or else by its live name.

        Raises LmsconfError for a name that is live twice.
        """
        kind, name = address.kind, address.name
        if kind not in (GROUP, SMART_GROUP):
            return None
        live = facts.live_ids(kind, name)
        if self.registry is not None and self.registry.has(kind, name):
            if len(ids := self.registry.duplicate_ids(kind, name)) > 1:
                raise _twice(address, ids)
            return kind, self.registry.id_or_ref(kind, name, Ref(address))
        if len(live) > 1:
            raise _twice(address, live)
        return (kind, live[0]) if live else None


def _twice(address: Address, ids: Iterable[str]) -> LmsconfError:
    return LmsconfError(
        f"{address} is live more than once, with the ids {', '.join(sorted(ids))}",
        hint="Declare the right one, with its `id:`.",
    )


NO_QUERY: Final = ResolvedQuery()
