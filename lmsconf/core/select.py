"""Which part of the manifests is planned: `--only` with all that it needs, and `--except`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lmsconf.core.address import Address
from lmsconf.core.names import fits
from lmsconf.core.planning import Planner
from lmsconf.core.policy import Policy
from lmsconf.core.values import Declared
from lmsconf.errors import Problem


class Selection:
    """Says of every address whether it is planned. Without `--only` and `--except`, all are."""

    def __init__(self, kinds: Mapping[str, Planner], declared: Iterable[Declared], policy: Policy) -> None:
        self._only, self._excluded = policy.only, policy.excluded
        self._needed: set[Address] = set()
        if self._only:
            self._add_needs(kinds, {one.address: one for one in declared})

    def _add_needs(self, kinds: Mapping[str, Planner], declared: Mapping[Address, Declared]) -> None:
        todo = [one for one in declared if _fits(one, self._only)]
        while todo:
            address = todo.pop()
            if address not in self._needed and address in declared:
                self._needed.add(address)
                todo.extend(kinds[address.kind].leans_on(declared[address]))

    def __call__(self, address: Address) -> bool:
        """Whether it is planned."""
        if self.leaves_out(address):
            return False
        return not self._only or address in self._needed or _fits(address, self._only)

    def leaves_out(self, address: Address) -> bool:
        """Whether `--except` says so."""
        return bool(self._excluded) and _fits(address, self._excluded)

    def problems(self, known: Iterable[Address]) -> Iterable[Problem]:
        """An address that fits nothing declared, absent or live is an error."""
        names = [str(address) for address in known]
        for option, patterns in (("--only", self._only), ("--except", self._excluded)):
            for pattern in patterns:
                if not any(fits(name, pattern) for name in names):
                    yield Problem(
                        code="select/nothing",
                        message=f"{option} {pattern}: nothing declared, absent or live has such an address",
                        hint="An address is group/Sales or 'content_target/GDPR basics -> everyone'; * fits any text.",
                    )


def sought(policy: Policy, known: Iterable[Address], kinds: Iterable[str]) -> frozenset[str]:
    """The kinds in which to look for what the command line names and no manifest does; it may be live all the same."""
    names = [str(address) for address in known] if policy.only or policy.excluded else []
    open_ = [one for one in (*policy.only, *policy.excluded) if not any(fits(name, one) for name in names)]
    return frozenset(kind for kind in kinds for one in open_ if fits(kind, one.partition("/")[0]))


def _fits(address: Address, patterns: Iterable[str]) -> bool:
    name = str(address)
    return any(fits(name, pattern) for pattern in patterns)
