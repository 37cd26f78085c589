"""A planned change → a finding of drift: its state, its cause, and the commands that restore or accept it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias

from msgspec import Struct, field

from lmsconf.errors import Problem
from lmsconf.model.address import Address, RemoteId, shell_quoted
from lmsconf.model.drift import (
    DriftCause,
    DriftFinding,
    DriftState,
    FieldDrift,
    LastEdit,
)
from lmsconf.model.plan import Action, Change, FieldChange, PossibleRename, RenameCandidate
from lmsconf.planner.rename_detection import CLOSE

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


BaseChanges: TypeAlias = "Callable[[Change], Sequence[Change] | None]"
"""Return the changes that the base manifests would make to the same live resource; None if that is not known."""


def changes_of_base(applied: AppliedBase | None) -> BaseChanges:
    """Index the changes of the base manifests by address and by live resource, whatever its name."""
    if applied is None or applied.changes is None:
        return lambda change: None
    lost = applied.lost
    by_address: defaultdict[Address, list[Change]] = defaultdict(list)
    by_id: defaultdict[tuple[str, RemoteId | None], list[Change]] = defaultdict(list)
    for one in applied.changes:
        by_address[one.address].append(one)
        if one.id is not None:
            by_id[one.address.kind, one.id].append(one)

    def find(change: Change) -> Sequence[Change] | None:
        if str(change.address) in lost:
            return None
        return [*by_address.get(change.address, ()), *by_id.get((change.address.kind, change.id), ())]

    return find


def to_finding(
    change: Change,
    inputs: DriftInputs,
    before: Sequence[Change] | None,
    rename: PossibleRename | None,
    doubtful: AbstractSet[Address],
) -> DriftFinding:
    """Return a planned change as a finding. before: those of the base to the same resource; None: not known."""
    state = _STATES[change.action]
    renamed = inputs.renamed.get(change.address)
    candidates = (renamed,) if renamed else (rename.alike or rename.close) if rename else ()
    if renamed or (rename and rename.alike):
        state = DriftState.RENAMED
    cause = None if before is None else DriftCause.BY_HAND if before else DriftCause.NOT_APPLIED
    known = {field_change.path for each in before or () for field_change in each.fields}
    # A change without fields (the resource exists on one side only) gives nothing to compare keys with.
    keys = before and all(each.fields for each in before)
    unapplied = tuple(field_change.path for field_change in change.fields if keys and field_change.path not in known)
    owned = state is DriftState.UNDECLARED and change.source is None
    # What is deleted along with its group is kept by keeping the group, so it needs no manifest entry of its own.
    goes_along = change.goes_with is not None
    # An entry about another resource says so: there is no entry of its own that could hold the live state.
    implied = change.reason is not None and change.source is not None
    pattern = shell_quoted(change.address)
    return DriftFinding(
        address=change.address,
        state=state,
        id=change.id,
        about=change.about,
        source=change.source,
        declared=change.after,
        live=change.before,
        fields=tuple(map(_to_field_drift, change.fields)),
        reason=change.reason,
        goes_along=goes_along,
        candidates=candidates,
        edit=None if change.id is None else inputs.edits.get(change.address.kind, {}).get(change.id),
        cause=cause,
        unapplied=unapplied,
        restore=None if change.address in doubtful else _restore(inputs, pattern, doubtful, owned=owned),
        accept=None
        if implied or unapplied or cause is DriftCause.NOT_APPLIED or (state is DriftState.RENAMED and renamed is None)
        else _accept(inputs.command, pattern, owned=owned, goes_along=goes_along),
    )


def _restore(inputs: DriftInputs, pattern: str, doubtful: AbstractSet[Address], *, owned: bool) -> str:
    """Return the command that restores the declared state.

    Deletions by ownership are not planned under `--only`, so they take an apply of everything but `doubtful`.
    """
    if not owned:
        return f"{inputs.command} apply --only {pattern}"
    known = sorted(address for address in doubtful if address in inputs.needs)
    return " ".join([f"{inputs.command} apply", *(f"--except {shell_quoted(one)}" for one in known)])


def _accept(command: str, pattern: str, *, owned: bool, goes_along: bool) -> str | None:
    """Return the command that writes the live state into the manifests; None if there is none."""
    if goes_along:
        return None
    return f"{command} {TAKE_OVER}" if owned else f"{command} drift --accept {pattern}"


def _to_field_drift(change: FieldChange) -> FieldDrift:
    """Return a planned field change as drift: what the plan would add is missing, what it would remove is extra."""
    return FieldDrift(
        path=change.path, declared=change.after, live=change.before, missing=change.added, extra=change.removed
    )
