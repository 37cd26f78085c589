"""Which part of the manifests is planned: `--only` with its dependencies, `--except`, and `--additive`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds.assignment.types import assignment_address
from lmsconf.kinds.parsing import dependencies
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD
from lmsconf.kinds.shared.plan_context import BeforeAfter
from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import KeyedNames
from lmsconf.model.names import matches_pattern
from lmsconf.model.policy import Policy
from lmsconf.planner.address_patterns import ResolvedPattern, resolve_patterns, sought_kinds, unresolved_problem


class Selection:
    """A predicate: whether an address is planned. Without `--only` and `--except`, all are.

    only, excluded: the patterns that the arguments were resolved to.
    """

    def __init__(
        self,
        declared: Sequence[DesiredResource[Any]],
        policy: Policy,
        *,
        absent: Iterable[DeleteEntry[Any]] = (),
        live: Iterable[Address] = (),
    ) -> None:
        """Resolve the arguments of a policy among what is declared, to be deleted, or live, as far as that is known."""
        self._needed: set[Address] = set()
        self._known: list[Address] = []
        self._patterns: dict[str, tuple[ResolvedPattern, ...]] = {}
        if policy.only or policy.excluded:
            earlier = (address for resource in declared for address in _earlier_addresses(resource))
            replaced = (address for resource in declared for address in _replaced(resource))
            own = (*(resource.address for resource in declared), *(entry.address for entry in absent), *replaced)
            self._known = list(dict.fromkeys((*own, *earlier, *live)))
            given = {"--only": policy.only, "--except": policy.excluded}
            self._patterns = {name: resolve_patterns(texts, self._known) for name, texts in given.items()}
        self.only, self.excluded = self._resolved("--only"), self._resolved("--except")
        by_address = {resource.address: resource for resource in declared}
        self._left_out = _meant(by_address, self.excluded)
        if self.only:
            self._add_needs(by_address)

    def _resolved(self, option: str) -> tuple[str, ...]:
        return tuple(pattern.pattern for pattern in self._patterns.get(option, ()))

    def _add_needs(self, declared: Mapping[Address, DesiredResource[Any]]) -> None:
        todo = list(_meant(declared, self.only))
        for address, one in declared.items():
            if any(_fits(old, self.only) for old in _replaced(one)):
                todo.append(address)
        while todo:
            address = todo.pop()
            if address not in self._needed and address in declared:
                self._needed.add(address)
                self._needed.update(_replaced(declared[address]))
                todo.extend(dependencies(declared[address]))

    def __call__(self, address: Address) -> bool:
        """Whether the address is planned."""
        if self.excluded and self.excludes(address):
            return False
        return not self.only or address in self._needed or _fits(address, self.only)

    def excludes(self, address: Address) -> bool:
        """Whether `--except` excludes the address."""
        return bool(self.excluded) and (address in self._left_out or _fits(address, self.excluded))

    def sought_kinds(self) -> frozenset[str]:
        """Return the kinds to read for arguments that match no manifest entry: they may mean a live resource."""
        return sought_kinds([pattern for patterns in self._patterns.values() for pattern in patterns])

    def problems(self) -> Iterator[Problem]:
        """Yield an error for each argument that matches nothing, or that may mean several resources."""
        for option, patterns in self._patterns.items():
            for pattern in patterns:
                if not pattern.matches:
                    yield unresolved_problem(option, pattern, self._known)


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


def _replaced(declared: DesiredResource[Any]) -> Sequence[Address]:
    """Return the live resources that a declaration takes the place of: a plan of it changes them, too."""
    spec, kind = declared.spec, declared.address.kind
    if kind == CONTENT_TARGET:
        return [assignment_address(one.content, spec.audience) for one in spec.replaces]
    return [Address.of(kind, spec.migrate.source)] if kind == CUSTOM_FIELD and spec.migrate is not None else ()
