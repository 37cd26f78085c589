"""Snapshot → manifests whose plan on the same snapshot is empty."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import LmsconfError, Problem, Severity
from lmsconf.export.manifest_files import (
    TeamRule,
    entries_of,
    live_entries,
    order_kinds,
    render_files,
    split_by_team,
    teams_of,
    unexportable_line,
)
from lmsconf.export.verify_empty_plan import EmptyPlanCheck, deletes_undeclared
from lmsconf.kinds.exported_entries import unread_value_notes
from lmsconf.kinds.kind_functions import match_all, named_context
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.manifest_entry import ExportedEntry, LiveNames
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.names import matches_patterns
from lmsconf.model.plan import Plan
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.plan import make_plan

_A_PART = "A partial export could be mistaken for a complete one. Try again, or select other kinds with --kind."
_UNMANAGED = "It stays as it is, unmanaged."
_MOST_PROBLEMS = 20
"""How many problems of one sort are reported individually."""


class ExportResult(Struct, frozen=True, kw_only=True):
    """Manifests of a live workspace.

    files: section → text, below a folder for each team. counts: kind → number of entries. problems: what could not be
    exported. left_alone: number of rows that the project ignores. declared: number of rows that existing manifests
    declare.
    """

    files: Mapping[str, str]
    counts: Mapping[str, int]
    problems: tuple[Problem, ...]
    left_alone: int
    declared: int


def export_snapshot(
    snapshot: Snapshot,
    policy: Policy,
    api_spec: ApiSpec,
    *,
    only_kinds: Collection[str] | None = None,
    existing_manifests: Manifests | None = None,
    by: TeamRule | None = None,
) -> ExportResult:
    """Export the rows of some kinds that existing manifests do not declare; of the usual kinds unless `only` is given.

    Raises LmsconfError for a snapshot in which such a kind is incomplete, and ProblemsFound if the existing manifests
    cannot be planned.
    """
    ordered = order_kinds()
    names = [kind.name for kind in ordered if not kind.is_person] if only_kinds is None else only_kinds
    for name in names:
        if (why := snapshot.of(name).incomplete) is not None:
            raise LmsconfError(f"what kind {name} holds was not read completely: {why}", hint=_A_PART)
    wanted = [kind for kind in ordered if kind.name in names]
    policy = replace(policy, only=(), excluded=(), additive=False)
    existing_manifests = existing_manifests or Manifests()

    def planned(manifests: Manifests) -> Plan:
        return make_plan(manifests, snapshot, policy, api_spec, created_at=snapshot.taken_at, offline=True)

    planned(existing_manifests)  # reports problems of the existing manifests alone
    live = LiveNames(named_context(snapshot, policy, api_spec), policy)
    declared = find_declared_rows(existing_manifests, snapshot, policy, api_spec)
    check = EmptyPlanCheck(existing_manifests, policy.timezone, planned)
    rows = [row for kind in wanted for row in entries_of(kind, live)]
    new = [row for row in rows if row.id not in declared.ids.get(row.address.kind, ())]
    managed = [row for row in new if not matches_patterns(str(row.address), policy.leave_alone)]
    check.skipped.extend(row for row in managed if row.reason is not None)
    limited = [_limited(row, declared, policy, check) for row in managed if row.reason is None]
    entries, plan = check.keep_unchanged(entry for entry in limited if entry is not None)
    of_kind = {kind.name: [entry for entry in entries if entry.address.kind == kind.name] for kind in wanted}
    return ExportResult(
        files=_files(entries, check.skipped, live, by),
        counts={name: len(exported) for name, exported in of_kind.items()},
        problems=(
            *_first(
                _warning("export/left-out", f"left out: {unexportable_line(row)}", row.address, _UNMANAGED)
                for row in check.skipped
            ),
            *_first(
                _warning("export/in-part", f"{entry.address}: {note}", entry.address, None)
                for entry in entries
                for note in entry.notes
            ),
            *unread_value_notes(of_kind.get(USER, ()), snapshot),
            *_first(_loss(change.address) for change in plan.changes if deletes_undeclared(change)),
        ),
        left_alone=len(new) - len(managed),
        declared=len(rows) - len(new),
    )


def _files(
    entries: Sequence[ExportedEntry],
    skipped: Sequence[ExportedEntry],
    live: LiveNames,
    by: TeamRule | None,
) -> Mapping[str, str]:
    """Return path → text: a file for each section, in a folder for each team. Rows left out have no team."""
    workspace = live.snapshot.workspace
    if by is None:
        return render_files(entries, skipped, workspace)
    teams = teams_of(by, live_entries(live))
    return {
        f"{folder}/{section}".lstrip("/"): text
        for folder, part in split_by_team(entries, teams).items()
        for section, text in render_files(part, () if folder else skipped, workspace).items()
    }


def _limited(
    entry: ExportedEntry, declared: DeclaredRows, policy: Policy, check: EmptyPlanCheck
) -> ExportedEntry | None:
    """Limit the entry to this workspace if others declare its address; None if this one does, reported as left out."""
    if entry.address in declared.this_workspace:
        check.skipped.append(
            ExportedEntry(
                address=entry.address,
                id=entry.id,
                reason="the manifests have an entry of that name, with another meaning",
            )
        )
        return None
    if entry.address not in declared.other_workspaces:
        return entry
    limits: Json = [policy.workspace]
    return replace(entry, body={**entry.body, "only_in": limits})


def _first(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the first _MOST_PROBLEMS problems, and the number of the others."""
    every = list(problems)
    yield from every[:_MOST_PROBLEMS]
    if len(every) > _MOST_PROBLEMS:
        more = f"and {len(every) - _MOST_PROBLEMS:,} more like the last; the files list them"
        yield replace(every[_MOST_PROBLEMS], message=more, hint=None, address=None)


def _loss(address: Address) -> Problem:
    """Warn about a resource that is owned and in no manifest: the next plan would delete it."""
    message = f"{address}: the project owns it and no manifest declares it, so a plan would delete it"
    # A shell pattern that matches the address and has only printable characters.
    pattern = "".join(char if char.isprintable() and char not in '*?["\\' else "?" for char in str(address))
    return _warning(
        "export/owned",
        message,
        address,
        f'Export its kind too, or add it to `leave_alone:` in the project file: "{pattern}"',
    )


def _warning(code: str, message: str, address: Address, hint: str | None) -> Problem:
    return Problem(code=code, message=message, severity=Severity.WARNING, address=str(address), hint=hint)


class DeclaredRows(Struct, frozen=True):
    """What existing manifests declare or delete.

    ids: of live rows by kind. this_workspace, other_workspaces: the addresses for this one, and those only for others.
    """

    ids: Mapping[str, frozenset[str]]
    this_workspace: frozenset[Address]
    other_workspaces: frozenset[Address]


def find_declared_rows(
    existing: Manifests,
    snapshot: Snapshot,
    policy: Policy,
    api_spec: ApiSpec,
) -> DeclaredRows:
    """Return the live rows that manifests declare or delete; rows that are deleted together with those included."""
    # Without ownership: rows that are owned but not declared are to be exported.
    planning = PlanContext(snapshot, replace(policy, ownership={}), api_spec, lambda _: True)
    here = existing.in_workspace(policy.workspace)
    ids: dict[str, frozenset[str]] = {}
    for name, result in match_all(planning, here).items():
        matched = [match.row.id for match in result.matches if match.row is not None]
        deleted = [one.row.id for one in result.deletions if one.absent is not None or one.with_ is not None]
        ids[name] = frozenset((*matched, *deleted))
    everywhere, this_workspace = (
        frozenset(entry.address for entry in (*of.declared, *of.absent)) for of in (existing, here)
    )
    return DeclaredRows(ids, this_workspace, everywhere - this_workspace)
