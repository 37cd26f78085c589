"""What the guards count in a plan: deletions, removals, changes in place, likely renames, likely refusals.

Shares of people are those of active people: archived ones neither make a list longer nor a share of it larger. What is
taken from them adds to the totals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.plan import Action, Change, GuardCount
from lmsconf.planner.context import BeforeAfter, MatchResult
from lmsconf.planner.kind import Kind


def count_for_guards(
    kinds: Mapping[str, Kind],
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
    return (
        *_deleted(kinds, changes, results),
        *(one for change, sides in changes for one in _removed(change, sides)),
        *_lost(kinds, changes, results),
        *(GuardCount(guard="recreates", of=str(address), taken=1, size=0) for address in likely),
        *(GuardCount(guard="refusals", of=address, taken=1, size=0) for address in risky),
        *counted,
        *_updated(kinds, changes, results),
    )


def _deleted(
    kinds: Mapping[str, Kind],
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
) -> Iterator[GuardCount]:
    """Yield, by kind, the deletions (replacements included) of all live resources; for a relation they are removals."""
    deleted = Counter(change.address.kind for change, _ in changes if change.action in (Action.DELETE, Action.REPLACE))
    for kind, taken in sorted(deleted.items()):
        guard = "removals" if kinds[kind].is_relation else "deletes"
        yield GuardCount(guard=guard, of=f"all {kinds[kind].plural}", taken=taken, size=results[kind].live)


def _updated(
    kinds: Mapping[str, Kind],
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
) -> Iterator[GuardCount]:
    """Yield, by kind, the updates of all live resources."""
    updates = [(change, sides) for change, sides in changes if change.action is Action.UPDATE]
    changed = Counter(change.address.kind for change, _ in updates)
    archived = Counter(change.address.kind for change, sides in updates if sides.is_archived)
    for kind, taken in sorted(changed.items()):
        yield from _measures("updates", f"all {kinds[kind].plural}", taken, archived[kind], results[kind].live)


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


def _lost(
    kinds: Mapping[str, Kind],
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
) -> Iterator[GuardCount]:
    """Yield, by kind and key, how many resources lose a single value, of all live ones."""
    losses = [
        (change.address.kind, one.path, sides.is_archived)
        for change, sides in changes
        for one in change.fields
        if one.path in sides.taken
    ]
    lost = Counter((kind, key) for kind, key, _ in losses)
    archived = Counter((kind, key) for kind, key, is_archived in losses if is_archived)
    for (kind, key), taken in sorted(lost.items()):
        of = f"all {kinds[kind].plural} ({key})"
        yield from _measures("removals", of, taken, archived[kind, key], results[kind].live)


def _measures(guard: str, of: str, taken: int, archived: int, size: int) -> Iterator[GuardCount]:
    """Yield a measure of the share of those who are active, and one of archived people for the total alone."""
    if taken > archived:
        yield GuardCount(guard=guard, of=of, taken=taken - archived, size=size)
    if archived:
        yield GuardCount(guard=guard, of=f"{of}, archived", taken=archived, size=0)
