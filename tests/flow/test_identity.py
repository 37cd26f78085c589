"""What is what: identity by name, by id and by earlier names, and what is said when that cannot be told."""

from pathlib import Path
from typing import Any

import pytest
from manifest.cases import Case, cases, shown

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.model.plan import Change, Plan

from .altered_service import plan_against
from .project import Project

pytestmark = pytest.mark.sampled(day=8)

PEOPLE = """
people:
  - {email: Anna@Acme.example, id: u-anna}
  - {email: bo@acme.example, id: u-bo}
  - {email: cy@acme.example, id: u-cy}
  - {email: old@acme.example, id: u-old, archived: true}
"""


def project(tmp_path: Path, seed: str, options: str = "") -> Project:
    return Project(tmp_path, PEOPLE + seed, options)


def refused(it: Project, manifests: str) -> list[Problem]:
    """The errors because of which there is no plan."""
    with pytest.raises(ProblemsFound) as found:
        it.plan(manifests)
    return [problem for problem in found.value.problems if problem.is_error]


def only(plan: Plan) -> Change:
    (change,) = plan.changes
    return change


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("unclear_identity.txt")), ids=lambda case: case.title)
def test_what_cannot_be_told_is_an_error_with_a_way_out(tmp_path: Path, case: Case) -> None:
    """Look-alikes, names that are live twice, pins that are not live, and names that the plan itself takes away."""
    seed, _, manifests = case.text.partition("---\n")
    assert shown(refused(project(tmp_path, seed), manifests)) == case.told


def test_choices_of_two_fields_may_share_their_names(tmp_path: Path) -> None:
    """Yes of one field is not Yes of another: a condition is about the choice of its own field."""
    both = "{name: A, type: CHOICE, choices: ['Yes', 'No']}, {name: B, type: CHOICE, choices: ['No', 'Yes']}"
    it = project(tmp_path, f"custom_fields: [{both}]")
    ids = {field: {one["name"]: one["choiceId"] for one in it.fields()[field]["choices"]} for field in "AB"}
    for field, other in ("AB", "BA"):
        (call,) = it.plan(f"smart_groups: [{{name: S, conditions: [{{field: {field}, choices: ['Yes']}}]}}]").calls
        assert f"'{ids[field]['Yes']}'" in str(call.body)
        assert f"'{ids[other]['Yes']}'" not in str(call.body)


def test_choices_may_speak_only_of_those_named(tmp_path: Path) -> None:
    """With include and exclude, what neither names stays, with its id and its place among the others."""
    it = project(tmp_path, "custom_fields: [{name: F, type: CHOICE, choices: [A, B, C]}]")
    a, b, _ = it.fields()["F"]["choices"]
    it.settled("custom_fields: [{name: F, choices: {include: [B], exclude: [C]}}]")
    assert it.fields()["F"]["choices"] == [a, b]


@pytest.mark.parametrize(
    "manifests",
    [
        "groups: [{name: A, members: [anna@acme.example]}]",
        "content_targets: [{content: X, assign_to: [{user: anna@acme.example}]}]",
    ],
)
def test_an_email_of_two_people_is_an_error_with_the_ids(tmp_path: Path, manifests: str) -> None:
    """Whom a list or an assignment means cannot be told, so both ids are named."""
    it = project(tmp_path, "groups: [{name: A}]\ncontent: [{name: X}]\n")

    def double(snapshot: dict[str, Any]) -> None:
        snapshot["user"].append({"id": "u-twin", "email": "ANNA@acme.example", "archived": False})

    with pytest.raises(ProblemsFound) as found:
        plan_against(it, manifests, double)
    (problem,) = found.value.problems
    assert problem.code == "person/twice"
    assert "u-anna, u-twin" in problem.message


def test_an_email_is_that_of_the_active_account(tmp_path: Path) -> None:
    """Somebody who came back has an old account, archived, beside the present one: a list means the present one."""
    it = project(tmp_path, "groups: [{name: A}]")

    def double(snapshot: dict[str, Any]) -> None:
        snapshot["user"].append({"id": "u-0", "email": "anna@acme.example", "archived": True})

    plan = plan_against(it, "groups: [{name: A, members: [anna@acme.example]}]", double)
    assert [list(call.body.values()) for call in plan.calls if isinstance(call.body, dict)] == [[["u-anna"]]]
    assert plan.all_problems == ()


def test_three_pinned_names_in_a_circle_need_one_temporary_name(tmp_path: Path) -> None:
    """A circle of three is four renames; cut short after the first, the next run goes on from there."""
    it = project(tmp_path, "groups: [{name: A, id: g-1}, {name: B, id: g-2}, {name: C, id: g-3}]")
    wanted = "groups: [{name: B, id: g-1}, {name: C, id: g-2}, {name: A, id: g-3}]"
    assert it.plan(wanted).calls[0].body == it.spec.body_to_wire("manual-groups.rename", name="lmsconf renames g-1")
    it.send("manual-groups.rename", {"groupId": "g-1"}, {"name": "lmsconf renames g-1"})
    assert it.settled(wanted) == ["manual-groups.rename"] * 3


def test_an_unexplained_member_is_shown_and_stays(tmp_path: Path) -> None:
    """A live id that no list of people explains is shown as `user id u-17`, and never removed."""
    it = project(tmp_path, "groups: [{name: A, members: [bo@acme.example]}]\ncontent: [{name: X, id: c-1}]\n")

    def add(snapshot: dict[str, Any]) -> None:
        snapshot["group"][0]["members"].append("u-17")
        snapshot["content_target"].append({"content": "c-1", "target": "u-17", "type": "USER", "mandatory": False})

    it.write_options("ownership: {content_targets: all}\n")
    plan = plan_against(it, "groups: [{name: A, members: []}]", add)
    assert only(plan).fields[0].removed == ("bo@acme.example",)
    (note,) = plan.all_problems
    assert "user id u-17" in note.message
    assert [str(one) for one in plan.unmanaged[0].addresses] == ["content_target/X -> user id u-17"]


def test_pinned_contents_of_one_name_get_their_own_assignments(tmp_path: Path) -> None:
    """Each call carries the id that its entry pins, also where another entry pins content of the same name."""
    it = project(tmp_path, "content: [{name: X, id: c-1}, {name: X, id: c-2}]\ngroups: [{name: A}, {name: B}]\n")
    it.settled(
        "content_targets:\n  - {content: {name: X, id: c-1}, mandatory: true, assign_to: [{group: A}]}\n"
        "  - {content: {name: X, id: c-2}, assign_to: [{group: B}, everyone]}\n"
    )
    assert [(str(call.address), (call.body or {})["contentId"]) for call in it.last.calls] == [
        ("content_target/X -> everyone", "c-2"),
        ("content_target/X -> group/A", "c-1"),
        ("content_target/X -> group/B", "c-2"),
    ]


def test_what_a_creation_leaves_out_is_not_sent(tmp_path: Path) -> None:
    """The other keys are the service's to decide, and the plan names them; what is said is not among them."""
    plan = project(tmp_path, "").plan("custom_fields: [{name: New, type: TEXT, hidden: false, description: null}]")
    assert only(plan).defaults == ("locked", "optional")
    assert plan.calls[0].body == {"name": "New", "type": "TEXT", "isHidden": False}


def test_null_clears_a_description_and_omitted_keeps_it(tmp_path: Path) -> None:
    """What the API wants whole is sent whole: what a manifest leaves out goes as it was read."""
    it = project(tmp_path, "custom_fields: [{name: F, type: TEXT, description: Old, locked: true}]")
    body = it.plan("custom_fields: [{name: F, hidden: true}]").calls[0].body
    assert isinstance(body, dict)
    assert (body["description"], body["isLocked"], body["isHidden"]) == ("Old", True, True)
    assert it.settled("custom_fields: [{name: F, description: null}]") == ["custom-fields.replace"]
    assert not it.fields()["F"].get("description")
    assert it.fields()["F"]["isLocked"] is True


def test_a_flag_that_the_service_does_not_show_is_sent_as_off(tmp_path: Path) -> None:
    """A service may leave out what is off, and set what a replacement leaves out to a default of its own."""
    it = project(tmp_path, "custom_fields: [{name: F, type: TEXT, hidden: true}]")

    def edit(snapshot: dict[str, Any]) -> None:
        for key in ("locked", "optional"):
            snapshot["custom_field"][0].pop(key, None)

    body = plan_against(it, "custom_fields: [{name: F, description: New}]", edit).calls[0].body
    assert isinstance(body, dict)
    assert [body.get(key) for key in ("isHidden", "isLocked", "isOptional")] == [True, False, False]
