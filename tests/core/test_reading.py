"""How a workspace is read, whatever its kinds: each in a job of its own, that waits for others and fails with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import cast

import pytest

from lmsconf.api.concurrent_reader import ConcurrentReader
from lmsconf.api.spec import ApiSpec
from lmsconf.errors import ApiError
from lmsconf.kinds import all_kinds
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.reading import read_workspace
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api, ListedRows, ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.read_scope import ReadScope
from lmsconf.planner.reading import is_cheaper_by_id, keep_details


class Answers:
    """The rows of each listing, of which one may fail."""

    def __init__(self, failing: str = "") -> None:
        self._failing, self.asked = failing, list[str]()
        self.requests = 0

    def rows(self, operation: ListOperation, **_: object) -> ListedRows:
        self.asked.append(operation.name)
        if operation.name == self._failing:
            raise ApiError("nothing today")
        return ListedRows(rows=())

    def each(
        self, operation: str, requests: Sequence[object], on_queued: Callable[[], None] | None = None
    ) -> list[Json]:
        assert not requests
        if on_queued is not None:
            on_queued()
        return []

    def get(self, operation: str, query: object) -> Json:
        return {"matchCount": 0}

    def end_total(self) -> None:
        self.asked.append("no more")

    def together(self, jobs: Mapping[str, Callable[[], object]]) -> dict[str, object]:
        return ConcurrentReader.together(cast(ConcurrentReader, self), jobs)


def read(api: Answers, *owned: str) -> Snapshot:
    """The snapshot of a workspace in which some kinds are owned."""
    wanted = ReadScope(policy=Policy(workspace="w", today=date.max, ownership=dict.fromkeys(owned, ("all",))))
    templates = SpecCallTemplates(ApiSpec.default())
    return read_workspace(cast(Api, api), all_kinds(), wanted, templates, url="", taken_at="")


def test_what_a_covered_kind_needs_is_read() -> None:
    """A covered kind brings the listings that it needs; a kind that nothing covers costs no request."""
    api = Answers()
    assert "group" not in read(api, "custom_field").listings
    assert {"custom-fields.list", "smart-groups.list"} <= set(api.asked)
    assert "manual-groups.list" not in api.asked
    assert api.asked[-1] == "no more"


@pytest.mark.parametrize("failing", ["manual-groups.list", "smart-groups.list", "users.list"])
def test_a_failed_job_fails_those_that_wait_for_it(failing: str) -> None:
    """Nobody waits forever for a listing that does not come."""
    with pytest.raises(ApiError, match="nothing today"):
        read(Answers(failing), "content_target", "group")


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
