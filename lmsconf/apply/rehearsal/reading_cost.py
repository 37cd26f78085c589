"""What a full reading of a workspace costs, estimated from the first page of each listing.

These pages are part of the full reading, which uses them instead of requesting them again, so that the estimate costs
no request of its own.
"""

from __future__ import annotations

from functools import partial
from typing import Final, cast

from msgspec import Struct

from lmsconf.api.pagination import ListingSchema
from lmsconf.api.spec.assumed_keys import ADD_MODE
from lmsconf.api.spec.operations import CATALOG, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.api.worker_pool import query_key
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.user.types import needs_single_read
from lmsconf.model.api import ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.workspace.reader import WorkspaceReader

_LISTED: Final = (USERS, MANUAL_GROUPS, SMART_GROUPS, CATALOG)
_PEOPLE_LISTINGS: Final = 2
"""GET /users, and GET /users/extended-info with rights and groups."""
_LISTS_OF_A_GROUP: Final = 2
"""Members and managers, where the extended listing takes more requests."""


class ReadingCost(Struct, frozen=True, kw_only=True):
    """requests: at least how many a full reading takes: the length of a listing is not always known beforehand, and
    what looks missing is read twice. rate: requests a second, at most; None if not limited.
    """

    requests: int
    rate: float | None

    @property
    def seconds(self) -> float | None:
        """The time of the requests at this rate; None if the rate is not known."""
        return None if self.rate is None else self.requests / self.rate


class _FirstPage(Struct, frozen=True):
    """A first page: the number of its rows, and the total if the response has one."""

    rows: int
    total: int | None
    is_full: bool

    @property
    def count(self) -> int:
        return self.rows if self.total is None else self.total

    @property
    def pages(self) -> int:
        """The number of requests for the pages; without a total, an empty page proves the end of a short one."""
        if self.total is None:
            return 3 if self.is_full else 2
        return max(1, -(-self.total // max(1, self.rows)))


def read_first_pages(
    workspace: WorkspaceReader, manifests: Manifests
) -> tuple[ReadingCost, dict[tuple[str, str], Json]]:
    """Read the first page of each listing; return the cost of a full reading, and the pages for that reading.

    Raises ApiError.
    """
    spec, answered, first = workspace.connection.spec, dict[tuple[str, str], Json](), dict[str, _FirstPage]()
    query: dict[str, Json] = {"skip": 0, "limit": spec.integer_behaviour("paging.limit")}
    with workspace.connection.worker_pool(workspace.parallelism) as pool:
        api = workspace.connection.reader(pool)
        jobs = {one.name: partial(api.get, one.name, query=query) for one in _LISTED}
        pages = cast("dict[str, Json]", api.together(jobs))
    for listing in _LISTED:
        answered[listing.name, query_key(query)] = pages[listing.name]
        size = ListingSchema.for_operation(spec, listing).page_size
        first[listing.name] = _first_page(pages[listing.name], listing, size)
    people, groups, smart, contents = (first[one.name] for one in _LISTED)
    of_groups = _LISTS_OF_A_GROUP * groups.count
    of_people = people.pages < of_groups and spec.behaviour(ADD_MODE) != "replace"
    requests = (
        1
        + _PEOPLE_LISTINGS * people.pages
        + groups.pages
        # The extended listing has the lists of all groups; it is used where it takes fewer requests, and where calls do
        # not replace a list, which must be known with its archived people then.
        + (0 if of_people else of_groups)
        + (smart.pages + smart.count)
        + (contents.pages + contents.count)
        + sum(one.address.kind == USER and needs_single_read(one.spec) for one in manifests.declared)
    )
    return ReadingCost(requests=requests, rate=workspace.connection.rate), answered


def _first_page(page: Json, listing: ListOperation, size: int) -> _FirstPage:
    """Return what a page tells; a page without rows, which the full reading refuses, counts as empty."""
    body = page if isinstance(page, dict) else {}
    rows, total = body.get(listing.rows), body.get(listing.total) if listing.total else None
    number = len(rows if isinstance(rows, list) else ())
    return _FirstPage(number, total if type(total) is int else None, is_full=number >= size)
