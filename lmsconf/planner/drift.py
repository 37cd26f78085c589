"""A plan of all manifests, its snapshot, and the plan of a base → Drift. A pure function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from typing import Any

from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.drift import (
    DriftCause,
    DriftFinding,
    DriftReport,
    DriftState,
    IgnoredFinding,
    IgnoreRule,
    ManagedResource,
    ManagedShare,
)
from lmsconf.model.names import matches_pattern
from lmsconf.model.plan import Action, Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.drift_findings import (
    TAKE_OVER,
    AppliedBase,
    DriftInputs,
    changes_of_base,
    doubtful_addresses,
    to_finding,
)
from lmsconf.planner.rename_detection import CLOSE, POSSIBLE


def make_drift(
    plan: Plan,
    snapshot: Snapshot,
    declared: Sequence[DesiredResource[Any]],
    inputs: DriftInputs,
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
    lost = {problem.address for problem in inputs.broken}
    changes = [change for change in plan.changes if str(change.address) not in lost and not change.is_effect]
    renames = {rename.address: rename for rename in plan.renames}
    doubtful = doubtful_addresses(changes, renames, inputs)
    before = changes_of_base(inputs.applied)
    findings = [to_finding(one, inputs, before(one), renames.get(one.address), doubtful) for one in changes]
    unmanaged = [address for group in plan.unmanaged for address in group.addresses if str(address) not in lost]
    if count_unmanaged:
        accept = f"{inputs.command} {TAKE_OVER}"
        candidates = {candidate.address for finding in findings for candidate in finding.candidates}
        findings.extend(
            DriftFinding(address=one, state=DriftState.UNMANAGED, accept=None if one in candidates else accept)
            for one in unmanaged
        )
    active = [rule for rule in ignores if rule.is_active(today)]
    counted, ignored = _split_ignored(findings, active)
    applied = inputs.applied
    unmatched = (
        () if inputs.broken else _unmatched_ignores(active, [*(finding.address for finding in findings), *unmanaged])
    )
    return DriftReport(
        workspace=plan.workspace,
        url=plan.url,
        people=plan.people,
        created_at=plan.created_at,
        timezone=plan.timezone,
        manifests_digest=plan.manifests_digest,
        manifests_files=plan.manifests_files,
        managed=tuple(sorted(ManagedResource(resource.address, resource.source) for resource in declared)),
        findings=tuple(one for one in counted if one.cause is not DriftCause.NOT_APPLIED),
        ignored=tuple(ignored),
        coverage=tuple(_coverage(plan, snapshot, declared, lost)) if reads_all else (),
        unmanaged=plan.unmanaged,
        counts_unmanaged=count_unmanaged,
        reads_all=reads_all,
        problems=(
            *inputs.broken,
            *_comparing(plan),
            *_unplannable(applied),
            *warn_of_expired_ignores(ignores, today),
            *unmatched,
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
                message=f"ignore: {entry.pattern} expired on {entry.until} and is ignored ({entry.reason})",
                severity=Severity.WARNING,
                hint="Remove it from the project file, or set a later date.",
                source=entry.source,
            )


def _comparing(plan: Plan) -> Iterator[Problem]:
    """Yield the plan's problems on the live state: not those that findings show, nor those that only block an apply."""
    renamed = {str(rename.address) for rename in plan.renames}
    for problem in plan.all_problems:
        is_shown = problem.code in (POSSIBLE, CLOSE) and problem.address in renamed
        if not is_shown and not problem.code.startswith("refusal/"):
            yield problem


def _unmatched_ignores(ignores: Iterable[IgnoreRule], addresses: Sequence[Address]) -> Iterator[Problem]:
    """Yield a note for each entry that matches no difference: it was resolved, or the pattern is misspelt."""
    names = [str(address) for address in addresses]
    for entry in ignores:
        if not any(matches_pattern(name, entry.pattern) for name in names):
            yield Problem(
                code="drift/ignore-nothing",
                message=f"ignore: {entry.pattern} matches no difference ({entry.reason})",
                severity=Severity.NOTE,
                hint="If it is no longer needed, remove it from the project file.",
                source=entry.source,
            )


def _split_ignored(
    findings: Iterable[DriftFinding], ignores: Sequence[IgnoreRule]
) -> tuple[list[DriftFinding], list[IgnoredFinding]]:
    """Return the findings that count and those that an entry ignores, both sorted by address."""
    counted: list[DriftFinding] = []
    ignored: list[IgnoredFinding] = []
    for finding in sorted(findings, key=lambda one: (one.address, one.id or "")):
        name = str(finding.address)
        entry = next((rule for rule in ignores if matches_pattern(name, rule.pattern)), None)
        if entry is None:
            counted.append(finding)
        else:
            ignored.append(IgnoredFinding(finding=finding, entry=entry))
    return counted, ignored


def _unplannable(applied: AppliedBase | None) -> Iterator[Problem]:
    if applied is not None and applied.changes is None:
        yield Problem(
            code="base/not-planned",
            message=f"the manifests of {applied.name} cannot be planned, so every difference counts as drift",
            severity=Severity.WARNING,
            hint="To see the errors, check them out and run `lmsconf plan`.",
        )


def _coverage(
    plan: Plan, snapshot: Snapshot, declared: Sequence[DesiredResource[Any]], lost: AbstractSet[str | None]
) -> Iterator[ManagedShare]:
    """Yield the numbers of managed and live resources of each kind."""
    ignored = {group.kind: group.left_alone for group in plan.unmanaged}
    for kind in _kinds(plan, declared):
        listing = snapshot.of(kind)
        managed = {one.address for one in declared if one.address.kind == kind and str(one.address) not in lost}
        changes = [change for change in plan.changes if change.address.kind == kind and not change.is_effect]
        managed -= {change.address for change in changes if change.action is Action.CREATE}
        deleted = sum(change.action is Action.DELETE for change in changes)
        yield ManagedShare(
            kind=kind,
            managed=len(managed) + deleted,
            live=len(listing.rows),
            left_alone=ignored.get(kind, 0),
            incomplete=listing.incomplete,
        )


def _kinds(plan: Plan, declared: Sequence[DesiredResource[Any]]) -> list[str]:
    """Return the kinds that are declared, changed or unmanaged. Undeclared people do not count as unmanaged."""
    named = [resource.address.kind for resource in declared]
    return sorted({*named, *(change.address.kind for change in plan.changes), *(one.kind for one in plan.unmanaged)})
