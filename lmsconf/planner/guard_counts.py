"""What the guards count in a plan: deletions, removals, changes in place, likely renames, likely refusals.

Shares of people are those of active people: archived ones neither make a list longer nor a share of it larger. What is
taken from them adds to the totals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.plan_context import BeforeAfter, MatchResult
from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.plan import Action, Change, GuardCount

_Taken: TypeAlias = tuple[str, str, str, bool]
"""The kind of what loses something, its key in brackets, the guard that counts it, and whether it is archived."""


def count_for_guards(
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
    calls: Sequence[Call],
    counted: Sequence[GuardCount],
    likely: Sequence[Address],
) -> tuple[GuardCount, ...]:
    """Return everything that the guards count in a plan.

    results: match result by kind. counted: measures that the kinds took. likely: the resource of each likely rename.
    """
    risky = list(dict.fromkeys(str(call.address) for call in calls if call.may_be_refused))
    updated = [
        (change.address.kind, "", "updates", sides.is_archived)
        for change, sides in changes
        if change.action is Action.UPDATE
    ]
    deleted = [
        (change.address.kind, "", "removals" if KINDS[change.address.kind].is_relation else "deletes", False)
        for change, _ in changes
        if change.action in (Action.DELETE, Action.REPLACE)
    ]
    lost = [
        (change.address.kind, f" ({one.path})", "removals", sides.is_archived)
        for change, sides in changes
        for one in change.fields
        if one.path in sides.taken
    ]
    return (
        *_of_all(deleted, results),
        *(one for change, sides in changes for one in _removed(change, sides)),
        *_of_all(lost, results),
        *(GuardCount(guard="recreates", of=str(address), taken=1, size=0) for address in likely),
        *(GuardCount(guard="refusals", of=address, taken=1, size=0) for address in risky),
        *counted,
        *_of_all(updated, results),
    )


def _of_all(taken: Sequence[_Taken], results: Mapping[str, MatchResult[Any, Any]]) -> Iterator[GuardCount]:
    """Yield, by kind, key and guard, how many resources lose something, of all live ones."""
    everything = Counter((kind, key, guard) for kind, key, guard, _ in taken)
    archived = Counter((kind, key, guard) for kind, key, guard, is_archived in taken if is_archived)
    for (kind, key, guard), number in sorted(everything.items()):
        of = f"all {KINDS[kind].plural}{key}"
        yield from _measures(guard, of, number, archived[kind, key, guard], results[kind].live)


def _removed(change: Change, sides: BeforeAfter) -> Iterator[GuardCount]:
    """Yield the items that a change removes from lists; a deletion removes all of each list."""
    if change.action is Action.DELETE:
        for key, size in sides.sizes.items():
            archived = len(sides.archived.get(key, ()))
            yield from _measures("removals", f"{change.address} {key}", size + archived, archived, size)
    for field in change.fields:
        if field.removed:
            left = sides.archived.get(field.path)
            archived = sum(item in left for item in field.removed) if left else 0
            size = sides.sizes.get(field.path, 0)
            yield from _measures("removals", f"{change.address} {field.path}", len(field.removed), archived, size)


def _measures(guard: str, of: str, taken: int, archived: int, size: int) -> Iterator[GuardCount]:
    """Yield a measure of the share of those who are active, and one of archived people for the total alone."""
    if taken > archived:
        yield GuardCount(guard=guard, of=of, taken=taken - archived, size=size)
    if archived:
        yield GuardCount(guard=guard, of=f"{of}, archived", taken=archived, size=0)
