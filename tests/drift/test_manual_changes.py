"""What is edited by hand, of every kind, is found in the state that it is in, with what the manifests say and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pytest
from integrity.served_project import ServedProject
from stranger.project import FIRST, Case, Open, opening
from stranger.state import Choices

from .drifted_project import MANIFESTS, OWNED, drift, only, states

TARGET: Final = {"contentId": "c-1", "targetId": "g-1"}
WHOLE: Final = {"groupId": "g-1"}
SMART: Final = {"smartGroupId": "s-1"}
TEAM: Final = "content_target/Basics -> group/Team"


def field(path: str, **said: Any) -> dict[str, Any]:
    return {"path": path, "declared": None, "live": None, "missing": [], "extra": [], **said}


CHANGED: Final[Mapping[str, tuple[tuple[str, dict[str, str], Any], str, dict[str, Any], tuple[int, int]]]] = {
    "a member leaves": (
        ("manual-groups.remove-member", {**WHOLE, "userId": "u-bo"}, None),
        "group/Team",
        field("members", missing=["bo@acme.example"]),
        (4, 5),
    ),
    "a member comes": (
        ("manual-groups.add-members", WHOLE, {"userIds": ["u-cy"]}),
        "group/Team",
        field("members", extra=["cy@acme.example"]),
        (4, 5),
    ),
    "a manager comes": (
        ("manual-groups.add-managers", WHOLE, {"userIds": ["u-bo"]}),
        "group/Team",
        field("managers", extra=["bo@acme.example"]),
        (4, 5),
    ),
    "a condition is another": (
        ("smart-groups.replace-conditions", SMART, None),
        "smart_group/All A",
        field(
            "conditions",
            missing=[{"field": "Dept", "choices": ["A"]}],
            extra=[{"field": "Dept", "choices": ["B"], "system_condition": "IS_ANY"}],
        ),
        (9, 5),
    ),
    "an assignment is made optional": (
        ("content-targets.create", {}, {**TARGET, "mandatory": False}),
        TEAM,
        field("mandatory", declared=True, live=False),
        (14, 9),
    ),
    "an assignment gets an end": (
        ("content-targets.create", {}, {**TARGET, "mandatory": True, "finishTime": "2030-01-01T00:00:00Z"}),
        TEAM,
        field("visible_until", live="2030-01-01T00:00:00+00:00"),
        (14, 9),
    ),
    "a person speaks another language": (
        ("users.update-language", {"userId": "u-anna"}, {"language": "en"}),
        "user/anna@acme.example",
        field("language", declared="sv", live="en"),
        (17, 5),
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_an_edit_by_hand_is_found(stage: ServedProject, name: str) -> None:
    """The one resource that was edited is changed, at its line, with the one key that differs from both sides."""
    (operation, path, body), address, wanted, (line, column) = CHANGED[name]
    if operation == "smart-groups.replace-conditions":
        body = {"conditions": [_is_b(stage)]}
    stage.hand(operation, path, body)
    found = only(drift(stage, code=2))
    assert (found["address"], found["state"], found["fields"]) == (address, "changed", [wanted])
    assert found["source"] == {"file": "manifests/all.yaml", "line": line, "column": column}
    assert found["hint"]["restore"].startswith(f"lmsconf -C {stage.root} apply --only ")
    assert found["hint"]["accept"].startswith(f"lmsconf -C {stage.root} drift --accept ")


def _is_b(stage: ServedProject) -> dict[str, Any]:
    """The condition that Dept is B, in ids that only the workspace knows."""
    field = _field(stage, "Dept")
    ids = {one["name"]: one["choiceId"] for one in field["choices"]}
    return {"customFieldId": field["customFieldId"], "choiceIds": [ids["B"]], "systemCondition": "IS_ANY"}


def _field(stage: ServedProject, name: str) -> dict[str, Any]:
    answer: Any = stage.hand("custom-fields.list")
    found: dict[str, Any] = next(one for one in answer["customFields"] if one["name"] == name)
    return found


@pytest.mark.parametrize(
    ("operation", "path", "body", "missing"),
    [
        ("smart-groups.delete", SMART, None, ["smart_group/All A"]),
        ("manual-groups.delete", {"groupId": "g-2"}, None, ["group/LMS a"]),
        (
            "content-targets.delete",
            {},
            {"contentId": "c-1", "targetId": "EVERYONE", "targetType": "EVERYONE"},
            ["content_target/Basics -> everyone"],
        ),
        ("manual-groups.rename", {"groupId": "g-2"}, {"name": "Another"}, ["group/LMS a"]),
    ],
)
def test_what_was_deleted_or_renamed_is_missing(
    stage: ServedProject, operation: str, path: dict[str, str], body: Any, missing: list[str]
) -> None:
    """Declared and not live, at the line that declares it; its new name is nobody's business."""
    stage.hand(operation, path, body)
    report = drift(stage, code=2)
    assert states(report) == dict.fromkeys(missing, "missing")
    assert only(report)["live"] is None
    assert only(report)["source"]["file"] == "manifests/all.yaml"


def test_a_field_that_was_changed_or_deleted(stage: ServedProject) -> None:
    """A choice that nobody declared is extra, and a description that was cleared is told from both sides."""
    stage.options()
    stage.write("custom_fields: [{name: Extra, type: CHOICE, choices: [X], description: On trial}]")
    it = _field(stage, "Extra")
    path = {"customFieldId": it["customFieldId"]}
    choices = [*it["choices"], {"name": "Y"}]
    stage.hand("custom-fields.replace", path, {"name": "Extra", "type": "CHOICE", "choices": choices})
    found = only(drift(stage, code=2))
    assert found["fields"] == [field("choices", extra=["Y"]), field("description", declared="On trial")]
    stage.hand("custom-fields.replace", path, {"name": "Extra", "type": "CHOICE", "choices": choices[1:]})
    assert [one["code"] for one in drift(stage, code=2)["problems"]] == ["guard/possible-rename"]
    stage.hand("custom-fields.delete", path)
    assert states(drift(stage, code=2)) == {"custom_field/Extra": "missing"}


def test_what_is_owned_and_not_declared_is_undeclared(stage: ServedProject) -> None:
    """A group of an owned name and an assignment of declared content; neither is in a manifest, and both say why."""
    stage.hand("manual-groups.create", None, {"name": "LMS new"})
    stage.hand("content-targets.create", None, {"contentId": "c-1", "userId": "u-bo"})
    report = drift(stage, code=2)
    assert states(report) == {
        "group/LMS new": "undeclared",
        "content_target/Basics -> user/bo@acme.example": "undeclared",
    }
    for found in report["findings"]:
        assert (found["source"], found["reason"]) == (None, "it is owned, and no manifest declares it")
        assert found["hint"] == {
            "restore": f"lmsconf -C {stage.root} apply",
            "accept": f"lmsconf -C {stage.root} export --into",
        }


def test_what_stands_under_absent_is_undeclared(stage: ServedProject) -> None:
    """It points at the line under `absent`, and what goes with it has no way out of its own but to apply."""
    stage.hand("content-targets.create", None, {"contentId": "c-2", "targetId": "g-3"})
    stage.write(f"{MANIFESTS}absent: {{groups: [Book club]}}\n")
    report = drift(stage, code=2)
    assert states(report) == {"group/Book club": "undeclared", "content_target/Intro -> group/Book club": "undeclared"}
    along, group = report["findings"]
    assert group["source"]["line"] == 18
    assert group["hint"]["accept"] == f"lmsconf -C {stage.root} drift --accept 'group/Book club'"
    assert (along["reason"], along["hint"]["accept"]) == ("it goes with group/Book club", None)


def test_who_and_when_as_far_as_the_service_says(stage: ServedProject) -> None:
    """An assignment says who changed it last and when, in the project's zone; a group does not."""
    stage.options(f"{OWNED}timezone: Europe/Stockholm\n")
    stage.hand("content-targets.create", None, {**TARGET, "mandatory": False})
    stage.hand("manual-groups.add-members", WHOLE, {"userIds": ["u-cy"]})
    target, group = drift(stage)["findings"]
    assert target["changed_by"] == "api"
    assert target["changed_at"].endswith(("+01:00", "+02:00"))
    assert (group["changed_by"], group["changed_at"]) == (None, None)


@pytest.mark.parametrize("only_in", ["[here]", "[elsewhere]"])
def test_what_is_for_another_workspace_is_not_missing(stage: ServedProject, only_in: str) -> None:
    """`only_in` decides what is compared."""
    stage.options()
    stage.write(f"groups: [{{name: Nowhere, only_in: {only_in}}}]")
    project = stage.root / "lmsconf.yaml"
    elsewhere = "default_workspace: here\nworkspaces: {elsewhere: {url: 'sandbox:'}, "
    project.write_text(project.read_text(encoding="utf-8").replace("workspaces: {", elsewhere), encoding="utf-8")
    assert bool(drift(stage)["findings"]) is (only_in == "[here]")


# The first line names how many people the workspace has, whether or not the service counts them.


open_desk = pytest.fixture(opening)


@pytest.mark.parametrize("totals", ["absent", "null", "all"])
def test_people_are_counted_where_the_service_does_not(open_desk: Open, totals: str) -> None:
    """A list that was read to its proven end has a known size, in a plan as in a drift report."""
    desk = open_desk(Case(Choices(totals=totals, page_cap=3), {}), FIRST)
    number = len(desk.stranger.held.users)
    for command in ("plan", "drift"):
        _, out = desk.run(command)
        assert out.splitlines()[0].endswith(f", {number} people."), command


def test_a_list_that_was_not_read_whole_counts_nobody(open_desk: Open) -> None:
    """Rows that come twice are no proven end, so nothing is said that may be wrong."""

    def again(path: str, value: object) -> object:
        if path == "/users" and isinstance(value, dict):
            return {"users": [*value["users"], *value["users"][:1]]}
        return value

    desk = open_desk(Case(Choices(totals="absent"), {}), "groups: [{name: Coaches, members: {include: []}}]")
    desk.stranger.garble = again
    assert "an unknown number of people" in desk.run("plan")[1].splitlines()[0]
