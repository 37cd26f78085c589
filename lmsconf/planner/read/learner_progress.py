"""How far those are who lose a content, and when their certificates expire (API specification, Analytics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Rejected, Unauthorized
from lmsconf.kinds.assignment.types import EVERYONE_KEY, InProgressRow, TargetRow
from lmsconf.kinds.shared.kind_names import GROUP, USER
from lmsconf.kinds.shared.responses import object_list, optional_text, require_object
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import Api
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import ContentEffects, Effects
from lmsconf.planner.read.fields_and_groups import parse_user_ids, read_members

_STATES: Final = {
    "NOT_STARTED": "not_started",
    "IN_PROGRESS": "in_progress",
    "APPROVED": "approved",
    "FAILED": "failed",
    "EXPIRED": "expired",
}
_AT_ONCE: Final = 100
UNREADABLE: Final = (Rejected, Unauthorized, InvalidResponse)
"""What is raised where results cannot be read, for lack of a right or otherwise, while all else can."""


class _Result(Struct, frozen=True):
    """The latest result of a person: its state as the service writes it, and when the certificate expires."""

    revision: int
    state: str
    expires: int | None


def with_progress(api: Api, effects: Effects, losses: Mapping[RemoteId, Sequence[RemoteId]], now: int) -> Effects:
    """Return the effects with the progress and the expiring certificates of those who lose each content.

    now: epoch seconds.
    """
    contents = {content.id: content for content in effects.contents}
    try:
        for id, people in losses.items():
            if people:
                contents[id] = _with_progress(api, contents[id], people, now)
    except UNREADABLE as error:
        # Results may need a right that the credential lacks. The numbers of people do not rest on them.
        effects = replace(
            effects, reasons=(*effects.reasons, f"the progress of those who lose content was not read: {error}")
        )
    return replace(effects, contents=tuple(contents.values()))


def _with_progress(api: Api, content: ContentEffects, people: Sequence[RemoteId], now: int) -> ContentEffects:
    results = _results(api, content.id, people)
    states = Counter(_STATES.get(result.state) for result in results.values())
    states["not_started"] += len(people) - len(results)
    left = [result.expires - now * 1000 for result in results.values() if result.expires is not None]
    return replace(
        content,
        progress=None if None in states else {state: states[state] for state in _STATES.values()},
        certificates_expiring={days: sum(0 <= one <= days * 24 * 3600 * 1000 for one in left) for days in (30, 60, 90)},
    )


def _results(api: Api, content: RemoteId, people: Sequence[RemoteId] | None) -> dict[str, _Result]:
    """Return the latest result of each person for a content, by person id. people: None for all."""
    latest: dict[str, _Result] = {}
    starts = range(0, len(people or ()), _AT_ONCE)
    for wanted in [None] if people is None else [people[start : start + _AT_ONCE] for start in starts]:
        for row in _rows(api, {"contentIds": [content], **({} if wanted is None else {"userIds": [*wanted]})}):
            person, result = optional_text(row, "userId"), _parse(row)
            is_wanted = bool(person) if wanted is None else person in wanted
            if is_wanted and optional_text(row, "contentId") == content:
                # Of equal revisions the last row counts.
                latest[person] = max(result, latest.get(person, result), key=attrgetter("revision"))
    return latest


def _rows(api: Api, filters: Mapping[str, Json]) -> Iterator[Mapping[str, Json]]:
    """Yield all results, page by page until one is empty."""
    skip, seen = 0, set[str]()
    while True:
        page: Json = {"skip": skip, "limit": _AT_ONCE}
        answer = require_object(api.search("analytics.results", {**filters, "options": page}), "the results")
        if not isinstance(answer.get("list"), list):
            raise InvalidResponse("a response is missing its list of results")
        rows = object_list(answer, "list")
        new = [row for row in rows if repr(row) not in seen]
        if not new:
            return
        yield from new
        seen.update(map(repr, new))
        skip += len(rows)


def _parse(row: Mapping[str, Json]) -> _Result:
    revision, expires = row.get("contentRevision"), row.get("certificateExpiresAt")
    return _Result(
        revision if isinstance(revision, int) else 0,
        optional_text(row, "state"),
        expires if isinstance(expires, int) else None,
    )


def read_in_progress(api: Api, row: TargetRow, audience: tuple[str, RemoteId] | None) -> InProgressRow:
    """Return who is in progress in the audience of a target. audience: its kind and id; None if not known."""
    try:
        members = None if audience == EVERYONE_KEY else _members(api, row.target, audience)
        results = _results(api, row.content, None if members is None else sorted(members))
    except UNREADABLE as error:
        return InProgressRow(row.id, frozenset(), str(error))
    people = frozenset(RemoteId(id) for id, result in results.items() if result.state == "IN_PROGRESS")
    strange = sum(result.state not in _STATES for result in results.values())
    return InProgressRow(row.id, people, f"the service returns an unknown state for {strange}" if strange else None)


def _members(api: Api, id: RemoteId, audience: tuple[str, RemoteId] | None) -> frozenset[RemoteId]:
    """Return the ids of the people in the audience of a target.

    Raises InvalidResponse if the service does not return them, or if the id may be that of several audiences.
    """
    if audience is None:
        raise InvalidResponse(f'the id "{id}" is that of several of a group, a smart group and a person')
    if audience[0] == GROUP:
        return parse_user_ids(api.get("manual-groups.members", path={"groupId": id}))
    if audience[0] == USER:
        return frozenset({id})
    [members] = read_members(api, [id])
    if members is None:
        raise InvalidResponse("the service does not return the members of the smart group")
    return members
