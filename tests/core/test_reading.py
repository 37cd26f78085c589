"""How a workspace is read, whatever its kinds: each in a job of its own, that waits for others and fails with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

import pytest

from lmsconf.api.worker_pool import ConcurrentReader
from lmsconf.errors import ApiError
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api, ListedRows, ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import CallTemplates
from lmsconf.planner.kind import Kind
from lmsconf.planner.read_scope import ReadScope
from lmsconf.planner.reading import ReadContext, read_workspace
from lmsconf.planner.rereading import is_cheaper_by_id, keep_details

DOORS, LOCKS = ListOperation("doors.list", "doors", "id"), ListOperation("locks.list", "locks", "id")


@dataclass(frozen=True)
class Row:
    """A row of any listing here."""

    listing = "door"

    id: RemoteId
    name: str


class Plain(Kind[None, Row]):
    """A kind with a listing and nothing else of its own."""

    def __init__(self, name: str, operation: ListOperation | None, rank: int = 0) -> None:
        self.name, self.list_operation, self.rank = name, operation, rank

    def parse_row(self, data: Mapping[str, Json]) -> Row:
        return Row(RemoteId(str(data["id"])), str(data["name"]))

    def parse(self, *_: object, **__: object) -> Any:
        """Only reading is asked here."""
        raise NotImplementedError

    parse_absent = match = diff = state_before_delete = plan_steps = plan_delete = parse


class Waiting(Plain):
    """A kind that needs the listing of doors, and takes their names."""

    def required_listings(self, reading: ReadContext) -> frozenset[str]:
        return frozenset({"door"})

    def read(self, reading: ReadContext) -> Listing[Row] | None:
        return Listing(rows=tuple(Row(row.id, f"of {row.name}") for row in reading.wait_for_listing("door").rows))


class Late(Plain):
    """A kind whose job asks that of doors for something else, when that has ended already."""

    def read(self, reading: ReadContext) -> Listing[Row] | None:
        asked: Future[str] = Future()
        reading.fail_with_job("door", asked)
        return Listing(incomplete=str(asked.exception()) if asked.done() else "nothing was told")


class Answers:
    """The rows of each listing, and what was asked."""

    def __init__(self, **rows: list[dict[str, Json]] | ApiError) -> None:
        self._rows, self.asked = rows, list[str]()

    def rows(self, operation: ListOperation) -> ListedRows:
        self.asked.append(operation.rows)
        rows = self._rows[operation.rows]
        if isinstance(rows, ApiError):
            raise rows
        return ListedRows(rows=tuple(rows))

    def end_total(self) -> None:
        self.asked.append("no more")

    def together(self, jobs: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        return ConcurrentReader.together(cast(ConcurrentReader, self), jobs)


class OneByOne(Answers):
    """The same, and each job ends before the next one begins."""

    def together(self, jobs: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        return {name: job() for name, job in jobs.items()}


def read(api: Answers, *kinds: Kind[Any, Any], owned: Sequence[str]) -> Snapshot:
    """The snapshot of these kinds, of which some are owned."""
    wanted = ReadScope(policy=Policy(workspace="w", today=date.max, ownership=dict.fromkeys(owned, ("all",))))
    by_name = {kind.name: kind for kind in kinds}
    return read_workspace(cast(Api, api), by_name, wanted, cast(CallTemplates, None), url="", taken_at="")


def test_a_kind_with_a_listing_says_how_a_row_is_parsed_and_no_more() -> None:
    """Its listing is read if it is covered, sorted by id; a kind that nothing covers costs no request."""
    api = Answers(doors=[{"id": "2", "name": "Back"}, {"id": "1", "name": "Front"}])
    snapshot = read(api, Plain("door", DOORS), Plain("lock", LOCKS), owned=["door"])
    assert [row.name for row in snapshot.of("door").rows] == ["Front", "Back"]
    assert (api.asked, "lock" in snapshot.listings) == (["doors", "no more"], False)


def test_what_a_covered_kind_needs_is_read() -> None:
    """A covered kind brings the listings that it needs, and its job waits for them, in any order of kinds."""
    api = Answers(doors=[{"id": "1", "name": "Front"}])
    for kinds in ((Plain("door", DOORS), Waiting("lock", None)), (Waiting("lock", None), Plain("door", DOORS))):
        snapshot = read(api, *kinds, owned=["lock"])
        assert [row.name for row in snapshot.of("lock").rows] == ["of Front"]


def test_the_largest_listing_is_asked_for_first() -> None:
    """Reading begins with the kind whose listing has the most pages, in any order of kinds."""
    locks = Plain("lock", LOCKS)
    locks.is_person = True
    for kinds in ((Plain("door", DOORS), locks), (locks, Plain("door", DOORS))):
        api = OneByOne(doors=[], locks=[])
        read(api, *kinds, owned=["door", "lock"])
        assert api.asked == ["locks", "doors", "no more"]


def test_a_failed_job_fails_those_that_wait_for_it() -> None:
    """Nobody waits forever for a listing that does not come."""
    api = Answers(doors=ApiError("no doors today"))
    with pytest.raises(ApiError, match="no doors today"):
        read(api, Waiting("lock", None), Plain("door", DOORS), owned=["lock"])


def test_who_asks_a_job_that_has_ended_is_told_so() -> None:
    """Nobody waits forever for what it has not left."""
    snapshot = read(OneByOne(doors=[]), Plain("door", DOORS), Late("lock", None), owned=["door", "lock"])
    assert snapshot.of("lock").incomplete == "the job of door ended without a result"


def test_a_listing_that_no_job_reads_counts_as_not_read() -> None:
    """A kind without a listing answers those that wait for it with an empty one that is marked."""
    snapshot = read(Answers(), Waiting("lock", None), Plain("door", None), owned=["lock"])
    assert snapshot.of("lock").rows == ()
    assert snapshot.of("door").incomplete == "it was not read"
    assert "door" not in snapshot.listings


def test_names_that_are_listed_again_keep_what_was_read_of_their_rows() -> None:
    """A row with another name keeps its details, a new one has none, and one that is gone is gone."""
    anna, bo = RemoteId("u-1"), RemoteId("u-2")
    kept = Listing(rows=(
        GroupRow(RemoteId("a"), "A", frozenset({anna}), frozenset({bo})), GroupRow(RemoteId("b"), "B", frozenset())
    ))  # fmt: skip
    names = Listing(rows=(GroupRow(RemoteId("a"), "A 2"), GroupRow(RemoteId("c"), "C")), incomplete="why")
    assert keep_details(names, kept) == Listing(
        rows=(GroupRow(RemoteId("a"), "A 2", frozenset({anna}), frozenset({bo})), GroupRow(RemoteId("c"), "C")),
        incomplete="why",
    )


@pytest.mark.parametrize(
    ("requests", "listed", "is_cheaper"),
    [(10, None, True), (10, 0, True), (11, None, False), (11, 1099, False), (11, 1100, True), (12, 1100, False)],
)
def test_few_rows_are_read_by_id(requests: int, listed: int | None, is_cheaper: bool) -> None:
    """Ten in any case, and of a long listing as many as it has full pages of a hundred."""
    assert is_cheaper_by_id(requests, listed) is is_cheaper
