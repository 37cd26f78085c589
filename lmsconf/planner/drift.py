"""A plan of everything, the snapshot that it was made from, and the plan of a base → Drift. A pure function."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.candidates import Candidate, PossibleRename
from lmsconf.model.drift import Cause, Coverage, Drift, Edit, FieldDrift, Finding, Ignore, Ignored, Managed, State
from lmsconf.model.names import exactly, fits
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.values import Action, Change, DesiredResource, FieldChange, Plan
from lmsconf.planner.renames import CLOSE, POSSIBLE

TAKE_OVER: Final = "export --into"
"""The command that writes manifests for what no manifest speaks of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Manifests that are taken to be applied, and what they would change: in that the workspace was changed by hand.

    changes: None where they cannot be planned. lost: the addresses of which that cannot be told.
    """

    name: str
    changes: tuple[Change, ...] | None
    lost: frozenset[str | None] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known beside manifests and workspace.

    applied  the manifests that were applied before, where they are named
    edits    id of a live resource → who changed it last
    broken   errors of what could not be planned
    needs    declared resource → what else must be there for it
    renamed  what the plan takes for renamed by hand → the live resource that it was renamed to
    command  how lmsconf is called for this project and workspace
    """

    applied: Applied | None = None
    edits: Mapping[RemoteId, Edit] = field(default_factory=dict)
    broken: tuple[Problem, ...] = ()
    needs: Mapping[Address, Sequence[Address]] = field(default_factory=dict)
    renamed: Mapping[Address, Candidate] = field(default_factory=dict)
    command: str = "lmsconf"


def make_drift(
    plan: Plan,
    snapshot: Snapshot,
    declared: Sequence[DesiredResource],
    evidence: Evidence,
    *,
    ignores: Sequence[Ignore] = (),
    today: date,
    count_unmanaged: bool = False,
) -> Drift:
    """What differs. `declared` is what the manifests declare for the workspace, also what could not be planned."""
    lost = {problem.address for problem in evidence.broken}
    changes = [change for change in plan.changes if str(change.address) not in lost and not change.is_effect]
    renames = {one.address: one for one in plan.renames}
    doubtful = _doubtful(changes, renames, evidence)
    found = [_finding(change, evidence, renames.get(change.address), doubtful) for change in changes]
    strangers = [one for group in plan.unmanaged for one in group.addresses if str(one) not in lost]
    if count_unmanaged:
        accept = f"{evidence.command} {TAKE_OVER}"
        told = {one.address for finding in found for one in finding.candidates}
        found.extend(
            Finding(address=one, state=State.UNMANAGED, accept=None if one in told else accept) for one in strangers
        )
    holding = [one for one in ignores if one.holds(today)]
    counted, ignored = _sorted_out(found, holding)
    applied = evidence.applied
    idle = () if evidence.broken else _idle(holding, [*(one.address for one in found), *strangers])
    return Drift(
        workspace=plan.workspace,
        url=plan.url,
        people=plan.people,
        created_at=plan.created_at,
        timezone=plan.timezone,
        manifests_digest=plan.manifests_digest,
        manifests_files=plan.manifests_files,
        managed=tuple(sorted(Managed(one.address, one.source) for one in declared)),
        findings=tuple(one for one in counted if one.cause is not Cause.NOT_APPLIED),
        ignored=tuple(ignored),
        coverage=tuple(_coverage(plan, snapshot, declared, lost)),
        unmanaged=plan.unmanaged,
        counts_unmanaged=count_unmanaged,
        problems=(*evidence.broken, *_comparing(plan), *_unplannable(applied), *outlived(ignores, today), *idle),
        base=None if applied is None else applied.name,
        not_applied=tuple(one for one in counted if one.cause is Cause.NOT_APPLIED),
    )


def outlived(ignores: Iterable[Ignore], today: date) -> Iterator[Problem]:
    """Entries under `ignore` whose day has come: what they hid counts again."""
    for one in ignores:
        if not one.holds(today):
            yield Problem(
                code="drift/ignore-expired",
                message=f"ignore: {one.pattern} held until {one.until} and hides nothing any more ({one.reason})",
                severity=Severity.WARNING,
                hint="Take it out of the project file, or give it a later date.",
                source=one.source,
            )


def _comparing(plan: Plan) -> Iterator[Problem]:
    """The problems that are about what is. What would stand in the way of an apply is for the plan to tell."""
    findings = {str(one.address) for one in plan.renames}
    for problem in plan.all_problems:
        is_told = problem.code in (POSSIBLE, CLOSE) and problem.address in findings
        if not is_told and not problem.code.startswith("refusal/"):
            yield problem


def _idle(ignores: Iterable[Ignore], addresses: Sequence[Address]) -> Iterator[Problem]:
    """Entries that nothing fits: the difference is gone, or the pattern is misspelt."""
    names = [str(address) for address in addresses]
    for one in ignores:
        if not any(fits(name, one.pattern) for name in names):
            yield Problem(
                code="drift/ignore-nothing",
                message=f"ignore: {one.pattern} fits nothing that differs ({one.reason})",
                severity=Severity.NOTE,
                hint="If its work is done, take it out of the project file.",
                source=one.source,
            )


def _sorted_out(found: Iterable[Finding], ignores: Sequence[Ignore]) -> tuple[list[Finding], list[Ignored]]:
    """The findings that count and those that an entry hides, each by address."""
    counted: list[Finding] = []
    ignored: list[Ignored] = []
    for finding in sorted(found, key=lambda one: (one.address, one.id or "")):
        name = str(finding.address)
        entry = next((one for one in ignores if fits(name, one.pattern)), None)
        if entry is None:
            counted.append(finding)
        else:
            ignored.append(Ignored(finding=finding, entry=entry))
    return counted, ignored


_STATES: Final = {
    Action.CREATE: State.MISSING,
    Action.UPDATE: State.CHANGED,
    Action.REPLACE: State.CHANGED,
    Action.DELETE: State.UNDECLARED,
}


def _doubtful(
    changes: Sequence[Change], renames: Mapping[Address, PossibleRename], evidence: Evidence
) -> AbstractSet[Address]:
    """What an apply could make a second time, and all that it would make along with that.

    Nothing tells which live resource it is, or whether it is one at all.
    """
    found = {
        change.address
        for change in changes
        if change.address in renames or any(problem.code == CLOSE for problem in change.problems)
    }
    more = found
    while more:
        more = {address for address, needs in evidence.needs.items() if not found.isdisjoint(needs)} - found
        found = found | more
    return found


def _finding(
    change: Change, evidence: Evidence, rename: PossibleRename | None, doubtful: AbstractSet[Address]
) -> Finding:
    state = _STATES[change.action]
    renamed = evidence.renamed.get(change.address)
    candidates = (renamed,) if renamed else (rename.alike or rename.close) if rename else ()
    if renamed or (rename and rename.alike):
        state = State.RENAMED
    before = _before(change, evidence.applied)
    cause = None if before is None else Cause.BY_HAND if before else Cause.NOT_APPLIED
    known = {one.path for each in before or () for one in each.fields}
    # Of what is there on one side only, no keys are told.
    keys = before and all(each.fields for each in before)
    unapplied = tuple(one.path for one in change.fields if keys and one.path not in known)
    owned = state is State.UNDECLARED and change.source is None
    # What goes with its group stays with it, too: there is nothing of its own to take over.
    goes_along = change.goes_with is not None
    pattern = shlex.quote(exactly(str(change.address)))
    return Finding(
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
        edit=None if change.id is None else evidence.edits.get(change.id),
        cause=cause,
        unapplied=unapplied,
        restore=None if change.address in doubtful else _restore(evidence, pattern, doubtful, owned=owned),
        accept=None
        if unapplied or cause is Cause.NOT_APPLIED or (state is State.RENAMED and renamed is None)
        else _accept(evidence.command, pattern, owned=owned, goes_along=goes_along),
    )


def _before(change: Change, applied: Applied | None) -> Sequence[Change] | None:
    """What manifests that were applied before would change in the same resource; None where that is not known."""
    if applied is None or applied.changes is None or str(change.address) in applied.lost:
        return None
    return [one for one in applied.changes if one.address == change.address or _is_of_one_row(one, change)]


def _is_of_one_row(one: Change, other: Change) -> bool:
    """Whether two changes are of the same live resource, by whatever names."""
    return one.id is not None and (one.address.kind, one.id) == (other.address.kind, other.id)


def _unplannable(applied: Applied | None) -> Iterator[Problem]:
    if applied is not None and applied.changes is None:
        yield Problem(
            code="base/not-planned",
            message=f"the manifests of {applied.name} cannot be planned, so all that differs counts as drift",
            severity=Severity.WARNING,
            hint="See what is wrong with them: check them out and run `lmsconf plan`.",
        )


def _restore(evidence: Evidence, pattern: str, doubtful: AbstractSet[Address], *, owned: bool) -> str:
    """The line that makes the workspace as the manifests say. What goes because it is owned goes with everything."""
    if not owned:
        return f"{evidence.command} apply --only {pattern}"
    known = sorted(address for address in doubtful if address in evidence.needs)
    return " ".join([f"{evidence.command} apply", *(f"--except {shlex.quote(exactly(str(one)))}" for one in known)])


def _accept(command: str, pattern: str, *, owned: bool, goes_along: bool) -> str | None:
    """The line that makes the manifests say what is live, where there is one."""
    if goes_along:
        return None
    return f"{command} {TAKE_OVER}" if owned else f"{command} drift --accept {pattern}"


def _turned(change: FieldChange) -> FieldDrift:
    """What a plan would do to a key, said as what is: what it would add is missing, what it would remove is extra."""
    return FieldDrift(
        path=change.path, declared=change.after, live=change.before, missing=change.added, extra=change.removed
    )


def _coverage(
    plan: Plan, snapshot: Snapshot, declared: Sequence[DesiredResource], lost: AbstractSet[str | None]
) -> Iterator[Coverage]:
    """The managed share of each kind that was read and that somebody may want to be managed."""
    alone = {group.kind: group.left_alone for group in plan.unmanaged}
    for kind in _kinds(plan, declared):
        listing = snapshot.of(kind)
        mine = {one.address for one in declared if one.address.kind == kind and str(one.address) not in lost}
        changes = [one for one in plan.changes if one.address.kind == kind and not one.is_effect]
        mine -= {one.address for one in changes if one.action is Action.CREATE}
        going = sum(one.action is Action.DELETE for one in changes)
        yield Coverage(
            kind=kind,
            managed=len(mine) + going,
            live=len(listing.rows),
            left_alone=alone.get(kind, 0),
            incomplete=listing.incomplete,
        )


def _kinds(plan: Plan, declared: Sequence[DesiredResource]) -> list[str]:
    """The kinds that the manifests declare, change or list as unmanaged. Undeclared people are nobody's business."""
    named = [one.address.kind for one in declared]
    return sorted({*named, *(one.address.kind for one in plan.changes), *(one.kind for one in plan.unmanaged)})
