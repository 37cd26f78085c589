"""What differs between manifests and workspace, seen from the manifests: the values of a drift report.

    Ignore      an entry of the project file that says which differences do not count, and why
    FieldDrift  one key: what the manifests say of it and what the workspace has
    Finding     one resource that is not as declared, with where, who, when, and two ways out
    Coverage    how much of one kind the manifests speak of
    Drift       all of it

A plan says what will be done; this says what is. So nothing here is before or after: it is declared, or it is live.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from lmsconf.errors import ExitCode, Problem, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.candidates import Candidate
from lmsconf.model.values import Json, Unmanaged


class State(StrEnum):
    """In what a resource is not as declared.

    changed        it is live, and not as the manifests say
    missing        it is declared, and not live
    renamed        it is declared, not live, and what no manifest speaks of is the same under another name
    undeclared     it is live, and the manifests want it gone: it stands under `absent`, or is owned and not declared
    unmanaged      it is live, and no manifest speaks of it; found only where such things count
    """

    CHANGED = "changed"
    MISSING = "missing"
    RENAMED = "renamed"
    UNDECLARED = "undeclared"
    UNMANAGED = "unmanaged"


class Cause(StrEnum):
    """Who made a difference, where manifests that were applied before are at hand to tell.

    by_hand      the workspace is not as those say either: somebody changed it
    not_applied  the workspace is as those say: only the manifests have changed since
    """

    BY_HAND = "changed by hand"
    NOT_APPLIED = "not applied yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignore:
    """Differences that do not count: those of addresses that fit the shell pattern, before the day `until`."""

    pattern: str
    reason: str
    until: date | None
    source: SourceLocation

    def holds(self, today: date) -> bool:
        """Whether it still says what does not count."""
        return self.until is None or today < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldDrift:
    """One key that differs. A single value is declared and live; of a list without order some is missing or extra.

    missing: what the manifests list and the workspace lacks. extra: what the workspace has beyond that.
    """

    path: str
    declared: Json = None
    live: Json = None
    missing: tuple[Json, ...] = ()
    extra: tuple[Json, ...] = ()


class Edit(NamedTuple):
    """Who changed something last, and when, as far as the service says."""

    by: str | None
    at: str | None


class Managed(NamedTuple):
    """A resource that the manifests declare for this workspace, and where."""

    address: Address
    source: SourceLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One resource that is not as declared. `declared` and `live` are in manifest form; None on the side it lacks.

    reason      why it is wanted gone, where no manifest says so by itself
    goes_along  whether that is because something else is to go: it stays when that does
    candidates  what it may be under another name: one, or several where content does not tell which; of what is
                missing, what has a close name or mostly the same content
    edit        who changed it last; None where the service does not say
    cause       who made the difference; None where no base was given, or it does not tell
    unapplied   the keys in which only the manifests have changed since the base
    restore     the line for the shell that makes the workspace as the manifests say; None where there is none
    accept      the line that makes the manifests say what the workspace has
    """

    address: Address
    state: State
    id: RemoteId | None = None
    about: Mapping[str, Json] | None = None
    source: SourceLocation | None = None
    declared: Json = None
    live: Json = None
    fields: tuple[FieldDrift, ...] = ()
    reason: str | None = None
    goes_along: bool = False
    candidates: tuple[Candidate, ...] = ()
    edit: Edit | None = None
    cause: Cause | None = None
    unapplied: tuple[str, ...] = ()
    restore: str | None = None
    accept: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A finding that does not count, and the entry that says so."""

    finding: Finding
    entry: Ignore


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """How many of the live resources of a kind the manifests speak of. `incomplete`: why `live` may be too few."""

    kind: str
    managed: int
    live: int
    left_alone: int = 0
    incomplete: str | None = None

    @property
    def percent(self) -> float | None:
        """The managed share, to a tenth; None where nothing is live. Only all of them are 100 %."""
        if not self.live:
            return None
        share = round(100 * self.managed / self.live, 1)
        return share if self.managed == self.live else min(share, 99.9)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What differs between manifests and workspace. Equal inputs give equal reports.

    people         how many the workspace has, None when it did not say
    managed        all that the manifests declare for this workspace, by address
    findings       what counts, by address
    ignored        what would, but for the project file
    base           the manifests that are taken to be applied, None where none were named
    not_applied    what differs from the manifests at hand only, and does not count
    unmanaged      what no manifest speaks of; `counts_unmanaged`: each of these is a finding, too
    problems       an error says that something could not be compared; it is in none of the lists above
    """

    workspace: str
    url: str
    people: int | None
    created_at: str
    timezone: str | None
    manifests_digest: str
    manifests_files: tuple[str, ...]
    managed: tuple[Managed, ...]
    findings: tuple[Finding, ...]
    ignored: tuple[Ignored, ...]
    coverage: tuple[Coverage, ...]
    unmanaged: tuple[Unmanaged, ...]
    counts_unmanaged: bool
    problems: tuple[Problem, ...]
    base: str | None = None
    not_applied: tuple[Finding, ...] = ()

    def count(self, state: State) -> int:
        """How many findings are in that state."""
        return sum(finding.state is state for finding in self.findings)

    @property
    def exit(self) -> ExitCode:
        """What the report comes to: an error where something could not be compared, else whether there is drift."""
        codes = [ExitCode.CHANGES] if self.findings else []
        if any(problem.is_error for problem in self.problems):
            codes.append(ExitCode.ERROR)
        return ExitCode.worst(codes)
