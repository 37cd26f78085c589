"""Identity of the resources that go by a name: declared, absent, owned, left alone, or nobody's business."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from lmsconf.core.address import Address
from lmsconf.core.identity import Claim, HasName, find
from lmsconf.core.names import matches, normal
from lmsconf.core.planning import Gone, Identified, Match, Planning
from lmsconf.core.values import Absent, Declared
from lmsconf.errors import Severity


def identify_named(
    planning: Planning, kind: str, noun: str, declared: Sequence[Declared], absent: Sequence[Absent]
) -> Identified:
    """Matches declarations with the live resources of a kind, and tells the book every name as it will be."""
    listing = planning.snapshot.of(kind)
    found = find([_claim(planning, one) for one in declared], listing.rows, complete=not listing.incomplete, noun=noun)
    planning.problems.extend(found.problems)
    out = Identified(live=len(listing.rows))
    for position, (one, row) in enumerate(zip(declared, found.live, strict=True)):
        if position not in found.broken:
            out.matches.append(Match(declared=one, row=row))
        planning.book.know(kind, one.address.name, None if row is None else row.id)
    left = _take_absent(planning, kind, out, absent, found.unclaimed, {row.id for row in found.live if row})
    _settle(planning, kind, out, left)
    if out.gone and listing.incomplete:
        _refuse_deletions(planning, noun, out, listing.incomplete)
    for gone in out.gone:
        planning.gone.add(gone.address)
    return out


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
        expired(planning, one)
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


def expired(planning: Planning, one: Absent) -> None:
    """An entry that has outlived its date is an error."""
    if one.until is not None and planning.policy.today > one.until:
        planning.problem(
            "absent/expired",
            f"{one.address}: the entry under `absent` was to be here until {one.until} only",
            hint="Delete the entry, or give it a later date.",
            at=one.source,
            address=one.address,
        )


def nothing_to_do(planning: Planning, one: Absent) -> None:
    """An entry that finds nothing to delete is noted."""
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
