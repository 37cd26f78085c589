"""Calls that add people to lists of groups and remove them, what they depend on, and how additions are verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lmsconf.kinds.shared.answers import an_object, ids
from lmsconf.kinds.shared.names import USER
from lmsconf.kinds.shared.people import People
from lmsconf.kinds.user.directory import directory
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.api import Get
from lmsconf.model.values import Step
from lmsconf.planner.context import GRANTED, PlanContext
from lmsconf.planner.grants import GrantCheck, SentCall


def people_steps(
    planning: PlanContext,
    at: Address,
    path: Mapping[str, str | Ref],
    adds: str,
    removes: str,
    before: People | None,
    after: People,
) -> Iterator[Step]:
    """Yield the additions to a list of people, in batches, then the removals, one call each.

    adds, removes: the operations. A person who changes groups is added to the new group before being removed from the
    old one, so that access is never interrupted.
    """
    old = before.include if before else frozenset()
    coming, going = sorted(after.include - old), sorted(old - after.include)
    me = [Ref(at)] if path["groupId" if "groupId" in path else "smartGroupId"] == Ref(at) else []
    mine = Ref(at, f"{GRANTED} {adds}")
    known = directory(planning)
    is_membership = adds.endswith("members")
    for some in _batches(coming, int(planning.terms.behaviour("manual-groups.add.batch"))):
        arrived = [entered(one) for one in some if is_membership and one in planning.removed_emails]
        yield Step(
            operation=adds,
            path=path,
            body=planning.terms.body(adds, userIds=[known.id(one) for one in some]),
            makes=frozenset({mine, *arrived}),
            uses=awaited(planning, some, manages=not is_membership) | frozenset(me),
            people=tuple(some),
        )
    for one in going:
        yield Step(
            operation=removes,
            path={**path, "userId": known.id(one)},
            uses=frozenset({mine, *([entered(one)] if is_membership else [])}),
            revokes=True,
            people=(one,),
        )


def awaited(planning: PlanContext, people: Iterable[str], *, manages: bool) -> frozenset[Ref]:
    """Return what a call that names people depends on: their creation and, for managers, the grants of rights."""
    found: set[Ref] = set()
    for one in people:
        id = directory(planning).id(one)
        if isinstance(id, Ref):
            found.add(id)
        if manages:
            found |= rights_of(one)
    return frozenset(found)


def rights_of(one: str) -> frozenset[Ref]:
    """Return the Ref made by the calls that grant rights to a person."""
    return frozenset({Ref(Address.of(USER, one), "(rights)")})


def entered(one: str) -> Ref:
    """Return the Ref made by adding a person to new groups; removal from a group depends on it."""
    return Ref(Address.of(USER, one), GRANTED)


def list_grant(operation: str, key: str) -> GrantCheck:
    """Return how additions to a list of people are verified: `operation` reads the ids in the list, under `key`."""

    def visible(get: Get, sent: SentCall) -> frozenset[RemoteId]:
        return ids(an_object(get(operation, path=sent.path), "a group"), key)

    return GrantCheck(SentCall.listed, visible, "{missing} of {granted} are not in the list")


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
