"""Whether a plan still fits: what it takes away is compared both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from flow.project import Project
from msgspec.structs import replace

from lmsconf.apply.staleness import CODE, find_foreign_changes, find_stale_resources
from lmsconf.errors import LmsconfError, StalePlan
from lmsconf.kinds import all_kinds
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.plan import Action, GuardCount
from lmsconf.planner.plan_as_manifests import plan_to_manifests

SEED = """
people: [{email: anna@acme.example}, {email: bo@acme.example}, {email: cy@acme.example}]
groups: [{name: A, members: [anna@acme.example, bo@acme.example, cy@acme.example]}]
"""


@pytest.mark.parametrize("guard", ["deletes", "removals", "answers", "updates"])
def test_what_a_plan_takes_away_is_compared_both_ways(tmp_path: Path, guard: str) -> None:
    """A plan that says less than is taken by now is stale, and so is one that says more."""
    plan = Project(tmp_path, SEED).plan("groups: [{name: A, members: [anna@acme.example]}]")
    assert find_stale_resources(plan, plan) == ()
    more = replace(plan, measures=(*plan.measures, GuardCount(guard=guard, of="group/A members", taken=1, size=3)))
    for then, now in ((plan, more), (more, plan)):
        assert [problem.code for problem in find_stale_resources(then, now)] == [CODE]


def test_a_plan_may_know_of_more_likely_renames_than_show_now(tmp_path: Path) -> None:
    """What no manifest spoke of is not compared again; one that the plan did not tell of is new, though."""
    plan = Project(tmp_path, SEED).plan("groups: [{name: A, members: [anna@acme.example]}]")
    more = replace(plan, measures=(*plan.measures, GuardCount(guard="recreates", of="group/A", taken=1, size=0)))
    assert find_stale_resources(more, plan) == ()
    assert [problem.code for problem in find_stale_resources(plan, more)] == [CODE]


def test_a_list_that_no_manifest_names_is_compared(tmp_path: Path) -> None:
    """A plan that changes the members of a group is stale once the group has another manager."""
    it = Project(tmp_path, SEED)
    plan = it.plan("groups: [{name: A, members: [anna@acme.example]}]")
    [change] = plan.changes
    assert find_stale_resources(plan, it.plan()) == ()
    live = cast("dict[str, list[dict[str, str]]]", it.ask("users.list"))
    it.send("manual-groups.add-managers", {"groupId": str(change.id)}, {"userIds": [live["users"][0]["userId"]]})
    [problem] = find_stale_resources(plan, it.plan())
    assert (problem.code, problem.address) == (CODE, "group/A")


def test_a_value_of_a_person_that_the_plan_keeps_is_compared(tmp_path: Path) -> None:
    """A plan that changes the first name of a person is stale once the declared last name was changed by hand."""
    it = Project(tmp_path, SEED.replace("{email: anna@acme.example}", "{email: anna@acme.example, last_name: Berg}"))
    plan = it.plan("users: [{email: anna@acme.example, first_name: Ann, last_name: Berg}]")
    [change] = plan.changes
    assert find_stale_resources(plan, it.plan()) == ()
    it.send("users.update-fullname", {"userId": str(change.id)}, {"lastName": "By hand"})
    [problem] = find_stale_resources(plan, it.plan())
    assert (problem.code, problem.address) == (CODE, "user/anna@acme.example")
    assert problem.message == f"{problem.address} has changed since the plan was made: last_name changed"


def test_a_list_in_a_body_is_compared(tmp_path: Path) -> None:
    """A plan whose call adds other people than one made now is stale."""
    it = Project(tmp_path, SEED.replace("A, members: [anna@acme.example, bo@acme.example, cy@acme.example]", "A"))
    plan = it.plan("groups: [{name: A, members: [anna@acme.example, bo@acme.example]}]")
    [call] = plan.calls
    assert isinstance(call.body, dict)
    fewer = {key: value[:1] if isinstance(value, list) else value for key, value in call.body.items()}
    assert fewer != call.body
    assert [one.code for one in find_stale_resources(replace(plan, calls=(replace(call, body=fewer),)), plan)] == [CODE]


def test_a_plan_of_what_no_manifest_can_say_is_refused(tmp_path: Path) -> None:
    """A change whose form lacks what identifies it, or that its kind does not allow, is not carried out from a file."""
    plan = Project(tmp_path, SEED).plan("groups: [{name: A, members: [anna@acme.example]}]")
    [change] = plan.changes
    nameless = replace(change, after={"members": ["anna@acme.example"]})
    with pytest.raises(StalePlan, match="group/A: the plan describes it incompletely"):
        plan_to_manifests(replace(plan, changes=(nameless,)), all_kinds())
    anna = Address.of("user", "anna@acme.example")
    gone = replace(change, address=anna, action=Action.DELETE, before={"email": anna.name}, after=None)
    with pytest.raises(LmsconfError, match="people are never deleted"):
        plan_to_manifests(replace(plan, changes=(gone,)), all_kinds())


def test_an_edited_change_is_stale_also_where_nothing_live_differs(tmp_path: Path) -> None:
    """Another id, or another difference than the one that was planned: each is told of its resource."""
    plan = Project(tmp_path, SEED).plan("groups: [{name: A, members: [anna@acme.example]}]")
    [change] = plan.changes
    for edited in (replace(change, id="g-other"), replace(change, fields=())):
        [problem] = find_stale_resources(replace(plan, changes=(edited,)), plan)
        assert (problem.code, problem.address) == (CODE, "group/A")
        assert "a new plan has another id for it, or another difference" in problem.message


def test_what_is_left_of_a_plan_is_part_of_it(tmp_path: Path) -> None:
    """A list between what it was and what is planned is fine; one that lacks what nobody planned to remove is not."""
    it = Project(tmp_path, SEED)
    plan = it.plan("groups: [{name: A, members: [anna@acme.example]}]")
    [change] = plan.changes
    live = cast("dict[str, list[dict[str, str]]]", it.ask("users.list"))
    anna, bo, _ = (one["userId"] for one in sorted(live["users"], key=lambda one: one["email"]))
    found = []
    for person in (bo, anna):
        it.send("manual-groups.remove-member", {"groupId": str(change.id), "userId": person})
        found.append([(one.code, one.address) for one in find_foreign_changes(plan, it.plan())])
    assert found == [[], [(CODE, "group/A")]]


def test_a_deletion_that_is_left_of_a_plan_is_of_the_same_group(tmp_path: Path) -> None:
    """A run that goes on deletes what the plan deletes, and not another group that has the name by now."""
    plan = Project(tmp_path, SEED).plan("absent: {groups: [A]}")
    [change] = plan.changes
    assert find_foreign_changes(plan, plan) == ()
    [problem] = find_foreign_changes(plan, replace(plan, changes=(replace(change, id=RemoteId("g-other")),)))
    assert (problem.code, problem.address) == (CODE, "group/A")


def test_a_group_that_a_run_has_created_is_part_of_the_plan(tmp_path: Path) -> None:
    """A run that was cut short after it created a group goes on with the members of the group."""
    it = Project(tmp_path, SEED)
    plan = it.plan("groups: [{name: B, members: [anna@acme.example]}]")
    it.send("manual-groups.create", body={"name": "B"})
    left = it.plan()
    assert [one.action for one in left.changes] == [Action.UPDATE]
    assert find_foreign_changes(plan, left) == ()


def test_a_group_with_another_id_is_not_the_one_of_the_plan(tmp_path: Path) -> None:
    """A group that was deleted and created again since the plan was made is not changed by what is left of the plan."""
    it = Project(tmp_path, SEED.replace("A, members: [anna@acme.example, bo@acme.example, cy@acme.example]", "A"))
    plan = it.plan("groups: [{name: A, members: [anna@acme.example]}]")
    [change] = plan.changes
    it.send("manual-groups.delete", {"groupId": str(change.id)})
    it.send("manual-groups.create", body={"name": "A"})
    [problem] = find_foreign_changes(plan, it.plan())
    assert (problem.code, problem.address) == (CODE, "group/A")


@pytest.mark.parametrize(
    ("then", "now", "reason"),
    [
        ({}, {"may_be_refused": True}, "the service may now refuse it, which the plan does not show"),
        ({"may_be_refused": True}, {}, "the file may have been edited"),
        ({"needs": ("c9",)}, {}, "the file may have been edited"),
        ({"needs": ("c9",), "may_be_refused": True}, {"may_be_refused": True}, "the file may have been edited"),
    ],
)
def test_why_a_call_is_not_the_one_of_a_new_plan(
    tmp_path: Path, then: dict[str, Any], now: dict[str, Any], reason: str
) -> None:
    """Somebody has begun to use a field since then, which is nobody's edit; anything else may be one."""
    plan = Project(tmp_path, SEED).plan("groups: [{name: A, members: [anna@acme.example, bo@acme.example]}]")
    [call] = plan.calls
    reviewed, fresh = (replace(plan, calls=(replace(call, **changes),)) for changes in (then, now))
    [problem] = find_stale_resources(reviewed, fresh)
    assert problem.message.endswith(reason)
