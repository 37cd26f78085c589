"""A plan of all manifests, its snapshot, and the plan of a base → Drift. A pure function."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final

from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.drift import (
    DriftCause,
    DriftFinding,
    DriftReport,
    DriftState,
    FieldDrift,
    IgnoredFinding,
    IgnoreRule,
    LastEdit,
    ManagedResource,
    ManagedShare,
)
from lmsconf.model.names import exact_pattern, matches_pattern
from lmsconf.model.possible_renames import PossibleRename, RenameCandidate
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.values import Action, Change, DesiredResource, FieldChange, Plan
from lmsconf.planner.rename_detection import CLOSE, POSSIBLE

TAKE_OVER: Final = "export --into"
"""The command that writes manifests for undeclared live resources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedBase:
    """Base manifests that count as applied, and their planned changes: where there are any, the workspace was edited.

    changes: None if they cannot be planned. lost: addresses whose changes are unknown.
    """

    name: str
    changes: tuple[Change, ...] | None
    lost: frozenset[str | None] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftInputs:
    """Inputs of a drift report besides plan, snapshot and declarations.

    applied  the base manifests, applied before; None without a base
    edits    kind → id of a live resource → its last edit
    broken   errors of resources that could not be planned
    needs    declared resource → its dependencies
    renamed  resource that the plan takes for renamed by hand → the live resource under the new name
    command  the lmsconf command line for this project and workspace
    """

    applied: AppliedBase | None = None
    edits: Mapping[str, Mapping[RemoteId, LastEdit]] = field(default_factory=dict)
    broken: tuple[Problem, ...] = ()
    needs: Mapping[Address, Sequence[Address]] = field(default_factory=dict)
    renamed: Mapping[Address, RenameCandidate] = field(default_factory=dict)
    command: str = "lmsconf"


def make_drift(
    plan: Plan,
    snapshot: Snapshot,
    declared: Sequence[DesiredResource[Any]],
    evidence: DriftInputs,
    *,
    ignores: Sequence[IgnoreRule] = (),
    today: date,
    count_unmanaged: bool = False,
    reads_all: bool = True,
) -> DriftReport:
    """Return the drift report. `declared` holds all declarations for the workspace, also unplannable ones.

    today decides which `ignores` have expired. count_unmanaged: report undeclared resources as findings too.
    reads_all: whether the snapshot holds the whole workspace.
    """
    lost = {problem.address for problem in evidence.broken}
    changes = [change for change in plan.changes if str(change.address) not in lost and not change.is_effect]
    renames = {one.address: one for one in plan.renames}
    doubtful = _doubtful(changes, renames, evidence)
    findings = [_finding(change, evidence, renames.get(change.address), doubtful) for change in changes]
    unmanaged = [one for group in plan.unmanaged for one in group.addresses if str(one) not in lost]
    if count_unmanaged:
        accept = f"{evidence.command} {TAKE_OVER}"
        candidates = {one.address for finding in findings for one in finding.candidates}
        findings.extend(
            DriftFinding(address=one, state=DriftState.UNMANAGED, accept=None if one in candidates else accept)
            for one in unmanaged
        )
    holding = [one for one in ignores if one.is_active(today)]
    counted, ignored = _sorted_out(findings, holding)
    applied = evidence.applied
    idle = () if evidence.broken else _idle(holding, [*(one.address for one in findings), *unmanaged])
    return DriftReport(
        workspace=plan.workspace,
        url=plan.url,
        people=plan.people,
        created_at=plan.created_at,
        timezone=plan.timezone,
        manifests_digest=plan.manifests_digest,
        manifests_files=plan.manifests_files,
        managed=tuple(sorted(ManagedResource(one.address, one.source) for one in declared)),
        findings=tuple(one for one in counted if one.cause is not DriftCause.NOT_APPLIED),
        ignored=tuple(ignored),
        coverage=tuple(_coverage(plan, snapshot, declared, lost)) if reads_all else (),
        unmanaged=plan.unmanaged,
        counts_unmanaged=count_unmanaged,
        reads_all=reads_all,
        problems=(
            *evidence.broken,
            *_comparing(plan),
            *_unplannable(applied),
            *warn_of_expired_ignores(ignores, today),
            *idle,
        ),
        base=None if applied is None else applied.name,
        not_applied=tuple(one for one in counted if one.cause is DriftCause.NOT_APPLIED),
    )


def warn_of_expired_ignores(ignores: Iterable[IgnoreRule], today: date) -> Iterator[Problem]:
    """Yield a warning for each expired entry under `ignore`; the differences that it hid count again."""
    for entry in ignores:
        if not entry.is_active(today):
            yield Problem(
                code="drift/ignore-expired",
                message=f"ignore: {entry.pattern} held until {entry.until} and hides nothing any more ({entry.reason})",
                severity=Severity.WARNING,
                hint="Take it out of the project file, or give it a later date.",
                source=entry.source,
            )


def _comparing(plan: Plan) -> Iterator[Problem]:
    """Yield the plan's problems on the live state: not those that findings show, nor those that only block an apply."""
    renamed = {str(one.address) for one in plan.renames}
    for problem in plan.all_problems:
        is_shown = problem.code in (POSSIBLE, CLOSE) and problem.address in renamed
        if not is_shown and not problem.code.startswith("refusal/"):
            yield problem


def _idle(ignores: Iterable[IgnoreRule], addresses: Sequence[Address]) -> Iterator[Problem]:
    """Yield a note for each entry that matches no difference: it was resolved, or the pattern is misspelt."""
    names = [str(address) for address in addresses]
    for entry in ignores:
        if not any(matches_pattern(name, entry.pattern) for name in names):
            yield Problem(
                code="drift/ignore-nothing",
                message=f"ignore: {entry.pattern} fits nothing that differs ({entry.reason})",
                severity=Severity.NOTE,
                hint="If its work is done, take it out of the project file.",
                source=entry.source,
            )


def _sorted_out(
    findings: Iterable[DriftFinding], ignores: Sequence[IgnoreRule]
) -> tuple[list[DriftFinding], list[IgnoredFinding]]:
    """Return the findings that count and those that an entry ignores, both sorted by address."""
    counted: list[DriftFinding] = []
    ignored: list[IgnoredFinding] = []
    for finding in sorted(findings, key=lambda one: (one.address, one.id or "")):
        name = str(finding.address)
        entry = next((one for one in ignores if matches_pattern(name, one.pattern)), None)
        if entry is None:
            counted.append(finding)
        else:
            ignored.append(IgnoredFinding(finding=finding, entry=entry))
    return counted, ignored


_STATES: Final = {
    Action.CREATE: DriftState.MISSING,
    Action.UPDATE: DriftState.CHANGED,
    Action.REPLACE: DriftState.CHANGED,
    Action.DELETE: DriftState.UNDECLARED,
}


def _doubtful(
    changes: Sequence[Change], renames: Mapping[Address, PossibleRename], evidence: DriftInputs
) -> AbstractSet[Address]:
    """Return the resources that an apply could duplicate, and, transitively, all that depend on them.

    Each may be a live resource under another name; which one, if any, is unknown.
    """
    doubtful = {
        change.address
        for change in changes
        if change.address in renames or any(problem.code == CLOSE for problem in change.problems)
    }
    dependents = doubtful
    while dependents:
        dependents = {address for address, needs in evidence.needs.items() if not doubtful.isdisjoint(needs)} - doubtful
        doubtful = doubtful | dependents
    return doubtful


def _finding(
    change: Change, evidence: DriftInputs, rename: PossibleRename | None, doubtful: AbstractSet[Address]
) -> DriftFinding:
    state = _STATES[change.action]
    renamed = evidence.renamed.get(change.address)
    candidates = (renamed,) if renamed else (rename.alike or rename.close) if rename else ()
    if renamed or (rename and rename.alike):
        state = DriftState.RENAMED
    before = _before(change, evidence.applied)
    cause = None if before is None else DriftCause.BY_HAND if before else DriftCause.NOT_APPLIED
    known = {one.path for each in before or () for one in each.fields}
    # A change without fields (the resource exists on one side only) gives nothing to compare keys with.
    keys = before and all(each.fields for each in before)
    unapplied = tuple(one.path for one in change.fields if keys and one.path not in known)
    owned = state is DriftState.UNDECLARED and change.source is None
    # What is deleted along with its group is kept by keeping the group, so it needs no manifest entry of its own.
    goes_along = change.goes_with is not None
    pattern = shlex.quote(exact_pattern(str(change.address)))
    return DriftFinding(
        address=change.address,
        state=state,
        id=change.id,
        about=change.about,
        source=change.source,
        declared=change.after,
        live=change.before,
        fields=tuple(map(_turned, change.fields)),
        reason=change.reason,
        goes_along=goes_along,
        candidates=candidates,
        edit=None if change.id is None else evidence.edits.get(change.address.kind, {}).get(change.id),
        cause=cause,
        unapplied=unapplied,
        restore=None if change.address in doubtful else _restore(evidence, pattern, doubtful, owned=owned),
        accept=None
        if unapplied or cause is DriftCause.NOT_APPLIED or (state is DriftState.RENAMED and renamed is None)
        else _accept(evidence.command, pattern, owned=owned, goes_along=goes_along),
    )


def _before(change: Change, applied: AppliedBase | None) -> Sequence[Change] | None:
    """Return the changes that the base manifests would make to the same resource; None if unknown."""
    if applied is None or applied.changes is None or str(change.address) in applied.lost:
        return None
    return [one for one in applied.changes if one.address == change.address or _is_same_row(one, change)]


def _is_same_row(change: Change, other: Change) -> bool:
    """Whether two changes concern the same live resource, whatever their names."""
    return change.id is not None and (change.address.kind, change.id) == (other.address.kind, other.id)


def _unplannable(applied: AppliedBase | None) -> Iterator[Problem]:
    if applied is not None and applied.changes is None:
        yield Problem(
            code="base/not-planned",
            message=f"the manifests of {applied.name} cannot be planned, so all that differs counts as drift",
            severity=Severity.WARNING,
            hint="See what is wrong with them: check them out and run `lmsconf plan`.",
        )


def _restore(evidence: DriftInputs, pattern: str, doubtful: AbstractSet[Address], *, owned: bool) -> str:
    """Return the command that restores the declared state.

    Deletions by ownership are not planned under `--only`, so they take an apply of everything but `doubtful`.
    """
    if not owned:
        return f"{evidence.command} apply --only {pattern}"
    known = sorted(address for address in doubtful if address in evidence.needs)
    return " ".join(
        [f"{evidence.command} apply", *(f"--except {shlex.quote(exact_pattern(str(one)))}" for one in known)]
    )


def _accept(command: str, pattern: str, *, owned: bool, goes_along: bool) -> str | None:
    """Return the command that writes the live state into the manifests; None if there is none."""
    if goes_along:
        return None
    return f"{command} {TAKE_OVER}" if owned else f"{command} drift --accept {pattern}"


def _turned(change: FieldChange) -> FieldDrift:
    """Return a planned field change as drift: what the plan would add is missing, what it would remove is extra."""
    return FieldDrift(
        path=change.path, declared=change.after, live=change.before, missing=change.added, extra=change.removed
    )


def _coverage(
    plan: Plan, snapshot: Snapshot, declared: Sequence[DesiredResource[Any]], lost: AbstractSet[str | None]
) -> Iterator[ManagedShare]:
    """Yield the numbers of managed and live resources of each kind."""
    ignored = {group.kind: group.left_alone for group in plan.unmanaged}
    for kind in _kinds(plan, declared):
        listing = snapshot.of(kind)
        managed = {one.address for one in declared if one.address.kind == kind and str(one.address) not in lost}
        changes = [one for one in plan.changes if one.address.kind == kind and not one.is_effect]
        managed -= {one.address for one in changes if one.action is Action.CREATE}
        deleted = sum(one.action is Action.DELETE for one in changes)
        yield ManagedShare(
            kind=kind,
            managed=len(managed) + deleted,
            live=len(listing.rows),
            left_alone=ignored.get(kind, 0),
            incomplete=listing.incomplete,
        )


def _kinds(plan: Plan, declared: Sequence[DesiredResource[Any]]) -> list[str]:
    """Return the kinds that are declared, changed or unmanaged. Undeclared people do not count as unmanaged."""
    named = [one.address.kind for one in declared]
    return sorted({*named, *(one.address.kind for one in plan.changes), *(one.kind for one in plan.unmanaged)})
