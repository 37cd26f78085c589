"""The rules of answers to custom fields, and of the smart groups that follow from them."""

from __future__ import annotations

import pytest

BO = "u-2"
DEPARTMENT, SKILLS, BADGE = "f-1", "f-2", "f-3"
SALES, ENGINEERING, PYTHON, SQL = "ch-1", "ch-2", "ch-4", "ch-5"
PATH = f"/users/{BO}/update-custom-field-choice"


def answers(api) -> dict[str, object]:
    """Field name → ids of choices, or the text."""
    said = api.ok("GET", f"/users/{BO}")["customFields"]
    return {
        name: [c["choiceId"] for c in one["choices"]] if "choices" in one else one["text"] for name, one in said.items()
    }


def members(api, group: str = "sg-1") -> list[str]:
    return api.ok("GET", f"/smart-groups/{group}", includeMembers="true")["members"]


def test_answers_are_set_by_field_id(api):
    """The body maps ids of fields to values: a choice, a list of choices, or a text. Other answers stay."""
    api.ok("POST", PATH, {SKILLS: [SQL, PYTHON], BADGE: "B-2"})
    assert answers(api) == {"Department": [SALES], "Skills": [PYTHON, SQL], "Badge": "B-2"}
    api.ok("POST", PATH, {DEPARTMENT: ENGINEERING})
    assert answers(api) == {"Department": [ENGINEERING], "Skills": [PYTHON, SQL], "Badge": "B-2"}


KEY = "users.update-custom-field-choice"


@pytest.mark.parametrize(
    ("dialect", "cleared", "refused"),
    [
        ({}, {SKILLS: [], BADGE: "", DEPARTMENT: ""}, [{SKILLS: None}, {BADGE: None}, {DEPARTMENT: None}]),
        (
            {f"{KEY}.clear-choice": "null", f"{KEY}.clear-multi-select": "null", f"{KEY}.clear-text": "null"},
            {SKILLS: None, BADGE: None, DEPARTMENT: None},
            [{SKILLS: []}, {BADGE: ""}, {DEPARTMENT: ""}, {DEPARTMENT: []}],
        ),
        ({f"{KEY}.clear-choice": "list"}, {SKILLS: [], BADGE: "", DEPARTMENT: []}, [{DEPARTMENT: ""}]),
        ({f"{KEY}.value": "list"}, {SKILLS: [], BADGE: "", DEPARTMENT: []}, [{DEPARTMENT: ""}, {DEPARTMENT: None}]),
    ],
    ids=["assumed", "null", "list", "one choice is a list"],
)
def test_an_answer_is_cleared_as_the_dialect_says(open_workspace, dialect, cleared, refused):
    """Nothing is an answer any more; another way to say nothing is 400, and the answers stay."""
    api = open_workspace(dialect)
    api.ok("POST", PATH, {SKILLS: [SQL], BADGE: "B-2"})
    before = answers(api)
    for body in refused:
        assert api.no("POST", PATH, body)[0] == 400
    assert answers(api) == before
    api.ok("POST", PATH, cleared)
    assert answers(api) == {}


@pytest.mark.parametrize(
    "body",
    [
        {"f-9": SALES},
        {DEPARTMENT: "ch-9"},
        {DEPARTMENT: PYTHON},
        {DEPARTMENT: [SALES]},
        {SKILLS: SQL},
        {SKILLS: [SQL, SALES]},
        {SKILLS: [1]},
        {BADGE: ["B-2"]},
        {BADGE: None},
        {DEPARTMENT: {"a": SALES}},
        {"customFields": {DEPARTMENT: SALES}},
    ],
)
def test_an_answer_fits_its_field(api, body):
    """Keys are fields, and values what these can hold: anything else is 400, and nothing of the request is done."""
    before = answers(api)
    assert api.no("POST", PATH, {BADGE: "new"} | body)[0] == 400
    assert answers(api) == before


def test_answers_are_wrapped_where_the_dialect_says_so(open_workspace):
    """With the shape `wrapped` the answers stand under customFields, and nowhere else."""
    api = open_workspace({"users.update-custom-field-choice.shape": "wrapped"})
    api.ok("POST", PATH, {"customFields": {DEPARTMENT: ENGINEERING}})
    assert answers(api) == {"Department": [ENGINEERING]}
    assert api.no("POST", PATH, {DEPARTMENT: SALES})[0] == 400
    assert api.no("POST", PATH, {"customFields": {}, DEPARTMENT: SALES})[0] == 400


def test_one_choice_is_a_list_where_the_dialect_says_so(open_workspace):
    """With the value `list` the answer to a CHOICE is a list of at most one id."""
    api = open_workspace({"users.update-custom-field-choice.value": "list"})
    api.ok("POST", PATH, {DEPARTMENT: [ENGINEERING]})
    assert answers(api) == {"Department": [ENGINEERING]}
    assert api.no("POST", PATH, {DEPARTMENT: ENGINEERING})[0] == 400
    assert api.no("POST", PATH, {DEPARTMENT: [SALES, ENGINEERING]})[0] == 400


def test_answers_left_out_go_where_the_dialect_says_so(open_workspace):
    """With omitted `clear` the answers that a request leaves out are gone."""
    api = open_workspace({"users.update-custom-field-choice.omitted": "clear"})
    api.ok("POST", PATH, {SKILLS: [SQL]})
    assert answers(api) == {"Skills": [SQL]}


def test_members_follow_from_answers(api):
    """A smart group's members are computed anew at every change of an answer."""
    assert members(api) == ["u-1", BO]
    api.ok("POST", PATH, {DEPARTMENT: ENGINEERING})
    assert members(api) == ["u-1"]
    api.ok("POST", PATH, {DEPARTMENT: SALES})
    assert members(api) == ["u-1", BO]


def test_members_follow_from_conditions(api):
    """A smart group's members are computed anew when its conditions are replaced, by all of them together."""
    conditions = [
        {"customFieldId": DEPARTMENT, "choiceIds": [SALES, ENGINEERING]},
        {"customFieldId": SKILLS, "choiceIds": [SQL]},
    ]
    api.ok("POST", "/smart-groups/sg-1/replace-conditions", {"conditions": conditions})
    assert members(api) == ["u-1", "u-3"]
    api.ok("POST", PATH, {SKILLS: [SQL]})
    assert members(api) == ["u-1", BO, "u-3"]
    groups = api.ok("GET", "/users/extended-info")["users"][1]["memberOfGroups"]
    assert [group["groupId"] for group in groups] == ["g-1", "sg-1"]


def test_the_deprecated_list_of_fields(api):
    """GET /users/custom-field-choice answers what GET /custom-fields does."""
    assert api.ok("GET", "/users/custom-field-choice") == api.ok("GET", "/custom-fields")
