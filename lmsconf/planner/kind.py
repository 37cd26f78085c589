"""The two protocols that keep the core free of kinds and of HTTP: Kind and Api."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Protocol

from lmsconf.errors import Problem
from lmsconf.model.values import DeleteEntry, DesiredResource, Json, SourceMap
from lmsconf.planner.context import Planner


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of a manifest section, checked against its kind's schema, with lists of people read from their files.

    `report` takes what only a kind can find wrong; parsing goes on, so that all problems are told together.
    """

    body: Mapping[str, Json]
    places: SourceMap
    timezone: tzinfo | None
    report: Callable[[Problem], None]


class Kind(Planner, Protocol):
    """A kind of resource: all that is known of it stands in one module.

    rank: kinds of a lower rank are planned first, because others name them.
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

    def parse(self, entry: Entry) -> Iterator[DesiredResource]:
        """The declarations of one manifest entry."""
        ...

    def parse_absent(self, entry: Entry) -> Iterator[DeleteEntry]:
        """What one entry under `absent` wants gone."""
        ...

    def check(
        self, declared: Sequence[DesiredResource], everything: Mapping[str, Sequence[DesiredResource]]
    ) -> Iterator[Problem]:
        """What can be wrong between declarations, without the workspace; `everything` maps kind to declarations."""
        ...
