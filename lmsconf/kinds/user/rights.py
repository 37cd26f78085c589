"""What the service refuses to people with rights, and what must never happen: that nobody is left who can administer.

An admin cannot be archived, and neither an admin nor a manager can have a custom archive date (API specification,
States and transitions). Both can be foretold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, cast

from lmsconf.kinds.shared.names import ADMIN
from lmsconf.kinds.user.values import AdminRow, Person, PersonRow
from lmsconf.planner.context import Match, MatchResult, PlanContext

_MOVES: Final = "who gains and who loses administrator rights"


@dataclass(slots=True)
class _Moves:
    gains: list[Match] = field(default_factory=list)
    losses: list[Match] = field(default_factory=list)


def later(spec: Person, row: PersonRow | None, key: str) -> bool:
    """Whether the person will be `admin`, `manager` or `archived`: as the manifest says, else as it is."""
    said = spec.flag(key)
    return said if said is not None else bool(getattr(row, key, False))


def foretell_rights(planning: PlanContext, match: Match) -> None:
    """Tells what the service is certain to refuse about a person's rights, and notes who gains or loses them."""
    spec, row = cast(Person, match.declared.spec), cast("PersonRow | None", match.row)
    is_admin = later(spec, row, "admin")
    if spec.flag("archived") and row is not None and not row.archived and is_admin:
        planning.problem(
            "refusal/admin-archived",
            f"{match.address}: an admin cannot be archived",
            hint="Say `admin: false` too: rights are taken away before somebody is archived.",
            at=match.declared.places.at("archived"),
            address=match.address,
        )
    right = "admin" if is_admin else "manager" if later(spec, row, "manager") else None
    if spec.archive_date is not None and right:
        planning.problem(
            "refusal/archive-date",
            f"{match.address}: {'an admin' if right == 'admin' else 'a manager'} cannot have a custom archive date",
            hint=f"Say `{right}: false` too, or take `custom_archive_date` out.",
            at=match.declared.places.at("custom_archive_date"),
            address=match.address,
        )
    moves = cast(_Moves, planning.notes.setdefault(_MOVES, _Moves()))
    if spec.flag("admin") is False and row is not None and row.admin and not row.archived:
        moves.losses.append(match)
    if spec.flag("admin") is True and not later(spec, row, "archived"):
        moves.gains.append(match)


def refuse_lock_out(planning: PlanContext, identified: MatchResult) -> None:
    """Stops a plan that takes rights away and leaves fewer admins than the project wants; the last one always stays.

    Admins that a manifest keeps or makes count without a look at anybody else. When they are too few, everybody is
    counted; where that could not be done, nobody loses the rights.
    """
    moves = cast("_Moves | None", planning.notes.get(_MOVES))
    if moves is None or not moves.losses or planning.policy.additive:
        return
    least = max(1, planning.policy.guards.min_admins)
    listing = planning.snapshot.of(ADMIN)
    sure = {match.address.name for match in moves.gains}
    lost = {match.row.id for match in moves.losses if match.row}
    gone = {match.row.id for match in identified.matches if match.row and _is_archived(planning, match)}
    others = {row.id for row in cast("tuple[AdminRow, ...]", listing.rows)} - lost - gone
    kept = {match.row.id for match in moves.gains if match.row}
    left = len(sure) + len(others - kept)
    if left >= least:
        return
    why = f"; the others could not be counted, because {listing.incomplete}" if listing.incomplete else ""
    for match in moves.losses:
        planning.problem(
            "refusal/lock-out",
            f"{match.address}: the plan would leave {left} {'admin' if left == 1 else 'admins'}, and there must be "
            f"{least}{why}",
            hint="Make somebody else an admin too. `guards: {min_admins: 1}` allows a single one; the last one stays.",
            at=match.declared.places.at("admin"),
            address=match.address,
        )


def _is_archived(planning: PlanContext, match: Match) -> bool:
    """Whether the person will be archived once the plan is carried out."""
    spec, row = cast(Person, match.declared.spec), cast(PersonRow, match.row)
    return planning.chosen(match.address) and later(spec, row, "archived")


def enough_admins(planning: PlanContext, identified: MatchResult) -> bool:
    """Whether nobody has to be counted: nobody loses the rights, or enough people that are declared keep them."""
    matches = [match for match in identified.matches if planning.chosen(match.address)]
    loses = any(
        cast(Person, match.declared.spec).flag("admin") is False and cast(PersonRow, match.row).admin
        for match in matches
        if match.row
    )
    keeps = sum(
        cast(Person, match.declared.spec).flag("admin") is True
        and not later(cast(Person, match.declared.spec), cast("PersonRow | None", match.row), "archived")
        for match in matches
    )
    return not loses or keeps >= max(1, planning.policy.guards.min_admins)
