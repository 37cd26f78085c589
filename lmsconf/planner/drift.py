"""A plan of all manifests, its snapshot, and the plan of a base → Drift. A pure function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address, RemoteId, shell_quoted
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.drift import (
    DriftCause,
    DriftFinding,
    DriftReport,
    DriftState,
    IgnoreRule,
    LastEdit,
    ManagedShare,
)
from lmsconf.model.names import grouped, matches_pattern
from lmsconf.model.plan import Action, Change, FieldChange, Plan, PossibleRename, RenameCandidate
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.rename_detection import CLOSE, POSSIBLE


def make_drift(
    plan: Plan,
    snapshot: Snapshot,
    declared: Sequence[DesiredResource[Any]],
    inputs: DriftInputs,
    *,
    ignores: Sequence[IgnoreRule],
    today: date,
    count_unmanaged: bool,
    reads_all: bool,
) -> DriftReport:
    """Return the drift report. `declared` holds all declarations for the workspace, also unplannable ones.

    today decides which `ignores` have expired. count_unmanaged: report undeclared resources as findings too.
    reads_all: whether the snapshot holds the whole workspace.
    """
    lost = {problem.address for problem in inputs.broken}
    unmanaged = [address for group in plan.unmanaged for address in group.addresses if str(address) not in lost]
    findings = _findings(plan, inputs, lost, unmanaged if count_unmanaged else ())
    active = [rule for rule in ignores if rule.is_active(today)]
    matching = [(one, _ignoring(one.address, active)) for one in findings]
    counted = [one for one, rule in matching if rule is None]
    addresses = [*(finding.address for finding in findings), *unmanaged]
    problems = [
        *inputs.broken,
        *_comparing(plan),
        *(
            [unplannable_base(inputs.applied.name, "every difference counts as drift")]
            if inputs.applied is not None and inputs.applied.changes is None
            else []
        ),
        *warn_of_expired_ignores(ignores, today),
        *(() if inputs.broken else _unmatched_ignores(active, addresses)),
    ]
    return DriftReport(
        workspace=plan.workspace,
        url=plan.url,
        people=plan.people,
        created_at=plan.created_at,
        timezone=plan.timezone,
        manifests_digest=plan.manifests_digest,
        manifests_files=plan.manifests_files,
        managed=tuple(sorted(resource.address for resource in declared)),
        findings=tuple(one for one in counted if one.cause is not DriftCause.NOT_APPLIED),
        ignored=tuple(replace(one, ignored_by=rule) for one, rule in matching if rule is not None),
        coverage=tuple(_coverage(plan, snapshot, declared, lost)) if reads_all else (),
        unmanaged=plan.unmanaged,
        counts_unmanaged=count_unmanaged,
        reads_all=reads_all,
        problems=tuple(problems),
        base=None if inputs.applied is None else inputs.applied.name,
        not_applied=tuple(one for one in counted if one.cause is DriftCause.NOT_APPLIED),
    )


def _findings(
    plan: Plan, inputs: DriftInputs, lost: AbstractSet[str | None], unmanaged: Iterable[Address]
) -> list[DriftFinding]:
    """Return the differences, sorted by address, but for `lost` ones. unmanaged: resources that count as such."""
    changes = [one for one in plan.changes if str(one.address) not in lost and not one.is_side_effect]
    renames = {rename.address: rename for rename in plan.renames}
    doubtful = doubtful_addresses(changes, renames, inputs)
    findings = [
        to_finding(change, inputs, before, renames.get(change.address), doubtful)
        for change, before in zip(changes, changes_of_base(changes, inputs.applied), strict=True)
    ]
    candidates = {candidate.address for finding in findings for candidate in finding.candidates}
    undeclared = (
        DriftFinding(
            address=one,
            state=DriftState.UNMANAGED,
            accept=None if one in candidates else f"{inputs.command} {TAKE_OVER}",
        )
        for one in unmanaged
    )
    return sorted([*findings, *undeclared], key=lambda one: (one.address, one.id or ""))


def warn_of_expired_ignores(ignores: Iterable[IgnoreRule], today: date) -> Iterator[Problem]:
    """Yield a warning for each expired entry under `ignore`; the differences that it hid count again."""
    return (
        Problem(
            code="drift/ignore-expired",
            message=f"ignore: {entry.pattern} expired on {entry.until} and is ignored ({entry.reason})",
            severity=Severity.WARNING,
            hint="Remove it from the project file, or set a later date.",
            source=entry.source,
        )
        for entry in ignores
        if not entry.is_active(today)
    )


def _comparing(plan: Plan) -> Iterator[Problem]:
    """Return the plan's problems on the live state: not what findings show, nor what only blocks an apply."""
    shown = {(code, str(rename.address)) for rename in plan.renames for code in (POSSIBLE, CLOSE)}
    return (
        problem
        for problem in plan.all_problems
        if (problem.code, problem.address) not in shown and not problem.code.startswith("refusal/")
    )


def _unmatched_ignores(ignores: Iterable[IgnoreRule], addresses: Sequence[Address]) -> Iterator[Problem]:
    """Yield a note for each entry that matches no difference: it was resolved, or the pattern is misspelt."""
    return (
        Problem(
            code="drift/ignore-nothing",
            message=f"ignore: {entry.pattern} matches no difference ({entry.reason})",
            severity=Severity.NOTE,
            hint="If it is no longer needed, remove it from the project file.",
            source=entry.source,
        )
        for entry in ignores
        if not any(_ignoring(address, [entry]) for address in addresses)
    )


def _ignoring(address: Address, ignores: Iterable[IgnoreRule]) -> IgnoreRule | None:
    """Return the first entry that ignores a difference; None if none does."""
    return next((rule for rule in ignores if matches_pattern(address, rule.pattern)), None)


def unplannable_base(name: str, effect: str) -> Problem:
    """Return the warning that the manifests of a base cannot be planned. effect: what follows from that."""
    return Problem(
        code="base/not-planned",
        message=f"the manifests of {name} cannot be planned, so {effect}",
        severity=Severity.WARNING,
        hint="To see the errors, check them out and run `lmsconf plan`.",
    )


def _coverage(
    plan: Plan, snapshot: Snapshot, declared: Sequence[DesiredResource[Any]], lost: AbstractSet[str | None]
) -> Iterator[ManagedShare]:
    """Yield the numbers of managed and live resources of each kind that is declared, changed or unmanaged.

    Undeclared people do not count as unmanaged.
    """
    ignored = {group.kind: group.left_alone for group in plan.unmanaged}
    named = {one.address.kind for one in declared} | {change.address.kind for change in plan.changes}
    for kind in sorted(named | ignored.keys()):
        listing = snapshot.of(kind)
        changes = [one for one in plan.changes if one.address.kind == kind and not one.is_side_effect]
        created = {change.address for change in changes if change.action is Action.CREATE}
        managed = {one.address for one in declared if one.address.kind == kind and str(one.address) not in lost}
        yield ManagedShare(
            kind=kind,
            managed=len(managed - created) + sum(change.action is Action.DELETE for change in changes),
            live=len(listing.rows),
            left_alone=ignored.get(kind, 0),
            incomplete=listing.incomplete,
        )


TAKE_OVER: Final = "export --into"
"""The command that writes manifests for undeclared live resources."""


class AppliedBase(Struct, frozen=True, kw_only=True):
    """Base manifests that count as applied, and their planned changes: where there are any, the workspace was edited.

    changes: None if they cannot be planned. lost: addresses whose changes are unknown.
    """

    name: str
    changes: tuple[Change, ...] | None
    lost: frozenset[str | None] = frozenset()


class DriftInputs(Struct, frozen=True, kw_only=True):
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


_STATES: Final = {
    Action.CREATE: DriftState.MISSING,
    Action.UPDATE: DriftState.CHANGED,
    Action.REPLACE: DriftState.CHANGED,
    Action.DELETE: DriftState.UNDECLARED,
}


def doubtful_addresses(
    changes: Sequence[Change], renames: Mapping[Address, PossibleRename], inputs: DriftInputs
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
        dependents = {address for address, needs in inputs.needs.items() if not doubtful.isdisjoint(needs)} - doubtful
        doubtful = doubtful | dependents
    return doubtful


def changes_of_base(changes: Sequence[Change], applied: AppliedBase | None) -> list[Sequence[Change] | None]:
    """Return, for each change, those of the base manifests to the same address or live resource, whatever its name.

    None where that is not known.
    """
    if applied is None or applied.changes is None:
        return [None] * len(changes)
    by_address = grouped(applied.changes, lambda one: one.address)
    by_id = grouped((one for one in applied.changes if one.id is not None), lambda one: (one.address.kind, one.id))
    return [
        None
        if str(one.address) in applied.lost
        else [*by_address.get(one.address, ()), *by_id.get((one.address.kind, one.id), ())]
        for one in changes
    ]


def to_finding(
    change: Change,
    inputs: DriftInputs,
    before: Sequence[Change] | None,
    rename: PossibleRename | None,
    doubtful: AbstractSet[Address],
) -> DriftFinding:
    """Return a planned change as a finding. before: those of the base to the same resource; None: not known."""
    renamed, goes_along = inputs.renamed.get(change.address), change.goes_with is not None
    is_renamed = renamed is not None or (rename is not None and bool(rename.alike))
    state = DriftState.RENAMED if is_renamed else _STATES[change.action]
    cause = None if before is None else DriftCause.BY_HAND if before else DriftCause.NOT_APPLIED
    known = {field_change.path for each in before or () for field_change in each.fields}
    # A change without fields (the resource exists on one side only) gives nothing to compare keys with.
    keys = before and all(each.fields for each in before)
    unapplied = tuple(field_change.path for field_change in change.fields if keys and field_change.path not in known)
    owned = state is DriftState.UNDECLARED and change.source is None
    # What is deleted along with its group is kept by keeping the group. An entry about another resource says so: there
    # is no entry of its own that could hold the live state.
    has_no_entry = goes_along or (change.reason is not None and change.source is not None)
    is_pending = cause is DriftCause.NOT_APPLIED or bool(unapplied)
    accept = TAKE_OVER if owned else f"drift --accept {shell_quoted(change.address)}"
    return DriftFinding(
        address=change.address,
        state=state,
        id=change.id,
        about=change.about,
        source=change.source,
        declared=change.after,
        live=change.before,
        # What the plan would add was removed, and the other way round.
        fields=tuple(
            FieldChange(path=one.path, before=one.after, after=one.before, added=one.removed, removed=one.added)
            for one in change.fields
        ),
        reason=change.reason,
        goes_along=goes_along,
        candidates=(renamed,) if renamed else (rename.alike or rename.close) if rename else (),
        edit=None if change.id is None else inputs.edits.get(change.address.kind, {}).get(change.id),
        cause=cause,
        unapplied=unapplied,
        restore=None if change.address in doubtful else _restore(change.address, inputs, doubtful, owned=owned),
        accept=None
        if has_no_entry or is_pending or (state is DriftState.RENAMED and renamed is None)
        else f"{inputs.command} {accept}",
    )


def _restore(address: Address, inputs: DriftInputs, doubtful: AbstractSet[Address], *, owned: bool) -> str:
    """Return the command that restores the declared state."""
    # Deletions by ownership are not planned under `--only`: they take an apply of everything but `doubtful`.
    if not owned:
        return f"{inputs.command} apply --only {shell_quoted(address)}"
    excluded = (f"--except {shell_quoted(one)}" for one in sorted(doubtful & inputs.needs.keys()))
    return " ".join([f"{inputs.command} apply", *excluded])
