"""The values of a fleet: the result of one command in each of many workspaces, and the changes that they share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from lmsconf.errors import ExitCode, Problem
from lmsconf.model.effects import Basis
from lmsconf.model.names import grouped
from lmsconf.model.plan import Change
from lmsconf.model.problem_codes import Blocker

STOPPED: Final = "fleet/stopped"
LOST: Final = "fleet/lost"
INTERRUPTIONS: Final = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)
MOST_SHARDS: Final = 9999
"""The most parts into which a fleet can be divided."""


class FleetAction(StrEnum):
    """What is done in each workspace."""

    VALIDATE = "validate"
    PLAN = "plan"
    DRIFT = "drift"
    TEST = "test"
    APPLY = "apply"


class FleetEntry(Struct, frozen=True, kw_only=True):
    """The result in one workspace.

    exit: the exit code of the command in that workspace. digest: of its plan. summary: what the command counts, such as
    `create` and `calls` of a plan. people: how many people gain or lose content, None where it is not known.
    basis: what these numbers rest on. guards: the total of each guard of a plan, None where it is not known.
    relaxed: the settings of a plan that are weaker than the default, in words. assumed_keys: the dialect keys that its
    calls rest on and that are not known; assumed_calls: how many calls do.
    blocked: what would stop, or has stopped, the apply. problems: the errors. file: the document with the whole result,
    relative to the index.
    """

    workspace: str
    url: str
    labels: Mapping[str, str]
    exit: ExitCode
    digest: str | None = None
    summary: Mapping[str, int] = field(default_factory=dict)
    people: Mapping[str, int | None] | None = None
    basis: Basis | None = None
    guards: Mapping[str, int | None] = field(default_factory=dict)
    relaxed: tuple[str, ...] = ()
    assumed_keys: tuple[str, ...] = ()
    assumed_calls: int = 0
    blocked: tuple[Blocker, ...] = ()
    problems: tuple[Problem, ...] = ()
    file: str | None = None

    @property
    def failed(self) -> bool:
        """Whether the command did not do what it was to do; differences alone are no failure."""
        return self.exit not in (ExitCode.OK, ExitCode.CHANGES)

    @property
    def was_not_attempted(self) -> bool:
        """Whether an apply stopped before this workspace, because of others."""
        return any(problem.code == STOPPED for problem in self.problems)

    @property
    def is_lost(self) -> bool:
        """Whether the process that worked on this workspace ended without a result."""
        return any(problem.code == LOST for problem in self.problems)

    @property
    def changes(self) -> int:
        """The number of resources that differ, or were changed."""
        return sum(self.summary.get(key, 0) for key in ("create", "update", "replace", "delete", "differences"))


class FleetShard(Struct, frozen=True, kw_only=True):
    """One of several equal parts of a fleet. selection: a digest of the names of the workspaces of all parts."""

    number: int
    of: int
    selection: str

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class SharedChanges(Struct, frozen=True, kw_only=True):
    """Changes that the plans of the same workspaces have, and no others.

    one_each: instead, each workspace has one of the changes, in the same order, and they are equal but for their names.
    """

    changes: tuple[Change, ...]
    workspaces: tuple[str, ...]
    one_each: bool = False


class FleetIndex(Struct, frozen=True, kw_only=True, rename={"entries": "workspaces"}):
    """The results of one command over a fleet, ordered by workspace. shard: None for the whole fleet.

    shared: the changes of its plans by the workspaces that share them, the most common first; not in the file.
    """

    action: FleetAction
    created_at: str
    entries: tuple[FleetEntry, ...]
    shard: FleetShard | None = None
    shared: tuple[SharedChanges, ...] = ()

    @property
    def failed(self) -> tuple[FleetEntry, ...]:
        """The workspaces in which the command failed."""
        return tuple(entry for entry in self.entries if entry.failed)

    @property
    def exit(self) -> ExitCode:
        """The exit code of the whole: of those of the workspaces, the one with the highest precedence."""
        return ExitCode.worst([entry.exit for entry in self.entries])


def group_failures(entries: Iterable[FleetEntry]) -> list[list[FleetEntry]]:
    """Group the failures that are the same but for names and urls of workspaces; what only follows from others last."""
    alike = grouped((entry for entry in entries if entry.failed), _failure)
    return sorted(alike.values(), key=lambda same: (same[0].was_not_attempted, -len(same)))


def _failure(entry: FleetEntry) -> tuple[ExitCode, tuple[str, ...]]:
    """Return what failed in a workspace, without what names it."""
    place = entry.url.partition(":")[2].lstrip("/")  # urlsplit raises for some texts
    names_of_one = entry.url, place, place.partition("/")[0], entry.workspace
    some = "|".join(re.escape(text) for text in names_of_one if text)
    own = re.compile(rf"(?<![A-Za-z0-9])(?:{some})(?![A-Za-z0-9])")
    return entry.exit, tuple(own.sub("", problem.message) for problem in entry.problems)


def group_blocked(entries: Iterable[FleetEntry]) -> list[list[FleetEntry]]:
    """Group the workspaces in which the same stops an apply; what stops most of them first."""
    stopped = (entry for entry in entries if entry.blocked and not entry.failed)
    return sorted(grouped(stopped, lambda entry: tuple(map(str, entry.blocked))).values(), key=len, reverse=True)
