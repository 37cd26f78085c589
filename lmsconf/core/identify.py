"""Identity of the resources that go by a name: declared, absent, owned, left alone, or nobody's business."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lmsconf.core.address import Address
from lmsconf.core.identity import Claim, Found, HasName, find
from lmsconf.core.names import matches, normal
from lmsconf.core.planning import Gone, Identified, Match, Planning
from lmsconf.core.values import Absent, Declared
from lmsconf.errors import Severity


def identify_named(
    planning: Planning, kind: str, noun: str, declared: Sequence[Declared], absent: Sequence[Absent]
) -> Identified:
    """Matches declarations with the live resources of a kind, and tells the book every name as it will be."""
    listing = planning.snapshot.of(kind)
    out, found = match_declared(planning, kind, noun, declared, listing.rows)
    left = _take_absent(planning, kind, out, absent, found.unclaimed, {row.id for row in found.live if row})
    _settle(planning, kind, out, left)
    if out.gone and listing.incomplete:
        _refuse_deletions(planning, noun, out, listing.incomplete)
    planning.gone.update(gone.address for gone in out.gone if planning.chosen(gone.address))
    refuse_taken(planning, out, listing.rows)
    return out


def match_declared(
    planning: Planning, kind: str, noun: str, declared: Sequence[Declared], rows: Sequence[HasName]
) -> tuple[Identified, Found[HasName]]:
    """Which declaration speaks of which live resource; problems are told, and the book knows what is declared."""
    incomplete = planning.snapshot.of(kind).incomplete
    found = find([_claim(planning, one) for one in declared], rows, incomplete=incomplete, noun=noun)
    planning.problems.extend(found.problems)
    out = Identified(live=len(rows))
    for position, (one, row) in enumerate(zip(declared, found.live, strict=True)):
        if position not in found.broken:
            out.matches.append(Match(declared=one, row=row))
        planning.book.know(kind, one.address.name, None if row is None else row.id)
    return out, found


def _claim(planning: Planning, one: Declared) -> Claim:
    return Claim(
        name=one.address.name,
        pin=one.pin(planning.policy.workspace),
        previously=one.previously,
        label=str(one.address),
        source=one.source,
        address=str(one.address),
    )


def _take_absent(
    planning: Planning,
    kind: str,
    out: Identified,
    absent: Sequence[Absent],
    free: Sequence[HasName],
    claimed: set[str],
) -> list[HasName]:
    """Moves what `absent` names from the free rows to those that go; the rest is returned."""
    by_name: defaultdict[str, list[HasName]] = defaultdict(list)
    for row in planning.snapshot.of(kind).rows:
        by_name[normal(row.name)].append(row)
    going: set[str] = set()
    for one in absent:
        pin = one.pins.get(planning.policy.workspace, one.pins.get(""))
        rows = [row for row in by_name[one.address.name] if pin is None or row.id == pin]
        if len(rows) > 1:
            planning.problem(
                "identity/live-twice",
                f'{one.address}: "{one.address.name}" is live more than once, with the ids '
                + ", ".join(sorted(row.id for row in rows)),
                hint="Say which one is meant with `id:`.",
                at=one.source,
                address=one.address,
            )
        elif rows and rows[0].id in claimed:
            planning.problem(
                "absent/claimed",
                f"{one.address}: it stands under `absent`, and another entry takes it over by `previously` or `id`",
                hint="Say one of the two.",
                at=one.source,
                address=one.address,
            )
        elif rows and rows[0].id not in going:
            going.add(rows[0].id)
            out.gone.append(Gone(address=one.address, row=rows[0], absent=one))
        elif not rows:
            nothing_to_do(planning, one)
    return [row for row in free if row.id not in going]


def hint_on_missing(planning: Planning, kind: str, near: str | None) -> str | None:
    """What to say of something that is not live: what is near, or that it may be live beyond what was read."""
    why = planning.snapshot.of(kind).incomplete
    return near if why is None else f"It may be there all the same, because the listing was not read whole: {why}"


def nothing_to_do(planning: Planning, one: Absent) -> None:
    """An entry that finds nothing to delete is noted; where the listing is not whole, nobody knows."""
    why = planning.snapshot.of(one.address.kind).incomplete
    if why is not None:
        planning.problem(
            "read/incomplete",
            f"{one.address}: whether it is gone is not known, because the listing was not read whole: {why}",
            hint="Try again.",
            at=one.source,
            address=one.address,
        )
        return
    planning.problem(
        "absent/nothing-to-do",
        f"{one.address}: nothing of that name is live; the entry under `absent` has done its work",
        hint="You can delete the entry.",
        at=one.source,
        address=one.address,
        severity=Severity.NOTE,
    )


def _settle(planning: Planning, kind: str, out: Identified, rows: Sequence[HasName]) -> None:
    """Sorts what no entry speaks of into owned, left alone and unmanaged."""
    policy = planning.policy
    declared = {match.address.name for match in out.matches}
    for row in rows:
        name = normal(row.name)
        address = Address.of(kind, name)
        if matches(str(address), policy.leave_alone):
            out.left_alone += 1
        elif not policy.only and matches(name, policy.ownership.get(kind, ())):
            out.gone.append(Gone(address=address, row=row, absent=None))
            continue
        else:
            out.unmanaged.append(address)
        if not planning.book.has(kind, name):
            planning.book.know(kind, name, row.id)
        elif name in declared:
            planning.book.recall(kind, f"{name} (id {row.id})", row.id)
        else:
            planning.book.share(kind, name, row.id)
    for gone in out.gone:
        planning.book.recall(kind, normal(gone.row.name), gone.row.id)


def refuse_taken(planning: Planning, out: Identified, rows: Sequence[HasName]) -> None:
    """A name cannot be taken from a live resource that keeps it: two would go by it, and neither could be named."""
    additive = planning.policy.additive
    moving = [match for match in out.matches if match.row and _moves(planning, match) and not additive]
    taking = [*moving, *(match for match in out.matches if match.row is None and planning.chosen(match.address))]
    if not taking:
        return
    leaving = {match.row.id for match in moving if match.row}
    leaving.update(gone.row.id for gone in out.gone if planning.chosen(gone.address) and not additive)
    holders = {normal(row.name): row for row in rows if row.id not in leaving}
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


def _moves(planning: Planning, match: Match) -> bool:
    """Whether this plan gives a live resource another name."""
    row = match.row
    return row is not None and normal(row.name) != match.address.name and planning.chosen(match.address)


def _refuse_deletions(planning: Planning, noun: str, out: Identified, why: str) -> None:
    for gone in out.gone:
        planning.problem(
            "read/incomplete",
            f"{gone.address}: would be deleted, but the listing of {noun}s was not read whole: {why}",
            hint="Nothing is deleted on the word of an incomplete listing. Try again.",
            at=gone.absent.source if gone.absent else None,
            address=gone.address,
        )
    out.gone.clear()
