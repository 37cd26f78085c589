"""Guards, which block an apply: too many deletions or removals, likely renames and refusals, protected resources.

A plan stores its measures, so that a saved plan is checked against the limits in force when it is applied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from lmsconf.errors import Problem
from lmsconf.kinds.assignment.types import lost_access
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import SMART_GROUP, USER, Kind
from lmsconf.kinds.shared.plan_context import BeforeAfter, MatchResult
from lmsconf.kinds.user.types import revoked_access, revoked_rights
from lmsconf.model.address import Address
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import members
from lmsconf.model.effects import count_people
from lmsconf.model.guards import (
    GUARD_TABLE,
    GUARDS,
    SMALL,
    UNKNOWN,
    Consent,
    GuardLimit,
    GuardLimits,
    limit_to_json,
    stricter_limit,
)
from lmsconf.model.names import grouped, matches_patterns
from lmsconf.model.plan import Action, Change, GuardCount, GuardResult, total_taken


def evaluate_guards(
    measures: Sequence[GuardCount],
    guards: GuardLimits,
    consents: Sequence[Consent],
    beside: tuple[str, GuardLimits] | None = None,
) -> tuple[GuardResult, ...]:
    """Return the state of each enabled guard: its limit, the total, and whether it is tripped.

    beside: a phrase for reasons, and further guards that apply too. The stricter limit holds.
    """
    results = []
    for name in GUARDS:
        counted = [measure for measure in measures if measure.guard == name]
        limit, reason = _judge(name, counted, guards, beside)
        if limit is None:
            continue
        total = total_taken(name, counted)
        consent = next((one for one in consents if reason and one.guard == name and one.number == total), None)
        results.append(
            GuardResult(
                name=name,
                limit=members(limit_to_json(limit)),
                total=total,
                tripped=reason is not None and consent is None,
                allow=f"{name}={UNKNOWN if total is None else total}" if reason else None,
                reason=reason,
                allowed_by=None if consent is None else consent.reason or str(consent.source or "--allow"),
            )
        )
    return tuple(results)


def _judge(
    name: str, measures: Sequence[GuardCount], guards: GuardLimits, beside: tuple[str, GuardLimits] | None
) -> tuple[GuardLimit | None, str | None]:
    """Return the limit that holds, and why the guard trips; a reason of the guards beside has their phrase."""
    own = guards.limits[name]
    reason = _reason(name, own, measures)
    if reason is not None or beside is None:
        return own, reason
    other = beside[1].limits[name]
    reason = _reason(name, other, measures)
    return (stricter_limit(own, other), None) if reason is None else (other, f"{reason} {beside[0]}")


def _reason(name: str, limit: GuardLimit | None, measures: Sequence[GuardCount]) -> str | None:
    """Return why a limit is exceeded, as text; None if it is not, or the guard is off."""
    if limit is None:
        return None
    counted = total_taken(name, measures)
    share = "" if limit.share is None else f"{limit.share * 100:g}%"
    if counted is None:
        shown = share if limit.count is None else f"{limit.count:,}"
        return f"{GUARD_TABLE[name].unknown}, and the limit is {shown}" if shown else None
    if limit.count is not None and counted > limit.count:
        return f"{counted_words(name, counted)}, and the limit is {limit.count:,}"
    for measure in measures:
        judged = None if measure.size < SMALL else measure.taken
        if limit.share is not None and judged is not None and judged / measure.size > limit.share:
            return f"{_share(name, judged, measure)}, and the limit is {share}"
    return None


def _share(name: str, taken: int, measure: GuardCount) -> str:
    """`25 of 40 in members of group/Sales`."""
    guard, size = GUARD_TABLE[name], measure.size
    words = guard.more_than_all if guard.more_than_all and taken > size else guard.share
    return words.format(size=size, all_people=count_people(size), of=measure.of, **_numbered(name, taken))


def _numbered(name: str, total: int) -> dict[str, int | str]:
    """Return what the sentences of a guard say of a total, by placeholder."""
    lose, noun = ("loses", name[:-1]) if total == 1 else ("lose", name)
    return {"total": total, "people": count_people(total), "lose": lose, "noun": noun}


def least_live_within_share(taken: int, limit: GuardLimit | None, *, least: int = 0) -> float:
    """Return how many rows must be live for `taken` to stay within the share limit (inf if that is 0).

    0 if no share is checked: nothing is taken, no share limit, over the count limit, or `least` rows are enough.
    """
    if not taken or limit is None or limit.share is None or (limit.count is not None and taken > limit.count):
        return 0
    enough = taken / limit.share if limit.share else inf
    return enough if enough > least else 0


def counted_words(name: str, total: int) -> str:
    """`214 removals`, `1 removal`."""
    return GUARD_TABLE[name].counted.format(**_numbered(name, total))


def find_protected_changes(changes: Iterable[Change], lists: Sequence[Sequence[str]]) -> Iterator[Problem]:
    """Return a problem for each deletion, rename or removal of a protected resource; no consent lifts it.

    lists: lists of patterns. A `!` excludes from its own list alone; what any list covers is protected.
    """
    protected = (change for change in changes if lists and _is_protected(change, lists))
    harmed = ((change, next(_harms(KINDS[change.address.kind], change), None)) for change in protected)
    return (
        Problem(
            code="refusal/protected",
            message=f"{change.address}: it is protected, but the plan would {harm}",
            hint="Remove the change from the manifests, or the resource from `guards.protect`.",
            source=change.source,
            address=str(change.address),
        )
        for change, harm in harmed
        if harm
    )


def _is_protected(change: Change, lists: Sequence[Sequence[str]]) -> bool:
    """Whether a list covers a resource, under its name or the one that it has before the plan."""
    kind = KINDS[change.address.kind]
    earlier = [Address.of(kind.name, str(one.before)) for one in change.fields if one.path == kind.name_key]
    return any(matches_patterns(str(one), patterns) for one in (change.address, *earlier) for patterns in lists)


def find_protected_losses(losses: Mapping[Address, int], protect: Sequence[Sequence[str]]) -> Iterator[Problem]:
    """Yield a problem for each protected smart group that people leave. losses: smart group → how many.

    It has no address, so that the plan keeps the digest that it has without effects.
    """
    return (
        Problem(
            code="refusal/protected",
            message=f"{address}: it is protected, but with this plan {count_people(leave)} would leave it",
            hint="Keep their answers as they are, or remove the smart group from `guards.protect`.",
        )
        for address, leave in losses.items()
        if any(matches_patterns(str(address), patterns) for patterns in protect)
    )


def _harms(kind: Kind, change: Change) -> Iterator[str]:
    """Yield what a change takes from a protected resource, the worst first. A creation changes no field."""
    if change.action in (Action.DELETE, Action.REPLACE):
        yield f"{change.action} it"
    fields = {one.path: one for one in change.fields}
    if kind.name_key in fields:
        yield "rename it"
    yield from (
        f"rename its choice {one.before}" for path, one in fields.items() if path.startswith(f"{kind.parts_key}.")
    )
    if lost := list(dict.fromkeys(revoked_rights(change) if kind.is_person else lost_access(change))):
        yield f"revoke {' and '.join(lost)}"
    yield from (f"remove {len(one.removed)} of its {one.path}" for one in fields.values() if one.removed)
    if kind.name == SMART_GROUP and "conditions" in fields:
        yield "add a condition to it, which only takes people out"


def count_for_guards(
    changes: Sequence[tuple[Change, BeforeAfter]],
    results: Mapping[str, MatchResult[Any, Any]],
    calls: Sequence[Call],
    counted: Sequence[GuardCount],
    likely: Sequence[str],
) -> tuple[GuardCount, ...]:
    """Return everything that the guards count in a plan.

    Shares of people are those of active people: archived ones neither make a list longer nor a share of it larger. What
    is taken from them adds to the totals.
    results: match result by kind. counted: measures that the kinds took. likely: the resource of each likely rename.
    """
    risky = dict.fromkeys(str(call.address) for call in calls if call.may_be_refused)
    updated = [
        (change.address.kind, "", "updates", sides.is_archived)
        for change, sides in changes
        if change.action is Action.UPDATE
    ]
    deleted = [
        (change.address.kind, "", "removals" if KINDS[change.address.kind].is_relation else "deletes", False)
        for change, _ in changes
        if change.action in (Action.DELETE, Action.REPLACE)
    ]
    lost = [
        (change.address.kind, f" ({one.path})", "removals", sides.is_archived)
        for change, sides in changes
        for one in change.fields
        if change.address.kind == USER and revoked_access(one)
    ]
    return (
        *_of_all(deleted, results),
        *(one for change, sides in changes for one in _removed(change, sides)),
        *_of_all(lost, results),
        *(GuardCount(guard="recreates", of=address, taken=1, size=0) for address in likely),
        *(GuardCount(guard="refusals", of=address, taken=1, size=0) for address in risky),
        *counted,
        *_of_all(updated, results),
    )


def _of_all(
    taken: Sequence[tuple[str, str, str, bool]], results: Mapping[str, MatchResult[Any, Any]]
) -> Iterator[GuardCount]:
    """Yield, by kind, key and guard, how many resources lose something, of all live ones.

    taken: the kind of what loses something, its key in brackets, the guard that counts it, and whether it is archived.
    """
    for (kind, key, guard), same in sorted(grouped(taken, lambda one: one[:3]).items()):
        archived = sum(is_archived for *_, is_archived in same)
        yield from _measures(guard, f"all {KINDS[kind].plural}{key}", len(same), archived, results[kind].live)


def _removed(change: Change, sides: BeforeAfter) -> Iterator[GuardCount]:
    """Yield the items that a change removes from lists; a deletion removes all of each list."""
    if change.action is Action.DELETE:
        archived: Mapping[str, Collection[str]] = sides.archived
        taken = {key: size + len(archived.get(key, ())) for key, size in sides.sizes.items()}
    else:
        taken = {one.path: len(one.removed) for one in change.fields if one.removed}
        archived = {
            one.path: sides.archived.get(one.path, frozenset()).intersection(map(str, one.removed))
            for one in change.fields
        }
    for key, number in taken.items():
        of, size = f"{change.address} {key}", sides.sizes.get(key, 0)
        yield from _measures("removals", of, number, len(archived.get(key, ())), size)


def _measures(guard: str, of: str, taken: int, archived: int, size: int) -> Iterator[GuardCount]:
    """Yield a measure of the share of those who are active, and one of archived people for the total alone."""
    if taken > archived:
        yield GuardCount(guard=guard, of=of, taken=taken - archived, size=size)
    if archived:
        yield GuardCount(guard=guard, of=f"{of}, archived", taken=archived, size=0)
