"""Read members and managers of manual groups: per group, or from the extended listing of people.

Two requests per group, one if only its members are needed, or one per page of people: whichever is fewer. Only the
responses per group are always reliable, so the extended listing is used only if it has the same people as the listing
of people.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from lmsconf.errors import ApiError, BadAnswer
from lmsconf.kinds.manual_group.values import GroupRow
from lmsconf.kinds.shared.answers import ids
from lmsconf.kinds.user.extended import MANAGER_OF, MEMBER_OF, ExtendedInfo
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api, Request
from lmsconf.model.snapshot import Listing
from lmsconf.model.values import Json

_Held: TypeAlias = "defaultdict[str, set[RemoteId]]"
"""Group id → ids of people."""


def read_details(
    api: Api,
    wanted: Sequence[GroupRow],
    compared: Sequence[GroupRow],
    total: int | None,
    page: int,
    people: Callable[[], Listing[Any]],
    extended: ExtendedInfo,
) -> dict[RemoteId, GroupRow]:
    """The wanted groups with members and managers, and the compared groups with members, by group id.

    total, page: the number of people, and of people per page. people: waits for the listing of people.
    """
    if total and page and -(-total // page) < 2 * len(wanted) + len(compared):
        found = _from_people([*wanted, *compared], people, extended)
        if found is not None:
            return found
    return _from_groups(api, wanted, compared)


def _from_groups(api: Api, wanted: Sequence[GroupRow], compared: Sequence[GroupRow]) -> dict[RemoteId, GroupRow]:
    requests: list[Request] = [({"groupId": row.id}, {}) for row in (*wanted, *compared)]
    found = api.together(
        {
            "members": lambda: api.each("manual-groups.members", requests),
            "managers": lambda: api.each("manual-groups.managers", requests[: len(wanted)]),
        }
    )
    members, managers = cast("list[Json]", found["members"]), cast("list[Json]", found["managers"])
    whole = {
        row.id: GroupRow(row.id, row.name, ids_of(mine), ids_of(theirs))
        for row, mine, theirs in zip(wanted, members[: len(wanted)], managers, strict=True)
    }
    rest = zip(compared, members[len(wanted) :], strict=True)
    return whole | {row.id: GroupRow(row.id, row.name, ids_of(mine)) for row, mine in rest}


def ids_of(answer: Json) -> frozenset[RemoteId]:
    """The `userIds` of a response. Raises BadAnswer if the key is missing, which would read as an empty group."""
    if not isinstance(answer, dict) or answer.get("userIds") is None:
        raise BadAnswer("an answer came without its list of userIds")
    return ids(answer, "userIds")


def _from_people(
    wanted: Sequence[GroupRow], people: Callable[[], Listing[Any]], extended: ExtendedInfo
) -> dict[RemoteId, GroupRow] | None:
    """The same from the groups of each person; None if that listing fails or does not match the others."""
    try:
        rows = extended.rows()
    except ApiError:
        # The extended listing is only an optimization: if it fails, the requests per group decide.
        return None
    known = people()
    if rows.incomplete or known.incomplete or {str(row["userId"]) for row in rows.rows} != {r.id for r in known.rows}:
        return None
    found = _turned_round(rows.rows)
    if found is None:
        return None
    members, managers, called = found
    if any(called[row.id] - {row.name, ""} for row in wanted):
        # A smart group may share the id; only the name distinguishes it, since `groupType` values are not documented.
        return None
    return {
        row.id: GroupRow(row.id, row.name, frozenset(members[row.id]), frozenset(managers[row.id])) for row in wanted
    }


def _turned_round(
    people: Sequence[Mapping[str, Json]],
) -> tuple[_Held, _Held, defaultdict[str, set[str]]] | None:
    """Members, managers and names by group id; None if the row of a person lacks its groups or a group its id."""
    members: _Held = defaultdict(set)
    managers: _Held = defaultdict(set)
    called: defaultdict[str, set[str]] = defaultdict(set)
    for row in people:
        person = RemoteId(str(row["userId"]))
        for key, held in zip((MEMBER_OF, MANAGER_OF), (members, managers), strict=True):
            groups = row.get(key)
            if not isinstance(groups, list):
                return None
            for group in groups:
                if not isinstance(group, dict) or group.get("groupId") is None:
                    return None
                id = str(group["groupId"])
                held[id].add(person)
                called[id].add(str(group.get("name") or ""))
    return members, managers, called
