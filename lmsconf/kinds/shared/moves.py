"""Calls that several kinds share: renames, and adding people to lists and removing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmsconf.kinds.shared.names import USER
from lmsconf.kinds.shared.people import People
from lmsconf.kinds.shared.roster import roster
from lmsconf.model.address import Address, Ref
from lmsconf.model.names import normal
from lmsconf.model.snapshot import HasName
from lmsconf.model.values import Step
from lmsconf.planner.context import GRANTED, VACANT, BeforeAfter, Match, MatchResult, PlanContext


@dataclass(slots=True)
class _Detours:
    """The resources that take a temporary name first, one in each cycle of renames."""

    addresses: set[Address] = field(default_factory=set)


def vacancy(address: Address) -> frozenset[Ref]:
    """Return the Ref for that address's name being free: used by the call that takes it."""
    return frozenset({Ref(address, VACANT)})


def vacated(kind: str, row: HasName) -> frozenset[Ref]:
    """Return the Ref for the name of a live resource being free: made by the call that gives it up."""
    return vacancy(Address.of(kind, normal(row.name)))


def temporary(id: str) -> str:
    """Return a temporary name in a cycle of renames; its id identifies the resource if the run is interrupted."""
    return f"lmsconf renames {id}"


def find_detours(planning: PlanContext, identified: MatchResult[Any, Any]) -> None:
    """In each cycle of renames choose the resource that takes a temporary name first: the one with the lowest id."""
    wants = {
        normal(match.row.name): match
        for match in identified.matches
        if match.row is not None and normal(match.row.name) != match.address.name and planning.chosen(match.address)
    }
    detours = planning.state(_Detours).addresses
    done: set[str] = set()
    for start in sorted(wants):
        path: list[str] = []
        at = start
        while at in wants and at not in done and at not in path:
            path.append(at)
            at = wants[at].address.name
        done.update(path)
        if at in path:
            circle = [wants[name] for name in path[path.index(at) :]]
            detours.add(min(circle, key=_row_id).address)


def _row_id(match: Match[Any, Any]) -> str:
    return match.row.id if match.row else ""


def steps_aside(planning: PlanContext, address: Address) -> bool:
    """Return whether the resource takes a temporary name first; requires `find_detours`."""
    return address in planning.state(_Detours).addresses


def rename_steps(
    planning: PlanContext, operation: str, path: Mapping[str, str], match: Match[Any, Any], sides: BeforeAfter
) -> Iterator[Step]:
    """Yield one rename, or two via a temporary name; none if the name is unchanged."""
    row, at = match.row, match.address
    if row is None or sides.before is None or sides.after is None or sides.before["name"] == sides.after["name"]:
        return
    old = vacated(at.kind, row)
    if steps_aside(planning, at):
        body = planning.terms.body(operation, name=temporary(row.id))
        yield Step(operation=operation, path=path, body=body, makes=old)
        old = frozenset()
    body = planning.terms.body(operation, name=at.name)
    yield Step(operation=operation, path=path, body=body, makes=old, uses=vacancy(at))


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
    ids = roster(planning)
    is_membership = adds.endswith("members")
    for some in _batches(coming, int(planning.terms.behaviour("manual-groups.add.batch"))):
        arrived = [entered(one) for one in some if is_membership and one in planning.leaving]
        yield Step(
            operation=adds,
            path=path,
            body=planning.terms.body(adds, userIds=[ids.id(one) for one in some]),
            makes=frozenset({mine, *arrived}),
            uses=awaited(planning, some, manages=not is_membership) | frozenset(me),
            people=tuple(some),
        )
    for one in going:
        yield Step(
            operation=removes,
            path={**path, "userId": ids.id(one)},
            uses=frozenset({mine, *([entered(one)] if is_membership else [])}),
            revokes=True,
            people=(one,),
        )


def awaited(planning: PlanContext, people: Iterable[str], *, manages: bool) -> frozenset[Ref]:
    """Return what a call that names people depends on: their creation and, for managers, the grants of rights."""
    found: set[Ref] = set()
    for one in people:
        id = roster(planning).id(one)
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


def _batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
