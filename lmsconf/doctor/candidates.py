"""What is tried for each key: what the project says, what is assumed, and then the names that other services use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.doctor.findings import Value
from lmsconf.wire import Wire

_PEOPLE: Final = ("userIds", "users", "ids", "userIdList", "user_ids", "userId", "people")
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "manual-groups.rename.name": (
        *("name", "newName", "groupName", "title", "displayName", "new_name", "newGroupName"),
        *("group_name", "newTitle", "value", "label"),
    ),
    "manual-groups.add-members.userIds": (
        *_PEOPLE,
        *("memberIds", "members", "member_ids", "groupMembers", "memberUserIds", "userIdsToAdd", "add"),
    ),
    "manual-groups.add-managers.userIds": (
        *_PEOPLE,
        *("managerIds", "managers", "manager_ids", "groupManagers", "managerUserIds", "userIdsToAdd", "add"),
    ),
    "content-targets.create.mandatory": (
        *("mandatory", "isMandatory", "required", "isRequired", "compulsory", "obligatory", "is_mandatory"),
        *("mandatoryAccess", "forced"),
    ),
    "content-targets.create.startTime": (
        *("startTime", "visibleFrom", "startDate", "start", "visibilityStart", "visibilityStartTime", "startsAt"),
        *("startAt", "availableFrom", "validFrom", "from", "fromDate", "start_time", "visible_from", "opensAt"),
    ),
    "content-targets.create.finishTime": (
        *("finishTime", "visibleUntil", "finishDate", "finish", "visibilityEnd", "visibilityFinishTime", "endTime"),
        *("endDate", "end", "endsAt", "endAt", "availableUntil", "availableTo", "validUntil", "validTo", "until"),
        *("visibleTo", "to", "toDate", "finish_time", "end_time", "visible_until", "visibilityEndTime", "closesAt"),
        *("stopTime", "finishAt", "finishesAt", "dueDate"),
    ),
    "content-targets.time-format": ("auto", "iso", "epoch-ms", "epoch-ms-number"),
    # An empty text before leaving it out: what leaves it out may open a window that the text would have opened too.
    "content-targets.clear-time": ("null", "empty", "omit"),
    "custom-fields.clear-description": ("empty", "null"),
}


def candidates(key: str, said: str) -> list[Value]:
    """The values to try for a key, each once. said: what the project has now."""
    return list(dict.fromkeys([said, Wire.default().behaviour(key), *_NAMES[key]]))
