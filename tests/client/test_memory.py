"""How much memory answers may take: an estimate that grows with what is kept, and one quota for a fan-out."""

from __future__ import annotations

import pytest

import lmsconf.api
from lmsconf.api.endpoint_group import LEFT_OUT
from lmsconf.api.limits import MIB, TEXT, MemoryQuota, OversizedResponse, estimate_memory
from lmsconf.errors import InvalidResponse
from lmsconf.model.address import Address


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


def test_the_estimate_is_near_what_python_takes() -> None:
    """Numbers, texts, lists and objects each count, about as much as they take; a text that is too long is refused."""
    assert estimate_memory(1) == estimate_memory(1.5) > 0
    assert estimate_memory(None) == estimate_memory(True) == 0
    assert estimate_memory("é" * 100) - estimate_memory("") == 4 * (estimate_memory("a" * 100) - estimate_memory(""))
    assert estimate_memory([1, 2]) - estimate_memory([1]) == estimate_memory(1) + 8
    assert estimate_memory({"key": 1}) > estimate_memory([1])
    with pytest.raises(OversizedResponse, match="100,000 characters"):
        estimate_memory(["a" * (TEXT + 1)])


def test_the_default_of_arguments_that_may_be_none_is_public() -> None:
    """`LEFT_OUT` of the package is the default that the operations declare."""
    assert lmsconf.api.LEFT_OUT is LEFT_OUT


@pytest.mark.parametrize("text", ["", "/Sales"])
def test_an_address_needs_a_kind(text: str) -> None:
    """A text without a kind is no address."""
    with pytest.raises(ValueError, match="is not an address such as group/Sales"):
        Address.parse(text)
