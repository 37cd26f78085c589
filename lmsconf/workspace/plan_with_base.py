"""Plan with a base: each change with its origin, and what the base's guards and lints refuse."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from lmsconf.errors import ProblemsFound
from lmsconf.kinds import all_kinds
from lmsconf.model.declarations import Manifests
from lmsconf.model.lints import raise_to_errors
from lmsconf.model.plan import Change, Plan, SettingChange
from lmsconf.model.policy import Policy, diff_settings
from lmsconf.model.progress import Report
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.plan import draft_plan, make_plan
from lmsconf.planner.snapshot_redaction import drop_unknown_people, restore_snapshot
from lmsconf.workspace.base_comparison import (
    BaseManifests,
    ManifestsVersion,
    attach_origins,
    evaluate_base_guards,
    find_orphaned_resources,
    merge_manifests,
)
from lmsconf.workspace.project_manifests import refuse_errors
from lmsconf.workspace.reader import WorkspaceReader, reads_needed_by_both
from lmsconf.workspace.settings_comparison import settings_by_path


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
    refuse_errors(manifests)
    lint_levels = raise_to_errors(policy.lints, base.version.policy.lints)
    if snapshot is None:
        reading, live = reader.read_on(reads_needed_by_both(manifests, policy, base.version), progress)
        draft = draft_plan(all_kinds(), manifests, live, policy, reader.call_templates, created_at=reader.now())
        made = reader.add_effects(replace(draft, lint_levels=lint_levels), reading, progress)
    else:
        live = restore_snapshot(snapshot, merge_manifests(manifests, base.version.manifests, all_kinds()), all_kinds())
        at = snapshot.taken_at
        planned = drop_unknown_people(live, manifests, all_kinds())
        draft = draft_plan(all_kinds(), planned, live, policy, reader.call_templates, created_at=at, offline=True)
        made = reader.with_effects_and_lints(replace(draft, lint_levels=lint_levels), None)
    return _compared(reader, made, manifests, policy, base, live)


def _compared(
    reader: WorkspaceReader, made: Plan, manifests: Manifests, policy: Policy, base: BaseManifests, live: Snapshot
) -> Plan:
    """Return a plan, made on a snapshot, with the origin of each change and what the base's settings refuse."""
    at, offline = made.created_at, made.offline
    planned = drop_unknown_people(live, manifests, all_kinds())
    base_guarded = replace(policy, guards=base.version.policy.guards)
    made = evaluate_base_guards(
        made,
        policy,
        base,
        make_plan(all_kinds(), planned, live, base_guarded, reader.call_templates, created_at=at, offline=offline),
    )
    made = attach_origins(made, base, lambda version: _changes_of(reader, version, live))
    settings = settings_by_path(reader.settings)
    changed = (*diff_settings(base.version.settings, settings), *_dropped_tests(manifests, base, policy.workspace))
    made = replace(made, settings_changed=changed)
    if policy.only or policy.excluded:
        return made
    now = ManifestsVersion(manifests, policy, settings)
    return replace(made, let_go=find_orphaned_resources(all_kinds(), now, base.version, live, reader.call_templates))


def _dropped_tests(manifests: Manifests, base: BaseManifests, workspace: str) -> Iterator[SettingChange]:
    """Yield each test of the base that the manifests do not have: it would not stop this plan."""
    now, before = (
        dict.fromkeys(test.statement for test in version.tests if test.applies_in(workspace))
        for version in (manifests, base.version.manifests)
    )
    for statement in before:
        if statement not in now:
            yield SettingChange(path="tests", base=statement, now=None, weaker=True)


def _changes_of(reader: WorkspaceReader, version: ManifestsVersion, snapshot: Snapshot) -> tuple[Change, ...] | None:
    """What another version would change; None if it cannot be planned."""
    try:
        refuse_errors(version.manifests)
        manifests = drop_unknown_people(snapshot, version.manifests, all_kinds())
        return reader.plan_with_errors(manifests, version.policy, snapshot)[0].changes
    except ProblemsFound as error:
        # A selection pattern may match only in this change; that is no error of the other version.
        unknown = all(problem.code == "select/nothing" for problem in error.problems if problem.is_error)
        return () if unknown else None
