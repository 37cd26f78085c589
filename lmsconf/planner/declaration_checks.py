"""Declarations that a plan refuses: expired entries under `absent`, and resources that `leave_alone` ignores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import matches_patterns, normalize_name
from lmsconf.model.policy import Policy
from lmsconf.planner.context import MatchResult


def refuse_expired_absent(absent: Iterable[DeleteEntry[Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each entry under `absent` after its `until` date."""
    for entry in absent:
        applies = entry.applies_in(policy.workspace)
        if applies and entry.until is not None and policy.today > entry.until:
            yield Problem(
                code="absent/expired",
                message=f"{entry.address}: the entry under `absent` expired on {entry.until}",
                hint="Delete the entry, or give it a later date.",
                source=entry.source,
                address=str(entry.address),
            )


def refuse_left_alone(entries: Iterable[DesiredResource[Any] | DeleteEntry[Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each declaration and entry under `absent` that `leave_alone` in the project file ignores."""
    for entry in entries if policy.leave_alone else ():
        if entry.applies_in(policy.workspace) and matches_patterns(str(entry.address), policy.leave_alone):
            yield _left_alone(entry, entry.address)


def refuse_left_alone_renames(results: Iterable[MatchResult[Any, Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each declared rename of a live resource whose current name `leave_alone` ignores."""
    if not policy.leave_alone:
        return
    for match in (match for result in results for match in result.matches):
        if match.row is not None and normalize_name(match.row.name) != match.address.name:
            now = Address.of(match.address.kind, normalize_name(match.row.name))
            if matches_patterns(str(now), policy.leave_alone) and not matches_patterns(
                str(match.address), policy.leave_alone
            ):
                yield _left_alone(match.declared, now)


def _left_alone(entry: DesiredResource[Any] | DeleteEntry[Any], name: Address) -> Problem:
    said = "under `absent`" if isinstance(entry, DeleteEntry) else "declared"
    return Problem(
        code="identity/left-alone",
        message=f"{entry.address}: it is {said}, but `leave_alone` of the project file matches {name}",
        hint="Remove the entry, or narrow the pattern under `leave_alone`.",
        source=entry.source,
        address=str(entry.address),
    )
