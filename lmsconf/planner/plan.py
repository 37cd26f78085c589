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
from lmsconf.model.canonical import sha256
from lmsconf.model.forms import plain
from lmsconf.model.moments import utc_text
from lmsconf.model.names import exactly, matches, normal
from lmsconf.model.policy import Policy
from lmsconf.model.rows import row_json
from lmsconf.model.scope import Selected
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.values import Action, Change, DeleteEntry, DesiredResource, Plan, Step, Unmanaged
from lmsconf.planner.calls import arrange
from lmsconf.planner.context import BeforeAfter, Deletion, Effect, Match, MatchResult, PlanContext, Terms
from lmsconf.planner.diff import differences
from lmsconf.planner.guards import evaluate_guards, protected
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.measures import measure
from lmsconf.planner.renames import possible_renames
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
class Item:
    """One resource that changes, before it becomes a Change and calls."""

    address: Address
    subject: Match[Any, Any] | Deletion[Any] | Effect
    sides: BeforeAfter
    action: Action
    steps: list[Step] = field(default_factory=list)
    change: Change | None = None


def make_plan(
    kinds: Mapping[str, AnyKind],
    manifests: Manifests,
    snapshot: Snapshot,
    policy: Policy,
    terms: Terms,
    *,
    created_at: str,
    offline: bool = False,
) -> Plan:
    """Return the plan that makes the workspace match the manifests.

    created_at: ISO 8601. Raises ProblemsFound, with all problems, if one is an error that does not merely block apply.
    """
    here = [one for one in manifests.declared if one.applies_in(policy.workspace)]
    gone = [one for one in manifests.absent if one.applies_in(policy.workspace)]
    selection = Selection(kinds, here, policy)
    planning = PlanContext(snapshot, policy, terms, selection)
    found: dict[str, MatchResult[Any, Any]] = {}
    items: list[Item] = []
    left_out: list[Address] = []
    for name, kind in kinds.items():
        mine = sorted((one for one in here if one.address.kind == name), key=lambda one: one.address)
        away = sorted((one for one in gone if one.address.kind == name), key=lambda one: one.address)
        found[name] = kind.match(planning, mine, away)
        items.extend(_items(kind, planning, found[name], left_out))
        _refuse_what_goes_along(planning, selection, found[name])
    for name, identified in found.items():
        kinds[name].finalize(planning, identified)
    items = _with_effects(planning, selection, items, list(kinds))
    if not policy.verifying:
        planning.problems.extend(selection.problems(_known(here, gone, found, snapshot)))
    planning.problems.extend([*outlived(gone, policy), *left_alone(here, policy)])
    planning.problems.extend(_renamed_though_left_alone(found.values(), policy))
    _refuse_names_to_come(kinds, planning, items, found)
    for item in items:
        item.steps = _steps(kinds[item.address.kind], planning, item)
    arranged = arrange(planning, [(item.address, item.steps) for item in items], list(kinds))
    problems = [*manifests.problems, *_placed(_relevant(planning, selection), [*here, *gone])]
    if any(problem.is_error and not is_blocking(problem) for problem in problems):
        raise ProblemsFound(sorted(problems, key=lambda problem: problem.source or SourceLocation("")))
    changes = tuple(_change(kinds[item.address.kind], planning, item) for item in items)
    sides = [(change, item.sides) for change, item in zip(changes, items, strict=True)]
    renames = possible_renames(kinds, planning, sides, found)
    measures = measure(kinds, sides, found, arranged, planning.measures, renames.likely)
    problems.extend([*renames.problems, *protected(kinds, changes, policy.guards.protect)])
    changes, problems = handed_out(changes, problems)
    return Plan(
        workspace=snapshot.workspace,
        url=snapshot.url,
        people=snapshot.people,
        created_at=created_at,
        manifests_digest=manifests.digest,
        manifests_files=manifests.files,
        selection=Selected(only=policy.only, excluded=policy.excluded, additive=policy.additive),
        offline=offline,
        timezone=policy.timezone_name,
        changes=changes,
        calls=arranged,
        guards=evaluate_guards(measures, policy.guards, policy.consents),
        expires_at=utc_text(datetime.fromisoformat(created_at) + policy.valid_for),
        policy=policy.normalised(),
        unmanaged=tuple(_unmanaged(found)),
        fingerprints=_fingerprints(items),
        problems=tuple(problems),
        left_out=tuple(left_out),
        measures=measures,
        renames=tuple(renames.found),
    )


def outlived(absent: Iterable[DeleteEntry[Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each entry under `absent` after its `until` date."""
    for one in absent:
        here = one.applies_in(policy.workspace)
        if here and one.until is not None and policy.today > one.until:
            yield Problem(
                code="absent/expired",
                message=f"{one.address}: the entry under `absent` was to be here until {one.until} only",
                hint="Delete the entry, or give it a later date.",
                source=one.source,
                address=str(one.address),
            )


def left_alone(declared: Iterable[DesiredResource[Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each declaration that `leave_alone` in the project file ignores."""
    for one in declared:
        if one.applies_in(policy.workspace) and matches(str(one.address), policy.leave_alone):
            yield _left_alone(one, one.address)


def _renamed_though_left_alone(found: Iterable[MatchResult[Any, Any]], policy: Policy) -> Iterator[Problem]:
    """Yield an error for each declared rename of a live resource whose current name `leave_alone` ignores."""
    for match in (match for identified in found for match in identified.matches):
        if match.row is not None and normal(match.row.name) != match.address.name:
            now = Address.of(match.address.kind, normal(match.row.name))
            if matches(str(now), policy.leave_alone) and not matches(str(match.address), policy.leave_alone):
                yield _left_alone(match.declared, now)


def _left_alone(declared: DesiredResource[Any], name: Address) -> Problem:
    return Problem(
        code="identity/left-alone",
        message=f"{declared.address}: it is declared, and `leave_alone` of the project file fits {name}",
        hint="Take the entry out, or narrow the pattern under `leave_alone`.",
        source=declared.source,
        address=str(declared.address),
    )


def _items(kind: AnyKind, planning: PlanContext, found: MatchResult[Any, Any], left_out: list[Address]) -> list[Item]:
    """Return the resources of one kind that change, sorted by address; add what `--additive` skips to `left_out`."""
    out: list[Item] = []
    for match in found.matches:
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
        out.append(Item(address=match.address, subject=match, sides=sides, action=action))
    for gone in found.deletions:
        if not planning.chosen(gone.address) and not (gone.with_ and planning.chosen(gone.with_)):
            continue
        if planning.policy.additive:
            left_out.append(gone.address)
            continue
        sides = kind.state_before_delete(planning, gone)
        out.append(Item(address=gone.address, subject=gone, sides=sides, action=Action.DELETE))
    return sorted(out, key=lambda item: (item.address, item.action))


def _with_effects(
    planning: PlanContext, selection: Selection, items: Sequence[Item], kinds: Sequence[str]
) -> list[Item]:
    """Return the items with the changes that the service itself makes because of them, sorted.

    Refuses a resource that both a call and the service would change: the result would be undefined.
    """
    changed = {item.address for item in items}
    for one in planning.effects:
        if selection.leaves_out(one.address):
            _refuse_alone(planning, one.with_, one.address)
        if one.address in changed:
            _refuse_both(planning, one)
    effects = [
        Item(address=one.address, subject=one, sides=one.sides, action=Action.UPDATE)
        for one in planning.effects
        if one.address not in changed
    ]
    return sorted([*items, *effects], key=lambda item: (kinds.index(item.address.kind), item.address, item.action))


def _refuse_what_goes_along(planning: PlanContext, selection: Selection, found: MatchResult[Any, Any]) -> None:
    """Refuse to delete a group if `--except` excludes a resource that is deleted with it."""
    for gone in found.deletions:
        if gone.with_ and planning.chosen(gone.with_) and selection.leaves_out(gone.address):
            _refuse_alone(planning, gone.with_, gone.address)


def _refuse_both(planning: PlanContext, effect: Effect) -> None:
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
        hint=f"Leave both out: --except {shlex.quote(exactly(str(cause)))}.",
        address=cause,
    )


def _refuse_names_to_come(
    kinds: Mapping[str, AnyKind],
    planning: PlanContext,
    items: Sequence[Item],
    found: Mapping[str, MatchResult[Any, Any]],
) -> None:
    """Refuse a reference to a new name if the plan leaves out the rename."""
    waiting = {
        match.address
        for identified in found.values()
        for match in identified.matches
        if match.row is not None
        and normal(match.row.name) != match.address.name
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


def _steps(kind: AnyKind, planning: PlanContext, item: Item) -> list[Step]:
    if isinstance(item.subject, Effect):
        return []
    if isinstance(item.subject, Deletion):
        return kind.plan_delete(planning, item.subject)
    return kind.plan_steps(planning, item.subject, item.sides)


def _change(kind: AnyKind, planning: PlanContext, item: Item) -> Change:
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
        before=plain(sides.before),
        after=plain(sides.after),
        fields=differences(sides.before or {}, sides.after or {}) if both else (),
        defaults=sides.defaults,
        reason=_reason(subject),
        goes_with=None if isinstance(subject, Match) else subject.with_,
        undo=kind.lost_on(planning, subject, sides),
    )


def _reason(subject: Match[Any, Any] | Deletion[Any] | Effect) -> str | None:
    """Return why a resource is deleted or changed that no manifest names; None for any other."""
    if isinstance(subject, Effect):
        return subject.reason
    if isinstance(subject, Match) or subject.absent is not None:
        return None
    return f"it goes with {subject.with_}" if subject.with_ else OWNED


def handed_out(changes: Sequence[Change], problems: Sequence[Problem]) -> tuple[tuple[Change, ...], list[Problem]]:
    """Attach each problem to the change of its address; return the changes, and the problems of the plan as a whole."""
    mine: dict[str, list[Problem]] = {str(change.address): [] for change in changes}
    rest = [problem for problem in problems if problem.address not in mine]
    for problem in problems:
        if problem.address in mine:
            mine[problem.address].append(problem)
    return tuple(replace(change, problems=tuple(mine[str(change.address)])) for change in changes), rest


def _fingerprints(items: Sequence[Item]) -> dict[str, str]:
    """Return address → fingerprint; a combined one where a resource and a deleted duplicate share an address."""
    found: dict[str, str] = {}
    for item in items:
        address, mine = str(item.address), _fingerprint(item)
        found[address] = sha256([found[address], mine]) if address in found else mine
    return found


def _fingerprint(item: Item) -> str:
    return NOT_LIVE if item.subject.row is None else sha256(row_json(item.subject.row))


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
    here: Sequence[DesiredResource[Any]],
    gone: Sequence[DeleteEntry[Any]],
    found: Mapping[str, MatchResult[Any, Any]],
    snapshot: Snapshot,
) -> Iterator[Address]:
    """Yield all addresses that are declared, under `absent`, or live, ignored ones included."""
    yield from (one.address for one in here)
    yield from (one.address for one in gone)
    for kind, identified in found.items():
        yield from (one.address for one in identified.unmanaged)
        yield from (one.address for one in identified.deletions)
        yield from (Address.of(kind, normal(row.name)) for row in snapshot.of(kind).rows)


def _unmanaged(found: Mapping[str, MatchResult[Any, Any]]) -> Iterator[Unmanaged]:
    for kind, identified in found.items():
        if identified.unmanaged or identified.ignored:
            addresses = sorted(one.address for one in identified.unmanaged)
            yield Unmanaged(kind=kind, addresses=tuple(addresses), left_alone=identified.ignored)
