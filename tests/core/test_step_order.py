"""Steps put in order: what goes before what where nothing forces it, and what has no order or no id."""

from __future__ import annotations

from datetime import date
from graphlib import CycleError

import pytest

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Call, Step
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.call_order import order_calls, refs_in, step_dependencies, topological_order
from lmsconf.planner.context import PlanContext

A, B, C, D = (Address.of("group", name) for name in "ABCD")
FIELD = Address.of("custom_field", "F")
KINDS = ("custom_field", "group")


@pytest.fixture
def planning() -> PlanContext:
    snapshot = Snapshot(workspace="here", url="sandbox:", taken_at="", people=None)
    policy = Policy(workspace="here", today=date(2026, 6, 1))
    return PlanContext(snapshot, policy, SpecCallTemplates(ApiSpec.default()), lambda address: True)


def step(id: str | Ref = "g-1", **more: object) -> Step:
    return Step(operation="manual-groups.delete", path={"groupId": id}, **more)


def on(calls: tuple[Call, ...]) -> list[Address]:
    return [call.address for call in calls]


def test_what_takes_away_goes_last_and_what_may_be_refused_first(planning: PlanContext) -> None:
    """Among calls that need nothing: refusals, then kind by kind what gives, then likewise what takes."""
    risky = step(may_be_refused=True)
    work = [(A, [step(revokes=True)]), (B, [step()]), (C, [risky]), (FIELD, [step(revokes=True), step()])]
    calls = order_calls(planning, work, KINDS)
    assert on(calls) == [C, FIELD, B, FIELD, A]
    assert [call.id for call in calls] == ["c1", "c2", "c3", "c4", "c5"]
    assert [call.may_be_refused for call in calls] == [True, False, False, False, False]
    assert planning.problems == []


def test_a_risk_that_waits_for_something_has_no_precedence(planning: PlanContext) -> None:
    """It can be tried only when that is done, so it stands where it would without the risk."""
    made = frozenset({Ref(A)})
    work = [(C, [step(may_be_refused=True, uses=made)]), (A, [step(makes=made)]), (B, [step()])]
    assert on(order_calls(planning, work, KINDS)) == [A, B, C]


def test_of_equals_the_address_decides_and_then_the_place(planning: PlanContext) -> None:
    """So that a plan depends on nothing but what it is about."""
    calls = order_calls(planning, [(B, [step("1"), step("2")]), (A, [step("3")])], KINDS)
    assert [call.path for call in calls] == ["/groups/3", "/groups/1", "/groups/2"]


def test_needs_are_told_in_the_order_of_the_calls(planning: PlanContext) -> None:
    """By the names that the calls have; a call says all that it waits for."""
    a, b = frozenset({Ref(A)}), frozenset({Ref(B)})
    work = [(C, [step(uses=a | b)]), (B, [step(makes=b)]), (A, [step(makes=a)])]
    calls = order_calls(planning, work, KINDS)
    assert [(call.id, call.address, call.needs) for call in calls] == [
        ("c1", A, ()),
        ("c2", B, ()),
        ("c3", C, ("c1", "c2")),
    ]


def test_an_id_to_come_has_to_come(planning: PlanContext) -> None:
    """A call of the plan makes it, or it is an error that names what to plan too; wherever it stands."""
    body = {"userIds": ["u", {Ref(D): [Ref(B)]}]}
    work = [(A, [step(Ref(B), body=body)]), (B, [Step(operation="manual-groups.create", makes=frozenset({Ref(B)}))])]
    order_calls(planning, work, KINDS)
    [problem] = planning.problems
    assert (problem.code, problem.address) == ("reference/not-planned", "group/A")
    assert problem.message == "group/A: it needs group/D, which does not exist yet and is not part of this plan"
    assert "--only group/D" in (problem.hint or "")


def test_every_id_to_come_is_seen() -> None:
    """In keys, values and lists at any depth; anything else is none."""
    found = refs_in({"groupId": Ref(A), "other": "x"}, [{Ref(B): (Ref(C), 1, None)}, True], Ref(D))
    assert list(found) == [Ref(A), Ref(B), Ref(C), Ref(D)]


def test_a_circle_is_one_problem_that_names_each_resource_once(planning: PlanContext) -> None:
    """Neither who waits for it nor who has nothing to do with it is named, and there are no calls."""
    a, b = frozenset({Ref(A)}), frozenset({Ref(B)})
    both = [step(makes=a, uses=b), step(uses=a)]
    assert order_calls(planning, [(A, both), (B, [step(makes=b, uses=a)]), (C, [step()])], KINDS) == ()
    [problem] = planning.problems
    assert problem.code == "plan/circle"
    assert problem.message == "the calls of group/A, group/B depend on each other in a cycle"
    assert problem.address is None


def test_what_would_better_wait_is_made_at_once_where_all_would_wait(planning: PlanContext) -> None:
    """It goes first, may be refused, and the problem names who is in the way; without a circle it waits."""
    a, b, c = (frozenset({Ref(one)}) for one in (A, B, C))
    field = step(makes=a, avoids=b)
    new, old = step(makes=c, uses=a), step(uses=c, releases=b)
    calls = order_calls(planning, [(FIELD, [field]), (C, [new]), (B, [old])], KINDS)
    assert [(call.address, call.may_be_refused) for call in calls] == [(FIELD, True), (C, False), (B, False)]
    [problem] = planning.problems
    assert (problem.code, problem.is_error, problem.address) == ("refusal/in-use", False, str(FIELD))
    assert "it is named by group/B, and" in problem.message
    planning.problems.clear()
    assert on(order_calls(planning, [(FIELD, [field]), (B, [step(releases=b)])], KINDS)) == [B, FIELD]
    assert planning.problems == []


def test_what_only_follows_another_call_does_not_wait_for_it_in_a_circle(planning: PlanContext) -> None:
    """It may be sent at once, and nothing is reported; without a circle it waits."""
    a, b = frozenset({Ref(A)}), frozenset({Ref(B)})
    first, second = step(makes=a, follows=b), step(uses=a, releases=b)
    calls = order_calls(planning, [(A, [first]), (B, [second])], KINDS)
    assert [(call.address, call.needs, call.may_be_refused) for call in calls] == [(A, (), False), (B, ("c1",), False)]
    assert on(order_calls(planning, [(A, [first]), (B, [step(releases=b)])], KINDS)) == [B, A]
    assert planning.problems == []


# Orders: what is made before it is used, what is left before it is ended, and which calls form a circle.


GRAPH_A, GRAPH_B, GRAPH_C = (frozenset({Ref(Address.of("group", name))}) for name in "ABC")


def graph_step(**more: frozenset[Ref]) -> Step:
    return Step(operation="manual-groups.rename", **more)


def test_a_step_needs_who_makes_what_it_uses_and_who_leaves_what_it_ends() -> None:
    """All of them, wherever they stand; and never itself."""
    made = [
        graph_step(uses=GRAPH_A | GRAPH_B),
        graph_step(makes=GRAPH_A),
        graph_step(makes=GRAPH_B),
        graph_step(makes=GRAPH_A, uses=GRAPH_A),
    ]
    assert step_dependencies([*made, graph_step(ends=GRAPH_C, releases=GRAPH_C), graph_step(releases=GRAPH_C)]) == [
        {1, 2, 3},
        set(),
        set(),
        {1},
        {5},
        set(),
    ]


def test_making_and_ending_are_not_mixed_up() -> None:
    """Who uses what another one frees, or ends what another one makes, need not wait."""
    assert step_dependencies(
        [graph_step(uses=GRAPH_A), graph_step(releases=GRAPH_A), graph_step(ends=GRAPH_B), graph_step(makes=GRAPH_B)]
    ) == [
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
    with pytest.raises(CycleError) as found:
        topological_order([{3}, set(), {1}, {4}, {3, 1}], [(0,)] * 5)
    assert sorted(found.value.args[1][1:]) == [3, 4]


def test_a_call_that_waits_for_itself_is_a_circle() -> None:
    """The smallest there is."""
    with pytest.raises(CycleError) as found:
        topological_order([set(), {1}], [(0,), (0,)])
    assert found.value.args[1] == [1, 1]
