"""Match named resources: a live one is declared, under `absent`, owned, ignored (`leave_alone`) or unmanaged."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lmsconf.errors import Severity, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.names import confusable_skeleton, matches_pattern, matches_patterns, normalize_name, quote_name
from lmsconf.model.snapshot import HasName, ListedRow
from lmsconf.model.values import DeleteEntry, DesiredResource
from lmsconf.planner.claim_matching import Claim, ClaimMatches, match_claims
from lmsconf.planner.context import Deletion, Match, MatchResult, PlanContext, Row, Spec, UndeclaredResource

Listed = TypeVar("Listed", bound=ListedRow)


@dataclass(slots=True)
class _Identities:
    """doubtful: declared addresses whose live row is unknown because of an error. renamed: current → new address."""

    doubtful: set[Address] = field(default_factory=set)
    renamed: dict[Address, Address] = field(default_factory=dict)


def match_named(
    planning: PlanContext,
    row_type: type[Listed],
    noun: str,
    declared: Sequence[DesiredResource[Spec]],
    absent: Sequence[DeleteEntry[Any]],
) -> MatchResult[Spec, Listed]:
    """Match declarations with the live resources of a kind, and register every name as it will be after apply."""
    kind = row_type.listing
    listing, rows = planning.snapshot.of(kind), planning.snapshot.rows(row_type)
    out, matched = match_declared(planning, kind, noun, declared, rows)
    left = _take_absent(planning, kind, out, absent, rows, matched.unclaimed, {row.id for row in matched.live if row})
    _settle(planning, kind, out, left)
    if out.deletions and listing.incomplete:
        _refuse_deletions(planning, noun, out, listing.incomplete)
    planning.deleted.update(deletion.address for deletion in out.deletions if planning.chosen(deletion.address))
    refuse_taken_names(planning, out, rows)
    return out


def match_declared(
    planning: PlanContext, kind: str, noun: str, declared: Sequence[DesiredResource[Spec]], rows: Sequence[Row]
) -> tuple[MatchResult[Spec, Row], ClaimMatches[Row]]:
    """Match declarations with live rows, record problems, and register the declared names."""
    incomplete = planning.snapshot.of(kind).incomplete
    matched = match_claims([_claim(planning, one) for one in declared], rows, incomplete=incomplete, noun=noun)
    planning.problems.extend(matched.problems)
    out: MatchResult[Spec, Row] = MatchResult(live=len(rows))
    for position, (declaration, row) in enumerate(zip(declared, matched.live, strict=True)):
        if position not in matched.broken:
            out.matches.append(Match(declared=declaration, row=row))
        else:
            planning.state(_Identities).doubtful.add(declaration.address)
        if row is not None and normalize_name(row.name) != declaration.address.name:
            planning.state(_Identities).renamed[Address.of(kind, normalize_name(row.name))] = declaration.address
        planning.registry.register(kind, declaration.address.name, None if row is None else row.id)
    return out, matched


def refuse_ambiguous_reference(planning: PlanContext, named: Address, by: Address, at: SourceLocation) -> bool:
    """Whether a referenced resource is ambiguous or has an error of its own.

    Records a problem, unless the resource's own error is reported anyway.
    """
    doubtful = named in planning.state(_Identities).doubtful
    if (ids := planning.registry.duplicate_ids(named.kind, named.name)) and not doubtful:
        planning.problem(
            "identity/live-twice",
            f'{by}: "{named.name}" is live more than once, with the ids {", ".join(sorted(ids))}',
            hint="Declare the one that is meant, with its `id:`.",
            at=at,
            address=by,
        )
        return True
    if not doubtful:
        return False
    if not planning.chosen(named):
        planning.problem(
            "reference/in-doubt",
            f"{by}: it names {named}, of which nobody can tell yet what is live",
            hint=f"Plan {shlex.quote(str(named))} too: its error says why.",
            at=at,
            address=by,
        )
    return True


def why_name_is_missing(planning: PlanContext, named: Address, near: str | None) -> tuple[str, str | None]:
    """Return why a referenced name will not exist (renamed, deleted, not live), and a hint. near: names a close one."""
    new = planning.state(_Identities).renamed.get(named)
    if new is not None:
        return f"{named} is being renamed to {new}", f"Write the new name: {quote_name(new.name)}."
    if named in planning.deleted:
        return (
            f"{named} will be deleted by this plan",
            "Take out what names it. To keep it, declare it, and take it out of `absent` if it stands there.",
        )
    otherwise = "Correct the name, or declare it."
    return f"{named} is neither declared nor live", hint_on_missing(planning, named.kind, near, otherwise)


def _claim(planning: PlanContext, declaration: DesiredResource[Any]) -> Claim:
    return Claim(
        name=declaration.address.name,
        pin=declaration.pin(planning.policy.workspace),
        previously=declaration.previously,
        label=str(declaration.address),
        source=declaration.source,
        address=str(declaration.address),
    )


def _take_absent(
    planning: PlanContext,
    kind: str,
    out: MatchResult[Spec, Row],
    absent: Sequence[DeleteEntry[Any]],
    rows: Sequence[Row],
    free: Sequence[Row],
    claimed: set[str],
) -> list[Row]:
    """Record a deletion for each row that `absent` lists; return the other free rows."""
    by_name: defaultdict[str, list[Row]] = defaultdict(list)
    by_id = {row.id: row for row in rows}
    for row in by_id.values():
        by_name[normalize_name(row.name)].append(row)
    deleted_ids: set[str] = set()
    for entry in absent:
        pin = entry.pin(planning.policy.workspace)
        pinned = None if pin is None else by_id.get(pin)
        if pinned is not None and normalize_name(pinned.name) != entry.address.name:
            _other_name(planning, entry, pinned, by_name[entry.address.name])
            continue
        whole = planning.snapshot.of(kind).incomplete is None
        if whole and pin is not None and pinned is None and by_name[entry.address.name]:
            _other_id(planning, entry, pin, by_name[entry.address.name])
            continue
        named = [row for row in by_name[entry.address.name] if pin is None or row.id == pin]
        if len(named) > 1:
            planning.problem(
                "identity/live-twice",
                f'{entry.address}: "{entry.address.name}" is live more than once, with the ids '
                + ", ".join(sorted(row.id for row in named)),
                hint="Say which one is meant with `id:`.",
                at=entry.source,
                address=entry.address,
            )
        elif named and named[0].id in claimed:
            planning.problem(
                "absent/claimed",
                f"{entry.address}: it stands under `absent`, and another entry takes it over by `previously` or `id`",
                hint="Say one of the two.",
                at=entry.source,
                address=entry.address,
            )
        elif named and named[0].id not in deleted_ids:
            deleted_ids.add(named[0].id)
            out.deletions.append(Deletion(address=entry.address, row=named[0], absent=entry))
        elif not named:
            free_names = (
                name for name, same_name in by_name.items() if not claimed.issuperset(row.id for row in same_name)
            )
            report_absent_not_live(planning, entry, similar_live_name(entry.address.name, free_names))
    return [row for row in free if row.id not in deleted_ids]


def _other_name(planning: PlanContext, entry: DeleteEntry[Any], pinned: HasName, named: Sequence[HasName]) -> None:
    """Report an entry under `absent` whose id and name refer to different rows; it deletes neither."""
    name = entry.address.name
    planning.problem(
        "absent/other-name",
        f'{entry.address}: the id "{pinned.id}" is that of "{pinned.name}", {_live_as(name, named)}',
        hint=f"To delete that one, write {quote_name(pinned.name)} as its name."
        + (f" To delete {quote_name(name)}, correct the id." if named else " Or take the entry out."),
        at=entry.source,
        address=entry.address,
    )


def _other_id(planning: PlanContext, entry: DeleteEntry[Any], pin: str, named: Sequence[HasName]) -> None:
    """Warn of an id that is not live. Not an error: the entry of a duplicate that was deleted by id looks like this."""
    planning.problem(
        "absent/other-id",
        f'{entry.address}: nothing with the id "{pin}" is live, {_live_as(entry.address.name, named)}',
        hint="If the deletion is applied, remove the entry. If that one is meant, correct the id.",
        at=entry.source,
        address=entry.address,
        severity=Severity.WARNING,
    )


def _live_as(name: str, named: Sequence[HasName]) -> str:
    ids = ", ".join(sorted(row.id for row in named))
    return f'and "{name}" is live with the id {ids}' if named else f'and nothing called "{name}" is live'


def hint_on_missing(planning: PlanContext, kind: str, near: str | None, otherwise: str) -> str:
    """Return the hint for a name that is not live: `near`, or that the listing is incomplete.

    otherwise: the hint if `near` is None.
    """
    why = planning.snapshot.of(kind).incomplete
    if why is None:
        return near or otherwise
    return f"It may be there all the same, because the listing was not read whole: {why}"


def similar_live_name(name: str, names: Iterable[str]) -> str | None:
    """Return another name that may have been meant: one that is drawn alike, or that `name` matches as a pattern."""
    looks = confusable_skeleton(name)
    return next(
        (one for one in names if one != name and (confusable_skeleton(one) == looks or matches_pattern(one, name))),
        None,
    )


def report_absent_not_live(planning: PlanContext, entry: DeleteEntry[Any], stays: str | None = None) -> None:
    """Report an entry under `absent` that matches nothing: a note, or an error if the listing is incomplete.

    stays: a live name that the entry may have meant; then it is a warning.
    """
    why = planning.snapshot.of(entry.address.kind).incomplete
    if why is not None:
        planning.problem(
            "read/incomplete",
            f"{entry.address}: whether it is gone is not known, because the listing was not read whole: {why}",
            hint="Try again.",
            at=entry.source,
            address=entry.address,
        )
        return
    if stays is not None:
        planning.problem(
            "absent/look-alike",
            f"{entry.address}: nothing of exactly that name is live, but {quote_name(stays)} is, and it stays",
            hint="Under `absent`, each name is written as it is; patterns own what they fit under `ownership:`.",
            at=entry.source,
            address=entry.address,
            severity=Severity.WARNING,
        )
        return
    planning.problem(
        "absent/nothing-to-do",
        f"{entry.address}: nothing of that name is live",
        hint="Remove the entry under `absent`.",
        at=entry.source,
        address=entry.address,
        severity=Severity.NOTE,
    )


def _settle(planning: PlanContext, kind: str, out: MatchResult[Spec, Row], rows: Sequence[Row]) -> None:
    """Sort the rows without an entry into owned (deleted), ignored and unmanaged, and register their names."""
    policy = planning.policy
    declared = {match.address.name for match in out.matches}
    owned: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        name = normalize_name(row.name)
        address = Address.of(kind, name)
        if matches_patterns(str(address), policy.leave_alone):
            out.ignored += 1
        elif not policy.only and matches_patterns(name, policy.ownership.get(kind, ())):
            out.deletions.append(Deletion(address=address, row=row, absent=None))
            owned[name].append(row)
            continue
        else:
            out.unmanaged.append(UndeclaredResource(address, row))
        if not planning.registry.has(kind, name):
            planning.registry.register(kind, name, row.id)
        elif name in declared:
            planning.registry.set_display_name(kind, f"{name} (id {row.id})", row.id)
        else:
            planning.registry.register_duplicate(kind, name, row.id)
    for deletion in out.deletions:
        planning.registry.set_display_name(kind, normalize_name(deletion.row.name), deletion.row.id)
    for name, twins in owned.items():
        if len(twins) > 1:
            _refuse_twins(planning, Address.of(kind, name), twins)


def _refuse_twins(planning: PlanContext, address: Address, twins: Sequence[HasName]) -> None:
    """Refuse to delete owned rows that share a name. The plan shows them, so that an export can still declare one."""
    planning.problem(
        "refusal/live-twice",
        f'{address}: it is owned and undeclared, and "{address.name}" is live more than once, with the ids '
        + ", ".join(sorted(row.id for row in twins)),
        hint="Declare the one to keep with its `id:`, or put one under `absent` with its `id:` so that all go.",
        address=address,
    )


def refuse_taken_names(planning: PlanContext, out: MatchResult[Any, Any], rows: Sequence[HasName]) -> None:
    """Refuse a new name that a live resource keeps: the two would share it, and neither could be referenced."""
    additive = planning.policy.additive
    moving = [match for match in out.matches if match.row and _moves(planning, match) and not additive]
    taking = [*moving, *(match for match in out.matches if match.row is None and planning.chosen(match.address))]
    if not taking:
        return
    freed_ids = {match.row.id for match in moving if match.row}
    freed_ids.update(
        deletion.row.id for deletion in out.deletions if planning.chosen(deletion.address) and not additive
    )
    holders = {normalize_name(row.name): row for row in rows if row.id not in freed_ids}
    for match in taking:
        holder = holders.get(match.address.name)
        if holder is not None:
            planning.problem(
                "identity/name-taken",
                f'{match.address}: the live one with the id "{holder.id}" has that name and keeps it',
                hint="Choose another name, or plan in the same run that the other one is renamed or deleted.",
                at=match.declared.source,
                address=match.address,
            )


def _moves(planning: PlanContext, match: Match[Any, Any]) -> bool:
    """Whether the plan renames the live resource."""
    row = match.row
    return row is not None and normalize_name(row.name) != match.address.name and planning.chosen(match.address)


def _refuse_deletions(planning: PlanContext, noun: str, out: MatchResult[Any, Any], why: str) -> None:
    for deletion in out.deletions:
        planning.problem(
            "read/incomplete",
            f"{deletion.address}: would be deleted, but the listing of {noun}s was not read whole: {why}",
            hint="Nothing is deleted on the word of an incomplete listing. Try again.",
            at=deletion.absent.source if deletion.absent else None,
            address=deletion.address,
        )
    out.deletions.clear()
