"""How much memory answers may take: an estimate that grows with what is kept, and one quota for a fan-out."""

from __future__ import annotations

import pytest

import lmsconf.api
from lmsconf.api.endpoint_group import LEFT_OUT
from lmsconf.api.limits import MIB, TEXT, ByteBudget, TooLarge, memory_of
from lmsconf.errors import BadAnswer
from lmsconf.model.address import Address


def test_the_answers_of_a_fan_out_share_one_quota() -> None:
    """Answers that fit one by one are too many together, and the error says how many MiB were allowed."""
    budget = ByteBudget(3 * MIB, "to GET /x")
    answer = ["a" * TEXT] * 10
    budget.take(answer)
    budget.take(answer)
    budget.take(answer)
    with pytest.raises(BadAnswer, match="more than 3 MiB in all"):
        budget.take(answer)


def test_a_quota_can_be_used_up_to_its_last_byte() -> None:
    """Only what exceeds the quota is refused."""
    value = ["abc", 1, {"k": None}]
    budget = ByteBudget(2 * memory_of(value), "to GET /x")
    budget.take(value)
    budget.take(value)
    with pytest.raises(BadAnswer):
        budget.take([])


def test_the_estimate_is_near_what_python_takes() -> None:
    """Numbers, texts, lists and objects each count, about as much as they take; a text that is too long is refused."""
    assert memory_of(1) == memory_of(1.5) > 0
    assert memory_of(None) == memory_of(True) == 0
    assert memory_of("é" * 100) - memory_of("") == 4 * (memory_of("a" * 100) - memory_of(""))
    assert memory_of([1, 2]) - memory_of([1]) == memory_of(1) + 8
    assert memory_of({"key": 1}) > memory_of([1])
    with pytest.raises(TooLarge, match="100,000 characters"):
        memory_of(["a" * (TEXT + 1)])


def test_the_default_of_arguments_that_may_be_none_is_public() -> None:
    """`LEFT_OUT` of the package is the default that the operations declare."""
    assert lmsconf.api.LEFT_OUT is LEFT_OUT


@pytest.mark.parametrize("text", ["", "/Sales"])
def test_an_address_needs_a_kind(text: str) -> None:
    """A text without a kind is no address."""
    with pytest.raises(ValueError, match="is not an address such as group/Sales"):
        Address.parse(text)
