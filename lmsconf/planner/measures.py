"""What the guards count in a plan: deletions, removals, changes in place, likely renames, likely refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from lmsconf.model.address import Address
from lmsconf.model.values import Action, Call, Change, Measure
from lmsconf.planner.context import BeforeAfter, MatchResult
from lmsconf.planner.kind import Kind


def measure(
    kinds: Mapping[str, Kind],
    changes: Sequence[tuple[Change, BeforeAfter]],
    found: Mapping[str, MatchResult],
    calls: Sequence[Call],
    counted: Sequence[Measure],
    likely: Sequence[Address],
) -> tuple[Measure, ...]:
    """Everything that a guard has an opinion on.

    counted: what the kinds have counted themselves. likely: the resource of each likely rename.
    """
    risky = list(dict.fromkeys(str(call.address) for call in calls if call.may_be_refused))
    return (
        *_deleted(kinds, changes, found),
        *(one for change, sides in changes for one in _removed(change, sides)),
        *_lost(kinds, changes, found),
        *(Measure(guard="recreates", of=str(address), taken=1, size=0) for address in likely),
        *(Measure(guard="refusals", of=address, taken=1, size=0) for address in risky),
        *counted,
        *_updated(kinds, changes, found),
    )


def _deleted(
    kinds: Mapping[str, Kind], changes: Sequence[tuple[Change, BeforeAfter]], found: Mapping[str, MatchResult]
) -> Iterator[Measure]:
    """By kind: what is deleted of what is live. Kinds whose deletion is a removal count there."""
    gone = Counter(change.address.kind for change, _ in changes if change.action in (Action.DELETE, Action.REPLACE))
    for kind, taken in sorted(gone.items()):
        guard = "removals" if kinds[kind].is_relation else "deletes"
        yield Measure(guard=guard, of=f"all {kinds[kind].plural}", taken=taken, size=found[kind].live)


def _updated(
    kinds: Mapping[str, Kind], changes: Sequence[tuple[Change, BeforeAfter]], found: Mapping[str, MatchResult]
) -> Iterator[Measure]:
    """By kind: what is changed in place of what is live."""
    changed = Counter(change.address.kind for change, _ in changes if change.action is Action.UPDATE)
    for kind, taken in sorted(changed.items()):
        yield Measure(guard="updates", of=f"all {kinds[kind].plural}", taken=taken, size=found[kind].live)


def _removed(change: Change, sides: BeforeAfter) -> Iterator[Measure]:
    """What is taken out of the lists of a resource that stays, or leaves with one that goes."""
    if change.action is Action.DELETE:
        for key, size in sides.sizes.items():
            if size and key in ("members", "managers"):
                yield Measure(guard="removals", of=f"{change.address} {key}", taken=size, size=size)
    for one in change.fields:
        if one.removed:
            size = sides.sizes.get(one.path, 0)
            yield Measure(guard="removals", of=f"{change.address} {one.path}", taken=len(one.removed), size=size)


def _lost(
    kinds: Mapping[str, Kind], changes: Sequence[tuple[Change, BeforeAfter]], found: Mapping[str, MatchResult]
) -> Iterator[Measure]:
    """Single values that resources lose, by kind and key: how many do, of all that are live."""
    lost = Counter(
        (change.address.kind, one.path) for change, sides in changes for one in change.fields if one.path in sides.taken
    )
    for (kind, key), taken in sorted(lost.items()):
        yield Measure(guard="removals", of=f"all {kinds[kind].plural} ({key})", taken=taken, size=found[kind].live)
