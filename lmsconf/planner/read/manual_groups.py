"""Read members and managers of manual groups: per group, or from the extended listing of people.

Two requests per group, one if only its members are needed, or one per page of people: whichever is fewer. Only the
responses per group are always reliable, so the extended listing is used only if it has the same people as the listing
of people.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, cast

from lmsconf.api.spec.dialect_keys import ADD_MODE
from lmsconf.api.spec.operations import MANUAL_GROUPS
from lmsconf.errors import ApiError, InvalidResponse
from lmsconf.kinds.manual_group.types import GroupRow, ManualGroupSpec, has_members_to_compare, parse_group_row
from lmsconf.kinds.shared.entry_keys import declared_lists
from lmsconf.kinds.shared.kind_names import GROUP, USER
from lmsconf.kinds.shared.plan_context import Match
from lmsconf.kinds.shared.responses import id_set
from lmsconf.model.address import RemoteId
from lmsconf.model.api_protocol import Api, ReadArguments
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import LOCK_PREFIX
from lmsconf.model.snapshot import Listing
from lmsconf.planner.read.needed_listings import (
    ReadContext,
    keep_keys,
    sorted_listing,
)
from lmsconf.planner.read.people_listings import ExtendedInfoListing

_PAGE: Final = 100
"""How many people a page has at least (API specification, Users: `limit`)."""


def read_groups(reading: ReadContext) -> Listing[GroupRow] | None:
    """Return the groups, with members and managers where they are compared; None if they are not needed."""
    if not reading.is_needed(GROUP):
        return None
    listing = reading.publish_listing(GROUP, _listed(reading.api))
    wanted, compared = _wanted(reading, listing)
    details = _details(reading, wanted, compared)
    return sorted_listing((details.get(row.id, row) for row in listing.rows), listing.incomplete)


def _wanted(reading: ReadContext, listing: Listing[GroupRow]) -> tuple[list[GroupRow], list[GroupRow]]:
    """Return the groups to read with members and managers, and those whose members are compared with new groups."""
    if reading.everything:
        return list(listing.rows), []
    wanted, compared = reading.rows_to_read(GROUP, listing, _is_compared, has_members_to_compare)
    return [*wanted.values()], [row for id, row in compared.items() if id not in wanted]


def _is_compared(match: Match[ManualGroupSpec, GroupRow]) -> bool:
    lists = any(declared_lists(match.declared.spec))
    return lists or (match.row is not None and match.row.name != match.address.name)


def _details(
    reading: ReadContext, wanted: Sequence[GroupRow], compared: Sequence[GroupRow]
) -> dict[RemoteId, GroupRow]:
    """The wanted groups with members and managers, and the compared groups with members, by group id."""
    total, page = reading.first_page.result()
    # A list that calls replace must be known as a whole, and the extended listing may lack archived people.
    replaces = reading.api_spec.behaviour(ADD_MODE) == "replace"
    if not replaces and total and page and -(-total // page) < 2 * len(wanted) + len(compared):
        # The listing of people is compared with this one, so all of it is read.
        reading.report_people(GROUP, None)
        return _from_people(reading, [*wanted, *compared]) or _from_groups(reading.api, wanted, compared)
    details = _from_groups(reading.api, wanted, compared)
    lists = [ids or frozenset() for row in details.values() for ids in (row.members, row.managers)]
    reading.report_people(GROUP, frozenset[RemoteId]().union(*lists))
    return details


def read_group_members(
    reading: ReadContext, groups: Sequence[GroupRow], people: Collection[RemoteId]
) -> dict[RemoteId, frozenset[RemoteId]]:
    """Return the members of groups by id: as read already, or by whichever way takes fewer requests.

    people: the ids of all people.
    """
    known = {row.id: row.members for row in groups if row.members is not None}
    rest = [row for row in groups if row.id not in known]
    # The extended listing keeps only groups that the plan's own reading has listed.
    few = reading.is_needed(GROUP) and -(-len(people) // _PAGE) < len(rest)
    if few and (details := _from_people(reading, rest, people)) is not None:
        return known | {id: row.members or frozenset() for id, row in details.items()}
    answers = reading.api.each("manual-groups.members", [({"groupId": row.id}, {}) for row in rest])
    return known | {row.id: parse_user_ids(answer) for row, answer in zip(rest, answers, strict=True)}


def _from_groups(api: Api, wanted: Sequence[GroupRow], compared: Sequence[GroupRow]) -> dict[RemoteId, GroupRow]:
    requests: list[ReadArguments] = [({"groupId": row.id}, {}) for row in (*wanted, *compared)]
    answers = api.together(
        {
            "members": lambda: api.each("manual-groups.members", requests),
            "managers": lambda: api.each("manual-groups.managers", requests[: len(wanted)]),
        }
    )
    members, managers = cast("list[Json]", answers["members"]), cast("list[Json]", answers["managers"])
    whole = {
        row.id: GroupRow(row.id, row.name, parse_user_ids(group_members), parse_user_ids(group_managers))
        for row, group_members, group_managers in zip(wanted, members[: len(wanted)], managers, strict=True)
    }
    rest = zip(compared, members[len(wanted) :], strict=True)
    return whole | {row.id: GroupRow(row.id, row.name, parse_user_ids(group_members)) for row, group_members in rest}


def parse_user_ids(answer: Json) -> frozenset[RemoteId]:
    """The `userIds` of a response. Raises InvalidResponse if the key is missing, which would read as an empty group."""
    if not isinstance(answer, dict) or answer.get("userIds") is None:
        raise InvalidResponse("a response is missing its list of userIds")
    return id_set(answer, "userIds")


def _from_people(
    reading: ReadContext, wanted: Sequence[GroupRow], people: Collection[RemoteId] | None = None
) -> dict[RemoteId, GroupRow] | None:
    """The same from the groups of each person; None if that listing fails or does not match the others.

    people: the ids of all people; by default those of the plan's own listing.
    """
    listed = reading.shared_state(ExtendedInfoListing)
    try:
        rows = listed.rows()
    except ApiError:
        # The extended listing is only an optimization: if it fails, the requests per group decide.
        return None
    if people is None:
        known = reading.wait_for_listing(USER)
        people = () if known.incomplete else {row.id for row in known.rows}
    if rows.incomplete or not listed.is_clear or {str(row["userId"]) for row in rows.rows} != set(people):
        return None
    if any(listed.names[row.id] - {row.name, ""} for row in wanted):
        # A smart group may share the id; only the name distinguishes it, since `groupType` values are not documented.
        return None
    return {
        row.id: GroupRow(row.id, row.name, frozenset(listed.members[row.id]), frozenset(listed.managers[row.id]))
        for row in wanted
    }


def _listed(api: Api) -> Listing[GroupRow]:
    """The listing: ids and names. The lock of a run is not a resource: never listed, owned or exported."""
    rows = api.rows(MANUAL_GROUPS, keep=keep_keys("groupId", "name"))
    groups = (row for row in rows.rows if not str(row.get("name")).startswith(LOCK_PREFIX))
    return sorted_listing(map(parse_group_row, groups), rows.incomplete)
