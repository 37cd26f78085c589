"""The values of a drift report: the differences between manifests and workspace.

    IgnoreRule    an entry of the project file that excludes differences, with its reason
    DriftFinding  one resource that is not as declared: where, who, when, and how to restore or accept it
    ManagedShare  the managed share of one kind
    DriftReport   the whole report

A plan changes what is live into what is declared; a finding says how what is declared has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from lmsconf.errors import ExitCode, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import FromManifests
from lmsconf.model.plan import FieldChange, RenameCandidate, UnmanagedResources


class DriftState(StrEnum):
    """How a resource differs from the manifests.

    changed        live, and not as declared
    missing        declared, and not live
    renamed        declared, not live, and an undeclared live resource is the same under another name
    undeclared     live, and to be deleted: it is listed under `absent`, is owned and not declared, or belongs to such
    unmanaged      live, and not declared; reported only if unmanaged resources count
    """

    CHANGED = "changed"
    MISSING = "missing"
    RENAMED = "renamed"
    UNDECLARED = "undeclared"
    UNMANAGED = "unmanaged"


class DriftCause(StrEnum):
    """The cause of a difference, found by comparing with the base, manifests that were applied before.

    by_hand      the workspace differs from the base, too: it was changed outside lmsconf
    not_applied  the workspace matches the base: only the manifests have changed since
    """

    BY_HAND = "changed by hand"
    NOT_APPLIED = "not applied yet"


class IgnoreRule(Struct, frozen=True, kw_only=True, rename={"pattern": "address"}):
    """Excludes the differences of addresses that match a shell pattern, before the day `until`; None: always."""

    pattern: str
    reason: str
    until: date | None
    source: SourceLocation

    def is_active(self, today: date) -> bool:
        """Whether the entry has not expired."""
        return self.until is None or today < self.until


class LastEdit(NamedTuple):
    """The last editor and time of edit, None where the service does not report them."""

    by: str | None
    at: str | None


class DriftFinding(Struct, frozen=True, kw_only=True):
    """One resource that is not as declared. `declared` and `live` are in manifest form, None if it is not there.

    fields      the keys that differ: before as declared, after as live; removed: what is not live, added: not declared
    reason      why it is to be deleted without an entry of its own under `absent`
    goes_along  whether it is to be deleted only with another resource; it stays if that one stays
    candidates  renamed: the live resource that it may be, or several that have the same content; missing: live
                resources with a similar name or content
    edit        the last edit; None if the service does not report it
    cause       the cause of the difference; None if there is no base, or it is inconclusive
    unapplied   the keys in which only the manifests have changed since the base
    restore     the shell command that makes the workspace match the manifests; None if there is none
    accept      the shell command that makes the manifests match the workspace; None if there is none
    ignored_by  the entry that excludes it, so that it does not count; None if none does
    """

    address: Address
    state: DriftState
    cause: DriftCause | None = None
    unapplied: tuple[str, ...] = ()
    id: RemoteId | None = None
    about: Mapping[str, Json] | None = None
    source: SourceLocation | None = None
    declared: Json = None
    live: Json = None
    fields: tuple[FieldChange, ...] = ()
    reason: str | None = None
    goes_along: bool = False
    candidates: tuple[RenameCandidate, ...] = ()
    edit: LastEdit | None = None
    restore: str | None = None
    accept: str | None = None
    ignored_by: IgnoreRule | None = None


class ManagedShare(Struct, frozen=True, kw_only=True):
    """How many live resources of a kind are declared or to be deleted. incomplete: why `live` may be too low."""

    kind: str
    managed: int
    live: int
    left_alone: int = 0
    incomplete: str | None = None

    @property
    def percent(self) -> float | None:
        """The managed share in percent, to one decimal; None if nothing is live. Below 100 unless all are managed."""
        if not self.live:
            return None
        share = round(100 * self.managed / self.live, 1)
        return share if self.managed == self.live else min(share, 99.9)


class DriftReport(FromManifests, frozen=True, kw_only=True):
    """The differences between manifests and workspace. Equal inputs give equal reports.

    managed        the resources declared for this workspace, by address
    findings       the findings that count, by address
    ignored        the findings that an `ignore` entry of the project file excludes
    base           those taken as applied, None if none were given
    not_applied    differences that only the manifests have caused since the base; they do not count
    unmanaged      live resources that are not declared; counts_unmanaged: each of these is a finding, too
    reads_all      whether the whole workspace was read, not only what the manifests are compared with; without it,
                   there is no coverage, and `unmanaged` holds only what was read on the way
    problems       an error means that a resource could not be compared: it is in no list of findings
    """

    managed: tuple[Address, ...]
    findings: tuple[DriftFinding, ...]
    ignored: tuple[DriftFinding, ...]
    coverage: tuple[ManagedShare, ...]
    unmanaged: tuple[UnmanagedResources, ...]
    counts_unmanaged: bool
    not_applied: tuple[DriftFinding, ...] = ()
    reads_all: bool = True

    def count(self, state: DriftState) -> int:
        """Count the findings in a state."""
        return sum(finding.state is state for finding in self.findings)

    @property
    def exit(self) -> ExitCode:
        """The exit code: ERROR if something could not be compared, else CHANGES if there is drift, else OK."""
        if any(problem.is_error for problem in self.problems):
            return ExitCode.ERROR
        return ExitCode.CHANGES if self.findings else ExitCode.OK
