"""How a workspace is read, whatever its kinds: each in a job of its own, that waits for others and fails with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest
from flow.project import Project
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.api.worker_pool import ConcurrentReader
from lmsconf.apply.staleness import CODE, find_foreign_changes, find_stale_resources
from lmsconf.errors import ApiError, LmsconfError, StalePlan
from lmsconf.kinds import all_kinds
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.reading import read_workspace
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.api import Api, ListedRows, ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, GuardCount
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.plan_as_manifests import plan_to_manifests
from lmsconf.planner.reading import ReadScope, is_cheaper_by_id, keep_details


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


# Whether a plan still fits: what it takes away is compared both ways.


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
