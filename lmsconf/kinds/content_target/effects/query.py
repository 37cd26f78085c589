"""What is asked beyond the effects of a plan, with the names that the plan gives to audiences."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from lmsconf.errors import LmsconfError
from lmsconf.kinds.shared.kind_names import GROUP, SMART_GROUP
from lmsconf.model.address import Address, Ref
from lmsconf.model.names import normalize_name
from lmsconf.planner.access_state import AccessQuery
from lmsconf.planner.context import NameRegistry, PlanContext
from lmsconf.planner.missing_references import LiveIdentities
from lmsconf.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from lmsconf.kinds.content_target.effects.facts import AccessFacts
    from lmsconf.kinds.content_target.effects.scope import AudienceKey


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedQuery:
    """An AccessQuery, with the names after a plan. doubtful: those whose entry has an error, and is not planned."""

    query: AccessQuery
    registry: NameRegistry
    doubtful: Collection[Address]

    def wants_content(self, name: str) -> bool:
        return self.query.contents is None or normalize_name(name) in self.query.contents

    def find(self, facts: AccessFacts, address: Address) -> AudienceKey | None:
        """Return the kind and id of a group or smart group: by its name after the plan, or else by its live name.

        Raises LmsconfError for a name that is live twice, and for a doubtful one.
        """
        kind, name = address.kind, address.name
        if kind not in (GROUP, SMART_GROUP):
            return None
        if address in self.doubtful:
            raise LmsconfError(f"it is not yet known what of {address} is live; plan it too to see its error")
        if self.registry.has(kind, name):
            if ids := self.registry.duplicate_ids(kind, name):
                raise _twice(address, ids)
            return kind, self.registry.id_or_ref(kind, name, Ref(address))
        if len(live := facts.live_ids(kind, name)) > 1:
            raise _twice(address, live)
        return (kind, live[0]) if live else None

    def keys(self, facts: AccessFacts) -> Iterator[AudienceKey]:
        """Yield what `find` returns for the audiences; those that it raises an error for are left out."""
        for address in self.query.audiences:
            with suppress(LmsconfError):
                if (key := self.find(facts, address)) is not None:
                    yield key


def resolve_query(query: AccessQuery, planning: PlanContext) -> ResolvedQuery:
    """Return a query with the names after a plan."""
    return ResolvedQuery(query=query, registry=planning.registry, doubtful=planning.state(LiveIdentities).doubtful)


def _twice(address: Address, ids: Iterable[str]) -> LmsconfError:
    return LmsconfError(
        f"{address} is live more than once, with the ids {', '.join(sorted(ids))}",
        hint="Declare the right one, with its `id:`.",
    )
