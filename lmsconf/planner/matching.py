"""Match named resources: a live one is declared, under `absent`, owned, ignored (`leave_alone`) or unmanaged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import matches_patterns, normalize_name
from lmsconf.model.snapshot import HasName, NamedRow
from lmsconf.planner.absent_matching import match_absent
from lmsconf.planner.claim_matching import match_claims
from lmsconf.planner.claims import Claim, ClaimMatches
from lmsconf.planner.context import Deletion, Match, MatchResult, PlanContext, Row, Spec, UndeclaredResource
from lmsconf.planner.missing_references import LiveIdentities

Listed = TypeVar("Listed", bound=NamedRow)


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
    left = match_absent(planning, kind, out, absent, rows, matched.unclaimed, {row.id for row in matched.live if row})
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
    matched = match_claims([claim_of(planning, one) for one in declared], rows, incomplete=incomplete, noun=noun)
    planning.problems.extend(matched.problems)
    out: MatchResult[Spec, Row] = MatchResult(live=len(rows))
    for position, (declaration, row) in enumerate(zip(declared, matched.live, strict=True)):
        if position not in matched.broken:
            out.matches.append(Match(declared=declaration, row=row))
        else:
            planning.state(LiveIdentities).doubtful.add(declaration.address)
        if row is not None and normalize_name(row.name) != declaration.address.name:
            planning.state(LiveIdentities).renamed[Address.of(kind, normalize_name(row.name))] = declaration.address
        planning.registry.register(kind, declaration.address.name, None if row is None else row.id)
    return out, matched


def claim_of(planning: PlanContext, declaration: DesiredResource[Any]) -> Claim:
    """Return the identity that a declaration claims in the workspace of a plan."""
    return Claim(
        name=declaration.address.name,
        pin=declaration.pin(planning.policy.workspace),
        previously=declaration.previously,
        label=str(declaration.address),
        find_source=declaration.places.at,
        address=str(declaration.address),
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
    # A declared name that is live more than once is an error of its declaration already.
    doubtful = planning.state(LiveIdentities).doubtful
    for name, duplicates in owned.items():
        address = Address.of(kind, name)
        if len(duplicates) > 1 and address not in doubtful:
            _refuse_duplicates(planning, address, duplicates)


def _refuse_duplicates(planning: PlanContext, address: Address, duplicates: Sequence[HasName]) -> None:
    """Refuse to delete owned rows that share a name. The plan shows them, so that an export can still declare one."""
    planning.problem(
        "refusal/live-twice",
        f'{address}: it is owned and undeclared, and "{address.name}" is live more than once, with the ids '
        + ", ".join(sorted(row.id for row in duplicates)),
        hint="Declare the one to keep with its `id:`, or list one under `absent` with its `id:` so that all are "
        "deleted.",
        address=address,
    )


def refuse_taken_names(planning: PlanContext, out: MatchResult[Any, Any], rows: Sequence[HasName]) -> None:
    """Refuse a new name that a live resource keeps: the two would share it, and neither could be referenced."""
    additive = planning.policy.additive
    moving = [] if additive else [match for match in out.matches if _moves(planning, match)]
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
                f'{match.address}: the live resource with the id "{holder.id}" already has that name',
                hint="Choose another name, or rename or delete the other one in the same plan.",
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
            f"{deletion.address}: would be deleted, but the listing of {noun}s was not read completely: {why}",
            hint="Nothing is deleted from an incomplete list. Plan again once it can be read.",
            at=deletion.absent.source if deletion.absent else None,
            address=deletion.address,
        )
    out.deletions.clear()
