"""Read again what a plan touches, into a copy of a snapshot that this run read before: a few requests by id.

What no call touches stays as it was read: the names of people, content and groups that the calls refer to by id, the
conditions and answers that guards count, and all that the plan leaves alone. A change by hand to these in the meantime
is not seen before the calls are sent: they go to the ids that were reviewed, the service refuses what it no longer
allows, and the verification after the run finds the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Change
from lmsconf.model.snapshot import HasName, Listing, Snapshot
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.reading import mark_contradicted

_FEW: Final = 10
"""So many requests by id are never more than the listings of a whole reading come to, each with an empty last page."""
_PAGE: Final = 100
"""How many rows the service returns on a page at most (API specification)."""


def can_reread(kinds: Mapping[str, AnyKind], kept: Snapshot, changes: Sequence[Change]) -> bool:
    """Return whether few reads by id show all that a plan with these changes touches."""
    return all(kind.can_reread(kept, changes_of(kind.name, changes)) for kind in kinds.values())


def reread(api: Api, kinds: Mapping[str, AnyKind], kept: Snapshot, changes: Sequence[Change]) -> Snapshot | None:
    """Return the snapshot with all that the changes touch as it is now; None if only a whole reading can tell.

    Raises ApiError.
    """
    jobs: dict[str, Callable[[], object]] = {
        name: partial(kind.reread, api, kept, changes) for name, kind in kinds.items() if name in kept.listings
    }
    try:
        results = api.together(jobs)
    except (Rejected, InvalidResponse):
        # A row is gone, or a single row lacks what its listing has: the listings decide, and word what is wrong.
        return None
    listings = {name: listing for name, listing in results.items() if isinstance(listing, Listing)}
    return mark_contradicted(replace(kept, listings={**kept.listings, **listings}))


def changes_of(kind: str, changes: Sequence[Change]) -> list[Change]:
    """Return the changes to resources of one kind."""
    return [change for change in changes if change.address.kind == kind]


def gives_name(change: Change) -> bool:
    """Return whether a change creates a resource or renames one."""
    return "name" in changed_keys(change)


def touched_ids(changes: Sequence[Change], rows: Sequence[HasName]) -> frozenset[RemoteId]:
    """Return the ids of the live rows that changes touch: those with their ids, and those that they create."""
    created = {change.address.name for change in changes if change.id is None}
    ids = {change.id for change in changes if change.id is not None}
    return frozenset(row.id for row in rows if row.id in ids or normalize_name(row.name) in created)


def keep_details(names: Listing[Any], kept: Listing[Any]) -> Listing[Any]:
    """Return a listing of names with what was read of its rows before, beside their names."""
    before = {row.id: row for row in kept.rows}
    known = (row for row in names.rows if row.id in before)
    return replace_rows(names, {row.id: replace(before[row.id], name=row.name) for row in known})


def is_cheaper_by_id(requests: int, listed: int | None) -> bool:
    """Return whether so many requests by id are fewer than the pages of a listing with so many rows, or few anyway."""
    return requests <= (_FEW if listed is None else max(_FEW, listed // _PAGE))


def replace_rows(listing: Listing[Any], rows: Mapping[RemoteId, Any]) -> Listing[Any]:
    """Return a listing with some of its rows replaced, by id."""
    return replace(listing, rows=tuple(rows.get(row.id, row) for row in listing.rows))


def changed_keys(change: Change) -> frozenset[str]:
    """Return the keys that a change sets: all of a creation, those that differ of an update."""
    if change.action is Action.CREATE:
        return declared_keys(change)
    return frozenset(field.path.partition(".")[0] for field in change.fields)


def declared_keys(change: Change) -> frozenset[str]:
    """Return the keys that the declaration of a changed resource has."""
    return frozenset(change.after if isinstance(change.after, dict) else ())
