"""Each change is one minimal set of calls, in an order that gives first and takes last; then there is nothing to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmsconf.errors import ProblemsFound, Rejected
from lmsconf.kinds.grant_verification import revokes_access
from lmsconf.model.calls import is_creation

from .altered_service import plan_against
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
def test_a_group_is_renamed_by_one_call(tmp_path: Path) -> None:
    """A group under an earlier name is renamed, and keeps its id and its members."""
    it = project(tmp_path, "groups: [{name: Coaches, id: g-1, members: [anna@acme.example]}]")
    calls = it.settled("groups: [{name: Mentors, previously: [Coaches]}]")
    assert calls == ["manual-groups.rename"]
    assert it.ask("manual-groups.list", query={}) == {"groups": [{"groupId": "g-1", "name": "Mentors"}]}
    assert it.ask("manual-groups.members", {"groupId": "g-1"}) == {"userIds": ["u-anna"]}


@pytest.mark.sampled
def test_a_chain_of_renames_moves_every_name_up(tmp_path: Path) -> None:
    """Where each new name is another's old one, the last in the chain moves first."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}, {name: B, id: g-2}, {name: C, id: g-3}]")
    calls = it.settled("groups: [{name: B, previously: [A]}, {name: C, previously: [B]}, {name: D, previously: [C]}]")
    assert calls == ["manual-groups.rename"] * 3
    assert [str(change.id) + change.address.name for change in it.last.changes] == ["g-1B", "g-2C", "g-3D"]
    assert [call.path for call in it.last.calls] == [f"/groups/g-{n}/rename" for n in (3, 2, 1)]


@pytest.mark.sampled
@pytest.mark.parametrize("most", [1, 2, 3])
def test_people_are_added_as_many_to_a_call_as_it_carries(tmp_path: Path, most: int) -> None:
    """A call with one more is refused by the service, and none is sent."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}]", f"dialect: {{manual-groups.add.batch: {most}}}\n")
    people = ["anna@acme.example", "bo@acme.example", "cy@acme.example"]
    calls = it.settled(f"groups: [{{name: A, members: {json.dumps(people)}}}]")
    assert calls == ["manual-groups.add-members"] * -(-len(people) // most)
    with pytest.raises(Rejected, match=f"at most {most} users"):
        it.send("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": ["u-1"] * (most + 1)})


@pytest.mark.sampled
def test_two_pinned_groups_swap_names_by_three_calls(tmp_path: Path) -> None:
    """Names that change places go through one temporary name that tells whose it is."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}, {name: B, id: g-2}]")
    calls = it.settled("groups: [{name: B, id: g-1}, {name: A, id: g-2}]")
    assert calls == ["manual-groups.rename"] * 3
    assert it.last.calls[0].body == it.spec.body_to_wire("manual-groups.rename", name="lmsconf renames g-1")


@pytest.mark.sampled
def test_a_swap_without_ids_is_an_error_that_prints_them(tmp_path: Path) -> None:
    """A circle of earlier names looks the same before and after, so the ids to paste are named."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}, {name: B, id: g-2}]")
    with pytest.raises(ProblemsFound) as found:
        it.plan("groups: [{name: B, previously: [A]}, {name: A, previously: [B]}]")
    text = " ".join(str(problem) for problem in found.value.problems)
    assert "identity/circle" in text
    assert "g-1" in text
    assert "g-2" in text


@pytest.mark.sampled
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


@pytest.mark.sampled
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


@pytest.mark.sampled
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


@pytest.mark.sampled
def test_a_key_that_is_taken_out_of_a_manifest_changes_nothing(tmp_path: Path) -> None:
    """Omitted is not managed: members that a manifest no longer mentions stay."""
    it = project(tmp_path, "groups: [{name: A, members: [anna@acme.example], managers: [bo@acme.example]}]")
    it.settled("groups: [{name: A, members: [anna@acme.example]}]")
    assert it.settled("groups: [{name: A}]") == []


@pytest.mark.sampled
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


@pytest.mark.sampled
def test_a_field_is_replaced_when_ten_exist(tmp_path: Path) -> None:
    """There is no place for an eleventh, so the old one goes before the new one comes."""
    fields = "\n".join(f"  - {{name: F{n}, type: TEXT}}" for n in range(10))
    it = project(tmp_path, f"custom_fields:\n{fields}\n")
    calls = it.settled("custom_fields: [{name: New, type: TEXT}]\nabsent: {custom_fields: [F3]}")
    assert calls == ["custom-fields.delete", "custom-fields.create"]


@pytest.mark.sampled
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


@pytest.mark.sampled
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


@pytest.mark.sampled
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


@pytest.mark.sampled
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


@pytest.mark.sampled
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


@pytest.mark.sampled
def test_a_window_is_declared_as_precisely_as_the_service_keeps_it(tmp_path: Path) -> None:
    """Where seconds are cut off, the last second of a day is its last minute, in the plan and in the call."""
    it = project(tmp_path, "content: [{name: X}]\n", "dialect: {content-targets.time-precision: minute}\n")
    wanted = "content_targets: [{content: X, visible_until: 2026-12-31T23:59:59Z, assign_to: [everyone]}]"
    assert {"2026-12-31T23:59:00Z", "1798761540000"} & set(map(str, it.plan(wanted).calls[0].body.values()))
    assert it.settled(wanted) == ["content-targets.create"]
    assert it.plan(wanted).changes == ()


@pytest.mark.sampled
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


# The order in which a plan sends its calls: first what gives, then what takes away.


def test_a_person_enters_the_new_group_before_leaving_the_old_one(tmp_path: Path) -> None:
    """Grants come before revocations, so that nobody loses access for a moment."""
    it = Project(
        tmp_path, "people: [{email: anna@acme.example}]\ngroups: [{name: A, members: [anna@acme.example]}, {name: B}]"
    )
    calls = it.settled("groups: [{name: A, members: []}, {name: B, members: [anna@acme.example]}]")
    assert calls == ["manual-groups.add-members", "manual-groups.remove-member"]
    remove = it.last.calls[-1]
    assert remove.needs == ("c1",)


def test_who_leaves_a_group_waits_for_no_one_else(tmp_path: Path) -> None:
    """A removal waits for the addition of that person to another group, and not for that of others."""
    it = Project(
        tmp_path,
        "people: [{email: anna@acme.example}, {email: bo@acme.example}]\n"
        "groups: [{name: A, members: [anna@acme.example]}, {name: B}, {name: D},"
        " {name: C, members: [bo@acme.example]}]",
    )
    plan = it.plan(
        "groups: [{name: A, members: []}, {name: B, members: [anna@acme.example]},"
        " {name: C, members: []}, {name: D, members: [bo@acme.example]}]"
    )
    people = {call.id: call.people for call in plan.calls}
    waits = {call.people: [people[id] for id in call.needs] for call in plan.calls if call.needs}
    assert waits == {(one,): [(one,)] for one in ("anna@acme.example", "bo@acme.example")}


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
    manifests = """
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
"""
    plan = Project(tmp_path, seed, "guards: {min_admins: 1}\n").plan(manifests)
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


def test_an_assignment_that_is_made_again_waits_for_the_new_ones(tmp_path: Path) -> None:
    """Where the service recreates what it cannot update, nobody loses it before everything new is assigned."""
    seed = "groups: [{name: A, id: g-a}, {name: Z, id: g-z}]\ncontent: [{name: X, id: c-x}]\n"
    seed += "content_targets: [{content: X, assign_to: [{group: A}], mandatory: false}]\n"
    it = Project(tmp_path, seed, "dialect: {content-targets.on-existing: recreate}\n")
    plan = it.plan("content_targets: [{content: X, assign_to: [{group: A}, {group: Z}], mandatory: true}]")
    assert [f"{call.operation} {call.address.name}" for call in plan.calls] == [
        "content-targets.create X -> group/Z",
        "content-targets.delete X -> group/A",
        "content-targets.create X -> group/A",
    ]


def test_conditions_on_another_field_wait_for_the_answers_to_it(tmp_path: Path) -> None:
    """Nobody leaves a smart group for a moment because its new condition is there before the answer that meets it.

    Another answer is not waited for.
    """
    seed = """
custom_fields: [{name: Dept, type: CHOICE, choices: [A, B]}, {name: Level, type: CHOICE, choices: [C, D]}]
people: [{email: anna@acme.example, answers: {Dept: A}}, {email: bo@acme.example}]
smart_groups: [{name: S, conditions: [{field: Dept, choices: [A]}]}]
"""
    plan = Project(tmp_path, seed).plan(
        "smart_groups: [{name: S, conditions: [{field: Level, choices: [C]}]}]\n"
        "users: [{email: anna@acme.example, answers: {Level: C}}, {email: bo@acme.example, answers: {Level: D}}]\n"
    )
    calls = {f"{call.operation} {call.address.name}": call for call in plan.calls}
    answered = calls["users.update-custom-field-choice anna@acme.example"]
    assert calls["smart-groups.replace-conditions S"].needs == (answered.id,)
    assert len(calls) == 3


@pytest.mark.parametrize(
    ("answers", "order"),
    [
        ("{Level: null}", ["smart-groups.replace-conditions", "users.update-custom-field-choice"]),
        (
            "{Dept: A, Level: null}",
            ["users.update-custom-field-choice", "smart-groups.replace-conditions", "users.update-custom-field-choice"],
        ),
    ],
)
def test_an_answer_is_cleared_after_the_conditions_that_ask_for_it_are_replaced(
    tmp_path: Path, answers: str, order: list[str]
) -> None:
    """Nobody leaves a smart group for a moment: the answer that the new condition needs is set by a call of its own."""
    seed = """
custom_fields: [{name: Dept, type: CHOICE, choices: [A, B]}, {name: Level, type: MULTI_SELECT, choices: [C, D]}]
people: [{email: anna@acme.example, answers: {Dept: %s, Level: [C]}}]
smart_groups: [{name: S, conditions: [{field: Level, choices: [C]}]}]
"""
    it = Project(tmp_path, seed % ("B" if "Dept" in answers else "A"))
    calls = it.settled(
        "smart_groups: [{name: S, conditions: [{field: Dept, choices: [A]}]}]\n"
        f"users: [{{email: anna@acme.example, answers: {answers}}}]\n"
    )
    assert calls == order
    assert it.last.calls[1].needs == ("c1",)
    assert set(it.last.calls[-1].needs) == {call.id for call in it.last.calls[:-1]}


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
    it = Project(tmp_path, f"custom_fields:\n{fields}", "guards: off\n")
    plan = plan_against(
        it,
        "custom_fields: [{name: A, type: TEXT}, {name: B, type: TEXT}]\nabsent: {custom_fields: [F1, F2, F3]}",
        lambda snapshot: snapshot["custom_field"].append({**snapshot["custom_field"][0], "id": "f-99", "name": "More"}),
    )
    assert [(call.address.name, len(call.needs)) for call in plan.calls if is_creation(call.operation)] == [
        ("A", 1),
        ("B", 1),
    ]
