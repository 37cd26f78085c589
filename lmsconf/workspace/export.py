"""Snapshot → manifests whose plan on the same snapshot is empty.

The entries are planned on the snapshot that they come from. Whatever would change something, or cannot be planned, is
left out until the plan is empty. So an export declares only what the workspace has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import LmsconfError, Problem, ProblemsFound, Severity, SourceLocation
from lmsconf.kinds.export import ExportedEntry, content_id_of_target, unread_value_notes
from lmsconf.kinds.kind_functions import named_context
from lmsconf.kinds.kind_table import KINDS, parse
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, USER, required_keys
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.manifest.nodes import EscapedText
from lmsconf.manifest.problems import find_conflicts
from lmsconf.manifest.schema_check import declared_section
from lmsconf.model.address import Address
from lmsconf.model.control_characters import is_representable
from lmsconf.model.declarations import DesiredResource, Manifests
from lmsconf.model.guards import Policy
from lmsconf.model.names import matches_patterns
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.plan import plan_without_effects
from lmsconf.planner.planned_resources import OWNED
from lmsconf.project.config_file import order_kinds
from lmsconf.support.strict_json import map_texts
from lmsconf.workspace.export_files import (
    TeamRule,
    entries_of,
    render_files,
    split_by_team,
    teams_of,
    unexportable_line,
)
from lmsconf.workspace.plan_with_base import declared_rows

_OURS: Final = "\0export"
_WHOLE: Final = ""
"""Key of a fault that concerns a whole entry."""


RejectedKey: TypeAlias = "tuple[int, str, str]"
"""One key of an entry that must be left out: the index of the entry, the key, and why."""


class _Spot(Struct, frozen=True):
    """SourceMap of an exported entry: locations have its index as line, and the key in the file name."""

    number: int

    def at(self, *path: str | int) -> SourceLocation:
        return SourceLocation(f"{_OURS}{path[0] if path else _WHOLE}", self.number)

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self.at(*path)


def keep_unchanged(
    entries: Iterable[ExportedEntry], plan: Callable[[Manifests], Plan], existing: Manifests, timezone: tzinfo | None
) -> tuple[list[ExportedEntry], list[ExportedEntry], Plan]:
    """Return the entries that change nothing beside the existing manifests, those left out for it, and the plan.

    plan: plans manifests on the snapshot of the export.
    """
    left, skipped = list(entries), list[ExportedEntry]()
    while True:
        faults = list(_unrepresentable(left))
        if not faults:
            try:
                made = plan(replace(existing, declared=(*existing.declared, *_parsed(left, existing, timezone))))
                faults = [*_changed(made), *_owned(made, left)]
                if not faults:
                    return left, skipped, made
            except ProblemsFound as error:
                faults = list(_blamed(error.problems, left))
                if not faults:
                    raise
        left = _without(left, faults, skipped)


def _unrepresentable(entries: Sequence[ExportedEntry]) -> Iterator[RejectedKey]:
    """Yield the keys whose value no manifest can contain, because of its characters or its schema."""
    for number, entry in enumerate(entries):
        unrepresentable = [key for key, value in entry.body.items() if not is_representable(value)]
        yield from ((number, key, "it contains characters that a manifest must not contain") for key in unrepresentable)
        if not unrepresentable:
            section = declared_section(KINDS[entry.address.kind])
            for finding in section.shape.validate(map_texts(entry.body, EscapedText, keys=True)):
                yield (number, str(finding.path[0]) if finding.path else _WHOLE, "it has another shape")


def _parsed(
    entries: Sequence[ExportedEntry], existing: Manifests, timezone: tzinfo | None
) -> list[DesiredResource[Any]]:
    """Return what the entries declare. Raises ProblemsFound for errors that they cause."""
    declared: list[DesiredResource[Any]] = []
    problems: list[Problem] = []
    for number, entry in enumerate(entries):
        own = ManifestEntry(body=entry.body, places=_Spot(number), timezone=timezone, report=problems.append)
        declared.extend(parse(entry.address.kind, own))
    problems.extend(find_conflicts([*existing.declared, *declared], existing.absent))
    if any(_blamed(problems, entries)):
        raise ProblemsFound(problems)
    return declared


def _owned(plan: Plan, entries: Sequence[ExportedEntry]) -> Iterator[RejectedKey]:
    """Return the entries that, declared, make the plan delete owned live rows that cannot be declared."""
    contents = {
        content_id_of_target(change.id)
        for change in plan.changes
        if change.address.kind == CONTENT_TARGET and change.id is not None and deletes_undeclared(change)
    }
    why = "of the same content, an assignment that cannot be declared would be deleted"
    return (
        (number, _WHOLE, why)
        for number, entry in enumerate(entries)
        if entry.address.kind == CONTENT_TARGET and content_id_of_target(entry.id) in contents
    )


def _without(
    entries: Sequence[ExportedEntry], faults: Iterable[RejectedKey], skipped: list[ExportedEntry]
) -> list[ExportedEntry]:
    """Return the entries without their faulty keys; an entry with nothing left is moved to `skipped`."""
    by_number: defaultdict[int, dict[str, str]] = defaultdict(dict)
    for number, key, why in faults:
        by_number[number].setdefault(key, why)
    left = []
    for number, entry in enumerate(entries):
        keys, kind = by_number.get(number, {}), KINDS[entry.address.kind]
        # An entry that has a pin or is of some workspaces cannot do without.
        needed = required_keys(kind) | {"id", "only_in", _WHOLE}
        if keys and (kind.name == CONTENT_TARGET or keys.keys() & needed or keys.keys() - entry.body.keys()):
            skipped.append(ExportedEntry(address=entry.address, id=entry.id, reason=next(iter(keys.values()))))
        else:
            left.append(
                replace(
                    entry,
                    body={key: value for key, value in entry.body.items() if key not in keys},
                    notes=(*entry.notes, *(f"{key} left out: {why}" for key, why in keys.items())),
                )
            )
    return left


def _blamed(problems: Iterable[Problem], entries: Sequence[ExportedEntry]) -> Iterator[RejectedKey]:
    """Yield the errors that concern the entries, each with the key."""
    numbers = {str(entry.address): number for number, entry in enumerate(entries)}
    for problem in (problem for problem in problems if problem.is_error):
        where, address = problem.source, problem.address or ""
        why = problem.message.removeprefix(f"{address}: ")
        if where is not None and where.file.startswith(_OURS):
            yield (where.line, where.file.removeprefix(_OURS), why)
        elif address in numbers:
            yield (numbers[address], _WHOLE, why)


def _changed(plan: Plan) -> Iterator[RejectedKey]:
    """Yield the keys that the plan would change, though the entries declare the live state."""
    ours = ((one.fields, one.source) for one in plan.changes if one.source and one.source.file.startswith(_OURS))
    for fields, where in ours:
        keys = {field.path.partition(".")[0] for field in fields} or {_WHOLE}
        yield from ((where.line, key, "a manifest would change it") for key in sorted(keys))


def deletes_undeclared(change: Change) -> bool:
    """Whether a resource is deleted only because the project owns it and no manifest declares it."""
    return change.action is Action.DELETE and change.reason == OWNED


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
    usual = [kind.name for kind in KINDS.values() if not kind.is_person]
    wanted = [kind for kind in order_kinds() if kind.name in (usual if only_kinds is None else only_kinds)]
    for kind in wanted:
        if (why := snapshot.of(kind.name).incomplete) is not None:
            raise LmsconfError(
                f"what kind {kind.name} holds was not read completely: {why}",
                hint="A partial export could be mistaken for a complete one. "
                "Try again, or select other kinds with --kind.",
            )
    policy = replace(policy, only=(), excluded=(), additive=False)
    existing_manifests = existing_manifests or Manifests()

    def planned(manifests: Manifests) -> Plan:
        return plan_without_effects(
            manifests, snapshot, policy, api_spec, created_at=snapshot.taken_at, from_snapshot_file=True
        ).plan

    planned(existing_manifests)  # reports problems of the existing manifests alone
    planning = named_context(snapshot, policy, api_spec)
    here = existing_manifests.in_workspace(policy.workspace)
    # Without ownership: rows that are owned but not declared are to be exported.
    known = {row for row, _ in declared_rows(here, replace(policy, ownership={}), snapshot, api_spec)}
    rows = [row for kind in wanted for row in entries_of(kind, planning, policy)]
    new = [row for row in rows if (row.address.kind, row.id) not in known]
    named, named_here = ({one.address for one in (*of.declared, *of.absent)} for of in (existing_manifests, here))
    managed = [
        _limited(row, named, named_here, policy.workspace)
        for row in new
        if not matches_patterns(str(row.address), policy.leave_alone)
    ]
    declarable = (row for row in managed if row.reason is None)
    entries, left_out, plan = keep_unchanged(declarable, planned, existing_manifests, policy.timezone)
    skipped = [*(row for row in managed if row.reason is not None), *left_out]
    return ExportResult(
        files=_files(entries, skipped, planning, policy, by),
        counts={kind.name: sum(entry.address.kind == kind.name for entry in entries) for kind in wanted},
        problems=_problems(entries, skipped, plan, snapshot),
        left_alone=len(new) - len(managed),
        declared=len(rows) - len(new),
    )


def _problems(
    entries: Sequence[ExportedEntry], skipped: Sequence[ExportedEntry], plan: Plan, snapshot: Snapshot
) -> tuple[Problem, ...]:
    """Return warnings of what is left out, in whole or in part, and of what the next plan would delete."""
    stays = "It stays as it is, unmanaged."
    return (
        *_first(
            _warning("export/left-out", f"left out: {unexportable_line(row)}", row.address, stays) for row in skipped
        ),
        *_first(
            _warning("export/in-part", f"{entry.address}: {note}", entry.address, None)
            for entry in entries
            for note in entry.notes
        ),
        *unread_value_notes([entry for entry in entries if entry.address.kind == USER], snapshot),
        *_first(_loss(change.address) for change in plan.changes if deletes_undeclared(change)),
    )


def _files(
    entries: Sequence[ExportedEntry],
    skipped: Sequence[ExportedEntry],
    planning: PlanContext,
    policy: Policy,
    by: TeamRule | None,
) -> Mapping[str, str]:
    """Return path → text: a file for each section, in a folder for each team. Rows left out have no team."""
    # The team of a group may follow from what is not exported.
    every = () if by is None else [row for kind in KINDS.values() for row in entries_of(kind, planning, policy)]
    teams = {} if by is None else teams_of(by, [row for row in every if row.reason is None])
    return {
        f"{folder}/{section}".lstrip("/"): text
        for folder, part in split_by_team(entries, teams).items()
        for section, text in render_files(part, () if folder else skipped, planning.snapshot.workspace).items()
    }


def _limited(entry: ExportedEntry, named: set[Address], named_here: set[Address], workspace: str) -> ExportedEntry:
    """Limit an entry that manifests name for other workspaces to this one; if they name it here, it is left out."""
    if entry.reason is None and entry.address in named_here:
        return replace(entry, reason="the manifests have an entry of that name, with another meaning")
    return replace(entry, body={**entry.body, "only_in": [workspace]}) if entry.address in named else entry


def _first(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the first _MOST_PROBLEMS problems, and the number of the others."""
    every = list(problems)
    yield from every[:_MOST_PROBLEMS]
    if len(every) > _MOST_PROBLEMS:
        more = f"and {len(every) - _MOST_PROBLEMS:,} more like the last; the files list them"
        yield replace(every[_MOST_PROBLEMS], message=more, hint=None, address=None)


def _loss(address: Address) -> Problem:
    """Warn about a resource that is owned and in no manifest: the next plan would delete it."""
    # A shell pattern that matches the address and has only printable characters.
    pattern = "".join(char if char.isprintable() and char not in '*?["\\' else "?" for char in str(address))
    return _warning(
        "export/owned",
        f"{address}: the project owns it and no manifest declares it, so a plan would delete it",
        address,
        f'Export its kind too, or add it to `leave_alone:` in the project file: "{pattern}"',
    )


def _warning(code: str, message: str, address: Address, hint: str | None) -> Problem:
    return Problem(code=code, message=message, severity=Severity.WARNING, address=str(address), hint=hint)
