"""Each change is one minimal set of calls, in an order that gives first and takes last; then there is nothing to do."""

import json
from pathlib import Path

import pytest

from lmsconf.errors import Rejected
from lmsconf.kinds.grant_verification import revokes_access
from lmsconf.model.calls import is_creation

from .altered_service import plan_against
from .plan_tables import PlanCase, assert_planned, plan_cases
from .project import Project

PEOPLE = """
people:
  - {email: anna@acme.example, id: u-anna}
  - {email: bo@acme.example, id: u-bo}
  - {email: cy@acme.example, id: u-cy}
"""


def project(tmp_path: Path, seed: str, options: str = "") -> Project:
    return Project(tmp_path, PEOPLE + seed, options)


@pytest.mark.sampled
@pytest.mark.parametrize("case", plan_cases("plans.txt"), ids=lambda case: case.title)
def test_a_plan_says_what_changes_and_leaves_nothing_to_do(tmp_path: Path, case: PlanCase) -> None:
    """Changes, calls and what they wait for, and what is reported; its file is carried out so, and settles."""
    assert_planned(tmp_path, case)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_people_are_added_as_many_to_a_call_as_it_carries(tmp_path: Path, most: int) -> None:
    """A call with one more is refused by the service, and none is sent."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}]", f"dialect: {{manual-groups.add.batch: {most}}}\n")
    people = ["anna@acme.example", "bo@acme.example", "cy@acme.example"]
    calls = it.settled(f"groups: [{{name: A, members: {json.dumps(people)}}}]")
    assert calls == ["manual-groups.add-members"] * -(-len(people) // most)
    with pytest.raises(Rejected, match=f"at most {most} users"):
        it.send("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": ["u-1"] * (most + 1)})


@pytest.mark.sampled(daily=False)
def test_a_renamed_choice_keeps_its_id(tmp_path: Path) -> None:
    """A choice with an earlier name is sent with the id that it has, so that answers stay."""
    it = project(tmp_path, "custom_fields: [{name: Dept, type: CHOICE, choices: [HR, Sales]}]")
    before = {choice["name"]: choice["choiceId"] for choice in it.fields()["Dept"]["choices"]}
    calls = it.settled("custom_fields: [{name: Dept, choices: [{name: People, previously: [HR]}, Sales]}]")
    assert calls == ["custom-fields.replace"]
    after = {choice["name"]: choice["choiceId"] for choice in it.fields()["Dept"]["choices"]}
    assert after == {"People": before["HR"], "Sales": before["Sales"]}


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("iso", "2026-01-01T00:00:00Z"),
        ("iso-ms", "2026-01-01T00:00:00.000Z"),
        ("iso-local", "2026-01-01T00:00:00"),
        ("iso-local, content-targets.time-zone: Asia/Kolkata", "2026-01-01T05:30:00"),
        ("epoch-ms", "1767225600000"),
    ],
)
def test_times_are_written_as_the_dialect_says(tmp_path: Path, form: str, text: str) -> None:
    """Whatever the service wrote itself until now; a time without an offset is in the zone of the dialect."""
    it = project(tmp_path, "content: [{name: X}]\n", f"dialect: {{content-targets.time-format: {form}}}\n")
    wanted = "content_targets: [{content: X, visible_from: 2026-01-01T00:00:00Z, assign_to: [everyone]}]"
    assert text in it.plan(wanted).calls[0].body.values()
    assert it.settled(wanted) == ["content-targets.create"]


@pytest.mark.sampled(daily=False)
def test_a_window_is_declared_as_precisely_as_the_service_keeps_it(tmp_path: Path) -> None:
    """Where seconds are cut off, the last second of a day is its last minute, in the plan and in the call."""
    it = project(tmp_path, "content: [{name: X}]\n", "dialect: {content-targets.time-precision: minute}\n")
    wanted = "content_targets: [{content: X, visible_until: 2026-12-31T23:59:59Z, assign_to: [everyone]}]"
    assert {"2026-12-31T23:59:00Z", "1798761540000"} & set(map(str, it.plan(wanted).calls[0].body.values()))
    assert it.settled(wanted) == ["content-targets.create"]
    assert it.plan(wanted).changes == ()


@pytest.mark.parametrize(("day", "changes"), [(1, 0), (2, 1)], ids=["today", "tomorrow"])
def test_a_start_that_the_service_may_have_set_is_no_change(tmp_path: Path, day: int, changes: int) -> None:
    """Where it gives an assignment without a start that of its creation, which may be any time of today."""
    live = f"content_targets: [{{content: X, visible_from: 2026-06-0{day}T21:00:00Z, assign_to: [everyone]}}]\n"
    it = project(tmp_path, "content: [{name: X}]\n" + live, "dialect: {content-targets.default-start: now}\n")
    plan = it.plan("content_targets: [{content: X, assign_to: [everyone]}]")
    assert len(plan.changes) == changes


# The order in which a plan sends its calls: first what gives, then what takes away.


@pytest.mark.parametrize("case", plan_cases("order_plans.txt"), ids=lambda case: case.title)
def test_a_plan_says_what_goes_first_and_what_may_be_there_twice(tmp_path: Path, case: PlanCase) -> None:
    """Grants come before revocations; a creation beside something like it is told, and waits for consent."""
    assert_planned(tmp_path, case)


def test_what_takes_access_away_is_sent_last(tmp_path: Path) -> None:
    """Whatever its kind: nobody is without something while the run is still giving."""
    seed = """
custom_fields: [{name: Dept, type: CHOICE, choices: [A, B]}, {name: Gone, type: TEXT}]
people:
  - {email: root@acme.example, admin: true}
  - {email: vera@acme.example, admin: true}
  - {email: mo@acme.example, manager: true, applications: [learn, analyse]}
  - {email: anna@acme.example}
groups: [{name: Going}, {name: Keep, members: [anna@acme.example], managers: [vera@acme.example]}]
smart_groups: [{name: Old, conditions: [{field: Dept, choices: [A]}]}]
content: [{name: X}]
content_targets: [{content: X, assign_to: [{group: Keep}]}]
"""
    plan = Project(tmp_path, seed, "guards: {min_admins: 1}\n").plan("""
custom_fields: [{name: New, type: TEXT}]
groups: [{name: Fresh}, {name: Keep, members: [mo@acme.example], managers: []}]
smart_groups: [{name: Made, conditions: [{field: Dept, choices: [B]}]}]
content_targets: [{content: X, assign_to: [everyone, {smart_group: Made}]}]
users:
  - {email: vera@acme.example, admin: false}
  - {email: mo@acme.example, manager: false, applications: [learn, create]}
  - {email: anna@acme.example, archived: true}
absent:
  custom_fields: [Gone]
  groups: [Going]
  smart_groups: [Old]
  content_targets: [{content: X, assign_to: [{group: Keep}]}]
""")
    calls = [f"{call.operation} {call.path.rpartition('/')[2]}" for call in plan.calls]
    takes = (
        "custom-fields.delete", "manual-groups.delete", "manual-groups.remove-", "smart-groups.delete",
        "content-targets.delete", "users.archive", "user-access.make-admin false", "user-access.make-manager false",
        "user-access.set REMOVE",
    )  # fmt: skip
    taking = [call.startswith(takes) for call in calls]
    assert {one for one in takes if any(call.startswith(one) for call in calls)} == set(takes)
    assert taking == sorted(taking), calls
    groups = ("custom-fields.", "manual-groups.", "smart-groups.")
    assert [revokes_access(call) for call in plan.calls if call.operation.startswith(groups)] == [
        name.startswith(takes) for name in calls if name.startswith(groups)
    ]


@pytest.mark.parametrize(("taken", "going"), [(9, ["Dept"]), (10, ["Also", "Dept"]), (10, ["Dept", "Zoo"])])
def test_a_field_that_a_smart_group_moves_to_has_a_slot_before_the_old_one_is_deleted(
    tmp_path: Path, taken: int, going: list[str]
) -> None:
    """A new field that nobody waits for waits for that deletion, or both for one that no smart group drops."""
    kept = "".join(f"  - {{name: K{n}, type: TEXT}}\n" for n in range(taken - len(going)))
    old = "".join(f"  - {{name: {name}, type: CHOICE, choices: [Sales]}}\n" for name in going)
    group = "smart_groups: [{name: Sellers, conditions: [{field: %s, choices: [Sales]}]}]\n"
    it = Project(tmp_path, f"custom_fields:\n{kept}{old}{group % 'Dept'}", "guards: off\n")
    it.settled(
        "custom_fields: [{name: Area, type: TEXT}, {name: Unit, type: CHOICE, choices: [Sales]}]\n"
        f"absent: {{custom_fields: [{', '.join(going)}]}}\n{group % 'Unit'}"
    )
    order = [f"{call.operation.partition('.')[2]} {call.address.name}" for call in it.last.calls]
    assert order.index("create Unit") < order.index("replace-conditions Sellers") < order.index("delete Dept")
    if taken == 9:
        assert order.index("delete Dept") < order.index("create Area")


def test_where_there_are_more_fields_than_may_be_each_new_one_waits(tmp_path: Path) -> None:
    """With eleven live, two are created only after two of three deletions, so that there are never more."""
    fields = "".join(f"  - {{name: F{n}, type: TEXT}}\n" for n in range(10))
    plan = plan_against(
        Project(tmp_path, f"custom_fields:\n{fields}", "guards: off\n"),
        "custom_fields: [{name: A, type: TEXT}, {name: B, type: TEXT}]\nabsent: {custom_fields: [F1, F2, F3]}",
        lambda snapshot: snapshot["custom_field"].append({**snapshot["custom_field"][0], "id": "f-99", "name": "More"}),
    )
    assert [(call.address.name, len(call.needs)) for call in plan.calls if is_creation(call.operation)] == [
        ("A", 1),
        ("B", 1),
    ]
