"""What the guards count in a plan: deletions, removals, changes in place, likely renames, likely refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.plan import Action, Change, GuardCount
from lmsconf.planner.context import BeforeAfter, MatchResult
from lmsconf.planner.kind import AnyKind


def count_for_guards(
    kinds: Mapping[str, AnyKind],
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
    kinds: Mapping[str, AnyKind],
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
) -> Iterator[GuardCount]:
    """Yield, by kind, the deletions (replacements included) of all live resources; for a relation they are removals."""
    deleted = Counter(change.address.kind for change, _ in changes if change.action in (Action.DELETE, Action.REPLACE))
    for kind, taken in sorted(deleted.items()):
        guard = "removals" if kinds[kind].is_relation else "deletes"
        yield GuardCount(guard=guard, of=f"all {kinds[kind].plural}", taken=taken, size=results[kind].live)


def _updated(
    kinds: Mapping[str, AnyKind],
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
) -> Iterator[GuardCount]:
    """Yield, by kind, the updates of all live resources."""
    changed = Counter(change.address.kind for change, _ in changes if change.action is Action.UPDATE)
    for kind, taken in sorted(changed.items()):
        yield GuardCount(guard="updates", of=f"all {kinds[kind].plural}", taken=taken, size=results[kind].live)


def _removed(change: Change, sides: BeforeAfter) -> Iterator[GuardCount]:
    """Yield the items that a change removes from lists; a deletion removes all of each list."""
    if change.action is Action.DELETE:
        for key, size in sides.sizes.items():
            if size:
                yield GuardCount(guard="removals", of=f"{change.address} {key}", taken=size, size=size)
    for field in change.fields:
        if field.removed:
            size = sides.sizes.get(field.path, 0)
            yield GuardCount(guard="removals", of=f"{change.address} {field.path}", taken=len(field.removed), size=size)


def _lost(
    kinds: Mapping[str, AnyKind],
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
) -> Iterator[GuardCount]:
    """Yield, by kind and key, how many resources lose a single value, of all live ones."""
    lost = Counter(
        (change.address.kind, one.path) for change, sides in changes for one in change.fields if one.path in sides.taken
    )
    for (kind, key), taken in sorted(lost.items()):
        yield GuardCount(guard="removals", of=f"all {kinds[kind].plural} ({key})", taken=taken, size=results[kind].live)
