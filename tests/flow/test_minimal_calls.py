"""Each change is one minimal set of calls, and afterwards there is nothing left to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmsconf.errors import ProblemsFound, Rejected

from .project import Project

pytestmark = pytest.mark.sampled

PEOPLE = """
people:
  - {email: anna@acme.example, id: u-anna}
  - {email: bo@acme.example, id: u-bo}
  - {email: cy@acme.example, id: u-cy}
"""


def project(tmp_path: Path, seed: str, options: str = "") -> Project:
    return Project(tmp_path, PEOPLE + seed, options)


def test_a_group_is_renamed_by_one_call(tmp_path: Path) -> None:
    """A group under an earlier name is renamed, and keeps its id and its members."""
    it = project(tmp_path, "groups: [{name: Coaches, id: g-1, members: [anna@acme.example]}]")
    calls = it.settled("groups: [{name: Mentors, previously: [Coaches]}]")
    assert calls == ["manual-groups.rename"]
    assert it.ask("manual-groups.list", query={}) == {"groups": [{"groupId": "g-1", "name": "Mentors"}]}
    assert it.ask("manual-groups.members", {"groupId": "g-1"}) == {"userIds": ["u-anna"]}


def test_a_chain_of_renames_moves_every_name_up(tmp_path: Path) -> None:
    """Where each new name is another's old one, the last in the chain moves first."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}, {name: B, id: g-2}, {name: C, id: g-3}]")
    calls = it.settled("groups: [{name: B, previously: [A]}, {name: C, previously: [B]}, {name: D, previously: [C]}]")
    assert calls == ["manual-groups.rename"] * 3
    assert [str(change.id) + change.address.name for change in it.last.changes] == ["g-1B", "g-2C", "g-3D"]
    assert [call.path for call in it.last.calls] == [f"/groups/g-{n}/rename" for n in (3, 2, 1)]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_people_are_added_as_many_to_a_call_as_it_carries(tmp_path: Path, most: int) -> None:
    """A call with one more is refused by the service, and none is sent."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}]", f"dialect: {{manual-groups.add.batch: {most}}}\n")
    people = ["anna@acme.example", "bo@acme.example", "cy@acme.example"]
    calls = it.settled(f"groups: [{{name: A, members: {json.dumps(people)}}}]")
    assert calls == ["manual-groups.add-members"] * -(-len(people) // most)
    with pytest.raises(Rejected, match=f"at most {most} users"):
        it.send("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": ["u-1"] * (most + 1)})


def test_two_pinned_groups_swap_names_by_three_calls(tmp_path: Path) -> None:
    """Names that change places go through one temporary name that tells whose it is."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}, {name: B, id: g-2}]")
    calls = it.settled("groups: [{name: B, id: g-1}, {name: A, id: g-2}]")
    assert calls == ["manual-groups.rename"] * 3
    assert it.last.calls[0].body == it.spec.body_to_wire("manual-groups.rename", name="lmsconf renames g-1")


def test_a_swap_without_ids_is_an_error_that_prints_them(tmp_path: Path) -> None:
    """A circle of earlier names looks the same before and after, so the ids to paste are named."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}, {name: B, id: g-2}]")
    with pytest.raises(ProblemsFound) as found:
        it.plan("groups: [{name: B, previously: [A]}, {name: A, previously: [B]}]")
    text = " ".join(str(problem) for problem in found.value.problems)
    assert "identity/circle" in text
    assert "g-1" in text
    assert "g-2" in text


def test_two_choices_swap_names_by_one_put(tmp_path: Path) -> None:
    """Choices pinned by id change places within one replacement of their field."""
    it = project(tmp_path, "custom_fields: [{name: Size, type: CHOICE, choices: [S, L]}]")
    ids = {choice["name"]: choice["choiceId"] for choice in it.fields()["Size"]["choices"]}
    calls = it.settled(
        f"custom_fields: [{{name: Size, choices: [{{name: L, id: {ids['S']}}}, {{name: S, id: {ids['L']}}}]}}]"
    )
    assert calls == ["custom-fields.replace"]
    now = {choice["name"]: choice["choiceId"] for choice in it.fields()["Size"]["choices"]}
    assert now == {"L": ids["S"], "S": ids["L"]}


def test_a_renamed_choice_keeps_its_id(tmp_path: Path) -> None:
    """A choice with an earlier name is sent with the id that it has, so that answers stay."""
    it = project(tmp_path, "custom_fields: [{name: Dept, type: CHOICE, choices: [HR, Sales]}]")
    before = {choice["name"]: choice["choiceId"] for choice in it.fields()["Dept"]["choices"]}
    calls = it.settled("custom_fields: [{name: Dept, choices: [{name: People, previously: [HR]}, Sales]}]")
    assert calls == ["custom-fields.replace"]
    after = {choice["name"]: choice["choiceId"] for choice in it.fields()["Dept"]["choices"]}
    assert after == {"People": before["HR"], "Sales": before["Sales"]}


MOVE = """
custom_fields:
  - {name: Dept, type: CHOICE, choices: [HR, Sales]}
  - {name: Site, type: CHOICE, choices: [Oslo, Bergen]}
smart_groups:
  - {name: People, conditions: [{field: Dept, choices: [HR]}]}
"""


def test_a_smart_group_leaves_a_field_before_its_choice_goes(tmp_path: Path) -> None:
    """The condition is replaced first, then the choice that nobody names any more is taken out."""
    it = project(tmp_path, MOVE)
    calls = it.settled(
        """
custom_fields: [{name: Dept, choices: [Sales]}]
smart_groups: [{name: People, conditions: [{field: Site, choices: [Oslo]}]}]
"""
    )
    assert calls == ["smart-groups.replace-conditions", "custom-fields.replace"]


def test_a_key_that_is_taken_out_of_a_manifest_changes_nothing(tmp_path: Path) -> None:
    """Omitted is not managed: members that a manifest no longer mentions stay."""
    it = project(tmp_path, "groups: [{name: A, members: [anna@acme.example], managers: [bo@acme.example]}]")
    it.settled("groups: [{name: A, members: [anna@acme.example]}]")
    assert it.settled("groups: [{name: A}]") == []


def test_a_flipped_assignment_is_one_post(tmp_path: Path) -> None:
    """An assignment is one value: no longer mandatory and no longer limited in time is one POST."""
    it = project(
        tmp_path,
        """
content: [{name: GDPR}]
content_targets:
  - {content: GDPR, assign_to: [everyone], mandatory: true, visible_from: 2026-01-01T00:00:00Z}
""",
    )
    recreates = it.spec.behaviour("content-targets.on-existing") == "recreate"
    ends = ["content-targets.delete"] if recreates else []
    assert it.settled("content_targets: [{content: GDPR, assign_to: [everyone]}]") == [*ends, "content-targets.create"]
    targets = it.ask("content-targets.list", query={"contentId": "c-1"})
    assert targets["targets"][0]["mandatory"] is False


def test_a_field_is_replaced_when_ten_exist(tmp_path: Path) -> None:
    """There is no place for an eleventh, so the old one goes before the new one comes."""
    fields = "\n".join(f"  - {{name: F{n}, type: TEXT}}" for n in range(10))
    it = project(tmp_path, f"custom_fields:\n{fields}\n")
    calls = it.settled("custom_fields: [{name: New, type: TEXT}]\nabsent: {custom_fields: [F3]}")
    assert calls == ["custom-fields.delete", "custom-fields.create"]


def test_a_smart_group_takes_along_the_fields_that_it_names(tmp_path: Path) -> None:
    """`--only` a smart group plans the new field of its conditions too, and no other field."""
    it = project(tmp_path, "")
    fields = "custom_fields: [{name: Dept, type: CHOICE, choices: [HR]}, {name: Other, type: TEXT}]\n"
    group = "smart_groups: [{name: Staff, conditions: [{field: Dept, choices: [HR]}]}]"
    plan = it.plan(fields + group, only=("smart_group/Staff",))
    assert [str(change.address) for change in plan.changes] == ["custom_field/Dept", "smart_group/Staff"]


KEEPS = """
custom_fields: [{name: Dept, type: CHOICE, choices: [HR, Sales, Ops]}]
smart_groups: [{name: Sellers, conditions: [{field: Dept, choices: [Sales]}]}]
"""


def test_a_field_in_use_may_be_refused(tmp_path: Path) -> None:
    """Its change names the groups, is counted by the guard, and is not sent without consent."""
    it = project(tmp_path, KEEPS, "dialect: {custom-fields.in-use: condition}\n")
    plan = it.plan("custom_fields: [{name: Dept, description: Where one works}]")
    (problem,) = (one for one in plan.all_problems if one.code == "refusal/in-use")
    assert "smart_group/Sellers" in problem.message
    (guard,) = (one for one in plan.guards if one.name == "refusals")
    assert (guard.total, guard.tripped, guard.allow) == (1, True, "refusals=1")
    counted = [(one.of, one.taken, one.size) for one in plan.measures if one.guard == "refusals"]
    assert counted == [("custom_field/Dept", 1, 0)]


def test_a_smart_group_is_replaced_by_one_on_a_new_choice(tmp_path: Path) -> None:
    """Whoever sees its content keeps seeing it: the field is tried while the old group names it, and that is told."""
    seed = KEEPS + "content: [{name: X}]\ncontent_targets: [{content: X, assign_to: [{smart_group: Sellers}]}]\n"
    wanted = """
custom_fields: [{name: Dept, choices: [HR, Sales, Ops, Legal]}]
smart_groups: [{name: Lawyers, conditions: [{field: Dept, choices: [Legal]}]}]
absent: {smart_groups: [Sellers]}
content_targets: [{content: X, assign_to: [{smart_group: Lawyers}]}]
"""
    it = project(tmp_path, seed, "dialect: {custom-fields.in-use: condition}\n")
    plan = it.plan(wanted)
    (problem,) = (one for one in plan.all_problems if one.code == "refusal/in-use")
    assert "smart_group/Sellers" in problem.message
    assert [guard.allow for guard in plan.guards if guard.tripped and guard.name == "refusals"] == ["refusals=1"]
    order = ["custom-fields.replace", "smart-groups.create", "content-targets.create", "content-targets.delete"]
    assert [call.operation for call in plan.calls] == [*order, "smart-groups.delete"]
    (tmp_path / "never").mkdir()
    it = project(tmp_path / "never", seed, "dialect: {custom-fields.in-use: never}\n")
    assert it.settled(wanted) == [*order, "smart-groups.delete"]


def test_a_used_choice_is_swapped_by_three_calls(tmp_path: Path) -> None:
    """Where only the removal of a used choice is refused: the new one comes, the group moves, the old one goes."""
    it = project(tmp_path, KEEPS, "dialect: {custom-fields.in-use: removed-choice}\n")
    calls = it.settled(
        """
custom_fields: [{name: Dept, choices: [HR, Revenue, Ops]}]
smart_groups: [{name: Sellers, conditions: [{field: Dept, choices: [Revenue]}]}]
""",
        "recreates=1",
    )
    assert calls == ["custom-fields.replace", "smart-groups.replace-conditions", "custom-fields.replace"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("iso", "2026-01-01T00:00:00Z"),
        ("iso-ms", "2026-01-01T00:00:00.000Z"),
        ("iso-local", "2026-01-01T00:00:00"),
        ("epoch-ms", "1767225600000"),
    ],
)
def test_times_are_written_as_the_dialect_says(tmp_path: Path, form: str, text: str) -> None:
    """Whatever the service wrote itself until now."""
    it = project(tmp_path, "content: [{name: X}]\n", f"dialect: {{content-targets.time-format: {form}}}\n")
    wanted = "content_targets: [{content: X, visible_from: 2026-01-01T00:00:00Z, assign_to: [everyone]}]"
    assert text in it.plan(wanted).calls[0].body.values()
    assert it.settled(wanted) == ["content-targets.create"]


def test_a_window_is_declared_as_precisely_as_the_service_keeps_it(tmp_path: Path) -> None:
    """Where seconds are cut off, the last second of a day is its last minute, in the plan and in the call."""
    it = project(tmp_path, "content: [{name: X}]\n", "dialect: {content-targets.time-precision: minute}\n")
    wanted = "content_targets: [{content: X, visible_until: 2026-12-31T23:59:59Z, assign_to: [everyone]}]"
    assert {"2026-12-31T23:59:00Z", "1798761540000"} & set(map(str, it.plan(wanted).calls[0].body.values()))
    assert it.settled(wanted) == ["content-targets.create"]
    assert it.plan(wanted).changes == ()


def test_a_field_is_changed_in_two_calls_after_conditions_drop_it(tmp_path: Path) -> None:
    """An answer moves from a choice that goes to a new one, while the service refuses to change a field in use."""
    seed = (
        "custom_fields:\n"
        "  - {name: Site, type: CHOICE, choices: [Oslo, Bergen]}\n"
        "  - {name: Team, type: CHOICE, choices: [A]}\n"
        "people: [{email: anna@acme.example, answers: {Site: Oslo}}]\n"
        "smart_groups: [{name: North, conditions: [{field: Site, choices: [Bergen]}]}]\n"
    )
    it = Project(tmp_path, seed, "dialect: {custom-fields.in-use: condition}\nguards: off\n")
    calls = it.settled(
        "custom_fields: [{name: Site, choices: [Bergen, Tromsø]}]\n"
        "users: [{email: anna@acme.example, answers: {Site: Tromsø}}]\n"
        "smart_groups: [{name: North, conditions: [{field: Team, system_condition: IS_ANY}]}]\n"
    )
    assert calls.count("custom-fields.replace") == 2
