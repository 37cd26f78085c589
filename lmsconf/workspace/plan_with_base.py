"""Plan with a base, the manifests that a change replaces: where each change comes from, and what the base refuses.

Each change is classified: made by this change, pending before it, or a repair of a manual edit. Also lists the
resources that the change abandons, and compares the settings of both projects, as plain values by path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ProblemsFound
from lmsconf.kinds.exported_entries import absent_assignment_entry
from lmsconf.kinds.kind_functions import match_all
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, Kind
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.manifest.edit.text_edits import format_inline
from lmsconf.manifest.file_set import MANIFESTS
from lmsconf.model.calls import Report
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DesiredResource, Manifests
from lmsconf.model.lint_codes import raise_to_errors
from lmsconf.model.plan import Change, ChangeOrigin, NoLongerDeclared, Plan, SettingChange
from lmsconf.model.policy import GUARDS, UNKNOWN, Consent, Policy, diff_settings, limit_to_json
from lmsconf.model.problem_codes import is_blocking
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.drift import unplannable_base
from lmsconf.planner.guards import evaluate_guards
from lmsconf.planner.read.needed_listings import merge_manifests
from lmsconf.planner.snapshot_redaction import drop_unknown_people, restore_snapshot
from lmsconf.project.config_file import DEFAULT_KEPT_RUNS
from lmsconf.project.settings import Settings
from lmsconf.workspace.project_manifests import BaseManifests, ManifestsVersion, error_free
from lmsconf.workspace.reader import WorkspaceReader, reads_needed_by_both

Planned = Callable[[ManifestsVersion], "Sequence[Change] | None"]
"""Plan a version on the snapshot; None if it cannot be planned."""


def attach_origins(plan: Plan, base: BaseManifests, planned: Planned) -> Plan:
    """Return the plan with the origin of each change set."""
    before = planned(base.version)
    if before is None:
        warning = unplannable_base(base.name, "changes cannot be attributed")
        return replace(plan, base=base.name, problems=(*plan.problems, warning))
    shared = {_key(change) for change in plan.changes} & {_key(change) for change in before}
    pending = shared - _lasting(shared, base.older, planned)
    changes = tuple(replace(change, origin=_origin(_key(change), shared, pending)) for change in plan.changes)
    return replace(plan, base=base.name, changes=changes)


def evaluate_base_guards(plan: Plan, policy: Policy, base: BaseManifests, under_base: Plan) -> Plan:
    """Evaluate the plan under the guards of its base too, and add what those refuse.

    under_base: the same manifests, planned under the base's guards. What only those refuse is a problem of the whole
    plan, not of a change, so that the plan keeps the digest that it has without a base.
    """
    under = f"under the settings of {base.name}"
    guards = evaluate_guards(plan.measures, policy.guards, policy.consents, (under, base.version.policy.guards))
    known = {(problem.code, problem.address) for problem in plan.all_problems}
    refused = tuple(
        replace(problem, message=f"{problem.message}, {under}", address=None)
        for problem in under_base.all_problems
        if is_blocking(problem) and (problem.code, problem.address) not in known
    )
    return replace(plan, guards=guards, problems=(*plan.problems, *refused))


def _key(change: Change) -> str:
    """A comparable key of a change: everything it does."""
    return repr((change.address, change.action, change.id, change.before, change.after))


def _lasting(shared: set[str], older: Sequence[ManifestsVersion], planned: Planned) -> set[str]:
    """The changes that every older version contains too: repairs, since none of these versions introduced them."""
    left, known = set(shared), False
    for version in older:
        if not left:
            break
        changes = planned(version)
        if changes is not None:
            known = True
            left &= {_key(change) for change in changes}
    return left if known else set()


def _origin(key: str, shared: set[str], pending: set[str]) -> ChangeOrigin:
    if key not in shared:
        return ChangeOrigin.THIS_CHANGE
    return ChangeOrigin.PENDING if key in pending else ChangeOrigin.REPAIR


def find_orphaned_resources(
    now: ManifestsVersion,
    base: ManifestsVersion,
    snapshot: Snapshot,
    api_spec: ApiSpec,
) -> tuple[NoLongerDeclared, ...]:
    """Resources that are live, were declared by the base, and are now neither declared nor deleted."""
    current = {row for row, _ in _declared_rows(now, snapshot, api_spec)}
    left = (
        declared
        for row, declared in _declared_rows(base, snapshot, api_spec)
        if declared is not None and row not in current and not KINDS[declared.address.kind].is_person
    )
    lines = {
        declared.address: _absent_line(KINDS[declared.address.kind], declared, now.policy.workspace)
        for declared in left
    }
    return tuple(NoLongerDeclared(address=address, absent=lines[address]) for address in sorted(lines))


def _absent_line(kind: Kind, declared: DesiredResource[Any], workspace: str) -> str:
    """Return the `absent` section that deletes one resource in a workspace, such as `absent: {groups: [Sales]}`."""
    id = declared.pin(workspace)
    named: Json = declared.address.name if id is None else {kind.name_key: declared.address.name, "id": id}
    entry = absent_assignment_entry(declared.spec, workspace) if kind.name == CONTENT_TARGET else named
    return f"absent: {format_inline({kind.section: [entry]})}"


def _declared_rows(
    version: ManifestsVersion, snapshot: Snapshot, api_spec: ApiSpec
) -> Iterator[tuple[tuple[str, str], DesiredResource[Any] | None]]:
    """Kind and id of each live row that manifests declare, with its declaration; None for one to be deleted."""
    planning = PlanContext(snapshot, version.policy, api_spec, lambda _: True)
    for name, matched in match_all(planning, version.manifests.in_workspace(version.policy.workspace)).items():
        yield from (((name, match.row.id), match.declared) for match in matched.matches if match.row is not None)
        yield from (((name, deletion.row.id), None) for deletion in matched.deletions)


def plan_with_base(
    reader: WorkspaceReader,
    manifests: Manifests,
    policy: Policy,
    base: BaseManifests,
    *,
    snapshot: Snapshot | None = None,
    progress: Report | None = None,
) -> Plan:
    """Plan with a base: each change has its origin, by comparison with the base's plan.

    snapshot: what both are planned against; default: the workspace is read once for both.
    """
    error_free(manifests)
    reading, live = None, snapshot
    if live is None:
        reading, live = reader.read_on(reads_needed_by_both(manifests, policy, base.version), progress)
    live = restore_snapshot(live, merge_manifests(manifests, base.version.manifests))
    planned = drop_unknown_people(live, manifests)
    draft = reader.draft(planned, live, policy, None if snapshot is None else snapshot.taken_at)
    lint_levels = raise_to_errors(policy.lints, base.version.policy.lints)
    draft = replace(draft, lint_levels=lint_levels, protect=base.version.policy.guards.protect)
    made = reader.add_effects(draft, reading, progress)
    return _compared(reader, made, planned, manifests, policy, base, live)


def _compared(
    reader: WorkspaceReader,
    made: Plan,
    planned: Manifests,
    manifests: Manifests,
    policy: Policy,
    base: BaseManifests,
    live: Snapshot,
) -> Plan:
    """Return a plan, made on a snapshot, with the origin of each change and what the base's settings refuse.

    planned: the manifests, without people who are not in a redacted snapshot.
    """
    base_guarded = replace(policy, guards=base.version.policy.guards)
    made = evaluate_base_guards(
        made,
        policy,
        base,
        reader.draft(planned, live, base_guarded, made.created_at if made.offline else None).plan,
    )
    made = attach_origins(made, base, lambda version: _changes_of(reader, version, live))
    settings = settings_by_path(reader.settings)
    changed = (*diff_settings(base.version.settings, settings), *_dropped_tests(manifests, base, policy.workspace))
    made = replace(made, settings_changed=changed)
    if policy.only or policy.excluded:
        return made
    now = ManifestsVersion(manifests, policy, settings)
    return replace(made, let_go=find_orphaned_resources(now, base.version, live, reader.connection.spec))


def _dropped_tests(manifests: Manifests, base: BaseManifests, workspace: str) -> Iterable[SettingChange]:
    """Return each test of the base that the manifests do not have: it would not stop this plan."""
    now, before = (
        dict.fromkeys(test.statement for test in version.tests if test.applies_in(workspace))
        for version in (manifests, base.version.manifests)
    )
    dropped = (statement for statement in before if statement not in now)
    return (SettingChange(path="tests", base=statement, now=None, weaker=True) for statement in dropped)


def _changes_of(reader: WorkspaceReader, version: ManifestsVersion, snapshot: Snapshot) -> tuple[Change, ...] | None:
    """What another version would change; None if it cannot be planned."""
    try:
        manifests = drop_unknown_people(snapshot, error_free(version.manifests))
        return reader.plan_with_errors(manifests, version.policy, snapshot)[0].changes
    except ProblemsFound as error:
        # A selection pattern may match only in this change; that is no error of the other version.
        unknown = all(problem.code == "select/nothing" for problem in error.problems if problem.is_error)
        return () if unknown else None


def settings_by_path(settings: Settings) -> dict[str, Json]:
    """All settings that affect plans and runs of the current workspace, except where its requests are sent."""
    lock: Json = False if settings.lock is None else {"lease": settings.lock.lease}
    root = settings.root
    folders = [
        (folder.relative_to(root) if folder.is_relative_to(root) else folder).as_posix()
        for folder in (settings.manifests, *settings.overlays)
    ]
    return {
        **_of_policy(settings.policy),
        **{f"dialect.{key}": value for key, value in settings.dialect.items()},
        **{f"vars.{name}": value for name, value in settings.variables.items()},
        "ignore": [_ignore(rule.pattern, rule.reason, str(rule.until or "")) for rule in settings.ignores],
        "lock": lock,
        "manifests": folders[0] if len(folders) == 1 else list[Json](folders),
        **{f"labels.{name}": value for name, value in settings.labels.items()},
        **settings.shared,
    }


def default_settings_by_path(policy: Policy) -> dict[str, Json]:
    """The same for an empty project file; workspace and date are the policy's."""
    bare = Policy(workspace=policy.workspace, today=policy.today)
    shared: dict[str, Json] = {"runs.keep": DEFAULT_KEPT_RUNS, "waves": [], "max_failures": 0}
    return {**_of_policy(bare), **shared, "ignore": [], "lock": False, "manifests": Path(MANIFESTS).as_posix()}


def _of_policy(policy: Policy) -> dict[str, Json]:
    values = policy.settings_json()
    sections = {name: kind.section for name, kind in KINDS.items()}
    return {
        **{f"guards.{name}": limit_to_json(policy.guards.limits[name]) for name in GUARDS},
        "guards.protect": values["protect"],
        "guards.min_admins": values["min_admins"],
        **{f"ownership.{sections[kind]}": patterns for kind, patterns in members(values["ownership"]).items()},
        "leave_alone": values["leave_alone"],
        "people.unknown": "skip" if policy.skip_unknown else "error",
        "people.create": policy.create_people,
        "settle": values["settle"],
        **{code: level.value for code, level in policy.lints.items()},
        "plans.valid_for": policy.valid_for.total_seconds(),
        "allow": [_consent(consent) for consent in policy.consents],
        **({} if policy.timezone_name is None else {"timezone": policy.timezone_name}),
    }


def _consent(consent: Consent) -> Json:
    entry: dict[str, Json] = {consent.guard: UNKNOWN if consent.number is None else consent.number}
    if consent.reason is not None:
        entry["reason"] = consent.reason
    return {**entry, "until": str(consent.until)}


def _ignore(pattern: str, reason: str, until: str) -> Json:
    entry: Mapping[str, Json] = {"address": pattern, "reason": reason}
    return {**entry, "until": until} if until else {**entry}
