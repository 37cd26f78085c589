"""What is asked beyond the effects of a plan, with the names that the plan gives to audiences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from lmsconf.errors import LmsconfError
from lmsconf.kinds.shared.kind_names import GROUP, SMART_GROUP
from lmsconf.kinds.shared.managed_resources import claim_of
from lmsconf.kinds.shared.match_by_name import ClaimMatches
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.names import normalize_name

if TYPE_CHECKING:
    from lmsconf.planner.audience.access_facts import AccessFacts
    from lmsconf.planner.audience.people_sets import AudienceKey


class AccessQuery(Struct, frozen=True, kw_only=True):
    """What is asked beyond the effects of a plan, so that it is read.

    contents: names; None: all. audiences: by the names after the plan, or else by the live ones. fields: whose answers
    are counted.
    """

    contents: frozenset[str] | None = frozenset()
    audiences: frozenset[Address] = frozenset()
    fields: frozenset[str] = frozenset()

    def wants_content(self, name: str) -> bool:
        return self.contents is None or normalize_name(name) in self.contents

    def keys(self, planning: PlanContext, facts: AccessFacts) -> Iterator[AudienceKey]:
        """Yield what `find_key` returns for the audiences; those that it raises an error for are left out."""
        for address in self.audiences:
            with suppress(LmsconfError):
                if (key := find_key(planning, facts, address)) is not None:
                    yield key


def find_key(planning: PlanContext, facts: AccessFacts, address: Address) -> AudienceKey | None:
    """Return the kind and id of a group or smart group: by its name after the plan, or else by its live name.

    Raises LmsconfError for a name that is live twice, for a doubtful one, and for one that is declared, neither live
    nor planned.
    """
    kind, name = address.kind, address.name
    if kind not in (GROUP, SMART_GROUP):
        return None
    if kind not in planning.snapshot.listings and name in (left_out := _match_left_out(planning, facts, kind)):
        return kind, _live(address, left_out[name])
    if address in planning.doubtful:
        raise LmsconfError(f"it is not yet known what of {address} is live; plan it too to see its error")
    if planning.registry.has(kind, name):
        if ids := planning.registry.duplicate_ids(kind, name):
            raise _twice(address, ids)
        id = planning.registry.id_or_ref(kind, name, Ref(address))
        return kind, id if planning.chosen(address) else _live(address, id)
    rows = facts.audiences(kind).values()
    if len(live := sorted(row.id for row in rows if normalize_name(row.name) == name)) > 1:
        raise _twice(address, live)
    return (kind, live[0]) if live else None


def _match_left_out(planning: PlanContext, facts: AccessFacts, kind: str) -> Mapping[str, RemoteId | None]:
    """Return the live ids of what is declared of a kind that the plan has not read; without those in error."""
    claims = [claim_of(planning, one) for one in planning.declared if one.address.kind == kind]
    matched = ClaimMatches(claims, list(facts.audiences(kind).values()))
    pairs = enumerate(zip(claims, matched.live, strict=True))
    return {
        claim.name: None if row is None else row.id
        for position, (claim, row) in pairs
        if position not in matched.broken
    }


def _live(address: Address, id: RemoteId | Ref | None) -> RemoteId:
    if id is None or isinstance(id, Ref):
        raise LmsconfError(f"{address} is not live, and this plan does not create it")
    return id


def _twice(address: Address, ids: Iterable[str]) -> LmsconfError:
    return LmsconfError(
        f"{address} is live more than once, with the ids {', '.join(sorted(ids))}",
        hint="Declare the right one, with its `id:`.",
    )
