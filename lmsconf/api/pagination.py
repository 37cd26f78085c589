"""Read a listing page by page, and decide whether the rows are provably complete.

A response without its list is refused: read as empty, it would plan the creation of everything.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future

from msgspec import Struct, field

from lmsconf.api.response_limits import (
    MIB,
    PAGES,
    LimitExceeded,
    ListingLimit,
    estimate_memory,
    listing_limit,
    pages_ahead,
)
from lmsconf.api.spec import Operation, path_segment_problem
from lmsconf.api.spec.operations import dialect_key_of, object_properties
from lmsconf.errors import ApiError, InvalidResponse, Unauthorized, Unreachable, shorten
from lmsconf.model.calls import ListedRows, ListOperation
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import quote_name

Keep = Callable[[dict[str, Json]], dict[str, Json]]
"""Reduce a row to the fields that are kept."""
AskPage = Callable[[Mapping[str, Json], bool], Future[Json]]
"""Request one page: query, and whether it was expected → future of the response."""
CountPages = Callable[[int], None]
"""Receives a number of pages: of those that are expected, or of expected ones that are not requested after all."""


class ListingSchema(Struct, frozen=True, kw_only=True):
    """A listing under the workspace's dialect, and the page size to request.

    reserved_id: the id of a row that is left out. counts_unlisted: whether the total may exceed the rows.
    paged: the operation takes `skip` and `limit`. reduce_row: called before a row is stored.
    dialect_key: that of the name of the rows, empty if it has none. size_limit: of rows and memory.
    """

    listing: ListOperation
    page_size: int
    reserved_id: str | None = None
    counts_unlisted: bool = False
    paged: bool = True
    reduce_row: Keep | None = None
    dialect_key: str = ""
    size_limit: ListingLimit = field(default_factory=lambda: listing_limit("", whole_rows=False))


class ListingPass:
    """One pass over a listing: its pages, by their `skip`, and the rows received so far.

    The first page gives the page size and the total; the others are then prefetched concurrently. A prefetched page is
    used only if its `skip` equals the number of rows received before it; the rest are cancelled.

    rows: id → row. totals: every total reported. received: rows received, with repeats. sizes: rows of each page but
    the last. memory: estimate for `rows`, in bytes. counted: ids of the objects in that estimate, see
    `estimate_memory`.
    """

    def __init__(
        self, ask: AskPage, schema: ListingSchema, query: Mapping[str, Json], expect: CountPages, drop: CountPages
    ) -> None:
        self._ask, self._schema, self._query, self._expect, self._drop = ask, schema, query, expect, drop
        self._ahead: dict[int, Future[Json]] = {}
        self._most_ahead = 0
        self._next_skips: Iterator[int] = iter(())
        self.rows: dict[str, dict[str, Json]] = {}
        self.totals: set[int] = set()
        self.received = self.memory = 0
        self.sizes: list[int] = []
        self.counted: set[int] = set()

    def __getitem__(self, skip: int) -> Json:
        """Return the page at `skip`. Raises ApiError."""
        prefetched = self._ahead.pop(skip, None)
        self._fill()
        return (prefetched or self._request(skip)).result()

    def prefetch(self, total: int | None, rows: list[dict[str, Json]]) -> None:
        """Prefetch the pages after a first page with these rows."""
        size = len(rows)
        if self._schema.paged and total is not None and size:
            self._most_ahead = pages_ahead(rows)
            skips = range(size, total, size)
            self._expect(len(skips))
            self._next_skips = iter(skips)
            self._fill()

    def _fill(self) -> None:
        """Request the next pages, up to a number of unused ones."""
        while len(self._ahead) < self._most_ahead and (skip := next(self._next_skips, None)) is not None:
            self._ahead[skip] = self._request(skip, is_expected=True)

    def drop(self) -> None:
        """Cancel the prefetched pages that were not used."""
        self._drop(sum(1 for _ in self._next_skips))
        for future in self._ahead.values():
            future.cancel()

    def _request(self, skip: int, *, is_expected: bool = False) -> Future[Json]:
        page = {"skip": skip, "limit": self._schema.page_size} if self._schema.paged else {}
        return self._ask({**self._query, **page}, is_expected)


def read_listing(
    ask: AskPage,
    schema: ListingSchema,
    query: Mapping[str, Json],
    *,
    expect: CountPages = lambda _: None,
    drop: CountPages = lambda _: None,
) -> Iterator[ListedRows]:
    """Yield the first page of a listing, then, when asked for more, every row. If the first page fails: only that.

    expect: called with the number of further pages, once the first page tells. drop: called with the number of those
    that are not requested after all, at any time: even while `expect` is called, by the garbage collector.
    A failed or malformed page sets `incomplete` and raises nothing.
    Concurrent changes can shift rows between pages, so an inconsistent pass is repeated once.
    Raises Unauthorized and Unreachable, since every other read would fail too, and InvalidResponse for a listing that
    exceeds its limits.
    """
    for yields_first_page in (True, False):
        scan = ListingPass(ask, schema, query, expect, drop)
        try:
            reason = yield from _pass(schema, scan, yields_first_page)
        except (Unauthorized, Unreachable, LimitExceeded):
            raise
        except ApiError as error:
            reason = error.message if error.hint is None else f"{error.message} ({error.hint})"
            break
        if reason is None:
            break
    yield _listed(schema, scan, reason)


def _listed(schema: ListingSchema, scan: ListingPass, incomplete: str | None) -> ListedRows:
    return ListedRows(
        rows=tuple(row for id, row in scan.rows.items() if id != schema.reserved_id),
        total=max(scan.totals, default=None),
        incomplete=incomplete,
    )


def _pass(schema: ListingSchema, scan: ListingPass, yields_first_page: bool) -> Generator[ListedRows, None, str | None]:
    """Read to the end; return why `scan` may be incomplete, or None. Raises ApiError."""
    try:
        while True:
            rows, total = _page(scan[scan.received], schema, is_first=scan.received == 0)
            if total is not None:
                scan.totals.add(total)
                if total > schema.size_limit.rows:
                    raise LimitExceeded(
                        schema.listing.rows,
                        f"it counts {total:,} of them, and at most {schema.size_limit.rows:,} are read",
                    )
            known = len(scan.rows)
            _collect(rows, schema, scan)
            if scan.received == 0:
                if yields_first_page:
                    yield _listed(schema, scan, "only its first page was read")
                scan.prefetch(total, rows)
            # Advance by the rows received, not by `limit`: the service may cap its pages.
            scan.received += len(rows)
            if rows and len(scan.rows) == known:
                return f"a page of {schema.listing.rows} returned only rows that were already read"
            if total is None and len(scan.rows) != scan.received:
                return f"a page of {schema.listing.rows} began with rows that were already read"
            if not rows or not schema.paged or len(scan.rows) == total:
                return _disagreement(schema, scan) or _end(schema, scan)
            scan.sizes.append(len(rows))
    finally:
        scan.drop()


def _end(schema: ListingSchema, scan: ListingPass) -> str | None:
    """Return why an empty page may not be the end of the listing, or None.

    Without a total of the rows, and after a full page or none, the empty page is the only evidence. Then read
    once more from the last row: it must return exactly one known row, or nothing if there are no rows.
    """
    full = scan.sizes[0] if len(scan.sizes) > 1 else schema.page_size
    is_counted = scan.totals and not schema.counts_unlisted
    if not schema.paged or is_counted or (scan.sizes and scan.sizes[-1] < full):
        return None
    rows, _ = _page(scan[max(0, scan.received - 1)], schema, is_first=True)
    if len(rows) != min(1, scan.received) or any(_id(row, schema) not in scan.rows for row in rows):
        return f"a page of {schema.listing.rows} was empty, and there are more of them"
    return None


def _collect(rows: list[dict[str, Json]], schema: ListingSchema, scan: ListingPass) -> None:
    """Add the rows of a page that are new, by id."""
    for row in rows:
        id = _id(row, schema)
        if id not in scan.rows:
            named = row if row.get(schema.listing.id) is not None else {**row, schema.listing.id: id}
            kept = schema.reduce_row(named) if schema.reduce_row else named
            scan.memory += estimate_memory(kept, scan.counted, subject=f"a row of {schema.listing.rows}")
            scan.rows[id] = kept
            _refuse_endless(schema, scan)


def _refuse_endless(schema: ListingSchema, scan: ListingPass) -> None:
    """Raise LimitExceeded if the rows, their memory or the pages exceed the limits."""
    most, read = schema.size_limit, len(scan.rows)
    if read > most.rows:
        raise LimitExceeded(schema.listing.rows, f"at most {most.rows:,} are read, but there are more")
    if scan.memory > most.memory:
        raise LimitExceeded(schema.listing.rows, f"{read:,} of them take more than {most.memory // MIB} MiB of memory")
    if len(scan.sizes) > PAGES:
        raise LimitExceeded(schema.listing.rows, f"{read:,} of them span more than {PAGES:,} pages")


def _page(page: Json, schema: ListingSchema, *, is_first: bool) -> tuple[list[dict[str, Json]], int | None]:
    """Return rows and total of a page. Null rows, as some services end a listing, are allowed after the first page."""
    rows = page.get(schema.listing.rows) if isinstance(page, dict) else None
    if isinstance(page, dict) and not is_first and schema.listing.rows in page and rows is None:
        rows = []
    if not isinstance(page, dict) or not isinstance(rows, list):
        raise InvalidResponse(
            f"a page is missing its list of {schema.listing.rows} "
            f"({missing_list_hint(schema.listing.rows, schema.dialect_key, page)})"
        )
    objects = [row for row in rows if isinstance(row, dict)]
    if len(objects) != len(rows):
        raise InvalidResponse(f"a row of {schema.listing.rows} is not an object")
    total = page.get(schema.listing.total) if schema.listing.total else None
    return objects, total if isinstance(total, int) and not isinstance(total, bool) else None


def _id(row: Mapping[str, Json], schema: ListingSchema) -> str:
    """Return the id of a row as text. Without its own key, `id` is used.

    They are equal in custom fields (API specification, Custom field).
    """
    id = row.get("id") if row.get(schema.listing.id) is None else row[schema.listing.id]
    if isinstance(id, bool) or not isinstance(id, str | int) or id == "":
        raise InvalidResponse(f"a row of {schema.listing.rows} is missing its {schema.listing.id}")
    if isinstance(id, str) and (why := path_segment_problem(id)):
        raise InvalidResponse(f"a row of {schema.listing.rows} has an unusable {schema.listing.id}: {shorten(why)}")
    return str(id)


def _disagreement(schema: ListingSchema, scan: ListingPass) -> str | None:
    """Return why the number of rows differs from a total reported by any page; None if all agree."""
    read, totals = len(scan.rows), sorted(scan.totals)
    if scan.totals <= {read} or (schema.counts_unlisted and read < totals[0]):
        return None
    reason = f"{read} {schema.listing.rows} received, but the service counts {' and then '.join(map(str, totals))}"
    may_count_others = schema.listing.counted is not None and read < totals[0]
    hint = f" (if that includes archived people, set `{schema.listing.counted}: all` in `dialect`)"
    return f"{reason}{hint if may_count_others else ''}"


def required_list(operation: Operation) -> tuple[str, str]:
    """Return the wire name and the dialect key of a response's one required list; empty if there is none."""
    properties = object_properties(operation.success or {})
    match (operation.success or {}).get("required"):
        case [str(name)] if properties[name].get("type") == "array":
            return name, dialect_key_of(properties[name])
    return "", ""


def refuse_missing_list(operation: Operation, response: Json) -> Json:
    """Return the response. Raises InvalidResponse if its list is missing or is not a list."""
    listed, key = required_list(operation)
    if listed and isinstance(response, dict) and not isinstance(response.get(listed), list):
        raise InvalidResponse(
            f"an answer to {operation.method} {operation.path} is missing its list of {listed}",
            hint=missing_list_hint(listed, key, response),
            operation=operation.id,
        )
    return response


def missing_list_hint(list_name: str, dialect_key: str, response: Json) -> str:
    """Word what is wrong with the list, that nothing is changed because of it, and how to fix it."""
    wrong = (
        f"{quote_name(list_name)} is not a list"
        if list_name in members(response)
        else f"the key {quote_name(list_name)} is missing"
    )
    lists = [name for name, item in members(response).items() if isinstance(item, list)]
    other = f", and there is a list under {quote_name(lists[0])}" if len(lists) == 1 else ""
    way_out = (
        f"If the service uses another name, set it under `dialect:` ({dialect_key})."
        if dialect_key
        else f"No dialect key names it: the service must write {list_name}, and [] where there are none."
    )
    return f"In the answer {wrong}{other}. Nothing is created or deleted from such a response. {way_out}"
