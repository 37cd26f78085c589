"""The order in which a plan sends its calls: first what gives, then what takes away."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.kinds.grant_verification import revokes_access

from .altered_service import plan_against
from .project import Project


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
    assert [(call.address.name, len(call.needs)) for call in plan.calls if call.creates] == [("A", 1), ("B", 1)]
