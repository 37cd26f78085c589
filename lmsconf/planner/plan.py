"""Declarations + snapshot + policy → Plan. A pure function: equal inputs in any order give equal plans.

A plan's changes are turned back into declarations, to re-plan before a run and to verify after it. Thus a plan
file is applied without its manifests: it is checked by a fresh plan of the same resources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import assumed_keys_of_call
from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation, StalePlan
from lmsconf.kinds.custom_field.lost_answers import warn_of_clearing_hidden_fields
from lmsconf.kinds.custom_field.types import MIGRATE
from lmsconf.kinds.group import only_listed_people
from lmsconf.kinds.kind_functions import check_across_kinds, match_all, match_kind, plan_steps
from lmsconf.kinds.kind_table import KINDS, parse, parse_absent
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, Kind, required_keys
from lmsconf.kinds.shared.manifest_entry import ManifestEntry, declared_lists
from lmsconf.kinds.shared.plan_context import Match, MatchResult, PlanContext
from lmsconf.kinds.user.types import declared_row
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call, calls_by_address, is_creation
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.guards import Policy
from lmsconf.model.lint_codes import LintLevel, is_lint
from lmsconf.model.names import grouped
from lmsconf.model.plan import Action, Assumption, Change, Plan, PlanScope, UnmanagedResources
from lmsconf.model.problem_codes import is_blocking
from lmsconf.model.snapshot import Snapshot, row_to_json
from lmsconf.model.time_formats import format_utc
from lmsconf.planner.call_order import order_calls
from lmsconf.planner.check_guards import count_for_guards, evaluate_guards, find_protected_changes
from lmsconf.planner.planned_resources import (
    PlannedResource,
    add_changes_by_service,
    find_expired_absent,
    find_left_alone,
    planned_resources,
    refuse_references_to_skipped_renames,
    to_change,
)
from lmsconf.planner.rename_detection import POSSIBLE, possible_renames
from lmsconf.planner.selection import Selection
from lmsconf.planner.undo.kept_state import with_undo_limits


class PlanWithoutEffects(Struct, frozen=True, kw_only=True):
    """A plan without its effects on people and its lints, with what they are computed from.

    manifests: what applies in its workspace. results: by kind. lint_levels: as in the policy, or stricter under a base.
    protect: lists of patterns of what a base protects.
    """

    plan: Plan
    planning: PlanContext
    items: tuple[PlannedResource, ...]
    manifests: Manifests
    results: Mapping[str, MatchResult[Any, Any]]
    lint_levels: Mapping[str, LintLevel]
    protect: tuple[tuple[str, ...], ...] = ()


def plan_without_effects(
    manifests: Manifests,
    snapshot: Snapshot,
    policy: Policy,
    api_spec: ApiSpec,
    *,
    created_at: str,
    from_snapshot_file: bool = False,
) -> PlanWithoutEffects:
    """Return the plan that makes the workspace match the manifests, without its effects on people and its lints.

    created_at: ISO 8601. from_snapshot_file: the snapshot was not read just now, so the plan cannot be applied. Raises
    ProblemsFound, with the problems found so far, if one is an error. Those that only block an apply stay in the plan.
    """
    entries = manifests.in_workspace(policy.workspace)
    selection = _resolve_selection(entries, snapshot, policy, api_spec)
    planning = PlanContext(snapshot, policy, api_spec, selection, entries.declared, selection.excludes)
    results, items, skipped_by_additive = _diff_and_plan_steps(planning, selection, entries)
    arranged = order_calls(planning, [(item.address, item.steps) for item in items])
    warn_of_clearing_hidden_fields(planning, arranged)
    problems = [*manifests.problems, *_problems_in_scope(planning, [*entries.declared, *entries.absent])]
    if any(problem.is_error and not is_blocking(problem) for problem in problems):
        raise ProblemsFound(sorted(problems, key=lambda problem: problem.source or SourceLocation("")))
    # Problems found from here on stay in the plan.
    changes = with_undo_limits(snapshot, [to_change(planning, item) for item in items])
    sides = [(change, item.sides) for change, item in zip(changes, items, strict=True)]
    renames, rename_problems = possible_renames(planning, sides, results)
    likely = [problem.address or "" for problem in rename_problems if problem.code == POSSIBLE]
    measures = count_for_guards(sides, results, arranged, planning.measures, likely)
    problems.extend([*rename_problems, *find_protected_changes(changes, policy.guards.protect)])
    changes, problems = move_problems_to_changes(changes, problems)
    plan = Plan(
        workspace=snapshot.workspace,
        url=snapshot.url,
        people=snapshot.people,
        created_at=created_at,
        manifests_digest=manifests.digest,
        manifests_files=manifests.files,
        selection=PlanScope(only=selection.only, excluded=selection.excluded, additive=policy.additive),
        offline=from_snapshot_file,
        timezone=policy.timezone_name,
        changes=changes,
        calls=arranged,
        guards=evaluate_guards(measures, policy.guards, policy.consents),
        expires_at=format_utc(datetime.fromisoformat(created_at) + policy.valid_for),
        policy=policy.settings_json(),
        unmanaged=_unmanaged(results),
        fingerprints=_fingerprints(planning, items),
        problems=tuple(problems),
        left_out=tuple(skipped_by_additive),
        measures=measures,
        renames=tuple(renames),
    )
    return PlanWithoutEffects(
        plan=with_assumptions(plan, api_spec),
        planning=planning,
        items=tuple(items),
        manifests=entries,
        results=results,
        lint_levels=policy.lints,
    )


def _resolve_selection(entries: Manifests, snapshot: Snapshot, policy: Policy, api_spec: ApiSpec) -> Selection:
    """Return what is planned.

    `--only` and `--except` may name resources that are live and not declared, which are known only after matching.
    """
    selection = Selection(entries.declared, policy, absent=entries.absent)
    if not (policy.only or policy.excluded):
        return selection
    planning = PlanContext(snapshot, policy, api_spec, selection, entries.declared, selection.excludes)
    live = _selectable_live_addresses(match_all(planning, entries), snapshot)
    return Selection(entries.declared, policy, absent=entries.absent, live=live)


def _diff_and_plan_steps(
    planning: PlanContext, selection: Selection, entries: Manifests
) -> tuple[dict[str, MatchResult[Any, Any]], list[PlannedResource], list[Address]]:
    """Match all declarations with what is live, diff those that are selected, and plan their steps.

    Return the matches by kind, what differs, with its steps, and what `--additive` skips, since it only adds.
    """
    results: dict[str, MatchResult[Any, Any]] = {}
    items: list[PlannedResource] = []
    skipped_by_additive: list[Address] = []
    for name, kind in KINDS.items():
        results[name] = match_kind(planning, name, *entries.of_kind(name))
        items.extend(planned_resources(kind, planning, selection, results[name], skipped_by_additive))
    check_across_kinds(planning, results)
    items = add_changes_by_service(planning, selection, items)
    policy = planning.policy
    planning.problems += [
        *(() if policy.verifying else selection.problems()),
        *find_expired_absent(entries.absent, policy),
        *find_left_alone([*entries.declared, *entries.absent], policy, results.values()),
    ]
    refuse_references_to_skipped_renames(planning, items, results)
    for item in items:
        item.steps = plan_steps(planning, item.subject, item.sides)
    return results, items, skipped_by_additive


def _unmanaged(results: Mapping[str, MatchResult[Any, Any]]) -> tuple[UnmanagedResources, ...]:
    return tuple(
        UnmanagedResources(
            kind=kind, addresses=tuple(sorted(one.address for one in of.unmanaged)), left_alone=of.left_alone
        )
        for kind, of in results.items()
        if of.unmanaged or of.left_alone
    )


def _fingerprints(planning: PlanContext, items: Sequence[PlannedResource]) -> dict[str, str]:
    """Return address → digest of the live row, by which an apply finds whether the plan is stale.

    If a resource and a deleted duplicate share an address, their digests are combined.
    """
    return {
        address: reduce(
            lambda one, other: sha256([one, other]), (_fingerprint_of_live_row(planning, item) for item in same)
        )
        for address, same in grouped(items, lambda item: str(item.address)).items()
    }


def _fingerprint_of_live_row(planning: PlanContext, item: PlannedResource) -> str:
    """Return a digest of the live row that is the same after a full read and a partial one.

    Only a full read has undeclared attributes of people, and archived members of groups, so these are left out.
    """
    kind, subject, row = KINDS[item.address.kind], item.subject, item.subject.row
    if isinstance(subject, Match) and subject.row is not None:
        if kind.is_person:
            row = declared_row(subject.row, subject.declared.spec)
        elif kind.name == GROUP and any(declared_lists(subject.declared.spec)):
            row = only_listed_people(planning, subject.row)
    return sha256(row_to_json(row))


def move_problems_to_changes(
    changes: Sequence[Change], problems: Sequence[Problem]
) -> tuple[tuple[Change, ...], list[Problem]]:
    """Return the changes with their problems, and the problems of the whole plan.

    A change with problems here gets these instead of its own. Lints are problems of the whole plan: they
    depend on time and on people, and the digest of a plan does not.
    """
    addresses = {change.address for change in changes}
    rest = [problem for problem in problems if problem.address not in addresses or is_lint(problem)]
    own = grouped((one for one in problems if not is_lint(one)), lambda problem: problem.address)
    return tuple(replace(one, problems=tuple(own[one.address])) if one.address in own else one for one in changes), rest


def with_assumptions(plan: Plan, api_spec: ApiSpec) -> Plan:
    """Return a plan with the assumptions about the service that its calls rely on."""
    relying = calls_by_assumption(plan, api_spec)
    assumptions = tuple(
        Assumption(key=key, value=api_spec.behaviour(key), known=api_spec.is_known(key), calls=len(calls))
        for key, calls in relying.items()
    )
    assumed = {call.id for one in assumptions if not one.known for call in relying[one.key]}
    return replace(plan, assumptions=assumptions, assumed_calls=len(assumed))


def calls_by_assumption(plan: Plan, api_spec: ApiSpec) -> dict[str, list[Call]]:
    """Return each dialect key that calls of a plan rely on → these calls. Keys are sorted, calls in their order."""
    created = {change.address for change in plan.changes if change.action is Action.CREATE}
    relying: dict[str, list[Call]] = {}
    sent: set[tuple[Address, str]] = set()
    for call in plan.calls:
        # In a new resource the first call of an operation finds an empty list, and later ones what it added.
        finds_nothing = call.address in created and (call.address, call.operation) not in sent
        sent.add((call.address, call.operation))
        for key in assumed_keys_of_call(api_spec, call.operation, call.path, call.body, finds_nothing=finds_nothing):
            relying.setdefault(key, []).append(call)
    return dict(sorted(relying.items()))


def _problems_in_scope(
    planning: PlanContext, entries: Iterable[DesiredResource[Any] | DeleteEntry[Any]]
) -> Iterator[Problem]:
    """Yield the problems of selected resources, located at their entries, and those of the plan as a whole."""
    by_address: dict[str, DesiredResource[Any] | DeleteEntry[Any]] = {entry.address: entry for entry in entries}
    for problem in planning.problems:
        if problem.address is None or planning.chosen(Address.parse(problem.address)):
            entry = by_address.get(problem.address or "") if problem.source is None else None
            yield problem if entry is None else replace(problem, source=entry.source)


def _selectable_live_addresses(
    results: Mapping[str, MatchResult[Any, Any]],
    snapshot: Snapshot,
) -> Iterator[Address]:
    """Yield the live addresses to select from; of assignments, those that are undeclared or to be deleted."""
    for name, result in results.items():
        yield from (resource.address for resource in result.unmanaged)
        yield from (deletion.address for deletion in result.deletions)
        if not KINDS[name].is_relation:
            yield from (Address.of(name, KINDS[name].normalize_name(row.name)) for row in snapshot.of(name).rows)


def desired_state_of_changes(plan: Plan) -> Manifests:
    """Return the desired state of the resources that the plan changes.

    Raises LmsconfError for a form that its kind cannot parse, StalePlan for one without its identifying keys.
    """
    entries: list[DesiredResource[Any] | DeleteEntry[Any]] = []
    calls, by_id = calls_by_address(plan.calls), {call.id: call for call in plan.calls}
    # A side effect of another change is not declared.
    for change in (one for one in plan.changes if not one.is_side_effect):
        kind = KINDS[change.address.kind]
        side = change.before if change.action is Action.DELETE else change.after
        if not isinstance(side, dict) or not required_keys(kind) <= side.keys():
            raise StalePlan(
                f"{change.address}: the plan describes it incompletely",
                hint="Plan again, and apply that file unchanged.",
            )
        places = FixedSource(change.source or SourceLocation(str(change.address)))
        own = calls.get(change.address, ())
        body = manifest_entry_of_change(kind, change, side, own)
        entry = ManifestEntry(body=body, places=places, timezone=None, report=_refuse)
        needed = [by_id[need] for call in own for need in call.needs if need in by_id]
        made = parse_absent(kind.name, entry) if change.action is Action.DELETE else parse(kind.name, entry)
        entries.extend(_with_replaced_by_and_after(one, change, needed) for one in made)
    return Manifests(
        declared=tuple(one for one in entries if isinstance(one, DesiredResource)),
        absent=tuple(one for one in entries if isinstance(one, DeleteEntry)),
        files=plan.manifests_files,
        digest=plan.manifests_digest,
    )


def _with_replaced_by_and_after(
    entry: DesiredResource[Any] | DeleteEntry[Any], change: Change, needed: Iterable[Call]
) -> DesiredResource[Any] | DeleteEntry[Any]:
    """Return the entry with `replaced_by`, and with `after`.

    after: the assignments whose creation its calls wait for.
    """
    if not change.replaced_by:
        return entry
    after = frozenset(
        one.address
        for one in needed
        if is_creation(one.operation) and one.address.kind == CONTENT_TARGET and one.address != change.address
    )
    return replace(entry, spec=replace(entry.spec, replaced_by=change.replaced_by, after=after))


def manifest_entry_of_change(
    kind: Kind, change: Change, form: Mapping[str, Json], calls: Sequence[Call]
) -> Mapping[str, Json]:
    """Return the manifest entry that makes a planned change again, with the live resource pinned by its id.

    form: its state after the change, or before a deletion. calls: those of the change.
    """
    is_deleted = change.action is Action.DELETE
    if kind.name == CONTENT_TARGET:
        return {key: form[key] for key in ("content", "assign_to")} if is_deleted else form
    if is_deleted:
        return {"id": change.id, **{key: form[key] for key in (kind.name_key, MIGRATE) if key in form}}
    entry = form if change.id is None else {**form, "id": change.id}
    choices = entry.get("choices")
    if kind.name != CUSTOM_FIELD or not isinstance(choices, list):
        return entry
    ids = dict(_choice_ids_in_replace(calls))
    return {
        **entry,
        "choices": [{"name": name, "id": ids[name]} if name in ids else name for name in map(str, choices)],
    }


def _choice_ids_in_replace(calls: Sequence[Call]) -> Iterator[tuple[str, str]]:
    """Yield the name and id of each choice that the last custom-fields.replace call of a field keeps."""
    match [call.body for call in calls if call.operation == "custom-fields.replace"]:
        case [*_, {"choices": [*choices]}]:
            yield from (
                (str(choice.get("name")), str(choice["choiceId"]))
                for choice in choices
                if isinstance(choice, dict) and isinstance(choice.get("choiceId"), str)
            )


def people_to_read(plan: Plan) -> frozenset[RemoteId]:
    """Return the ids of the people that the plan changes, and of those that its calls add to lists."""
    changed = {change.id for change in plan.changes if change.id is not None and KINDS[change.address.kind].is_person}
    bodies = [call.body for call in plan.calls if call.people and isinstance(call.body, Mapping)]
    lists = [value for body in bodies for value in body.values() if isinstance(value, list)]
    return frozenset(changed | {RemoteId(id) for ids in lists for id in ids if isinstance(id, str)})


def _refuse(problem: Problem) -> None:
    raise LmsconfError(problem.message, hint=problem.hint)
