"""Which part of the manifests is planned: `--only` with its dependencies, `--except`, and `--additive`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.names import matches_pattern
from lmsconf.model.policy import Policy
from lmsconf.planner.context import BeforeAfter
from lmsconf.planner.diff import KeyedNames
from lmsconf.planner.kind import AnyKind


class Selection:
    """A predicate: whether an address is planned. Without `--only` and `--except`, all are."""

    def __init__(self, kinds: Mapping[str, AnyKind], declared: Iterable[DesiredResource[Any]], policy: Policy) -> None:
        self._only, self._excluded = policy.only, policy.excluded
        self._examples = " or ".join(shlex.quote(kind.example) for kind in kinds.values() if kind.example)
        self._needed: set[Address] = set()
        by_address = {one.address: one for one in declared}
        self._left_out = _meant(by_address, self._excluded)
        if self._only:
            self._add_needs(kinds, by_address)

    def _add_needs(self, kinds: Mapping[str, AnyKind], declared: Mapping[Address, DesiredResource[Any]]) -> None:
        todo = list(_meant(declared, self._only))
        while todo:
            address = todo.pop()
            if address not in self._needed and address in declared:
                self._needed.add(address)
                todo.extend(kinds[address.kind].dependencies(declared[address]))

    def __call__(self, address: Address) -> bool:
        """Whether the address is planned."""
        if self.excludes(address):
            return False
        return not self._only or address in self._needed or _fits(address, self._only)

    def excludes(self, address: Address) -> bool:
        """Whether `--except` excludes the address."""
        return bool(self._excluded) and (address in self._left_out or _fits(address, self._excluded))

    def problems(self, known: Iterable[Address]) -> Iterable[Problem]:
        """Yield an error for each pattern that matches no address in `known`: declared, absent or live."""
        names = [str(address) for address in known] if self._only or self._excluded else []
        for option, patterns in (("--only", self._only), ("--except", self._excluded)):
            for pattern in patterns:
                if not any(matches_pattern(name, pattern) for name in names):
                    yield Problem(
                        code="select/nothing",
                        message=f"{option} {pattern}: no resource matches",
                        hint=f"An address is {self._examples}; * is a wildcard.",
                    )


def kinds_of_unmatched_patterns(policy: Policy, known: Iterable[Address], kinds: Iterable[str]) -> frozenset[str]:
    """Return the kinds to read for patterns that match no manifest entry: they may match a live resource."""
    names = [str(address) for address in known] if policy.only or policy.excluded else []
    open_ = [
        pattern
        for pattern in (*policy.only, *policy.excluded)
        if not any(matches_pattern(name, pattern) for name in names)
    ]
    return frozenset(kind for kind in kinds for pattern in open_ if matches_pattern(kind, pattern.partition("/")[0]))


def _meant(declared: Mapping[Address, DesiredResource[Any]], patterns: Iterable[str]) -> frozenset[Address]:
    """Return the addresses that match a pattern, or else those with a matching earlier name, which may be live."""
    addresses: set[Address] = set()
    for pattern in patterns:
        current = {address for address in declared if _fits(address, [pattern])}
        addresses |= current or {
            at for at, one in declared.items() if any(_fits(was, [pattern]) for was in _earlier_addresses(one))
        }
    return frozenset(addresses)


def _earlier_addresses(declaration: DesiredResource[Any]) -> Iterator[Address]:
    return (Address.of(declaration.address.kind, name) for name in declaration.previously)


def _fits(address: Address, patterns: Iterable[str]) -> bool:
    name = str(address)
    return any(matches_pattern(name, pattern) for pattern in patterns)


def additions_only(sides: BeforeAfter) -> BeforeAfter:
    """Return the same state with an `after` that only adds to lists of people and choices, for `--additive`."""
    before, after = sides.before or {}, sides.after or {}
    return replace(sides, after={key: _added(before[key], value) for key, value in after.items()})


def _added(before: object, after: object) -> object:
    if isinstance(before, KeyedNames) and isinstance(after, KeyedNames):
        new = {key: name for key, name in after.names.items() if key not in before.names}
        return KeyedNames({**before.names, **new})
    joined = getattr(before, "joined", None)
    return joined(after) if callable(joined) else before
