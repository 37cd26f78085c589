"""Checks across all declarations: declared twice, both declared and absent, or with names that look alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.names import look
from lmsconf.model.values import DeleteEntry, DesiredResource
from lmsconf.planner.kind import AnyKind

_Key = TypeVar("_Key", bound=Hashable)


def problems(
    declared: Sequence[DesiredResource[Any]], absent: Sequence[DeleteEntry[Any]], kinds: Mapping[str, AnyKind]
) -> Iterator[Problem]:
    """Yield every problem between declarations that can be found without the workspace, kinds' own checks included."""
    yield from _twice(declared)
    yield from _both(declared, absent)
    yield from _alike(declared, kinds)
    by_kind: dict[str, list[DesiredResource[Any]]] = {name: [] for name in kinds}
    for one in declared:
        by_kind[one.address.kind].append(one)
    for name, kind in kinds.items():
        yield from kind.check(by_kind[name], by_kind)


def _twice(declared: Sequence[DesiredResource[Any]]) -> Iterator[Problem]:
    seen: dict[Address, list[DesiredResource[Any]]] = {}
    for one in declared:
        before = seen.setdefault(one.address, [])
        first = next((other for other in before if _meet(one, other)), None)
        if first is not None:
            yield Problem(
                code="manifest/declared-twice",
                message=f"{one.address}: declared twice",
                hint=f"See {first.source}. Keep one of the two, or limit each to other workspaces with `only_in`.",
                source=one.source,
                address=str(one.address),
            )
        before.append(one)


def _both(declared: Sequence[DesiredResource[Any]], absent: Sequence[DeleteEntry[Any]]) -> Iterator[Problem]:
    wanted = _by(declared, lambda one: one.address)
    for gone in absent:
        for one in wanted.get(gone.address, ()):
            if _meet(one, gone):
                yield Problem(
                    code="manifest/declared-and-absent",
                    message=f"{gone.address}: both declared and absent",
                    hint=f"It is declared at {one.source}. Keep one of the two.",
                    source=gone.source,
                    address=str(gone.address),
                )


def _alike(declared: Sequence[DesiredResource[Any]], kinds: Mapping[str, AnyKind]) -> Iterator[Problem]:
    """Report names that look the same to a reader, unless either resource has an `id:`.

    Relations are exempt, since they have no name of their own: two contents may differ by case alone.
    """
    named = (one for one in declared if not one.pins and not kinds[one.address.kind].is_relation)
    for group in _by(named, lambda one: (one.address.kind, look(one.address.text))).values():
        for number, one in enumerate(group):
            other = next((o for o in group[:number] if o.address != one.address and _meet(one, o)), None)
            if other is not None:
                yield Problem(
                    code="name/look-alike",
                    message=f"{one.address}: looks like {other.address}",
                    hint=f"See {other.source}. Write one of the two names in both places, or pin one with `id:`.",
                    source=one.source,
                    address=str(one.address),
                )


def _meet(one: DesiredResource[Any], other: DesiredResource[Any] | DeleteEntry[Any]) -> bool:
    """Whether there is a workspace that both apply to."""
    return one.only_in is None or other.only_in is None or not one.only_in.isdisjoint(other.only_in)


def _by(
    declared: Iterable[DesiredResource[Any]], key: Callable[[DesiredResource[Any]], _Key]
) -> dict[_Key, list[DesiredResource[Any]]]:
    groups: dict[_Key, list[DesiredResource[Any]]] = defaultdict(list)
    for one in declared:
        groups[key(one)].append(one)
    return groups
