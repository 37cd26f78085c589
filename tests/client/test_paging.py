"""Listings: read to their proven end, or said to be incomplete."""

import threading
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future
from typing import cast

import httpx
import pytest
from texts import listed_cases
from waiting import HANGS

from lmsconf.api.concurrent_requests import ConcurrentReader, InlineExecutor, WorkerPool
from lmsconf.api.pagination import ListingSchema, read_listing
from lmsconf.api.response_limits import PAGES, ListingLimit, estimate_memory
from lmsconf.api.spec.operations import MANUAL_GROUPS, USERS
from lmsconf.errors import InvalidResponse, Unauthorized, Unreachable
from lmsconf.model.calls import ListedRows, ListOperation
from lmsconf.model.canonical_json import Json

from .network import Network, client, pages, raw, said


def rows(
    network: Network,
    *,
    total: str | None = "matchCount",
    limit: int = 2,
) -> ListedRows:
    """The users that such a network lists, in pages of two."""
    with WorkerPool(lambda: client(network=network, dialect={"paging.limit": limit}), parallelism=8) as pool:
        reader = ConcurrentReader(pool, client(network=network, dialect={"paging.limit": limit}).spec)
        return reader.rows(ListOperation("users.list", "users", "userId", total))


def ids(found: ListedRows) -> list[str]:
    return [str(row["userId"]) for row in found.rows]


def skips(network: Network) -> list[int]:
    return [int(request.url.params["skip"]) for request in network.requests]


def users(*ids: object, total: object = None) -> httpx.Response:
    """One page."""
    return said(200, {"users": [{"userId": one} for one in ids], "matchCount": total})


@pytest.mark.parametrize(
    ("listed", "limit", "cap", "asked"), [("abcd", 2, 100, [0, 2]), ("abcdefg", 5, 3, [0, 3, 6]), ("", 2, 2, [0])]
)
def test_a_listing_ends_when_all_that_are_counted_came(listed: str, limit: int, cap: int, asked: list[int]) -> None:
    """With a total, no page is asked for beyond it; `skip` advances by what came, however small its pages are."""
    network = Network(answering=pages("users", "userId", listed, total="matchCount", cap=cap))
    found = rows(network, limit=limit)
    assert (ids(found), found.total, found.incomplete) == (list(listed), len(listed), None)
    assert sorted(skips(network)) == asked
    assert {request.url.params["limit"] for request in network.requests} == {str(limit)}


@listed_cases("listed", "cap", "asked")
def test_an_empty_page_is_doubted_after_full_pages_only(listed: str, cap: int, asked: list[int]) -> None:
    """A page is full with as many rows as were asked for, or as the first page had: then the last row is read again.

    Without a total only an empty page is the end; a short one proves nothing.
    """
    network = Network(answering=pages("users", "userId", listed, cap=cap))
    found = rows(network, total=None)
    assert (ids(found), found.total, found.incomplete, skips(network)) == (list(listed), None, None, asked)


@pytest.mark.parametrize(
    ("again", "believed"), [(["d"], True), ([], False), (["d", "e"], False), (["x"], False)], ids=str
)
def test_an_empty_page_after_full_ones_is_doubted(again: list[str], believed: bool) -> None:
    """It may have come by mistake: a look at the last row must bring that row, and none after it."""
    once = [users("a", "b"), users("c", "d"), users(), users(*again)]
    network = Network(*once, *once)
    found = rows(network, total=None)
    assert (found.incomplete is None) is believed
    assert ids(found) == list("abcd")
    assert skips(network)[:4] == [0, 2, 4, 3]


def test_a_count_that_is_never_reached_is_incomplete() -> None:
    """Pages that are asked for at the same time may come in any order, and the listing is read twice."""
    network = Network(
        answering=lambda request: users("a", total=3) if request.url.params["skip"] == "0" else users(total=3)
    )
    assert str(rows(network).incomplete).partition(" (")[0] == "1 users received, but the service counts 3"
    assert skips(network).count(0) == 2


MISSING = "a row of users is missing its userId"
NO_LIST = "a page is missing its list of users"
NOT_JSON = (
    "GET /users at sandbox answered 200 with a body that cannot be used: "
    "it is not JSON: Expecting value: line 1 column 1"
)
MOVED = "a page of users began with rows that were already read"
FIRST = users("a", "b", total=3)
AGREED = [users("b", "c", total=3), users("d", total=3)]
SCRIPTS: dict[str, tuple[list[httpx.Response], str, str | None]] = {
    "a row is on two pages": ([users(1, 2, total=3), users("2", 3, total=3)], "123", None),
    "a count settles": ([FIRST, users("c", total=4), users(total=4), *AGREED], "bcd", None),
    "a count falls": ([users("a", "b", total=4), users("d", total=3), *AGREED], "bcd", None),
    "a count rises": ([users("b", "c", total=3), users("x", total=4), users("y", total=4), *AGREED], "bcd", None),
    "a page repeats": ([users("a", "b", total=9)], "ab", "a page of users returned only rows that were already read"),
    "rows move, and nothing counts them": ([users("a", "b"), users("b", "d")] * 2, "abd", MOVED),
    "rows moved once": ([users("a", "b"), users("b", "d"), users("a", "b"), users("d"), users()], "abd", None),
    "a page is refused": ([FIRST, said(404)], "ab", "GET /users at sandbox answered 404: null"),
    "a page is no JSON": ([FIRST, raw(200, b"<html>")], "ab", NOT_JSON),
    "no id on a later page": ([FIRST, said(200, {"users": [{"name": "x"}]})], "ab", MISSING),
    "no id": ([users(None, total=1)], "", MISSING),
    "an empty id": ([users("", total=1)], "", MISSING),
    "a boolean id": ([users(True, total=1)], "", MISSING),
    "no list": ([said(200, {"people": []})], "", NO_LIST),
    "null": ([said(200, {"users": None})], "", NO_LIST),
    "null, and a count of none": ([said(200, {"users": None, "matchCount": 0})], "", NO_LIST),
    "no object": ([said(200, {"users": ["a"]})], "", "a row of users is not an object"),
}
"""What happens → the pages, the rows that were read, and why they may not be all."""


@pytest.mark.parametrize(("script", "read", "reason"), SCRIPTS.values(), ids=SCRIPTS)
def test_what_is_not_provably_all_is_incomplete(script: list[httpx.Response], read: str, reason: str | None) -> None:
    """Counts that disagree twice, pages that repeat or fail, rows without ids, pages without rows: said, never raised.

    What came before is kept. A count that moved may fit by chance: all is read once more, and then all agree.
    """
    found = rows(Network(*script))
    assert (ids(found), found.incomplete and found.incomplete.partition(" (")[0]) == (list(read), reason)


@pytest.mark.parametrize(
    ("answer", "said_of_it"),
    [
        ({}, 'the key "groups" is missing'),
        ({"manualGroups": []}, 'the key "groups" is missing, and there is a list under "manualGroups"'),
        ({"groups": True}, '"groups" is not a list'),
    ],
)
def test_a_page_without_its_list_names_the_way_out(answer: object, said_of_it: str) -> None:
    """What is missing, that nothing is done on the word of it, and whether a dialect key could name it."""
    with WorkerPool(lambda: client(said(200, answer)), parallelism=8) as pool:
        found = ConcurrentReader(pool).rows(MANUAL_GROUPS)
    assert said_of_it in str(found.incomplete)
    assert "Nothing is created or deleted from such a response. No dialect key names it" in str(found.incomplete)


@pytest.mark.parametrize(
    ("answer", "kind"), [(said(500), Unreachable), (httpx.ReadTimeout("slow"), Unreachable), (said(401), Unauthorized)]
)
def test_a_service_that_is_gone_is_raised(answer: httpx.Response | Exception, kind: type[Exception]) -> None:
    """A page that never comes, or a refused credential, ends the reading: nothing else could be read either."""
    with pytest.raises(kind):
        rows(Network(users("a", "b", total=3), answer))


def test_pages_whose_place_is_known_are_read_side_by_side() -> None:
    """The first page tells how large pages are and how many rows there are: the others need not wait in line."""
    met = threading.Barrier(2, timeout=HANGS)
    answering = pages("users", "userId", "abcdef", total="matchCount")

    def together(request: httpx.Request) -> httpx.Response:
        if request.url.params["skip"] != "0":
            met.wait()
        return answering(request)

    network = Network(answering=together)
    found = rows(network)
    assert (ids(found), found.incomplete) == (list("abcdef"), None)
    assert sorted(skips(network)) == [0, 2, 4]


def test_a_page_that_was_asked_for_too_early_is_not_used() -> None:
    """The second page is shorter than the first: what follows is asked for again, from where the rows end."""
    listing = {0: "ab", 2: "c", 3: "de", 4: "e", 5: "f"}

    def answering(request: httpx.Request) -> httpx.Response:
        return users(*listing[int(request.url.params["skip"])], total=6)

    network = Network(answering=answering)
    found = rows(network)
    assert (ids(found), found.incomplete) == (list("abcdef"), None)
    assert [skip for skip in skips(network) if skip != 4] == [0, 2, 3, 5]


def row(at: int) -> dict[str, Json]:
    return {"userId": str(at), "name": "A"}


ROW_BYTES = estimate_memory(row(1))
"""What one of the first ten rows counts for."""


class Asked:
    """Requests for the pages of a listing of so many users, read within limits. broken: the page that has no list.

    told: what was told of expected pages, in order. most: how many pages at a time were asked for and not yet used.
    """

    def __init__(
        self,
        number: int,
        *,
        page: int = 1,
        is_counted: bool = True,
        broken: int | None = None,
        rows: int = 10**9,
        memory: int = 10**9,
    ) -> None:
        self.number, self.page, self.is_counted, self.broken = number, page, is_counted, broken
        self.limit = ListingLimit(rows=rows, memory=memory)
        self.futures: list[tuple[int, bool, Future[Json]]] = []
        self.told: list[tuple[str, int]] = []
        self.used = self.most = 0

    def ask(self, query: Mapping[str, Json], is_expected: bool) -> Future[Json]:
        asked, skip = self, int(str(query["skip"]))

        class Page(Future[Json]):
            def result(self, timeout: float | None = None) -> Json:
                asked.used += 1
                if skip == asked.broken:
                    return {}
                users: list[Json] = [row(at) for at in range(skip, min(skip + asked.page, asked.number))]
                return {"users": users, "matchCount": asked.number if asked.is_counted else None}

        self.futures.append((skip, is_expected, Page()))
        self.most = max(self.most, len(self.futures) - self.used)
        return self.futures[-1][2]

    def read(self) -> ListedRows:
        *_, listed = read_listing(
            self.ask,
            ListingSchema(listing=USERS, page_size=self.page, size_limit=self.limit),
            {},
            expect=lambda number: self.told.append(("expect", number)),
            drop=lambda number: self.told.append(("drop", number)),
        )
        return listed


def test_sixteen_pages_are_asked_for_ahead() -> None:
    """After the first page, each page that is used makes room for the next one, until all are there."""
    asked = Asked(40)
    assert ids(asked.read()) == list(map(str, range(40)))
    assert [(skip, is_expected) for skip, is_expected, _ in asked.futures] == [(at, at > 0) for at in range(40)]
    assert asked.most == 17, "one that is waited for, and sixteen after it"
    assert asked.told == [("expect", 39), ("drop", 0)]


def test_pages_after_a_broken_one_are_not_waited_for() -> None:
    """Those that were asked for are called off, the others are expected no more, and none is read a second time."""
    asked = Asked(40, broken=2)
    assert str(asked.read().incomplete).startswith("a page is missing its list of users")
    assert [skip for skip, _, _ in asked.futures] == list(range(19))
    assert asked.told == [("expect", 39), ("drop", 21)]
    assert {skip for skip, _, future in asked.futures if future.cancelled()} == {*range(3, 19)}


def test_a_listing_may_be_given_up_while_progress_is_reported() -> None:
    """The garbage collector closes one that nobody reads on, wherever the thread is just then: here, in a report."""
    network = Network(answering=pages("users", "userId", ["u-1", "u-2"], total="matchCount"))
    given_up: list[Iterator[ListedRows]] = []
    pool = WorkerPool(
        lambda: client(network=network),
        parallelism=1,
        executor=InlineExecutor(),
        progress=lambda _: cast("Generator[ListedRows]", given_up.pop()).close() if given_up else None,
    )
    listing = ConcurrentReader(pool).pages(USERS)
    next(listing)
    given_up.append(listing)
    reporting = threading.Thread(target=pool.report_progress, daemon=True)
    reporting.start()
    reporting.join(HANGS)
    assert not reporting.is_alive()


def test_as_many_rows_as_the_limit_allows_are_read() -> None:
    """One more ends the run, be it counted by the service or found while reading."""
    for is_counted, found in (
        (False, "more users than lmsconf reads: at most 4 are read, but there are more"),
        (True, "it counts 5 of them, and at most 4 are read"),
    ):
        assert len(Asked(4, rows=4, page=2, is_counted=is_counted).read().rows) == 4
        with pytest.raises(InvalidResponse, match=found):
            Asked(5, rows=4, page=2, is_counted=is_counted).read()


def test_rows_may_take_as_much_memory_as_the_limit_allows() -> None:
    """One byte less ends the run, and the sentence says after how many rows."""
    assert len(Asked(4, page=2, is_counted=False, memory=4 * ROW_BYTES).read().rows) == 4
    with pytest.raises(InvalidResponse, match=r"4 of them take more than 0 MiB of memory"):
        Asked(4, page=2, is_counted=False, memory=4 * ROW_BYTES - 1).read()


@pytest.mark.sampled(day=8, daily=False)
def test_a_listing_of_too_many_pages_is_left() -> None:
    """Pages of one row each are read up to the limit, and no further."""
    assert Asked(PAGES, is_counted=False).read().incomplete is None
    with pytest.raises(InvalidResponse, match=r"20,002 of them span more than 20,000 pages"):
        Asked(PAGES + 2, is_counted=False).read()
