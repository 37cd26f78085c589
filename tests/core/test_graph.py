"""Orders: what is made before it is used, what is left before it is ended, and which calls form a circle."""

from __future__ import annotations

import pytest

from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Step
from lmsconf.planner.calls import DependencyCycle, step_dependencies, topological_order

A, B, C = (frozenset({Ref(Address.of("group", name))}) for name in "ABC")


def step(**more: frozenset[Ref]) -> Step:
    return Step(operation="manual-groups.rename", **more)


def test_a_step_needs_who_makes_what_it_uses_and_who_leaves_what_it_ends() -> None:
    """All of them, wherever they stand; and never itself."""
    made = [step(uses=A | B), step(makes=A), step(makes=B), step(makes=A, uses=A)]
    assert step_dependencies([*made, step(ends=C, releases=C), step(releases=C)]) == [
        {1, 2, 3},
        set(),
        set(),
        {1},
        {5},
        set(),
    ]


def test_making_and_ending_are_not_mixed_up() -> None:
    """Who uses what another one frees, or ends what another one makes, need not wait."""
    assert step_dependencies([step(uses=A), step(releases=A), step(ends=B), step(makes=B)]) == [
        set(),
        set(),
        set(),
        set(),
    ]


def test_the_lowest_rank_that_may_go_goes_first() -> None:
    """Whatever the positions; what waits goes as soon as all that it waits for has gone."""
    assert topological_order([set(), set(), set()], [(2,), (0,), (1,)]) == [1, 2, 0]
    assert topological_order([{1, 2}, set(), {1}, set()], [(0,), (5,), (9,), (7,)]) == [1, 3, 2, 0]
    assert topological_order([], []) == []


def test_of_equal_ranks_the_first_goes_first() -> None:
    """So that an order depends on nothing but what is ordered."""
    assert topological_order([set(), set(), {0}], [(1,), (1,), (1,)]) == [0, 1, 2]


def test_a_circle_names_those_in_it_and_no_others() -> None:
    """Who only waits for a circle is no part of it."""
    with pytest.raises(DependencyCycle, match="2 calls wait") as found:
        topological_order([{3}, set(), {1}, {4}, {3, 1}], [(0,)] * 5)
    assert sorted(found.value.members) == [3, 4]


def test_a_call_that_waits_for_itself_is_a_circle() -> None:
    """The smallest there is."""
    with pytest.raises(DependencyCycle) as found:
        topological_order([set(), {1}], [(0,), (0,)])
    assert found.value.members == (1,)
