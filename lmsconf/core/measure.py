"""What the guards count in a plan: deletions, removals, changes in place, likely renames, likely refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from lmsconf.core.kind import Kind
from lmsconf.core.names import quoted
from lmsconf.core.planning import Identified, Sides
from lmsconf.core.values import Action, Call, Change, Json, Measure
from lmsconf.errors import Problem, Severity


@dataclass(frozen=True, slots=True)
class Measured:
    """The measures of a plan, and the problems that explain them."""

    measures: tuple[Measure, ...]
    problems: tuple[Problem, ...]


def measure(
    kinds: Mapping[str, Kind],
    changes: Sequence[tuple[Change, Sides]],
    found: Mapping[str, Identified],
    calls: Sequence[Call],
    counted: Sequence[Measure],
) -> Measured:
    """Everything that a guard has an opinion on. counted: what the kinds have counted themselves."""
    renames = [*_like_resources(kinds, changes), *_like_choices(changes)]
    risky = list(dict.fromkeys(str(call.address) for call in calls if call.may_be_refused))
    measures = [
        *_deleted(kinds, changes, found),
        *(one for change, sides in changes for one in _removed(change, sides)),
        *_lost(kinds, changes, found),
        *(Measure(guard="recreates", of=problem.address or "", taken=1, size=0) for problem in renames),
        *(Measure(guard="refusals", of=address, taken=1, size=0) for address in risky),
        *counted,
        *_updated(kinds, changes, found),
    ]
    return Measured(tuple(measures), tuple(renames))


def _deleted(
    kinds: Mapping[str, Kind], changes: Sequence[tuple[Change, Sides]], found: Mapping[str, Identified]
) -> Iterator[Measure]:
    """By kind: what is deleted of what is live. Kinds whose deletion is a removal count there."""
    gone = Counter(change.address.kind for change, _ in changes if change.action in (Action.DELETE, Action.REPLACE))
    for kind, taken in sorted(gone.items()):
        guard = "removals" if kinds[kind].is_relation else "deletes"
        yield Measure(guard=guard, of=f"all {kinds[kind].plural}", taken=taken, size=found[kind].live)


def _updated(
    kinds: Mapping[str, Kind], changes: Sequence[tuple[Change, Sides]], found: Mapping[str, Identified]
) -> Iterator[Measure]:
    """By kind: what is changed in place of what is live."""
    changed = Counter(change.address.kind for change, _ in changes if change.action is Action.UPDATE)
    for kind, taken in sorted(changed.items()):
        yield Measure(guard="updates", of=f"all {kinds[kind].plural}", taken=taken, size=found[kind].live)


def _removed(change: Change, sides: Sides) -> Iterator[Measure]:
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
    kinds: Mapping[str, Kind], changes: Sequence[tuple[Change, Sides]], found: Mapping[str, Identified]
) -> Iterator[Measure]:
    """Single values that resources lose, by kind and key: how many do, of all that are live."""
    lost = Counter(
        (change.address.kind, one.path) for change, sides in changes for one in change.fields if one.path in sides.taken
    )
    for (kind, key), taken in sorted(lost.items()):
        yield Measure(guard="removals", of=f"all {kinds[kind].plural} ({key})", taken=taken, size=found[kind].live)


def _like_resources(kinds: Mapping[str, Kind], changes: Sequence[tuple[Change, Sides]]) -> Iterator[Problem]:
    """A deletion beside a creation of like content, each counted once."""
    # By hash, and then one by one: likeness is no relation to build groups by, where a side leaves something unsaid.
    gone: dict[tuple[str, int], list[tuple[Hashable, Change]]] = {}
    for change, sides in changes:
        if change.action is Action.DELETE and sides.before is not None:
            like = kinds[change.address.kind].likeness(sides.before)
            if like is not None:
                gone.setdefault((change.address.kind, hash(like)), []).append((like, change))
    for change, sides in changes:
        if change.action is Action.CREATE and sides.after is not None:
            like = kinds[change.address.kind].likeness(sides.after)
            if like is None:
                continue
            pairs = gone.get((change.address.kind, hash(like)), [])
            found = next((position for position, (other, _) in enumerate(pairs) if other == like), None)
            if found is not None:
                yield _possible_rename(change, pairs.pop(found)[1].address.name, change.address.name)


def _like_choices(changes: Sequence[tuple[Change, Sides]]) -> Iterator[Problem]:
    """A choice that goes while another comes takes its answers along; the likest names are paired."""
    for change, _ in changes:
        for one in change.fields:
            if one.path == "choices" and one.added and one.removed:
                new = list(one.added)
                for old in one.removed[: len(new)]:
                    best = _likest(str(old), new)
                    new.remove(best)
                    yield _possible_rename(change, str(old), str(best), choice=True)


def _likest(old: str, names: Sequence[Json]) -> Json:
    """The name that looks most like the old one."""
    return max(names, key=lambda name: SequenceMatcher(None, old, str(name)).ratio())


def _possible_rename(change: Change, old: str, new: Json, *, choice: bool = False) -> Problem:
    noun, more = ("choice ", "") if choice else ("", " with like content")
    what = f'{noun}"{old}" goes and {noun}"{new}" comes{more}'
    earlier = f"previously: [{quoted(old)}]"
    line = f"- {{name: {quoted(str(new))}, {earlier}}}" if choice else earlier
    return Problem(
        code="guard/possible-rename",
        severity=Severity.WARNING,
        message=f"{change.address}: {what}; if that is a rename, the old one's people and answers would be lost",
        hint=f"To rename it, write {line}. To delete and create, allow `recreates`.",
        source=change.source,
        address=str(change.address),
    )
