"""Calls that rename resources: names that are free only once another call gave them up, and cycles of renames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Step
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import HasName
from lmsconf.planner.context import VACANT, BeforeAfter, Match, MatchResult, PlanContext


class _TemporaryNames(Struct):
    """The resources that take a temporary name first, one in each cycle of renames."""

    addresses: set[Address] = field(default_factory=set)


def free_name_ref(address: Address) -> frozenset[Ref]:
    """Return the Ref for that address's name being free: used by the call that takes it."""
    return frozenset({Ref(address, VACANT)})


def freed_name_ref(kind: str, row: HasName) -> frozenset[Ref]:
    """Return the Ref for the name of a live resource being free: made by the call that gives it up."""
    return free_name_ref(Address.of(kind, normalize_name(row.name)))


def temporary_name(id: str) -> str:
    """Return a temporary name in a cycle of renames; its id identifies the resource if the run is interrupted."""
    return f"lmsconf renames {id}"


def find_rename_cycles(planning: PlanContext, matched: MatchResult[Any, Any]) -> None:
    """In each cycle of renames choose the resource that takes a temporary name first: the one with the lowest id."""
    wants = {
        normalize_name(match.row.name): match
        for match in matched.matches
        if match.row is not None
        and normalize_name(match.row.name) != match.address.name
        and planning.chosen(match.address)
    }
    temporary_names = planning.state(_TemporaryNames).addresses
    for start in wants:
        path: dict[str, Match[Any, Any]] = {}
        at = start
        while at in wants and at not in path:
            path[at] = wants[at]
            at = wants[at].address.name
        if at == start:
            temporary_names.add(min(path.values(), key=_row_id).address)


def _row_id(match: Match[Any, Any]) -> str:
    return match.row.id if match.row else ""


def uses_temporary_name(planning: PlanContext, address: Address) -> bool:
    """Return whether the resource takes a temporary name first; requires `find_rename_cycles`."""
    return address in planning.state(_TemporaryNames).addresses


def rename_steps(
    planning: PlanContext, operation: str, path: Mapping[str, str], match: Match[Any, Any], sides: BeforeAfter
) -> Iterator[Step]:
    """Yield one rename, or two via a temporary name; none if the name is unchanged."""
    row, at = match.row, match.address
    if row is None or sides.before is None or sides.after is None or sides.before["name"] == sides.after["name"]:
        return
    old = freed_name_ref(at.kind, row)
    if uses_temporary_name(planning, at):
        body = planning.call_templates.body(operation, name=temporary_name(row.id))
        yield Step(operation=operation, path=path, body=body, makes=old)
        old = frozenset()
    body = planning.call_templates.body(operation, name=at.name)
    yield Step(operation=operation, path=path, body=body, makes=old, uses=free_name_ref(at))
