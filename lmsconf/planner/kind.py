"""The protocol Kind, which keeps the planner independent of any one kind, and Entry, which a kind parses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Protocol

from lmsconf.errors import Problem
from lmsconf.model.values import DeleteEntry, DesiredResource, Json, SourceMap
from lmsconf.planner.context import Planner


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One item of a manifest section, valid against its kind's schema, with lists of people read from their files.

    `report` collects the problems that only a kind can detect; parsing continues, so that all are shown together.
    """

    body: Mapping[str, Json]
    places: SourceMap
    timezone: tzinfo | None
    report: Callable[[Problem], None]


class Kind(Planner, Protocol):
    """A kind of resource, with all code specific to it: parsing, checking, and its part in planning (Planner).

    rank: kinds of a lower rank are planned first, because others reference them.
    """

    @property
    def name(self) -> str: ...
    @property
    def section(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def schema(self) -> Mapping[str, Json]: ...
    @property
    def absent_schema(self) -> Mapping[str, Json]: ...

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource]:
        """Yield the resources that one manifest entry declares."""
        ...

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry]:
        """Yield the resources that one entry under `absent` declares to be deleted."""
        ...

    def check(
        self, declared: Sequence[DesiredResource], everything: Mapping[str, Sequence[DesiredResource]]
    ) -> Iterator[Problem]:
        """Yield problems between declarations, found without a snapshot; `everything` maps kind to declarations."""
        ...
