"""Read smart groups: a listing, a request for each whose conditions or managers are needed, and their members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmsconf.api.spec.operations import SMART_GROUPS, USERS
from lmsconf.errors import Problem, Severity
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.shared.responses import id_set, require_object
from lmsconf.kinds.smart_group.types import SmartGroupRow, parse_detail_row, parse_listed_row
from lmsconf.model.address import RemoteId
from lmsconf.model.api_protocol import Api
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import GroupEffects, members_digest
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Plan
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.read.needed_listings import (
    ReadContext,
    keep_keys,
    sorted_listing,
)


def read_smart_groups(reading: ReadContext) -> Listing[SmartGroupRow] | None:
    """Return the smart groups, with conditions and managers where they are compared; None if they are not needed."""
    if not reading.is_needed(SMART_GROUP):
        return None
    listing = reading.publish_listing(SMART_GROUP, _listed(reading.api))
    wanted = _wanted(reading, listing)
    answers = _details(reading.api, wanted)
    details = {row.id: parse_detail_row(row, answer) for row, answer in zip(wanted, answers, strict=True)}
    reading.report_people(SMART_GROUP, {id for row in details.values() for id in row.managers or ()})
    return sorted_listing((details.get(row.id, row) for row in listing.rows), listing.incomplete)


def _wanted(reading: ReadContext, listing: Listing[SmartGroupRow]) -> list[SmartGroupRow]:
    """Return the declared, deleted and compared rows; all, if a field changes, since any may reference it."""
    if reading.everything or (reading.covers(CUSTOM_FIELD) and reading.has_changes(CUSTOM_FIELD)):
        return list(listing.rows)
    both = reading.rows_to_read(SMART_GROUP, listing, lambda _: True, lambda spec: spec.conditions is not None)
    return [*(both[0] | both[1]).values()]


def find_unlisted_fields(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Find a condition on an unlisted field: a field in use cannot be deleted (API specification, Custom Fields)."""
    if CUSTOM_FIELD not in snapshot.listings:
        return
    known = {row.id for row in snapshot.rows(FieldRow)}
    for row in snapshot.rows(SmartGroupRow):
        for condition in row.conditions or ():
            if condition.field and condition.field not in known:
                yield CUSTOM_FIELD, f"smart group {row.name} names field id {condition.field}, which is not among them"
                return


def _listed(api: Api) -> Listing[SmartGroupRow]:
    rows = api.rows(SMART_GROUPS, keep=keep_keys("smartGroupId", "name"))
    return sorted_listing(map(parse_listed_row, rows.rows), rows.incomplete)


def _details(api: Api, rows: Sequence[SmartGroupRow]) -> list[Json]:
    return api.each("smart-groups.get", [({"smartGroupId": row.id}, {}) for row in rows])


CODE: Final = "effects/not-as-predicted"


def compare_members(api: Api, plan: Plan) -> Iterator[Problem]:
    """Yield a warning for each smart group whose members are not the predicted ones. Raises ApiError.

    A request for each smart group whose membership the plan changes, and the listing of people where members differ:
    a service may list archived people among the members (API specification, Smart Groups), and accounts that it lists
    nowhere else; the prediction counts neither. A plan holds the digest of the members, or, where one of them has no
    account before the plan, only their number.
    """
    deleted = {change.address for change in plan.changes if change.action is Action.DELETE}
    ids = {change.address: change.id for change in plan.changes if change.id is not None}
    active: frozenset[RemoteId] | None = None
    for group in plan.effects.groups:
        if group.address.kind != SMART_GROUP or group.after is None or group.address in deleted:
            continue
        members = read_members(api, group.address.name, ids.get(group.address))
        if members is None or _is_predicted(group, members):
            continue
        if active is None:
            active = _active(api)
        if not _is_predicted(group, members & active):
            yield Problem(
                code=CODE,
                message=f"{group.address}: {_difference(group.after, len(members & active))}",
                hint="The service may still be computing its members; check again with: lmsconf plan.",
                severity=Severity.WARNING,
                address=str(group.address),
            )


def _is_predicted(group: GroupEffects, members: frozenset[RemoteId]) -> bool:
    return len(members) == group.after and group.members in (None, members_digest(members))


def _difference(predicted: int, listed: int) -> str:
    if predicted != listed:
        were = "1 member was" if predicted == 1 else f"{predicted:,} members were"
        return f"{were} predicted, and the service lists {listed:,}"
    return f"the service lists as many members as predicted ({listed:,}), but not the same people"


def read_members(api: Api, name: str, id: RemoteId | None) -> frozenset[RemoteId] | None:
    """Return the members of a smart group, by its id or else its name; None if it or they are not listed."""
    group_id = id or _id_by_name(api, name)
    if group_id is None:
        return None
    answer = require_object(
        api.get("smart-groups.get", path={"smartGroupId": group_id}, query={"includeMembers": True}), "a smart group"
    )
    return None if answer.get("members") is None else id_set(answer, "members")


def _id_by_name(api: Api, name: str) -> RemoteId | None:
    rows = api.rows(SMART_GROUPS, query={"filter": name}, keep=keep_keys("smartGroupId", "name")).rows
    ids = [str(row["smartGroupId"]) for row in rows if normalize_name(str(row.get("name"))) == name]
    return RemoteId(ids[0]) if len(ids) == 1 else None


def _active(api: Api) -> frozenset[RemoteId]:
    rows = api.rows(USERS, keep=keep_keys("userId", "archivedAt")).rows
    return frozenset(RemoteId(str(row["userId"])) for row in rows if not row.get("archivedAt"))
