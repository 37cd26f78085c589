"""Match named resources: a live one is declared, under `absent`, owned, ignored (`leave_alone`) or unmanaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lmsconf.errors import Severity
from lmsconf.kinds.shared.match_by_name import Claim, ClaimMatches, list_ids, live_twice
from lmsconf.kinds.shared.plan_context import Deletion, Match, MatchResult, PlanContext, Row, Spec, UndeclaredResource
from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import (
    confusable_skeleton,
    grouped,
    matches_pattern,
    matches_patterns,
    normalize_name,
    quote_name,
)
from lmsconf.model.snapshot import HasName
from lmsconf.model.snapshot import Row as Listed


def match_absent(
    planning: PlanContext,
    out: MatchResult[Spec, Row],
    absent: Sequence[DeleteEntry[Any]],
    matched: ClaimMatches[Row],
) -> list[Row]:
    """Record a deletion for each row that `absent` lists; return the other unclaimed rows."""
    if not absent:
        return matched.unclaimed
    by_id = {row.id: row for row in matched.lives}
    claimed = {row.id for row in matched.live if row}
    known = [name for name, same in matched.by_name.items() if any(row.id not in claimed for row in same)]
    looks = grouped(known, confusable_skeleton)
    deletions: dict[str, Deletion[Row]] = {}
    for entry in absent:
        same_name = matched.by_name.get(entry.address.name, [])
        pin = entry.pin(planning.policy.workspace)
        pinned = None if pin is None else by_id.get(pin)
        named = [row for row in same_name if pin is None or row.id == pin]
        is_other = pinned is not None and normalize_name(pinned.name) != entry.address.name
        if is_other or (pin is not None and pinned is None and same_name and matched.incomplete is None):
            _report_mismatch(planning, entry, pinned, same_name)
        elif not named:
            report_absent_not_live(planning, entry, similar_name(entry.address.name, known, looks))
        elif len(named) > 1:
            planning.report(
                entry, "identity/live-twice", live_twice(entry.address.name, named), "Select one with `id:`."
            )
        elif named[0].id in claimed:
            planning.report(
                entry,
                "absent/claimed",
                "it is listed under `absent`, and another entry renames it by `previously` or `id`",
                "Keep one of the two.",
            )
        else:
            deletions.setdefault(named[0].id, Deletion(address=entry.address, row=named[0], absent=entry))
    out.deletions.extend(deletions.values())
    return [row for row in matched.unclaimed if row.id not in deletions]


def _report_mismatch(
    planning: PlanContext, entry: DeleteEntry[Any], pinned: HasName | None, named: Sequence[HasName]
) -> None:
    """Report an entry under `absent` whose id is that of another name, or is not live; it deletes nothing.

    pinned: the row with the id. named: those with the name.
    """
    name = entry.address.name
    live = f'"{name}" is live with the id {list_ids(named)}' if named else f'nothing called "{name}" is live'
    if pinned is None:
        # Not an error: the entry of a duplicate that was deleted by id looks like this.
        planning.report(
            entry,
            "absent/other-id",
            f'nothing with the id "{entry.pin(planning.policy.workspace)}" is live, and {live}',
            "If the deletion is applied, remove the entry. If you mean that one, correct the id.",
            Severity.WARNING,
        )
    else:
        otherwise = f"To delete {quote_name(name)}, correct the id." if named else "Or remove the entry."
        planning.report(
            entry,
            "absent/other-name",
            f'the id "{pinned.id}" is that of "{pinned.name}", and {live}',
            f"To delete that one, write {quote_name(pinned.name)} as its name. {otherwise}",
        )


def similar_name(name: str, known: Iterable[str], looks: Mapping[str, Sequence[str]]) -> str | None:
    """Return another name that may be meant: drawn alike, or matched. looks: the names as they are drawn."""
    alike = looks.get(confusable_skeleton(name), ())
    if frozenset("*?[").isdisjoint(name):
        return next((one for one in alike if one != name), None)
    return next((one for one in known if one != name and (one in alike or matches_pattern(one, name))), None)


def report_absent_not_live(planning: PlanContext, entry: DeleteEntry[Any], stays: str | None) -> None:
    """Report an entry under `absent` that matches nothing: a note, or an error if the listing is incomplete.

    stays: a live name that the entry may have meant; then it is a warning.
    """
    why = planning.snapshot.of(entry.address.kind).incomplete
    if why is not None:
        planning.report(
            entry,
            "read/incomplete",
            f"it is not known whether it is deleted, because the listing was not read completely: {why}",
            "Try again.",
        )
    elif stays is not None:
        planning.report(
            entry,
            "absent/look-alike",
            f"nothing with exactly this name is live, but {quote_name(stays)} is, and is kept",
            "Under `absent`, names are literal; patterns are for `ownership:`.",
            Severity.WARNING,
        )
    else:
        planning.report(
            entry,
            "absent/nothing-to-do",
            "nothing with this name is live",
            "Remove the entry under `absent`.",
            Severity.NOTE,
        )


def match_named(
    planning: PlanContext,
    declared: Sequence[DesiredResource[Spec]],
    absent: Sequence[DeleteEntry[Any]],
    row_type: type[Listed],
    noun: str,
) -> MatchResult[Spec, Listed]:
    """Match declarations with the live resources of a kind, and register every name as it will be after apply."""
    kind = row_type.listing
    listing, rows = planning.snapshot.of(kind), planning.snapshot.rows(row_type)
    out, matched = match_declared(planning, kind, noun, declared, rows)
    _settle(planning, kind, out, match_absent(planning, out, absent, matched))
    if listing.incomplete:
        for deletion in out.deletions:
            planning.problem(
                "read/incomplete",
                f"{deletion.address}: would be deleted, but the listing of {noun}s was not read completely: "
                f"{listing.incomplete}",
                hint="Nothing is deleted from an incomplete list. Plan again once it can be read.",
                at=deletion.source,
                address=deletion.address,
            )
        out.deletions.clear()
    planning.deleted.update(deletion.address for deletion in out.deletions if planning.chosen(deletion.address))
    report_taken_names(planning, out, rows)
    return out


def match_declared(
    planning: PlanContext, kind: str, noun: str, declared: Sequence[DesiredResource[Spec]], rows: Sequence[Row]
) -> tuple[MatchResult[Spec, Row], ClaimMatches[Row]]:
    """Match declarations with live rows, record problems, and register the declared names."""
    matched = ClaimMatches(
        [claim_of(planning, one) for one in declared], rows, incomplete=planning.snapshot.of(kind).incomplete, noun=noun
    )
    planning.problems.extend(matched.problems)
    out: MatchResult[Spec, Row] = MatchResult(live=len(rows))
    for position, (declaration, row) in enumerate(zip(declared, matched.live, strict=True)):
        if position not in matched.broken:
            out.matches.append(Match(declared=declaration, row=row))
        else:
            planning.doubtful.add(declaration.address)
        if row is not None and normalize_name(row.name) != declaration.address.name:
            planning.renamed[Address.of(kind, normalize_name(row.name))] = declaration.address
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


def _is_owned(planning: PlanContext, address: Address) -> bool:
    """Whether a plan deletes a live resource because the project owns it, unless it is declared or left alone."""
    patterns = planning.policy.ownership.get(address.kind, ())
    return not planning.policy.only and matches_patterns(address.name, patterns)


def _settle(planning: PlanContext, kind: str, out: MatchResult[Spec, Row], rows: Sequence[Row]) -> None:
    """Sort the rows without an entry into owned (deleted), ignored and unmanaged, and register their names."""
    declared = {match.address.name for match in out.matches}
    for name, same in grouped(rows, lambda row: normalize_name(row.name)).items():
        address = Address.of(kind, name)
        if matches_patterns(str(address), planning.policy.leave_alone):
            out.left_alone += len(same)
        elif _is_owned(planning, address):
            out.deletions.extend(Deletion(address=address, row=row, absent=None) for row in same)
            # A declared name that is live more than once is an error of its declaration already.
            if len(same) > 1 and address not in planning.doubtful:
                # The plan shows them, so that an export can still declare one.
                planning.problem(
                    "refusal/live-twice",
                    f"{address}: it is owned and undeclared, and {live_twice(name, same)}",
                    hint="Declare the one to keep with its `id:`, or list one under `absent` with its `id:` so "
                    "that all are deleted.",
                    address=address,
                )
            continue
        else:
            out.unmanaged.extend(UndeclaredResource(address, row) for row in same)
        for row in same:
            if not planning.registry.has(kind, name):
                planning.registry.register(kind, name, row.id)
            elif name in declared:
                planning.registry.set_display_name(kind, f"{name} (id {row.id})", row.id)
            else:
                planning.registry.register_duplicate(kind, name, row.id)
    for deletion in out.deletions:
        planning.registry.set_display_name(kind, normalize_name(deletion.row.name), deletion.row.id)


def report_taken_names(planning: PlanContext, out: MatchResult[Any, Any], rows: Sequence[HasName]) -> None:
    """Refuse a new name that a live resource keeps: the two would share it, and neither could be referenced."""
    moving = [
        one for one in planning.planned(out.matches) if one.row and normalize_name(one.row.name) != one.address.name
    ]
    new = [one for one in out.matches if one.row is None and planning.chosen(one.address)]
    deleted = planning.planned(out.deletions)
    freed = {row.id for row in (*(one.row for one in moving), *(one.row for one in deleted)) if row}
    holders = {normalize_name(row.name): row for row in rows if row.id not in freed} if moving or new else {}
    for match in (*moving, *new):
        if holder := holders.get(match.address.name):
            planning.problem(
                "identity/name-taken",
                f'{match.address}: the live resource with the id "{holder.id}" already has that name',
                hint="Choose another name, or rename or delete the other one in the same plan.",
                at=match.declared.source,
                address=match.address,
            )
