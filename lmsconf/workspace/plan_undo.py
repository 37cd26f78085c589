"""`plan --undo RUN`: plan what takes back a recorded run.

What the run changed is read, and turned into declarations of what was there before; the normal planner plans them.
Where that plan would touch anything that others have done since, the change of the run is left alone, and the rest is
planned again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from msgspec.structs import replace

from lmsconf.documents.journal.journal_reader import kept_before, kept_plan, read_runs
from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.kind_functions import named_context
from lmsconf.kinds.kind_table import KINDS, parse, parse_absent
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, Kind, required_keys
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Report, is_creation
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.guards import Policy
from lmsconf.model.lint_codes import RULES, LintLevel
from lmsconf.model.outcomes import CallState, RecordedRun
from lmsconf.model.plan import Action, Change, Plan, UndoneRun
from lmsconf.planner.plan import DraftPlan
from lmsconf.planner.read.needed_listings import ReadScope
from lmsconf.planner.undo.kept_state import answers_taken, archived_instead, lost_answer_entries
from lmsconf.planner.undo.three_way_merge import Times
from lmsconf.planner.undo.undo import undo_run
from lmsconf.planner.undo.undone_run import RunToUndo
from lmsconf.workspace.reader import WorkspaceReader


def load_run(reader: WorkspaceReader, recorded: RecordedRun) -> RunToUndo:
    """Return a recorded run with what is kept of it.

    Raises LmsconfError if it was of another workspace, or if its plan or what was before it is not kept.
    """
    plan, opening = kept_plan(recorded), recorded.opening
    connected = (reader.connection.name, reader.connection.url)
    if opening is None or (plan.workspace, plan.url) != connected:
        raise LmsconfError(
            f"the run {recorded.name} was on the workspace {plan.workspace} ({plan.url}), and this is "
            f"{connected[0]} ({connected[1]})",
            hint=f"Choose that workspace: --workspace {plan.workspace}",
        )
    later = takewhile(lambda run: run.name != recorded.name, read_runs(reader.settings.root, plan.url))
    creations = [creation for run in later for creation in _creations(run, recorded)]
    # The newest run comes first, and tells which of several is there.
    recreated = {address: id for address, id in reversed(creations) if id is not None}
    return RunToUndo(
        recorded,
        plan,
        kept_before(recorded),
        recreated=recreated,
        unsure=frozenset(address for address, _ in creations if address not in recreated),
    )


def _creations(later: RecordedRun, undone: RecordedRun) -> list[tuple[Address, RemoteId | None]]:
    """Return what a later run has created if it undid this one; with None where that is not known."""
    done = [
        call
        for call in later.calls
        if is_creation(call.operation) and call.effect in (CallState.DONE, CallState.IN_FLIGHT)
    ]
    if not done or later.opening is None or later.opening.plan_sha256 is None:
        return []
    undo_of = kept_plan(later).undo_of
    of_it = done if undo_of is not None and undo_of.run == undone.name else []
    return [(call.address, RemoteId(call.id) if call.id else None) for call in of_it]


def plan_undo(reader: WorkspaceReader, run: RunToUndo, policy: Policy, progress: Report | None = None) -> Plan:
    """Return the plan that takes back what a run did. Raises ProblemsFound as any plan."""
    # Nothing is deleted because no manifest declares it; what the run changed is changed back, wherever it stands.
    policy = replace(policy, ownership={}, leave_alone=())
    wanted = ReadScope(_read_for(reader, run, policy), replace(policy, only=(), excluded=()))
    reading, snapshot = reader.read_on(wanted, progress)
    times = Times(run, snapshot, policy, reader.connection.spec)
    left: dict[Address, str] = {}
    while True:
        declared, origins = undo_run(times, left)
        try:
            draft = reader.draft(declared, snapshot, policy)
            more = dict(_beyond(origins, draft))
        except ProblemsFound as found:
            more = dict(_refused(origins, found))
            if more.keys() <= left.keys():
                raise
        if more.keys() <= left.keys():
            break
        left = more | left
    plan = replace(
        draft.plan,
        undo_of=UndoneRun(run=run.name, digest=run.digest),
        problems=tuple(_selected(draft)),
        unmanaged=(),
    )
    # Lints are about manifests, and these declarations are of what was there.
    return reader.add_effects(
        replace(draft, plan=plan, lint_levels=dict.fromkeys(RULES, LintLevel.OFF)), reading, progress
    )


def _read_for(reader: WorkspaceReader, run: RunToUndo, policy: Policy) -> Manifests:
    """Return declarations with every key that an undo of the run may compare, only to decide what is read."""
    before = named_context(run.before, policy, reader.connection.spec)
    fields = {row.id: row for row in run.before.rows(FieldRow)}
    declared: list[DesiredResource[Any]] = []
    absent: list[DeleteEntry[Any]] = []
    people: dict[str, dict[str, Json]] = {}
    for change in filter(run.is_done, run.plan.changes):
        kind = KINDS[change.address.kind]
        entry = _read_for_change(kind, run, change)
        if kind.is_person:
            _join(people, entry)
        elif change.action is Action.CREATE:
            absent.extend(parse_absent(kind.name, _entry(run, entry)))
        else:
            declared.extend(parse(kind.name, _entry(run, entry)))
        if kind.name == CUSTOM_FIELD and change.id in fields:
            for answers in lost_answer_entries(before, change, fields[change.id]):
                _join(people, answers)
    declared.extend(one for entry in people.values() for one in parse(USER, _entry(run, entry)))
    return Manifests(declared=tuple(declared), absent=tuple(absent))


def _read_for_change(kind: Kind, run: RunToUndo, change: Change) -> dict[str, Json]:
    """Return the entry with the keys of a change whose live values are compared.

    What a relation is between decides what is read; its values may be such as no manifest can declare.
    """
    is_new = change.action is Action.CREATE
    form, id = (change.after, run.created_id(change)) if is_new else (change.before, change.id)
    entry = {**members(form)}
    if kind.is_relation or (is_new and not kind.is_person):
        entry = {key: entry[key] for key in required_keys(kind)}
    elif is_new:
        entry = {key: value for key, value in entry.items() if value is not None}
        entry.update(archived_instead(change))
    has_id = id is not None and not kind.is_relation and change.action is not Action.DELETE
    return {**entry, "id": id} if has_id else entry


def _join(people: dict[str, dict[str, Json]], entry: Mapping[str, Json]) -> None:
    """Add an entry to the people that are read; the answers that several entries have of one person are joined."""
    known = people.setdefault(str(entry.get("id") or entry["email"]), {})
    answers = {**members(known.get("answers")), **members(entry.get("answers"))}
    known |= {**entry, **({"answers": answers} if answers else {})}


def _entry(run: RunToUndo, body: Mapping[str, Any]) -> ManifestEntry:
    """Return an entry that only decides what is read, so that its problems are left out."""
    return ManifestEntry(
        body=body,
        places=FixedSource(SourceLocation(f"run {run.name}")),
        timezone=None,
        report=lambda _: None,
    )


def _refused(origins: Mapping[Address, Change], found: ProblemsFound) -> Iterator[tuple[Address, str]]:
    """Return the changes of the run that cannot be planned back, with the reason."""
    refused = (
        (origins.get(Address.parse(problem.address)), problem.message.removeprefix(f"{problem.address}: "))
        for problem in found.problems
        if problem.is_error and problem.address
    )
    return (
        (change.address, f"it is left alone, because it cannot be undone: {message}")
        for change, message in refused
        if change is not None
    )


def _beyond(origins: Mapping[Address, Change], draft: DraftPlan) -> Iterator[tuple[Address, str]]:
    """Yield the changes of the run whose undo would touch what others have done since, with the reason."""
    yield from (
        (origins[cause].address, f"it is left alone, because {at}, which is not of the run, depends on it")
        for at, cause in ((one.address, one.goes_with) for one in draft.plan.changes)
        if at not in origins and cause is not None and cause in origins
    )
    for address, origin in origins.items():
        taken = answers_taken(draft.planning, address, origin) if address.kind == CUSTOM_FIELD else None
        if taken is not None:
            yield origin.address, f"it is left alone, because {taken}"
    refused = {call.address: None for call in draft.plan.calls if call.may_be_refused}
    made = (origins[at] for at in refused if at in origins and origins[at].action is Action.CREATE)
    yield from ((origin.address, "it is left alone, because others use it") for origin in made)


def _selected(draft: DraftPlan) -> Iterator[Problem]:
    """Return the problems of a plan; of what is left alone, only those of the resources that are planned."""
    return (
        problem
        for problem in draft.plan.problems
        if problem.code not in ("undo/conflict", "undo/limited")
        or problem.address is None
        or draft.planning.chosen(Address.parse(problem.address))
    )
