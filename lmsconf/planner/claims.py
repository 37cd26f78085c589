"""Declared identities, and the live resources that they are matched with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import RemoteId
from lmsconf.model.snapshot import HasName

L = TypeVar("L", bound=HasName)


class Claim(Struct, frozen=True, kw_only=True):
    """The declared identity of a resource or a choice.

    pin: the declared id. previously: earlier names. label: how problems name it. find_source: where it is declared.
    """

    name: str
    pin: RemoteId | None
    previously: tuple[str, ...]
    label: str
    find_source: Callable[[], SourceLocation]
    address: str

    @property
    def source(self) -> SourceLocation:
        """Where it is declared: looked up for a problem alone."""
        return self.find_source()


class ClaimMatches(Struct, Generic[L]):
    """The live row of each claim (None: to be created, or broken), unclaimed rows, and problems.

    broken: positions of claims with an error.
    """

    live: list[L | None] = field(default_factory=list)
    unclaimed: list[L] = field(default_factory=list)
    broken: set[int] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
