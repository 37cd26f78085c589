"""`plan --undo RUN`: a plan that takes back what a run did, made as any other plan.

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
from lmsconf.errors import LmsconfError, Problem, ProblemsFound
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.kind_functions import named_context
from lmsconf.kinds.kind_table import KINDS, parse, parse_absent
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, Kind, required_keys
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import CallIndex, Report, is_creation
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.model.lint_codes import RULES, LintLevel
from lmsconf.model.outcomes import CallState, RecordedRun
from lmsconf.model.plan import Action, Change, Plan, UndoneRun
from lmsconf.model.policy import Policy
from lmsconf.planner.plan import DraftPlan, replay_entry
from lmsconf.planner.read.needed_listings import ReadScope
from lmsconf.planner.undo.kept_state import answers_taken, archived_instead, lost_answer_entries
from lmsconf.planner.undo.three_way_merge import Times
from lmsconf.planner.undo.undo import LIMITED, Inversion, run_source
from lmsconf.planner.undo.undo_entries import CONFLICT
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
    unsure = {address for address, id in creations if id is None}
    return RunToUndo(
        recorded, plan, kept_before(recorded), recreated=recreated, unsure=frozenset(unsure - recreated.keys())
    )


def _creations(later: RecordedRun, undone: RecordedRun) -> Iterator[tuple[Address, RemoteId | None]]:
    """Yield what a later run has created if it undid this one; with None where that is not known."""
    creations = [call for call in later.calls if is_creation(call.operation)]
    done = [call for call in creations if call.effect in (CallState.DONE, CallState.IN_FLIGHT)]
    if not done or later.opening is None or later.opening.plan_sha256 is None:
        return
    plan = kept_plan(later)
    if plan.undo_of is not None and plan.undo_of.run == undone.name:
        yield from ((call.address, RemoteId(call.id) if call.id else None) for call in done)


def plan_undo(reader: WorkspaceReader, run: RunToUndo, policy: Policy, progress: Report | None = None) -> Plan:
    """Return the plan that takes back what a run did. Raises ProblemsFound as any plan."""
    # Nothing is deleted because no manifest declares it; what the run changed is changed back, wherever it stands.
    policy = replace(policy, ownership={}, leave_alone=())
    wanted = ReadScope(_read_for(reader, run, policy), replace(policy, only=(), excluded=()))
    reading, snapshot = reader.read_on(wanted, progress)
    times = Times(run, snapshot, policy, reader.connection.spec)
    left: dict[Address, str] = {}
    while True:
        inverse = Inversion(times, left)
        try:
            draft = reader.draft(inverse.run(), snapshot, policy)
        except ProblemsFound as found:
            refused = dict(_refused(inverse, found))
            if not refused.keys() - left.keys():
                raise
            left |= refused
            continue
        more = {address: reason for address, reason in _beyond(inverse, draft) if address not in left}
        if not more:
            break
        left |= more
    undone = UndoneRun(run=run.name, digest=run.digest)
    plan = replace(draft.plan, undo_of=undone, problems=tuple(_selected(draft)), unmanaged=())
    # Lints are about manifests, and these declarations are of what was there.
    return reader.add_effects(
        replace(draft, plan=plan, lint_levels=dict.fromkeys(RULES, LintLevel.OFF)), reading, progress
    )


def _read_for(reader: WorkspaceReader, run: RunToUndo, policy: Policy) -> Manifests:
    """Return declarations with every key that an undo of the run may compare, only to decide what is read."""
    before = named_context(run.before, policy, reader.connection.spec)
    bodies: dict[tuple[str, str], dict[str, Json]] = {}
    absent: list[DeleteEntry[Any]] = []
    for change in run.plan.changes:
        kind = KINDS[change.address.kind]
        if not run.is_done(change):
            continue
        for other, entry in _compared(kind, run, change):
            _join(bodies, other, entry)
        if change.action is Action.CREATE and not kind.is_person:
            id = run.created_id(change)
            body = replay_entry(kind, replace(change, action=Action.DELETE, id=id), members(change.after), CallIndex())
            known = {key: value for key, value in body.items() if value is not None}
            absent.extend(parse_absent(kind.name, _entry(run, known)))
        rows = [row for row in run.before.rows(FieldRow) if row.id == change.id and kind.name == CUSTOM_FIELD]
        for entry in (one for row in rows for one in lost_answer_entries(before, change, row)):
            _join(bodies, USER, entry)
    declared: list[DesiredResource[Any]] = []
    for (name, _), body in bodies.items():
        kind = KINDS[name]
        # What a relation is between decides what is read; its values may be such as no manifest can declare.
        keys = required_keys(kind) if kind.is_relation else body.keys()
        declared.extend(parse(kind.name, _entry(run, {key: body[key] for key in keys})))
    return Manifests(declared=tuple(declared), absent=tuple(absent))


def _compared(kind: Kind, run: RunToUndo, change: Change) -> Iterator[tuple[str, Mapping[str, Json]]]:
    """Yield the entry with the keys of a change whose live values are compared."""
    own = replace(change, action=Action.UPDATE)
    if change.action is Action.DELETE:
        yield kind.name, members(change.before)
    elif change.action is not Action.CREATE:
        yield kind.name, replay_entry(kind, own, members(change.before), CallIndex())
    elif kind.is_person:
        archived = {**members(change.after), **archived_instead(change)}
        yield kind.name, replay_entry(kind, replace(own, id=run.created_id(change)), archived, CallIndex())


def _join(bodies: dict[tuple[str, str], dict[str, Json]], kind: str, entry: Mapping[str, Json]) -> None:
    """Add an entry to those that are read; what several say of one resource is joined."""
    known = bodies.setdefault((kind, str(entry.get("id") or len(bodies))), {})
    for key, value in entry.items():
        present = known.get(key)
        known[key] = {**value, **present} if isinstance(present, dict) and isinstance(value, dict) else present or value


def _entry(run: RunToUndo, body: Mapping[str, Any]) -> ManifestEntry:
    return ManifestEntry(body=body, places=run_source(run.name), timezone=None, report=_ignore)


def _ignore(_: Problem) -> None:
    """Leave out a problem of an entry that only decides what is read."""


def _refused(inverse: Inversion, found: ProblemsFound) -> Iterator[tuple[Address, str]]:
    """Yield the changes of the run that cannot be planned back, with the reason."""
    for problem in found.problems:
        if problem.is_error and problem.address is not None:
            change = inverse.origins.get(Address.parse(problem.address))
            if change is not None:
                message = problem.message.removeprefix(f"{problem.address}: ")
                yield change.address, f"it is left alone, because it cannot be undone: {message}"


def _beyond(inverse: Inversion, draft: DraftPlan) -> Iterator[tuple[Address, str]]:
    """Yield the changes of the run whose undo would touch what others have done since, with the reason."""
    for change in draft.plan.changes:
        cause = inverse.origins.get(change.goes_with) if change.goes_with is not None else None
        if cause is not None and change.address not in inverse.origins:
            yield cause.address, f"it is left alone, because {change.address}, which is not of the run, depends on it"
    for address, origin in inverse.origins.items():
        reason = answers_taken(draft.planning, address, origin) if address.kind == CUSTOM_FIELD else None
        if reason is not None:
            yield origin.address, f"it is left alone, because {reason}"
    for call in draft.plan.calls:
        made = inverse.origins.get(call.address)
        if call.may_be_refused and made is not None and made.action is Action.CREATE:
            yield made.address, "it is left alone, because others use it"


def _selected(draft: DraftPlan) -> Iterator[Problem]:
    """Yield the problems of a plan; of what is left alone, only those of the resources that are planned."""
    for problem in draft.plan.problems:
        is_conflict = problem.code in (CONFLICT, LIMITED) and problem.address is not None
        if not is_conflict or draft.planning.chosen(Address.parse(str(problem.address))):
            yield problem
