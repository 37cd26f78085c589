"""Administrator and manager rights: certain refusals, the minimum number of admins, and how a grant is verified.

An admin cannot be archived, and neither an admin nor a manager can have a custom archive date (API specification,
States and transitions).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct, field

from lmsconf.errors import Severity
from lmsconf.kinds.shared.kind_names import ADMIN
from lmsconf.kinds.user.types import AdminRow, PersonRow, PersonSpec, loses_manager_right, planned_flag
from lmsconf.model.plan import Change
from lmsconf.planner.context import Match, MatchResult, PlanContext


class _AdminChanges(Struct):
    """The people who gain administrator rights, and those who lose them."""

    gains: list[Match[PersonSpec, PersonRow]] = field(default_factory=list)
    losses: list[Match[PersonSpec, PersonRow]] = field(default_factory=list)


_LOSSES: Final = {
    "admin": "admin rights",
    "manager": "manager rights",
    "archived": "access",
    "custom_archive_date": "access",
}
"""Keys of single values whose change revokes something from a person → what is revoked, for messages."""
_HELD: Final = {"answers": "the answer to", "metadata": "the metadata"}
"""Keys of values by name → what is taken away, for messages."""


def revoked_rights(change: Change) -> Iterator[str]:
    """Yield what an update revokes from a person, in words; a value that is replaced is taken away, too."""
    for one in change.fields:
        ends = one.path in ("archived", "custom_archive_date") and bool(one.after)
        if ends or (one.path in ("admin", "manager") and one.before is True and one.after is not True):
            yield _LOSSES[one.path]
        key, _, name = one.path.partition(".")
        if name and key in _HELD and one.before not in (None, "", []) and not one.added and one.before != one.after:
            yield f"{_HELD[key]} {name}"


def check_rights_changes(planning: PlanContext, match: Match[PersonSpec, PersonRow]) -> None:
    """Report changes that the service would refuse because of a person's rights, and note admins gained and lost."""
    spec, row = match.declared.spec, match.row
    is_admin = planned_flag(spec, row, "admin")
    if spec.flag("archived") and row is not None and not row.archived and is_admin:
        planning.problem(
            "refusal/admin-archived",
            f"{match.address}: an admin cannot be archived",
            hint="Set `admin: false` too: rights are revoked before an account is archived.",
            at=match.declared.places.at("archived"),
            address=match.address,
        )
    right = "admin" if is_admin else "manager" if planned_flag(spec, row, "manager") else None
    if spec.archive_date is not None and right:
        planning.problem(
            "refusal/archive-date",
            f"{match.address}: {'an admin' if right == 'admin' else 'a manager'} cannot have a custom archive date",
            hint=f"Set `{right}: false` too, or remove `custom_archive_date`.",
            at=match.declared.places.at("custom_archive_date"),
            address=match.address,
        )
    if row is not None and row.manages and loses_manager_right(spec, row) and not planning.policy.additive:
        planning.problem(
            "person/loses-groups",
            f"{match.address}: with the manager right, the person loses the groups that they manage: "
            f"{', '.join(row.manages)}",
            at=match.declared.places.at("manager"),
            address=match.address,
            severity=Severity.NOTE,
        )
    admin_changes = planning.state(_AdminChanges)
    if spec.flag("admin") is False and row is not None and row.admin and not row.archived:
        admin_changes.losses.append(match)
    if spec.flag("admin") is True and not planned_flag(spec, row, "archived"):
        admin_changes.gains.append(match)


def refuse_admin_lockout(planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> None:
    """Report a plan that revokes administrator rights and leaves fewer admins than `min_admins`, or none.

    Declared admins count first; only if they are too few does the listing of all admins matter. Admins that it lacks do
    not count, so that an incomplete listing may block a revocation.
    """
    admin_changes = planning.state(_AdminChanges)
    if not admin_changes.losses or planning.policy.additive:
        return
    least = max(1, planning.policy.guards.min_admins)
    listing = planning.snapshot.of(ADMIN)
    sure = {match.address.name for match in admin_changes.gains}
    lost = {match.row.id for match in admin_changes.losses if match.row}
    archived = {match.row.id for match in matched.matches if match.row and _is_archived(planning, match)}
    others = {row.id for row in planning.snapshot.rows(AdminRow)} - lost - archived
    kept = {match.row.id for match in admin_changes.gains if match.row}
    left = len(sure) + len(others - kept)
    if left >= least:
        return
    why = f"; the others could not be counted, because {listing.incomplete}" if listing.incomplete else ""
    for match in admin_changes.losses:
        planning.problem(
            "refusal/lock-out",
            f"{match.address}: the plan would leave {left} {'admin' if left == 1 else 'admins'}, and there must be "
            f"{least}{why}",
            hint="Make somebody else an admin too. `guards: {min_admins: 1}` allows a single admin; never none.",
            at=match.declared.places.at("admin"),
            address=match.address,
        )


def _is_archived(planning: PlanContext, match: Match[PersonSpec, PersonRow]) -> bool:
    """Return whether the person will be archived after the plan."""
    spec, row = match.declared.spec, match.row
    return planning.chosen(match.address) and planned_flag(spec, row, "archived")


def has_enough_declared_admins(planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> bool:
    """Return whether undeclared admins need not be read: no admin loses the right, or enough declared ones keep it."""
    matches = [match for match in matched.matches if planning.chosen(match.address)]
    loses = any(match.declared.spec.flag("admin") is False and match.row.admin for match in matches if match.row)
    keeps = sum(
        match.declared.spec.flag("admin") is True and not planned_flag(match.declared.spec, match.row, "archived")
        for match in matches
    )
    return not loses or keeps >= max(1, planning.policy.guards.min_admins)
