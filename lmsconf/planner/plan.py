"""Declarations + snapshot + policy → Plan. A pure function: equal inputs in any order give equal plans."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.blockers import is_blocking
from lmsconf.model.canonical_json import sha256
from lmsconf.model.forms import form_to_json
from lmsconf.model.names import exact_pattern, matches_patterns, normalize_name
from lmsconf.model.policy import Policy
from lmsconf.model.rows import row_to_json
from lmsconf.model.scope import PlanScope
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.time_formats import format_utc
from lmsconf.model.values import Action, Change, DeleteEntry, DesiredResource, Plan, Step, UnmanagedResources
from lmsconf.planner.calls import order_calls
from lmsconf.planner.context import BeforeAfter, CallTemplates, Deletion, Match, MatchResult, PlanContext, SideEffect
from lmsconf.planner.diff import diff_forms
from lmsconf.planner.guard_counts import count_for_guards
from lmsconf.planner.guards import evaluate_guards, refuse_protected_changes
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.rename_detection import possible_renames
from lmsconf.planner.selection import Selection, additions_only

NOT_LIVE = sha256(None)
"""The fingerprint of a resource that is not live."""

OWNED = "it is owned, and no manifest declares it"
"""The reason of a deletion without an entry under `absent`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """The content of all manifests, with their files, and one digest of these."""

    declared: tuple[DesiredResource[Any], ...] = ()
    absent: tuple[DeleteEntry[Any], ...] = ()
    problems: tuple[Problem, ...] = ()
    files: tuple[str, ...] = ()
    digest: str = ""


@dataclass(slots=True, kw_only=True)
class PlannedResource:
    """One resource that changes, before it becomes a Change and calls."""

    address: Address
    subject: Match[Any, Any] | Deletion[Any] | SideEffect
    sides: BeforeAfter
    action: Action
    steps: list[Step] = field(default_factory=list)
    change: Change | None = None


def make_plan(
    kinds: Mapping[str, AnyKind],
    manifests: Manifests,
    snapshot: Snapshot,
    policy: Policy,
    call_templates: CallTemplates,
    *,
    created_at: str,
    offline: bool = False,
) -> Plan:
    """Return the plan that makes the workspace match the manifests.

    created_at: ISO 8601. Raises ProblemsFound, with all problems, if one is an error that does not merely block apply.
    """
    declared = [one for one in manifests.declared if one.applies_in(policy.workspace)]
    absent = [one for one in manifests.absent if one.applies_in(policy.workspace)]
    selection = Selection(kinds, declared, policy)
    planning = PlanContext(snapshot, policy, call_templates, selection)
    results: dict[str, MatchResult[Any, Any]] = {}
    items: list[PlannedResource] = []
    left_out: list[Address] = []
    for name, kind in kinds.items():
        kind_declared = sorted((one for one in declared if one.address.kind == name), key=lambda one: one.address)
        kind_absent = sorted((one for one in absent if one.address.kind == name), key=lambda one: one.address)
        results[name] = kind.match(planning, kind_declared, kind_absent)
        items.extend(_items(kind, planning, results[name], left_out))
        _refuse_excluded_cascades(planning, selection, results[name])
    for name, result in results.items():
        kinds[name].finalize(planning, result)
    items = _with_effects(planning, selection, items, list(kinds))
    if not policy.verifying:
        planning.problems.extend(selection.problems(_known(declared, absent, results, snapshot)))
    planning.problems.extend([*refuse_expired_absent(absent, policy), *refuse_left_alone(declared, policy)])
    planning.problems.extend(_renamed_though_left_alone(results.values(), policy))
    _refuse_unrenamed_references(kinds, planning, items, results)
    for item in items:
        item.steps = _steps(kinds[item.address.kind], planning, item)
    arranged = order_calls(planning, [(item.address, item.steps) for item in items], list(kinds))
    problems = [*manifests.problems, *_placed(_relevant(planning, selection), [*declared, *absent])]
    if any(problem.is_error and not is_blocking(problem) for problem in problems):
        raise ProblemsFound(sorted(problems, key=lambda problem: problem.source or SourceLocation("")))
    changes = tuple(_change(kinds[item.address.kind], planning, item) for item in items)
    sides = [(change, item.sides) for change, item in zip(changes, items, strict=True)]
    renames = possible_renames(kinds, planning, sides, results)
    measures = count_for_guards(kinds, sides, results, arranged, planning.measures, renames.likely)
    problems.extend([*renames.problems, *refuse_protected_changes(kinds, changes, policy.guards.protect)])
    changes, problems = attach_problems(changes, problems)
    return Plan(
        workspace=snapshot.workspace,
        url=snapshot.url,
        people=snapshot.people,
        created_at=created_at,
        manifests_digest=manifests.digest,
        manifests_files=manifests.files,
        selection=PlanScope(only=policy.only, excluded=policy.excluded, additive=policy.additive),
        offline=offline,
        timezone=policy.timezone_name,
        changes=changes,
        calls=arranged,
        guards=evaluate_guards(measures, policy.guards, policy.consents),
        expires_at=format_utc(datetime.fromisoformat(created_at) + policy.valid_for),
        policy=policy.settings_json(),
        unmanaged=tuple(_unmanaged(results)),
        fingerprints=_fingerprints(items),
        problems=tuple(problems),
        left_out=tuple(left_out),
        measures=measures,
        renames=tuple(renames.possible),
    )


def refuse_expired_absent(absent: Iterable[DeleteEntry[Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each entry under `absent` after its `until` date."""
    for entry in absent:
        applies = entry.applies_in(policy.workspace)
        if applies and entry.until is not None and policy.today > entry.until:
            yield Problem(
                code="absent/expired",
                message=f"{entry.address}: the entry under `absent` was to be here until {entry.until} only",
                hint="Delete the entry, or give it a later date.",
                source=entry.source,
                address=str(entry.address),
            )


def refuse_left_alone(declared: Iterable[DesiredResource[Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each declaration that `leave_alone` in the project file ignores."""
    for declaration in declared:
        if declaration.applies_in(policy.workspace) and matches_patterns(str(declaration.address), policy.leave_alone):
            yield _left_alone(declaration, declaration.address)


def _renamed_though_left_alone(results: Iterable[MatchResult[Any, Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each declared rename of a live resource whose current name `leave_alone` ignores."""
    for match in (match for result in results for match in result.matches):
        if match.row is not None and normalize_name(match.row.name) != match.address.name:
            now = Address.of(match.address.kind, normalize_name(match.row.name))
            if matches_patterns(str(now), policy.leave_alone) and not matches_patterns(
                str(match.address), policy.leave_alone
            ):
                yield _left_alone(match.declared, now)


def _left_alone(declared: DesiredResource[Any], name: Address) -> Problem:
    return Problem(
        code="identity/left-alone",
        message=f"{declared.address}: it is declared, and `leave_alone` of the project file fits {name}",
        hint="Take the entry out, or narrow the pattern under `leave_alone`.",
        source=declared.source,
        address=str(declared.address),
    )


def _items(
    kind: AnyKind, planning: PlanContext, result: MatchResult[Any, Any], left_out: list[Address]
) -> list[PlannedResource]:
    """Return the resources of one kind that change, sorted by address; add what `--additive` skips to `left_out`."""
    out: list[PlannedResource] = []
    for match in result.matches:
        if not planning.chosen(match.address):
            continue
        sides = kind.diff(planning, match)
        if sides is None or sides.before == sides.after:
            continue
        if planning.policy.additive and sides.before is not None:
            reduced = additions_only(sides)
            if reduced.after != sides.after:
                left_out.append(match.address)
            sides = reduced
            if sides.before == sides.after:
                continue
        action = Action.CREATE if match.row is None else kind.action(planning, match)
        out.append(PlannedResource(address=match.address, subject=match, sides=sides, action=action))
    for deletion in result.deletions:
        if not planning.chosen(deletion.address) and not (deletion.with_ and planning.chosen(deletion.with_)):
            continue
        if planning.policy.additive:
            left_out.append(deletion.address)
            continue
        sides = kind.state_before_delete(planning, deletion)
        out.append(PlannedResource(address=deletion.address, subject=deletion, sides=sides, action=Action.DELETE))
    return sorted(out, key=lambda item: (item.address, item.action))


def _with_effects(
    planning: PlanContext, selection: Selection, items: Sequence[PlannedResource], kinds: Sequence[str]
) -> list[PlannedResource]:
    """Return the items with the changes that the service itself makes because of them, sorted.

    Refuses a resource that both a call and the service would change: the result would be undefined.
    """
    changed = {item.address for item in items}
    for effect in planning.effects:
        if selection.excludes(effect.address):
            _refuse_alone(planning, effect.with_, effect.address)
        if effect.address in changed:
            _refuse_both(planning, effect)
    effects = [
        PlannedResource(address=effect.address, subject=effect, sides=effect.sides, action=Action.UPDATE)
        for effect in planning.effects
        if effect.address not in changed
    ]
    return sorted([*items, *effects], key=lambda item: (kinds.index(item.address.kind), item.address, item.action))


def _refuse_excluded_cascades(planning: PlanContext, selection: Selection, result: MatchResult[Any, Any]) -> None:
    """Refuse to delete a group if `--except` excludes a resource that is deleted with it."""
    for deletion in result.deletions:
        if deletion.with_ and planning.chosen(deletion.with_) and selection.excludes(deletion.address):
            _refuse_alone(planning, deletion.with_, deletion.address)


def _refuse_both(planning: PlanContext, effect: SideEffect) -> None:
    before, after = effect.sides.before or {}, effect.sides.after or {}
    keys = " and ".join(key for key in before if before[key] != after.get(key))
    planning.problem(
        "refusal/changed-along",
        f"{effect.with_}: it cannot change together with {effect.address}, whose {keys} the service would change too",
        hint=f"Declare the {keys} of {effect.address}, or apply one of the two first, with --only.",
        address=effect.with_,
    )


def _refuse_alone(planning: PlanContext, cause: Address, along: Address) -> None:
    planning.problem(
        "select/goes-along",
        f"{cause}: {along} goes with it, and --except leaves that out",
        hint=f"Leave both out: --except {shlex.quote(exact_pattern(str(cause)))}.",
        address=cause,
    )


def _refuse_unrenamed_references(
    kinds: Mapping[str, AnyKind],
    planning: PlanContext,
    items: Sequence[PlannedResource],
    results: Mapping[str, MatchResult[Any, Any]],
) -> None:
    """Refuse a reference to a new name if the plan leaves out the rename."""
    waiting = {
        match.address
        for result in results.values()
        for match in result.matches
        if match.row is not None
        and normalize_name(match.row.name) != match.address.name
        and (planning.policy.additive or not planning.chosen(match.address))
    }
    for item in items if waiting else ():
        if isinstance(item.subject, Match):
            for other in kinds[item.address.kind].dependencies(item.subject.declared):
                if other in waiting:
                    planning.problem(
                        "reference/not-renamed",
                        f"{item.address}: it names {other}, and the plan leaves out the renaming that makes it so",
                        hint=f"Apply --only {shlex.quote(str(other))} first.",
                        at=item.subject.declared.source,
                        address=item.address,
                    )


def _steps(kind: AnyKind, planning: PlanContext, item: PlannedResource) -> list[Step]:
    if isinstance(item.subject, SideEffect):
        return []
    if isinstance(item.subject, Deletion):
        return kind.plan_delete(planning, item.subject)
    return kind.plan_steps(planning, item.subject, item.sides)


def _change(kind: AnyKind, planning: PlanContext, item: PlannedResource) -> Change:
    subject, sides = item.subject, item.sides
    declared = subject.declared if isinstance(subject, Match) else None
    absent = subject.absent if isinstance(subject, Deletion) else None
    source = declared.source if declared else absent.source if absent else None
    both = sides.before is not None and sides.after is not None
    return Change(
        address=item.address,
        action=item.action,
        id=None if subject.row is None else subject.row.id,
        about=declared.about if declared else None,
        source=source,
        before=form_to_json(sides.before),
        after=form_to_json(sides.after),
        fields=diff_forms(sides.before or {}, sides.after or {}) if both else (),
        defaults=sides.defaults,
        reason=_reason(subject),
        goes_with=None if isinstance(subject, Match) else subject.with_,
        undo=kind.undo_extent(planning, subject, sides),
    )


def _reason(subject: Match[Any, Any] | Deletion[Any] | SideEffect) -> str | None:
    """Return why a resource is deleted or changed that no manifest names; None for any other."""
    if isinstance(subject, SideEffect):
        return subject.reason
    if isinstance(subject, Match) or subject.absent is not None:
        return None
    return f"it goes with {subject.with_}" if subject.with_ else OWNED


def attach_problems(changes: Sequence[Change], problems: Sequence[Problem]) -> tuple[tuple[Change, ...], list[Problem]]:
    """Attach each problem to the change of its address; return the changes, and the problems of the plan as a whole."""
    by_address: dict[str, list[Problem]] = {str(change.address): [] for change in changes}
    rest = [problem for problem in problems if problem.address not in by_address]
    for problem in problems:
        if problem.address in by_address:
            by_address[problem.address].append(problem)
    return tuple(replace(change, problems=tuple(by_address[str(change.address)])) for change in changes), rest


def _fingerprints(items: Sequence[PlannedResource]) -> dict[str, str]:
    """Return address → fingerprint; a combined one where a resource and a deleted duplicate share an address."""
    fingerprints: dict[str, str] = {}
    for item in items:
        address, digest = str(item.address), _fingerprint(item)
        fingerprints[address] = sha256([fingerprints[address], digest]) if address in fingerprints else digest
    return fingerprints


def _fingerprint(item: PlannedResource) -> str:
    return NOT_LIVE if item.subject.row is None else sha256(row_to_json(item.subject.row))


def _relevant(planning: PlanContext, selection: Selection) -> Iterator[Problem]:
    """Yield the problems of selected resources and of the plan as a whole."""
    for problem in planning.problems:
        if problem.address is None or selection(Address.parse(problem.address)):
            yield problem


def _placed(
    problems: Iterable[Problem], entries: Iterable[DesiredResource[Any] | DeleteEntry[Any]]
) -> Iterator[Problem]:
    """Give each problem of a resource without a source location that of its manifest entry."""
    places = {str(one.address): one.source for one in entries}
    for problem in problems:
        at = places.get(problem.address or "") if problem.source is None else None
        yield problem if at is None else replace(problem, source=at)


def _known(
    declared: Sequence[DesiredResource[Any]],
    absent: Sequence[DeleteEntry[Any]],
    results: Mapping[str, MatchResult[Any, Any]],
    snapshot: Snapshot,
) -> Iterator[Address]:
    """Yield all addresses that are declared, under `absent`, or live, ignored ones included."""
    yield from (one.address for one in declared)
    yield from (one.address for one in absent)
    for kind, result in results.items():
        yield from (one.address for one in result.unmanaged)
        yield from (one.address for one in result.deletions)
        yield from (Address.of(kind, normalize_name(row.name)) for row in snapshot.of(kind).rows)


def _unmanaged(results: Mapping[str, MatchResult[Any, Any]]) -> Iterator[UnmanagedResources]:
    for kind, result in results.items():
        if result.unmanaged or result.ignored:
            addresses = sorted(one.address for one in result.unmanaged)
            yield UnmanagedResources(kind=kind, addresses=tuple(addresses), left_alone=result.ignored)
