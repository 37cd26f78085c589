"""How much memory answers may take: an estimate that grows with what is kept, and one quota for a fan-out."""

from __future__ import annotations

import pytest

import lmsconf.api
from lmsconf.api.endpoint_group import LEFT_OUT
from lmsconf.api.limits import (
    ANSWER,
    FACTOR,
    TEXT,
    ListingLimit,
    MemoryQuota,
    OversizedResponse,
    estimate_memory,
    fan_out_memory_limit,
    listing_limit,
    pages_ahead,
    refuse_oversized_body,
)
from lmsconf.api.sdk.service import Service
from lmsconf.errors import InvalidResponse
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json

MIB = 2**20


def test_the_answers_of_a_fan_out_share_one_quota() -> None:
    """Answers that fit one by one are too many together, and the error says how many MiB were allowed."""
    budget = MemoryQuota(3 * MIB, "to GET /x")
    answer = ["a" * TEXT] * 10
    budget.charge(answer)
    budget.charge(answer)
    budget.charge(answer)
    with pytest.raises(InvalidResponse, match="more than 3 MiB in all"):
        budget.charge(answer)


def test_a_quota_can_be_used_up_to_its_last_byte() -> None:
    """Only what exceeds the quota is refused."""
    value = ["abc", 1, {"k": None}]
    budget = MemoryQuota(2 * estimate_memory(value), "to GET /x")
    budget.charge(value)
    budget.charge(value)
    with pytest.raises(InvalidResponse):
        budget.charge([])
    with pytest.raises(InvalidResponse):
        MemoryQuota(estimate_memory(value) - 1, "to GET /x").charge(value)


def test_the_estimate_is_near_what_python_takes() -> None:
    """Numbers, texts, lists and objects each count, about as much as they take; a text that is too long is refused."""
    assert estimate_memory(1) == estimate_memory(1.5) == 32
    assert estimate_memory(None) == estimate_memory(True) == 0
    assert estimate_memory("a" * 100) == 56 + 100
    assert estimate_memory("é" * 100) == 56 + 4 * 100
    assert estimate_memory([1, 2]) == 56 + 2 * (8 + 32)
    assert estimate_memory({"key": 1, "k": {}}) == 200 + 4 + 32 + 200
    assert estimate_memory(["a" * TEXT]) > TEXT
    with pytest.raises(OversizedResponse, match="100,000 characters"):
        estimate_memory(["a" * (TEXT + 1)])


def test_an_object_in_two_lists_counts_once() -> None:
    """Rows that share an object keep it once; a number or a text in a list counts each time."""
    shared, counted = {"name": "a"}, set[int]()
    first, second = estimate_memory([shared, 1], counted), estimate_memory([shared, 1], counted)
    assert first - second == estimate_memory(shared)
    assert second == estimate_memory([1]) + 8


@pytest.mark.parametrize(("sign", "size"), [(b",", 100), (b"[", 100), (b"{", 400)], ids=str)
@pytest.mark.parametrize(("paged", "mib"), [(True, 32), (False, 64)])
def test_a_body_may_hold_so_many_values(sign: bytes, size: int, paged: bool, mib: int) -> None:
    """32 MiB of values in a page of a listing, 64 MiB in any other response; with one value more it is refused."""
    fits = mib * MIB // size
    refuse_oversized_body((sign * fits).ljust(MIB), paged=paged)
    with pytest.raises(OversizedResponse, match=f"more values than fit in {mib} MiB of memory"):
        refuse_oversized_body((sign * (fits + 1)).ljust(MIB), paged=paged)


def test_a_small_body_is_not_counted() -> None:
    """Less than a quarter of a MiB fits in memory whatever it holds."""
    refuse_oversized_body(b"{" * (MIB // 4 - 1), paged=True)
    with pytest.raises(OversizedResponse):
        refuse_oversized_body(b"{" * (MIB // 4), paged=True)


def test_the_limits_are_those_that_leave_room_for_large_workspaces() -> None:
    """People have more room than other resources, and whole rows six times as much memory as compared fields."""
    assert ANSWER == 16 * MIB
    people, others = ListingLimit(250_000, 128 * MIB), ListingLimit(50_000, 24 * MIB)
    for name, limit in {"users.list": people, "users.extended-info": people, "manual-groups.list": others}.items():
        assert listing_limit(name, whole_rows=False) == limit
        assert listing_limit(name, whole_rows=True) == ListingLimit(limit.rows, 6 * limit.memory)
    assert fan_out_memory_limit(whole_responses=False) == 96 * MIB
    assert fan_out_memory_limit(whole_responses=True) == 6 * 96 * MIB


@pytest.mark.parametrize(("value", "factor"), [("3", 3), ("", 1), ("0", 1), ("1.5", 1), ("many", 1), ("1000", 1)])
def test_the_environment_raises_the_limits(value: str, factor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a whole number, for a workspace that is larger; what is no such number raises nothing."""
    monkeypatch.setenv(FACTOR, value)
    assert listing_limit("users.list", whole_rows=False) == ListingLimit(factor * 250_000, factor * 128 * MIB)
    assert fan_out_memory_limit(whole_responses=False) == factor * 96 * MIB


def test_the_public_names_of_the_client_are_its_own() -> None:
    """`LEFT_OUT` of the package is the default that the operations declare, and `Service` the class they belong to."""
    assert lmsconf.api.LEFT_OUT is LEFT_OUT
    assert lmsconf.api.Service is Service


@pytest.mark.parametrize("text", ["", "/Sales"])
def test_an_address_needs_a_kind(text: str) -> None:
    """A text without a kind is no address."""
    with pytest.raises(ValueError, match="is not an address such as group/Sales"):
        Address.parse(text)


def test_fewer_large_pages_are_requested_ahead() -> None:
    """As many as fit in 32 MiB, at most 16 and at least two: they wait in memory until they are read."""
    small: list[dict[str, Json]] = [{"userId": str(number)} for number in range(100)]
    assert [pages_ahead(rows) for rows in ([], small)] == [16, 16]
    assert pages_ahead([{"text": "x" * 90_000} for _ in range(100)]) == 3
    assert pages_ahead([{"text": "x" * 90_000} for _ in range(1_000)]) == 2
    assert pages_ahead([{"text": "x" * (TEXT + 1)}]) == 2
