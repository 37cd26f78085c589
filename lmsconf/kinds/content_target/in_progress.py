"""Who is in progress on content that a plan replaces (API specification, Analytics).

Read only before such an assignment is deleted or hidden: the members of its audience, and their results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lmsconf.errors import InvalidResponse
from lmsconf.kinds.content_target.effects.results import UNREADABLE, latest_states
from lmsconf.kinds.content_target.types import InProgressRow, TargetRow, kind_from_target_type
from lmsconf.kinds.manual_group.read import parse_user_ids
from lmsconf.kinds.shared.kind_names import GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.response_json import id_set, require_object
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api
from lmsconf.model.snapshot import Listing
from lmsconf.planner.reading import ReadContext, sorted_listing

_STATE: Final = "in_progress"


def read_in_progress(reading: ReadContext, targets: Sequence[TargetRow]) -> Listing[InProgressRow]:
    """Return who is in progress in the audience of each target."""
    holders = {name: {row.id for row in reading.wait_for_listing(name).rows} for name in (GROUP, SMART_GROUP)}
    everyone = reading.call_templates.behaviour("content-targets.everyone")
    return sorted_listing((_read(reading.api, row, holders, everyone) for row in targets), None)


def _read(api: Api, row: TargetRow, holders: Mapping[str, Iterable[RemoteId]], everyone: str) -> InProgressRow:
    try:
        members = None if row.target == everyone else _members(api, row, holders)
        states = latest_states(api, row.content, None if members is None else sorted(members))
    except UNREADABLE as error:
        return InProgressRow(row.id, frozenset(), str(error))
    people = frozenset(RemoteId(id) for id, state in states.items() if state == _STATE)
    strange = sum(state is None for state in states.values())
    return InProgressRow(row.id, people, f"the service returns an unknown state for {strange}" if strange else None)


def _members(api: Api, row: TargetRow, holders: Mapping[str, Iterable[RemoteId]]) -> frozenset[RemoteId]:
    """Return the ids of the people in the audience of a target.

    Raises InvalidResponse if the service does not return them, or if the id is that of several audiences.
    """
    kinds = {name for name, ids in holders.items() if row.target in ids}
    implied = kind_from_target_type(row.type)
    kind = implied if implied in {*kinds, USER} else next(iter(kinds)) if len(kinds) == 1 else None if kinds else USER
    if kind == GROUP:
        return parse_user_ids(api.get("manual-groups.members", path={"groupId": row.target}))
    if kind == SMART_GROUP:
        answer = api.get("smart-groups.get", path={"smartGroupId": row.target}, query={"includeMembers": True})
        group = require_object(answer, "a smart group")
        if group.get("members") is None:
            raise InvalidResponse("the service does not return the members of the smart group")
        return id_set(group, "members")
    if kind == USER:
        return frozenset({row.target})
    raise InvalidResponse(f'the id "{row.target}" is that of a group and of a smart group')
