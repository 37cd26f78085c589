"""Lints of manual groups: without an active manager, and with the members of another one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lmsconf.errors import Problem
from lmsconf.kinds.manual_group.types import FEWEST_MEMBERS, GroupRow, ManualGroupSpec
from lmsconf.kinds.shared.kind_names import GROUP
from lmsconf.kinds.user.manager_lints import lint_managers
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.lints import lint_problem

if TYPE_CHECKING:
    from lmsconf.planner.lints import LintContext


def lint_groups(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared groups."""
    managers = _live_managers(context)
    by_members: dict[frozenset[str], DesiredResource[ManualGroupSpec]] = {}
    for declared in context.of(GROUP):
        yield from lint_managers(context, declared, managers.get(declared.address))
        members = declared.spec.members
        if members is None or not members.whole or len(members.include) < FEWEST_MEMBERS:
            continue
        first = by_members.setdefault(members.include, declared)
        if first is not declared:
            yield lint_problem(
                "lint/duplicate-audience",
                f"it has the same members as {first.address}",
                source=declared.places.at("members"),
                address=declared.address,
                remedy=f"See {first.source}. Keep one of the two, and assign to it.",
            )


def _live_managers(context: LintContext) -> dict[Address, frozenset[RemoteId] | None]:
    """Return the managers of the live groups that are declared, None where they were not read; new ones have none."""
    if context.plan is None:
        return {}
    rows: list[tuple[Address, GroupRow | None]] = [
        (match.address, match.row) for match in context.plan.results[GROUP].matches
    ]
    return {address: frozenset() if row is None else row.managers for address, row in rows}
