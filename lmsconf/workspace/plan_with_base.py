"""Plan with a base, the manifests that a change replaces.

Each change is classified: made by this change, pending before it, or a repair of a manual edit. Also lists
the resources that only the base declares, and compares the settings of both projects, as plain values by path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ProblemsFound
from lmsconf.kinds.assignment.types import audience_entry, content_entry
from lmsconf.kinds.kind_functions import match_all
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, Kind
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.manifest.edit.text_edits import escape_variables, format_inline
from lmsconf.model.calls import Report
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource, Manifests
from lmsconf.model.guards import Policy, diff_settings
from lmsconf.model.lint_codes import raise_to_errors
from lmsconf.model.plan import Change, ChangeOrigin, NoLongerDeclared, Plan, SettingChange
from lmsconf.model.problem_codes import is_blocking
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.check_guards import evaluate_guards
from lmsconf.planner.drift import unplannable_base
from lmsconf.planner.read.needed_listings import merge_manifests
from lmsconf.planner.snapshot_redaction import drop_unknown_people, restore_snapshot
from lmsconf.workspace.project_manifests import BaseManifests, ManifestsVersion, error_free, settings_by_path
from lmsconf.workspace.reader import WorkspaceReader, reads_needed_by_both


def attach_origins(
    plan: Plan, base: BaseManifests, planned: Callable[[ManifestsVersion], frozenset[str] | None]
) -> Plan:
    """Return the plan with the origin of each change set.

    planned: a version → what each of its changes does, in full; None if it cannot be planned.
    """
    before = planned(base.version)
    if before is None:
        return replace(
            plan,
            base=base.name,
            problems=(*plan.problems, unplannable_base(base.name, "changes cannot be attributed")),
        )
    shared = before.intersection(map(_key, plan.changes))
    origins = dict.fromkeys(shared, ChangeOrigin.PENDING)
    origins |= dict.fromkeys(_lasting(shared, map(planned, base.older)), ChangeOrigin.REPAIR)
    return replace(
        plan,
        base=base.name,
        changes=tuple(replace(one, origin=origins.get(_key(one), ChangeOrigin.THIS_CHANGE)) for one in plan.changes),
    )


def evaluate_base_guards(plan: Plan, policy: Policy, base: BaseManifests, under_base: Plan) -> Plan:
    """Evaluate the plan under the guards of its base too, and add what those refuse.

    under_base: the same manifests, planned under the base's guards. What only those refuse is a problem of the whole
    plan, not of a change, so that the plan keeps the digest that it has without a base.
    """
    under = f"under the settings of {base.name}"
    known = {(problem.code, problem.address) for problem in plan.all_problems}
    refused = (
        replace(problem, message=f"{problem.message}, {under}", address=None)
        for problem in under_base.all_problems
        if is_blocking(problem) and (problem.code, problem.address) not in known
    )
    return replace(
        plan,
        guards=evaluate_guards(plan.measures, policy.guards, policy.consents, (under, base.version.policy.guards)),
        problems=(*plan.problems, *refused),
    )


def _key(change: Change) -> str:
    """A comparable key of a change: everything it does."""
    return repr((change.address, change.action, change.id, change.before, change.after))


def _lasting(shared: frozenset[str], older: Iterable[frozenset[str] | None]) -> frozenset[str]:
    """The changes that every older version contains too: repairs, since none of these versions introduced them."""
    # Each of them takes as long as a plan: stop once nothing is left.
    known = (changes for changes in (older if shared else ()) if changes is not None)
    left = shared & next(known, frozenset())
    while left and (changes := next(known, None)) is not None:
        left &= changes
    return left


def find_no_longer_declared(
    now: ManifestsVersion,
    base: ManifestsVersion,
    snapshot: Snapshot,
    api_spec: ApiSpec,
) -> tuple[NoLongerDeclared, ...]:
    """Resources that are live, were declared by the base, and are now neither declared nor deleted."""
    current = {row for row, _ in declared_rows(now.manifests, now.policy, snapshot, api_spec)}
    left = {
        declared.address: declared
        for row, declared in declared_rows(base.manifests, base.policy, snapshot, api_spec)
        if declared is not None and row not in current and not KINDS[declared.address.kind].is_person
    }
    return tuple(
        NoLongerDeclared(address=address, absent=_absent_line(KINDS[address.kind], left[address], now.policy.workspace))
        for address in sorted(left)
    )


def _absent_line(kind: Kind, declared: DesiredResource[Any], workspace: str) -> str:
    """Return the `absent` section that deletes one resource in a workspace, such as `absent: {groups: [Sales]}`."""
    entry: Json = declared.address.name
    if kind.name == CONTENT_TARGET:
        entry = {
            "content": content_entry(declared.spec, workspace),
            "assign_to": [audience_entry(declared.spec.audience)],
        }
    elif (id := declared.pin(workspace)) is not None:
        entry = {kind.name_key: declared.address.name, "id": id}
    return f"absent: {format_inline(escape_variables({kind.section: [entry]}))}"


def declared_rows(
    manifests: Manifests, policy: Policy, snapshot: Snapshot, api_spec: ApiSpec
) -> Iterator[tuple[tuple[str, str], DesiredResource[Any] | None]]:
    """Kind and id of each live row that manifests declare, with its declaration; None for one to be deleted."""
    planning = PlanContext(snapshot, policy, api_spec, lambda _: True)
    for name, matched in match_all(planning, manifests.in_workspace(policy.workspace)).items():
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
    draft = replace(
        reader.draft(planned, live, policy, None if snapshot is None else snapshot.taken_at),
        lint_levels=raise_to_errors(policy.lints, base.version.policy.lints),
        protect=base.version.policy.guards.protect,
    )
    made = reader.add_effects(draft, reading, progress)
    under_base = reader.draft(
        planned,
        live,
        replace(policy, guards=base.version.policy.guards),
        made.created_at if made.offline else None,
    ).plan
    made = evaluate_base_guards(made, policy, base, under_base)
    made = attach_origins(made, base, lambda version: _planned(reader, version, live))
    now = ManifestsVersion(manifests, policy, settings_by_path(reader.settings))
    return replace(
        made,
        settings_changed=(*diff_settings(base.version.settings, now.settings), *_dropped_tests(now, base.version)),
        no_longer_declared=()
        if policy.only or policy.excluded
        else find_no_longer_declared(now, base.version, live, reader.connection.spec),
    )


def _dropped_tests(now: ManifestsVersion, base: ManifestsVersion) -> Iterator[SettingChange]:
    """Return each test of the base that the manifests do not have: it would not stop this plan."""
    kept, before = (
        dict.fromkeys(test.statement for test in of.manifests.tests if test.applies_in(now.policy.workspace))
        for of in (now, base)
    )
    return (SettingChange(path="tests", base=one, now=None, weaker=True) for one in before if one not in kept)


def _planned(reader: WorkspaceReader, version: ManifestsVersion, snapshot: Snapshot) -> frozenset[str] | None:
    """What each change of another version does; None if that cannot be planned."""
    try:
        manifests = drop_unknown_people(snapshot, error_free(version.manifests))
        return frozenset(map(_key, reader.plan_with_errors(manifests, version.policy, snapshot)[0].changes))
    except ProblemsFound as error:
        # A selection pattern may match only in this change; that is no error of the other version.
        errors = {problem.code for problem in error.problems if problem.is_error}
        return frozenset() if errors <= {"select/nothing"} else None
