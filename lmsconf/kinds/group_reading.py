"""Who is in which manual group, and who manages it: group by group, or all at once from the people's side.

Two calls a group, or one call a hundred people: whichever is fewer. Only the first of the two is always sure, so what
the second brings counts only when it covers everybody whom the listing of people knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from lmsconf.core.address import RemoteId
from lmsconf.core.kind import Api, Request
from lmsconf.core.snapshot import Listing
from lmsconf.core.values import Json
from lmsconf.errors import BadAnswer
from lmsconf.kinds.answers import ids
from lmsconf.kinds.manual_group import GroupRow


def read_details(
    api: Api, wanted: Sequence[GroupRow], total: int | None, page: int, people: Callable[[], Listing]
) -> dict[RemoteId, GroupRow]:
    """The wanted groups with their members and managers, by id.

    total, page: how many people there are, and how many came in one page. people: waits for the listing of people.
    """
    if total and page and -(-total // page) < 2 * len(wanted):
        found = _from_people(api, wanted, people)
        if found is not None:
            return found
    return _from_groups(api, wanted)


def _from_groups(api: Api, wanted: Sequence[GroupRow]) -> dict[RemoteId, GroupRow]:
    requests: list[Request] = [({"groupId": row.id}, {}) for row in wanted]
    found = api.together(
        {
            "members": lambda: api.each("manual-groups.members", requests),
            "managers": lambda: api.each("manual-groups.managers", requests),
        }
    )
    members, managers = cast("list[Json]", found["members"]), cast("list[Json]", found["managers"])
    return {
        row.id: GroupRow(row.id, row.name, ids_of(mine), ids_of(theirs))
        for row, mine, theirs in zip(wanted, members, managers, strict=True)
    }


def ids_of(answer: Json) -> frozenset[RemoteId]:
    """The `userIds` of an answer. Raises BadAnswer where there are none: an empty list would mean nobody."""
    if not isinstance(answer, dict) or answer.get("userIds") is None:
        raise BadAnswer("an answer came without its list of userIds")
    return ids(answer, "userIds")


def _from_people(
    api: Api, wanted: Sequence[GroupRow], people: Callable[[], Listing]
) -> dict[RemoteId, GroupRow] | None:
    """The same, turned round from what each person belongs to; None where somebody is missing there."""
    rows = api.rows("users.extended-info", "users", id="userId", total="matchCount")
    known = people()
    if rows.incomplete or known.incomplete or {str(row["userId"]) for row in rows.rows} != {r.id for r in known.rows}:
        return None
    members: defaultdict[str, set[RemoteId]] = defaultdict(set)
    managers: defaultdict[str, set[RemoteId]] = defaultdict(set)
    called: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows.rows:
        for key, held in (("memberOfGroups", members), ("managerOfGroups", managers)):
            groups = _groups_of(row, key)
            if groups is None:
                return None
            for group in groups:
                held[str(group["groupId"])].add(RemoteId(str(row["userId"])))
                called[str(group["groupId"])].add(str(group.get("name") or ""))
    if any(called[row.id] - {row.name, ""} for row in wanted):
        # A smart group may have the same id; only its name tells, as the types of groups are not documented.
        return None
    return {
        row.id: GroupRow(row.id, row.name, frozenset(members[row.id]), frozenset(managers[row.id])) for row in wanted
    }


def _groups_of(row: Mapping[str, Json], key: str) -> list[dict[str, Json]] | None:
    """The groups of a person under one key; None where the answer does not say them all."""
    said = row.get(key)
    groups = [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    whole = isinstance(said, list) and len(groups) == len(said)
    return groups if whole and all(one.get("groupId") is not None for one in groups) else None
