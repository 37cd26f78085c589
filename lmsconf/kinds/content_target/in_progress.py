"""Who is in progress on content that a plan replaces (API specification, Analytics).

Read only before such an assignment is deleted or hidden: the members of its audience, and their results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lmsconf.errors import InvalidResponse
from lmsconf.kinds.content_target.audiences import EVERYONE_KEY, Audiences
from lmsconf.kinds.content_target.effects.results import UNREADABLE, latest_states
from lmsconf.kinds.content_target.types import InProgressRow, TargetRow
from lmsconf.kinds.manual_group.read import parse_user_ids
from lmsconf.kinds.shared.kind_names import GROUP, USER
from lmsconf.kinds.shared.response_json import id_set, require_object
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api
from lmsconf.model.snapshot import Listing
from lmsconf.planner.reading import ReadContext, sorted_listing

_STATE: Final = "in_progress"


def read_in_progress(
    reading: ReadContext, targets: Sequence[TargetRow], audiences: Audiences
) -> Listing[InProgressRow]:
    """Return who is in progress in the audience of each target."""
    return sorted_listing((_read(reading.api, row, audiences.of(row)) for row in targets), None)


def _read(api: Api, row: TargetRow, audience: tuple[str, RemoteId] | None) -> InProgressRow:
    try:
        members = None if audience == EVERYONE_KEY else _members(api, row.target, audience)
        states = latest_states(api, row.content, None if members is None else sorted(members))
    except UNREADABLE as error:
        return InProgressRow(row.id, frozenset(), str(error))
    people = frozenset(RemoteId(id) for id, state in states.items() if state == _STATE)
    strange = sum(state is None for state in states.values())
    return InProgressRow(row.id, people, f"the service returns an unknown state for {strange}" if strange else None)


def _members(api: Api, id: RemoteId, audience: tuple[str, RemoteId] | None) -> frozenset[RemoteId]:
    """Return the ids of the people in the audience of a target.

    Raises InvalidResponse if the service does not return them, or if the id may be that of several audiences.
    """
    if audience is None:
        raise InvalidResponse(f'the id "{id}" is that of several of a group, a smart group and a person')
    kind = audience[0]
    if kind == GROUP:
        return parse_user_ids(api.get("manual-groups.members", path={"groupId": id}))
    if kind == USER:
        return frozenset({id})
    answer = api.get("smart-groups.get", path={"smartGroupId": id}, query={"includeMembers": True})
    group = require_object(answer, "a smart group")
    if group.get("members") is None:
        raise InvalidResponse("the service does not return the members of the smart group")
    return id_set(group, "members")
