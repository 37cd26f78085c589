"""Read the five kinds concurrently into a snapshot, or again, by id, what a plan touches.

What no call touches stays as it was read before: the names of people, content and groups that the calls refer to by
id, the conditions and answers that guards count, and all that the plan leaves alone. A change by hand to these in the
meantime is not seen before the calls are sent: they go to the ids that were reviewed, the service refuses what it no
longer allows, and the verification after the run finds the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.model.api_protocol import Api
from lmsconf.model.plan import Action, Change
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.read.assignments import find_empty_group_listings, read_assignments, reread_assignments
from lmsconf.planner.read.custom_fields import read_fields, reread_fields
from lmsconf.planner.read.manual_groups import read_groups, reread_groups
from lmsconf.planner.read.needed_listings import ReadContext, changed_keys, changes_of, is_cheaper_by_id
from lmsconf.planner.read.people import read_people, reread_people
from lmsconf.planner.read.smart_groups import (
    find_unlisted_fields,
    read_smart_groups,
    reread_smart_groups,
)

_READ: Final[Mapping[str, Callable[[ReadContext], Listing[Any] | None]]] = {
    USER: read_people,
    CUSTOM_FIELD: read_fields,
    GROUP: read_groups,
    SMART_GROUP: read_smart_groups,
    CONTENT_TARGET: read_assignments,
}
"""Kind → its job, which returns what it read, or None if that is not needed. People are the most pages, so first."""
_REREAD: Final[Mapping[str, Callable[[Api, Snapshot, Sequence[Change]], Listing[Any]]]] = {
    CUSTOM_FIELD: reread_fields,
    USER: reread_people,
    GROUP: reread_groups,
    SMART_GROUP: reread_smart_groups,
    CONTENT_TARGET: reread_assignments,
}
"""Kind → its kept listing with the rows that changes, of any kind, touch as they are now. Raises Rejected."""


_ABOUT_OTHERS: Final = frozenset({"email", "admin", "archived", "custom_archive_date"})


def read_snapshot(reading: ReadContext, *, url: str, taken_at: str) -> Snapshot:
    """Run a reading, and return its snapshot; what its jobs share can be read on.

    Raises ApiError, also for a response that is not a listing. A listing that looks complete is marked incomplete if
    another one contradicts it. url, taken_at: recorded in the snapshot as given.
    """
    results = reading.api.together({kind: partial(_run, reading, kind, read) for kind, read in _READ.items()})
    listings = reading.with_further({kind: one for kind, one in results.items() if isinstance(one, Listing)})
    name = reading.policy.workspace
    snapshot = Snapshot(workspace=name, url=url, taken_at=taken_at, people=reading.people, listings=listings)
    return mark_contradicted(snapshot)


def mark_contradicted(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot in which a listing that looks complete is marked incomplete if another one contradicts it."""
    doubts = {
        name: replace(snapshot.listings[name], incomplete=reason)
        for name, reason in (*find_unlisted_fields(snapshot), *find_empty_group_listings(snapshot))
        if snapshot.listings[name].incomplete is None
    }
    return replace(snapshot, listings={**snapshot.listings, **doubts})


def _run(reading: ReadContext, kind: str, read: Callable[[ReadContext], Listing[Any] | None]) -> Listing[Any] | None:
    """Run one job, and leave nobody waiting for what it did not read."""
    try:
        listing = read(reading)
    except BaseException as error:
        reading.end_job(kind, error)
        raise
    reading.publish_rest(kind, listing)
    return listing


def can_reread(kept: Snapshot, changes: Sequence[Change]) -> bool:
    """Return whether few reads by id show all that a plan with these changes touches, and are as fast.

    Otherwise all that they are compared with is read as for a plan: so for a deletion that takes along, or whose guards
    count, what the resource itself does not show.
    """
    of = partial(changes_of, changes=changes)
    fields, people, groups, smart_groups = map(of, (CUSTOM_FIELD, USER, GROUP, SMART_GROUP))
    return (
        # Answers go with a field or a choice, and assignments of any content with a group.
        not any(one.action is Action.DELETE for one in (*fields, *groups, *smart_groups))
        and not any(part.removed for one in fields for part in one.fields)
        # Which smart groups lose a condition with a deleted field shows only in all of them.
        and not any(one.is_effect for one in smart_groups)
        # Any account may have a new e-mail already, and the others decide whether the right of an admin may go.
        and all(one.action is Action.UPDATE and not changed_keys(one) & _ABOUT_OTHERS for one in people)
        and is_cheaper_by_id(len(people), kept.people)
        and is_cheaper_by_id(2 * len(groups), kept.people)
    )


def reread(api: Api, kept: Snapshot, changes: Sequence[Change]) -> Snapshot | None:
    """Return the snapshot with all that the changes touch as it is now; None if only a whole reading can tell.

    Raises ApiError.
    """
    jobs: dict[str, Callable[[], object]] = {
        kind: partial(read, api, kept, changes) for kind, read in _REREAD.items() if kind in kept.listings
    }
    try:
        results = api.together(jobs)
    except (Rejected, InvalidResponse):
        # A row is gone, or a single row lacks what its listing has: the listings decide, and word what is wrong.
        return None
    listings = {name: listing for name, listing in results.items() if isinstance(listing, Listing)}
    return mark_contradicted(replace(kept, listings={**kept.listings, **listings}))
