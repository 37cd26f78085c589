"""The largest page that each listing returns, as distinct from a listing that is merely short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from msgspec import Struct

from lmsconf.api.spec.operations import CATALOG, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.doctor.findings import CheckResult, Health
from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.model.api import Api, ListOperation
from lmsconf.model.canonical_json import Json

MOST: Final = 100
"""The page size in the specification; the catalog never returns more (API specification, Limits)."""
_SMALLER: Final = (50, 25, 20, 10, 5)
_KEY: Final = "paging.limit"
_PAGED: Final = (USERS, MANUAL_GROUPS, SMART_GROUPS, CATALOG)


class ListingPageSize(Struct, frozen=True):
    """One listing's page size. `most`: None if the listing is too short; `refused`: `requested` itself was rejected."""

    operation: str
    requested: int
    most: int | None
    refused: bool = False


def measure_page_sizes(api: Api, requested: int) -> list[ListingPageSize]:
    """Return what each listing returns for that page size. Raises ApiError if one cannot be read at all."""
    return [_limit(api, one, min(requested, MOST) if one is CATALOG else requested) for one in _PAGED]


def common_page_size(limits: Sequence[ListingPageSize]) -> int | None:
    """The page size that all listings return; None if none of them is long enough."""
    sizes = [(limit.most, limit.most < limit.requested) for limit in limits if limit.most is not None]
    caps = [most for most, short in sizes if short]
    return min(caps) if caps else max((most for most, _ in sizes), default=None)


def check_page_size(limits: Sequence[ListingPageSize]) -> CheckResult:
    """Report whether pages are as large as the project says."""
    most = common_page_size(limits)
    short = [limit for limit in limits if limit.most is not None and limit.most < limit.requested]
    if short and most is not None:
        verbs = {True: "takes", False: "gives"}
        message = ", ".join(f"{one.operation} {verbs[one.refused]} {one.most} of {one.requested}" for one in short)
        refused = any(one.refused for one in short)
        health = Health.ERROR if refused else Health.WARNING
        return CheckResult("pages", health, message, f"Set under `dialect:` {_KEY}: {most}")
    operations = [limit.operation for limit in limits if limit.most is not None]
    if not operations:
        return CheckResult(
            "pages", Health.UNKNOWN, "no listing is longer than a page, so the largest page size is not known"
        )
    return CheckResult("pages", Health.OK, f"{', '.join(operations)}: whole pages of {most}")


def _limit(api: Api, listing: ListOperation, requested: int) -> ListingPageSize:
    """Find the largest page of one listing, by smaller sizes if a large one is rejected."""
    for size in (requested, *(size for size in _SMALLER if size < requested)):
        try:
            rows, total = _page(api, listing, size)
        except Rejected:
            continue
        if size < requested:
            return ListingPageSize(listing.name, requested, size, refused=True)
        if rows >= size:
            return ListingPageSize(listing.name, requested, size)
        more = total > rows if total is not None else bool(rows) and _page(api, listing, size, skip=rows)[0] > 0
        return ListingPageSize(listing.name, requested, rows if more and rows else None)
    raise Rejected(f"{listing.name} refuses every page size", operation=listing.name)


def _page(api: Api, listing: ListOperation, size: int, skip: int = 0) -> tuple[int, int | None]:
    """The number of rows returned, and the total that the listing reports."""
    answer = api.get(listing.name, query={"skip": skip, "limit": size})
    rows = cast("dict[str, Json]", answer).get(listing.rows, "missing")
    if rows is None and skip:
        rows = []
    if not isinstance(rows, list):
        raise InvalidResponse(f"{listing.name} is missing its {listing.rows}", operation=listing.name)
    total = cast("dict[str, Json]", answer).get(listing.total) if listing.total else None
    return len(rows), total if isinstance(total, int) and not isinstance(total, bool) else None
