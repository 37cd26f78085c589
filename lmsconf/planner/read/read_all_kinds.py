"""Read the five kinds concurrently into a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.read.assignments import find_empty_group_listings, read_assignments
from lmsconf.planner.read.fields_and_groups import (
    find_unlisted_fields,
    read_fields,
    read_groups,
    read_smart_groups,
)
from lmsconf.planner.read.needed_listings import ReadContext
from lmsconf.planner.read.people import read_people

_READ: Final[Mapping[str, Callable[[ReadContext], Listing[Any] | None]]] = {
    USER: read_people,
    CUSTOM_FIELD: read_fields,
    GROUP: read_groups,
    SMART_GROUP: read_smart_groups,
    CONTENT_TARGET: read_assignments,
}
"""Kind → its job, which returns what it read, or None if that is not needed. People are the most pages, so first."""


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
