"""Read a listing page by page, and decide whether the rows are provably complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

from lmsconf.api.limits import AHEAD, MIB, PAGES, AnswerLimit, TooLarge, limit_of, memory_of, too_many
from lmsconf.api.listed import list_hint, list_of
from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ApiError, Unauthorized, Unreachable
from lmsconf.model.api import ListOperation, Rows
from lmsconf.model.values import Json

Ask = Callable[[Mapping[str, Json]], Future[Json]]
"""Request one page: query → future of the response."""
Keep = Callable[[dict[str, Json]], dict[str, Json]]
"""Reduce a row to the fields that are kept."""
Heard = Callable[[int | None, int], bool]
"""Called with the total, if there is one, and the number of rows of the first page. False: read no further page."""
FIRST_PAGE_ONLY: Final = "only its first page was read"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSchema:
    """The keys of a listing's rows, of their id and of the total, and the page size to request.

    paged: the operation takes `skip` and `limit`. keep: reduces a row before it is stored. key: the dialect key of the
    name of the rows, empty if it has none. most: the limits of rows and memory.
    """

    rows: str
    id: str
    total: str | None
    limit: int
    paged: bool = True
    keep: Keep | None = None
    key: str = ""
    most: AnswerLimit = field(default_factory=lambda: limit_of("", everything=False))

    @classmethod
    def of(
        cls, wire: ApiSpec, operation: ListOperation, keep: Keep | None = None, *, everything: bool = False
    ) -> PageSchema:
        """Return the schema of a listing under the workspace's dialect."""
        return cls(
            rows=operation.rows,
            id=operation.id,
            total=operation.total,
            limit=wire.number("paging.limit"),
            paged="skip" in wire[operation.name].query,
            keep=keep,
            key=list_of(wire[operation.name])[1],
            most=limit_of(operation.name, everything=everything),
        )


class _Pages:
    """The pages of one listing, by their `skip`.

    The first page gives the page size and the total; the others are then prefetched concurrently. A prefetched page is
    used only if its `skip` equals the number of rows received before it; the rest are cancelled.
    """

    def __init__(self, ask: Ask, layout: PageSchema, query: Mapping[str, Json]) -> None:
        self._ask, self._layout, self._query = ask, layout, query
        self._ahead: dict[int, Future[Json]] = {}
        self._coming: Iterator[int] = iter(())

    def __getitem__(self, skip: int) -> Json:
        """Return the page at `skip`. Raises ApiError."""
        asked = self._ahead.pop(skip, None)
        self._fill()
        return (asked or self._asked(skip)).result()

    def foresee(self, total: int | None, size: int) -> None:
        """Prefetch the pages after a first page of `size` rows."""
        if self._layout.paged and total is not None and size:
            self._coming = iter(range(size, total, size))
            self._fill()

    def _fill(self) -> None:
        """Request the next pages, up to AHEAD unused ones."""
        while len(self._ahead) < AHEAD and (skip := next(self._coming, None)) is not None:
            self._ahead[skip] = self._asked(skip)

    def drop(self) -> None:
        """Cancel the prefetched pages that were not used."""
        self._coming = iter(())
        for future in self._ahead.values():
            future.cancel()

    def _asked(self, skip: int) -> Future[Json]:
        layout = self._layout
        return self._ask({**self._query, "skip": skip, "limit": layout.limit} if layout.paged else self._query)


@dataclass(slots=True)
class Scan:
    """One pass over a listing.

    rows: id → row. totals: every total reported. received: rows received, with repeats. sizes: rows of each page but
    the last. memory: estimate for `rows`, in bytes. counted: ids of the objects in that estimate, see `memory_of`.
    """

    rows: dict[str, dict[str, Json]] = field(default_factory=dict)
    totals: set[int] = field(default_factory=set)
    received: int = 0
    sizes: list[int] = field(default_factory=list)
    memory: int = 0
    counted: set[int] = field(default_factory=set)


class _Endless(Exception):
    """A listing exceeds its limits; ends the run."""


class _Unfit(Exception):
    """A malformed page; a second pass would not help."""


def read(ask: Ask, layout: PageSchema, query: Mapping[str, Json], on_first: Heard | None = None) -> Rows:
    """Read every row of a listing. A failed or malformed page sets `incomplete` and raises nothing.

    Concurrent changes can shift rows between pages, so an inconsistent pass is repeated once.
    Raises Unauthorized and Unreachable, since every other read would fail too, and BadAnswer for a listing that exceeds
    its limits.
    """
    found = Scan()
    reason: str | None = None
    for _ in range(2):
        found = Scan()
        try:
            reason = _pass(ask, layout, query, found, on_first)
        except (Unauthorized, Unreachable):
            raise
        except ApiError as error:
            reason = error.message if error.hint is None else f"{error.message} ({error.hint})"
            break
        except _Unfit as error:
            reason = str(error)
            break
        except _Endless as error:
            raise too_many(layout.rows, str(error)) from None
        if reason in (None, FIRST_PAGE_ONLY):
            break
        on_first = None
    return Rows(rows=tuple(found.rows.values()), total=max(found.totals, default=None), incomplete=reason)


def _pass(ask: Ask, layout: PageSchema, query: Mapping[str, Json], found: Scan, on_first: Heard | None) -> str | None:
    """Read to the end; return why `found` may be incomplete, or None. Raises ApiError, _Unfit and _Endless."""
    pages = _Pages(ask, layout, query)
    try:
        while True:
            rows, total = _page(pages[found.received], layout, is_first=found.received == 0)
            if total is not None and total > layout.most.rows:
                raise _Endless(f"it counts {total:,} of them, and at most {layout.most.rows:,} are read")
            is_enough = found.received == 0 and on_first is not None and not on_first(total, len(rows))
            if found.received == 0 and not is_enough:
                pages.foresee(total, len(rows))
            if total is not None:
                found.totals.add(total)
            known = len(found.rows)
            _collect(rows, layout, found)
            # Advance by the rows received, not by `limit`: the service may cap its pages.
            found.received += len(rows)
            _refuse_endless(layout, found)
            if is_enough:
                return FIRST_PAGE_ONLY
            if rows and len(found.rows) == known:
                return f"a page of {layout.rows} brought only rows that were there before"
            if total is None and len(found.rows) != found.received:
                return f"a page of {layout.rows} began with rows that were there before"
            if not rows or not layout.paged or len(found.rows) == total:
                return _disagreement(layout, found) or _end(pages, layout, found)
            found.sizes.append(len(rows))
    finally:
        pages.drop()


def _end(pages: _Pages, layout: PageSchema, found: Scan) -> str | None:
    """Return why an empty page may not be the end of the listing, or None.

    Without a total, and after a full page or none, the empty page is the only evidence. Then read once more from the
    last row: it must return exactly one known row, or nothing if there are no rows.
    """
    full = found.sizes[0] if len(found.sizes) > 1 else layout.limit
    if not layout.paged or found.totals or (found.sizes and found.sizes[-1] < full):
        return None
    rows, _ = _page(pages[max(0, found.received - 1)], layout, is_first=True)
    if len(rows) != min(1, found.received) or any(_id(row, layout) not in found.rows for row in rows):
        return f"a page of {layout.rows} was empty, and there are more of them"
    return None


def _collect(rows: list[dict[str, Json]], layout: PageSchema, found: Scan) -> None:
    """Add the rows of a page that are new, by id."""
    for row in rows:
        id = _id(row, layout)
        if id not in found.rows:
            named = row if row.get(layout.id) is not None else {**row, layout.id: id}
            kept = layout.keep(named) if layout.keep else named
            try:
                found.memory += memory_of(kept, found.counted)
            except TooLarge as error:
                raise _Unfit(f"a row of {layout.rows} cannot be used: {error}") from None
            found.rows[id] = kept
            _refuse_endless(layout, found)


def _refuse_endless(layout: PageSchema, found: Scan) -> None:
    """Raise _Endless if the rows, their memory or the pages exceed the limits."""
    most = layout.most
    if len(found.rows) > most.rows:
        raise _Endless(f"at most {most.rows:,} are read, and more came")
    if found.memory > most.memory:
        raise _Endless(f"{len(found.rows):,} of them take more than {most.memory // MIB} MiB of memory")
    if len(found.sizes) > PAGES:
        raise _Endless(f"{len(found.rows):,} of them came in more than {PAGES:,} pages")


def _page(page: Json, layout: PageSchema, *, is_first: bool) -> tuple[list[dict[str, Json]], int | None]:
    """Return rows and total of a page. Null rows, as some services end a listing, are allowed after the first page."""
    rows = page.get(layout.rows) if isinstance(page, dict) else None
    if isinstance(page, dict) and not is_first and layout.rows in page and rows is None:
        rows = []
    if not isinstance(page, dict) or not isinstance(rows, list):
        raise _Unfit(f"a page came without its list of {layout.rows} ({list_hint(layout.rows, layout.key, page)})")
    objects = [row for row in rows if isinstance(row, dict)]
    if len(objects) != len(rows):
        raise _Unfit(f"a row of {layout.rows} is not an object")
    total = page.get(layout.total) if layout.total else None
    return objects, total if isinstance(total, int) and not isinstance(total, bool) else None


def _id(row: Mapping[str, Json], layout: PageSchema) -> str:
    """Return the id of a row as text. Without its own key, `id` is used.

    They are equal in custom fields (API specification, Custom field).
    """
    found = row.get("id") if row.get(layout.id) is None else row[layout.id]
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise _Unfit(f"a row of {layout.rows} came without its {layout.id}")
    return str(found)


def _disagreement(layout: PageSchema, found: Scan) -> str | None:
    """Return why the number of rows differs from a total reported by any page; None if all agree."""
    if found.totals <= {len(found.rows)}:
        return None
    said = " and then ".join(str(total) for total in sorted(found.totals))
    return f"{len(found.rows)} {layout.rows} came, and the service counts {said}"
