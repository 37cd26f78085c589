"""Listings, page after page, and whether what came is provably all of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field

from lmsconf.api.limits import AHEAD, MIB, PAGES, Limit, TooLarge, limit_of, memory_of, too_many
from lmsconf.api.listed import list_hint, list_of
from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ApiError, Unauthorized, Unreachable
from lmsconf.model.api import ListOperation, Rows
from lmsconf.model.values import Json

Ask = Callable[[Mapping[str, Json]], Future[Json]]
"""Asks for one page: its query → the answer, some day."""
Keep = Callable[[dict[str, Json]], dict[str, Json]]
"""What of a row to hold on to."""
Heard = Callable[[int | None, int], None]
"""Hears the total and the number of rows of the first page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSchema:
    """How a listing is laid out: the key of its rows, of their id and of the total, and the largest page to ask for.

    paged: whether there is more than one page to ask for. keep: makes a row smaller before it is put aside. key: the
    dialect key that names the rows, empty where none does. most: how many rows there may be, and how large.
    """

    rows: str
    id: str
    total: str | None
    limit: int
    paged: bool = True
    keep: Keep | None = None
    key: str = ""
    most: Limit = field(default_factory=lambda: limit_of("", everything=False))

    @classmethod
    def of(
        cls, wire: ApiSpec, operation: ListOperation, keep: Keep | None = None, *, everything: bool = False
    ) -> PageSchema:
        """As the workspace's dialect has it."""
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
    """The pages of one listing by where they begin.

    Once the first has told how large a page is and how many rows there are, the others are asked for side by side.
    Each is used only where the rows before it number what it skips; what turns out not to be needed is dropped.
    """

    def __init__(self, ask: Ask, layout: PageSchema, query: Mapping[str, Json]) -> None:
        self._ask, self._layout, self._query = ask, layout, query
        self._ahead: dict[int, Future[Json]] = {}
        self._coming: Iterator[int] = iter(())

    def __getitem__(self, skip: int) -> Json:
        """The page that begins after so many rows. Raises ApiError."""
        asked = self._ahead.pop(skip, None)
        self._fill()
        return (asked or self._asked(skip)).result()

    def foresee(self, total: int | None, size: int) -> None:
        """Asks for all that should follow a first page of that size."""
        if self._layout.paged and total is not None and size:
            self._coming = iter(range(size, total, size))
            self._fill()

    def _fill(self) -> None:
        """Asks for the next pages, as long as few of them wait to be used."""
        while len(self._ahead) < AHEAD and (skip := next(self._coming, None)) is not None:
            self._ahead[skip] = self._asked(skip)

    def drop(self) -> None:
        """Lets go of what nobody waits for any more."""
        self._coming = iter(())
        for future in self._ahead.values():
            future.cancel()

    def _asked(self, skip: int) -> Future[Json]:
        layout = self._layout
        return self._ask({**self._query, "skip": skip, "limit": layout.limit} if layout.paged else self._query)


@dataclass(slots=True)
class Scan:
    """One reading from the first page to the last. last: how many rows the last page brought that had any."""

    rows: dict[str, dict[str, Json]] = field(default_factory=dict)
    totals: set[int] = field(default_factory=set)
    received: int = 0
    sizes: list[int] = field(default_factory=list)
    memory: int = 0
    counted: set[int] = field(default_factory=set)


class _Endless(Exception):
    """A listing that has more than any workspace: the run ends with it."""


class _Unfit(Exception):
    """A page that no second reading would mend."""


def read(ask: Ask, layout: PageSchema, query: Mapping[str, Json], on_first: Heard | None = None) -> Rows:
    """Every row of a listing. It never raises for a page that failed or makes no sense, but says `incomplete`.

    What the service changes while it is read can shift rows from page to page; a second reading settles that.
    A refused credential and a service that cannot be reached are raised: every other read would end the same. So is
    BadAnswer for a listing that has more than any workspace.
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
        if reason is None:
            break
        on_first = None
    return Rows(rows=tuple(found.rows.values()), total=max(found.totals, default=None), incomplete=reason)


def _pass(ask: Ask, layout: PageSchema, query: Mapping[str, Json], found: Scan, on_first: Heard | None) -> str | None:
    """Reads to the end, and says why that may not be all; None where it is. Raises ApiError and _Unfit."""
    pages = _Pages(ask, layout, query)
    try:
        while True:
            rows, total = _page(pages[found.received], layout, is_first=found.received == 0)
            if total is not None and total > layout.most.rows:
                raise _Endless(f"it counts {total:,} of them, and at most {layout.most.rows:,} are read")
            if found.received == 0:
                pages.foresee(total, len(rows))
                if on_first:
                    on_first(total, len(rows))
            if total is not None:
                found.totals.add(total)
            known = len(found.rows)
            _collect(rows, layout, found)
            # By what came, never by what was asked for: a service may hold its pages smaller.
            found.received += len(rows)
            _refuse_endless(layout, found)
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
    """Why an empty page may not be the end; None where it is.

    Where nothing counts the rows and the page before was a full one, or there was none, an empty page is all that says
    so. Then one more look, from the last row on, must bring a row, and none that was not there.
    """
    full = found.sizes[0] if len(found.sizes) > 1 else layout.limit
    if not layout.paged or found.totals or (found.sizes and found.sizes[-1] < full):
        return None
    rows, _ = _page(pages[max(0, found.received - 1)], layout, is_first=True)
    if len(rows) != min(1, found.received) or any(_id(row, layout) not in found.rows for row in rows):
        return f"a page of {layout.rows} was empty, and there are more of them"
    return None


def _collect(rows: list[dict[str, Json]], layout: PageSchema, found: Scan) -> None:
    """Adds what is new of a page, by id."""
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
    """Raises _Endless where more came than any workspace holds."""
    most = layout.most
    if len(found.rows) > most.rows:
        raise _Endless(f"at most {most.rows:,} are read, and more came")
    if found.memory > most.memory:
        raise _Endless(f"{len(found.rows):,} of them take more than {most.memory // MIB} MiB of memory")
    if len(found.sizes) > PAGES:
        raise _Endless(f"{len(found.rows):,} of them came in more than {PAGES:,} pages")


def _page(page: Json, layout: PageSchema, *, is_first: bool) -> tuple[list[dict[str, Json]], int | None]:
    """The rows and the total of one page. Some services write null where no rows are left; a first page may not."""
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
    """The id of a row as text. Where its own key is missing, plain `id` says the same, as it does for custom fields."""
    found = row.get("id") if row.get(layout.id) is None else row[layout.id]
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise _Unfit(f"a row of {layout.rows} came without its {layout.id}")
    return str(found)


def _disagreement(layout: PageSchema, found: Scan) -> str | None:
    """Why the rows are not what the service counts, or counted a page earlier; None where all agree."""
    if found.totals <= {len(found.rows)}:
        return None
    said = " and then ".join(str(total) for total in sorted(found.totals))
    return f"{len(found.rows)} {layout.rows} came, and the service counts {said}"
