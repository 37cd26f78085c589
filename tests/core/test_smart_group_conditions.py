"""Conditions of smart groups: when two sets may be those of one group, and what a declared one keeps of a live one."""

from __future__ import annotations

import pytest

from lmsconf.kinds.smart_group.conditions import (
    SimilarConditions,
    condition_refs,
    condition_set,
    keep_system_conditions,
    ordered_conditions,
)
from lmsconf.kinds.smart_group.types import DeclaredCondition
from lmsconf.model.address import Address, Ref


def conditions(*written: str) -> list[DeclaredCondition]:
    """Conditions as `Country: SE FI IS_ANY`; words that begin with IS are system conditions."""
    found = []
    for one in written:
        field, _, rest = one.partition(":")
        words = rest.split()
        system = next((word for word in words if word.startswith("IS")), None)
        found.append(DeclaredCondition(field, frozenset(words) - {system or ""}, system))
    return found


@pytest.mark.parametrize(
    ("one", "other", "may_be"),
    [
        (["Country: SE"], ["Country: SE"], True),
        (["Country: SE"], ["Country: FI"], False),
        (["Country: SE"], ["Country: SE", "Level: High"], False),
        (["Country: SE", "Level: High"], ["Level: High", "Country: SE"], True),
        (["Country: SE"], ["Country: SE IS_ANY"], True),
        (["Country: SE IS_ALL"], ["Country: SE IS_ANY"], False),
        (["Country: SE", "Country: SE"], ["Country: SE"], False),
        (["Country: SE", "Country: SE"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], True),
        (["Country: SE IS_ALL", "Country: SE"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], True),
        (["Country: SE IS_ONE", "Country: SE"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], False),
        (["Country: SE IS_ALL", "Country: SE IS_ALL"], ["Country: SE IS_ALL", "Country: SE"], True),
        (["Country: SE IS_ALL", "Country: SE IS_ALL"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], False),
        (["Country: SE IS_ALL", "Level: High"], ["Country: SE IS_ANY", "Level: High"], False),
    ],
)
def test_conditions_may_be_those_of_one_group(one: list[str], other: list[str], may_be: bool) -> None:
    """A system condition that only one side has may have been filled in; the order does not matter."""
    left, right = (SimilarConditions(condition_set(conditions(*side))) for side in (one, other))
    assert (left == right, right == left) == (may_be, may_be)
    assert not may_be or hash(left) == hash(right)


@pytest.mark.parametrize(
    ("declared", "live", "kept"),
    [
        (["Country: SE"], ["Country: SE IS_ANY"], ["Country: SE IS_ANY"]),
        (["Country: SE"], ["Country: FI IS_ANY"], ["Country: SE"]),
        (["Country: SE IS_ALL"], ["Country: SE IS_ANY"], ["Country: SE IS_ALL"]),
        (["Country: SE"], ["Country: SE IS_ANY", "Country: SE IS_ALL"], ["Country: SE IS_ALL"]),
        (["Country: SE"], ["Country: SE IS_ANY", "Country: SE"], ["Country: SE"]),
        (
            ["Country: SE", "Country: SE IS_ALL"],
            ["Country: SE IS_ALL", "Country: SE IS_ANY"],
            ["Country: SE IS_ANY", "Country: SE IS_ALL"],
        ),
        (
            ["Country: SE", "Country: SE", "Country: SE"],
            ["Country: SE IS_ALL", "Country: SE IS_ANY"],
            ["Country: SE IS_ALL", "Country: SE IS_ANY", "Country: SE"],
        ),
        (
            ["Country: SE IS_ALL", "Country: SE IS_ALL", "Country: SE"],
            ["Country: SE IS_ALL", "Country: SE IS_ALL", "Country: SE IS_ALL"],
            ["Country: SE IS_ALL", "Country: SE IS_ALL", "Country: SE IS_ALL"],
        ),
    ],
)
def test_a_declared_condition_keeps_the_system_condition_of_a_live_one(
    declared: list[str], live: list[str], kept: list[str]
) -> None:
    """Of one with its field and choices that no other declared one names; of several the first in the alphabet."""
    assert list(keep_system_conditions(conditions(*declared), conditions(*live))) == conditions(*kept)


def test_conditions_are_sent_in_a_fixed_order() -> None:
    """Equal ones as often as they are declared."""
    written = conditions("Level: High", "Country: SE", "Level: High", "Country: FI")
    sent = ordered_conditions({"conditions": condition_set(written)})
    assert sent == conditions("Country: FI", "Country: SE", "Level: High", "Level: High")
    assert ordered_conditions({}) == []


def test_conditions_reference_their_fields_and_choices() -> None:
    """Also the field of a condition without choices."""
    country, level = Address.of("custom_field", "Country"), Address.of("custom_field", "Level")
    refs = condition_refs(conditions("Country: SE FI", "Level: IS_SET"))
    assert refs == {Ref(country), Ref(country, "SE"), Ref(country, "FI"), Ref(level)}
