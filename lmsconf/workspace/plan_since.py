"""`plan --base REF --since SNAPSHOT`: plan only what the manifests change of their base's, with few requests.

The part is that of `--only`: each declaration that differs from the base's, and what it needs. Its resources are read
by id, and the names of their kinds are listed; people, content and the names of other kinds come from the snapshot.
Where that does not decide the plan, the part is read as for `--only`, and nothing comes from the snapshot: if people
are declared in it, if its effects on people rest on names, if something is deleted whose answers or assignments only
listings show, and if the snapshot leads to any problem or lint, or stops at any guard, so that no plan says something
is wrong because of a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from lmsconf.errors import ProblemsFound
from lmsconf.kinds import all_kinds
from lmsconf.model.address import Address
from lmsconf.model.declarations import Manifests
from lmsconf.model.forms import form_to_json
from lmsconf.model.lints import is_lint, raise_to_errors
from lmsconf.model.names import exact_pattern
from lmsconf.model.plan import Action, Change, FieldChange, Plan
from lmsconf.model.policy import Policy
from lmsconf.model.progress import Report
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.context import BeforeAfter, Deletion, Match, PlanContext
from lmsconf.planner.diff import diff_forms
from lmsconf.planner.guards import evaluate_guards
from lmsconf.planner.plan import draft_plan
from lmsconf.planner.read_scope import ReadScope
from lmsconf.planner.rereading import can_reread
from lmsconf.planner.selection import Selection
from lmsconf.workspace.base_comparison import BaseManifests, ManifestsVersion
from lmsconf.workspace.plan_with_base import compare_with_base, plan_with_base
from lmsconf.workspace.project_manifests import refuse_errors
from lmsconf.workspace.reader import WorkspaceReader
from lmsconf.workspace.settings_comparison import settings_by_path
from lmsconf.workspace.since_checks import (
    find_difference,
    refuse_changed_settings,
    refuse_unusable_snapshot,
)
from lmsconf.workspace.since_notices import dropped_notices, scope_notice

_NOTHING: Final = ("*",)


def plan_since(
    reader: WorkspaceReader,
    manifests: Manifests,
    policy: Policy,
    base: BaseManifests,
    snapshot: Snapshot,
    progress: Report | None = None,
) -> Plan:
    """Plan what the manifests change of their base's; the rest comes from a snapshot, or is not looked at.

    Raises LmsconfError if the snapshot or the change cannot be planned so; otherwise as `plan_with_base`.
    """
    refuse_errors(manifests)
    settings = reader.settings
    age = refuse_unusable_snapshot(
        snapshot,
        workspace=settings.workspace.name,
        url=reader.connection.url,
        now=reader.clock(),
        valid_for=policy.valid_for,
    )
    refuse_changed_settings(base, settings_by_path(settings))
    difference = find_difference(manifests, base, policy)
    chosen = _limited(policy, difference.touched)
    beside = _limited_base(base, _selected(manifests, chosen))
    made = _from_snapshot(reader, manifests, chosen, beside, snapshot, progress)
    is_used = made is not None
    if made is None:
        made = plan_with_base(reader, manifests, chosen, beside, progress=progress)
    selected = _selected(manifests, chosen)
    entries = (entry for entry in (*manifests.declared, *manifests.absent) if entry.applies_in(policy.workspace))
    others = len({entry.address for entry in entries} - set(selected))
    scope = scope_notice(len(selected), others, age, snapshot.taken_at, is_used=is_used)
    # An assignment that another one replaces is not declared either, and the plan may delete it.
    changed = {change.address for change in made.changes}
    dropped = [address for address in difference.dropped if address not in changed]
    return replace(made, problems=(scope, *dropped_notices(dropped), *made.problems))


def _limited(policy: Policy, touched: Sequence[Address]) -> Policy:
    """Return the policy that selects what is touched; nothing, if nothing is."""
    if not touched:
        return replace(policy, excluded=_NOTHING, verifying=True)
    return replace(policy, only=tuple(exact_pattern(str(address)) for address in touched))


def _limited_base(base: BaseManifests, touched: Sequence[Address]) -> BaseManifests:
    def limited(version: ManifestsVersion) -> ManifestsVersion:
        # What this change adds matches nothing in an older version.
        return version._replace(policy=replace(_limited(version.policy, touched), verifying=True))

    return replace(base, version=limited(base.version), older=[limited(one) for one in base.older])


def _from_snapshot(
    reader: WorkspaceReader,
    manifests: Manifests,
    policy: Policy,
    base: BaseManifests,
    snapshot: Snapshot,
    progress: Report | None,
) -> Plan | None:
    """Return the plan with what it touches read by id, and the rest from the snapshot; None if that cannot decide."""
    touched = _touched(PlanContext(snapshot, policy, reader.call_templates, _selection(manifests, policy)), manifests)
    if touched is None or _effects_need_names(policy, manifests, touched):
        return None
    again = reader.reread(snapshot, touched, progress)
    if again is None:
        return None
    # Nothing is wanted but the number of people, and a reading with which effects are read.
    nothing = replace(policy, only=(), excluded=(), ownership={})
    reading, now = reader.read_on(ReadScope(policy=nothing), progress)
    live = replace(again, taken_at=now.taken_at, people=now.people)
    try:
        draft = draft_plan(all_kinds(), manifests, live, policy, reader.call_templates, created_at=now.taken_at)
    except ProblemsFound:
        return None
    limits = policy.guards.stricter(base.version.policy.guards)
    if not _is_decided(replace(draft.plan, guards=evaluate_guards(draft.plan.measures, limits, ())), manifests):
        return None
    if not can_reread(all_kinds(), live, draft.plan.changes) or _has_new_rows(draft.plan, live, snapshot):
        return None
    # Undeclared resources were not looked at.
    draft = replace(
        draft,
        plan=replace(draft.plan, unmanaged=()),
        rests_on_file=True,
        lint_levels=raise_to_errors(policy.lints, base.version.policy.lints),
    )
    made = reader.add_effects(draft, reading, progress)
    if any(map(is_lint, made.all_problems)):
        # What a lint says of live resources may be true of the snapshot only.
        return None
    return compare_with_base(reader, made, manifests, policy, base, live)


def _effects_need_names(policy: Policy, manifests: Manifests, touched: Sequence[Change]) -> bool:
    """Return whether numbers about people, or tests, would rest on ids that only the snapshot has for names."""
    tested = any(test.applies_in(policy.workspace) for test in manifests.tests)
    return policy.effects and (tested or any(all_kinds()[change.address.kind].is_relation for change in touched))


def _selected(manifests: Manifests, policy: Policy) -> list[Address]:
    """Return the addresses that are planned: what is touched, and what that needs."""
    chosen, workspace = _selection(manifests, policy), policy.workspace
    entries = (entry for entry in (*manifests.declared, *manifests.absent) if entry.applies_in(workspace))
    return sorted({entry.address for entry in entries if chosen(entry.address)})


def _selection(manifests: Manifests, policy: Policy) -> Selection:
    declared = [resource for resource in manifests.declared if resource.applies_in(policy.workspace)]
    absent = [entry for entry in manifests.absent if entry.applies_in(policy.workspace)]
    return Selection(all_kinds(), declared, policy, absent=absent)


def _touched(planning: PlanContext, manifests: Manifests) -> list[Change] | None:
    """Return a change for each selected declaration, so that all that it compares is read; None if one cannot be."""
    workspace, kinds = planning.policy.workspace, all_kinds()
    declared = [resource for resource in manifests.declared if resource.applies_in(workspace)]
    absent = [entry for entry in manifests.absent if entry.applies_in(workspace)]
    if any(kinds[entry.address.kind].is_person and planning.chosen(entry.address) for entry in (*declared, *absent)):
        return None
    matched = {
        name: kind.match(
            planning,
            [resource for resource in declared if resource.address.kind == name],
            [entry for entry in absent if entry.address.kind == name],
        )
        for name, kind in kinds.items()
    }
    changes: list[Change] = []
    for name, result in matched.items():
        changes.extend(_deletion(deletion) for deletion in result.deletions if planning.chosen(deletion.address))
        for match in result.matches:
            if planning.chosen(match.address):
                sides = kinds[name].diff(planning, match)
                if sides is None:
                    return None
                changes.append(_whole_change(match, sides))
    return changes


def _deletion(deletion: Deletion[Any]) -> Change:
    return Change(
        address=deletion.address,
        action=Action.DELETE,
        id=deletion.row.id,
        about=None,
        source=None,
        before=None,
        after=None,
        fields=(),
    )


def _whole_change(match: Match[Any, Any], sides: BeforeAfter) -> Change:
    """Return a change of all keys that a declaration has, so that all that they are compared with is read again."""
    after = form_to_json(sides.after)
    keys = after if isinstance(after, dict) else {}
    differing = () if sides.before is None or sides.after is None else diff_forms(sides.before, sides.after)
    return Change(
        address=match.address,
        action=Action.CREATE if match.row is None else Action.UPDATE,
        id=None if match.row is None else match.row.id,
        about=None,
        source=None,
        before=form_to_json(sides.before),
        after=after,
        fields=(FieldChange(path="name"), *(FieldChange(path=key) for key in keys), *differing),
    )


def _is_decided(plan: Plan, manifests: Manifests) -> bool:
    """Return whether the plan has no problem besides those of the manifests, and passes all guards."""
    known = {(problem.code, problem.message) for problem in manifests.problems}
    of_plan = {(problem.code, problem.message) for problem in plan.all_problems}
    return of_plan <= known and not any(guard.tripped for guard in plan.guards)


def _has_new_rows(plan: Plan, live: Snapshot, snapshot: Snapshot) -> bool:
    """Return whether a kind in which something is created has rows that the snapshot lacks: it may be one of them."""
    kinds = {change.address.kind for change in plan.changes if change.action is Action.CREATE}
    listings = {all_kinds()[kind].row_type.listing for kind in kinds}
    return any({row.id for row in live.of(one).rows} - {row.id for row in snapshot.of(one).rows} for one in listings)
