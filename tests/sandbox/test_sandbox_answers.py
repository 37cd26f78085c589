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
        (
            {f"{KEY}.clear-{type}": "object" for type in ("choice", "multi-select", "text")},
            {SKILLS: {"choiceIds": []}, BADGE: {"text": ""}, DEPARTMENT: {"choiceId": ""}},
            [{SKILLS: []}, {BADGE: ""}, {DEPARTMENT: ""}, {DEPARTMENT: {"choiceId": None}}, {BADGE: {"value": ""}}],
        ),
        (
            {f"{KEY}.clear-choice": "object-null", f"{KEY}.value": "object-list"},
            {SKILLS: [], BADGE: "", DEPARTMENT: {"choiceIds": None}},
            [{DEPARTMENT: {"choiceIds": []}}, {DEPARTMENT: {}}, {DEPARTMENT: {"choiceId": None}}],
        ),
        (
            {f"{KEY}.clear-text": "omit", f"{KEY}.omitted": "clear"},
            {SKILLS: [], DEPARTMENT: ""},
            [{BADGE: ""}, {BADGE: None}, {BADGE: []}],
        ),
        ({f"{KEY}.value": "list"}, {SKILLS: [], BADGE: "", DEPARTMENT: []}, [{DEPARTMENT: ""}, {DEPARTMENT: None}]),
    ],
    ids=["assumed", "null", "list", "object", "object with null", "left out", "one choice is a list"],
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
    """With a wrapper the answers stand under that key, and nowhere else."""
    api = open_workspace({f"{KEY}.wrapper": "picks"})
    api.ok("POST", PATH, {"picks": {DEPARTMENT: ENGINEERING}})
    assert answers(api) == {"Department": [ENGINEERING]}
    for body in ({DEPARTMENT: SALES}, {"picks": {}, DEPARTMENT: SALES}, {"customFields": {DEPARTMENT: SALES}}):
        assert api.no("POST", PATH, body)[0] == 400


FORMS = {
    ("value", "id"): ENGINEERING,
    ("value", "list"): [ENGINEERING],
    ("value", "object"): {"choiceId": ENGINEERING},
    ("value", "object-id"): {"id": ENGINEERING},
    ("value", "object-list"): {"choiceIds": [ENGINEERING]},
    ("value", "name"): "Engineering",
    ("value", "name-list"): ["Engineering"],
    ("value-multi-select", "list"): [PYTHON, SQL],
    ("value-multi-select", "object-list"): {"choiceIds": [PYTHON, SQL]},
    ("value-multi-select", "list-of-objects"): [{"choiceId": PYTHON}, {"choiceId": SQL}],
    ("value-multi-select", "name-list"): ["Python", "SQL"],
    ("value-text", "text"): "B-2",
    ("value-text", "object"): {"text": "B-2"},
    ("value-text", "value"): {"value": "B-2"},
    ("value-text", "list"): ["B-2"],
}
"""Key and value of the dialect → the answer so written."""
FIELD = {
    "value": (DEPARTMENT, "Department", [ENGINEERING]),
    "value-multi-select": (SKILLS, "Skills", [PYTHON, SQL]),
    "value-text": (BADGE, "Badge", "B-2"),
}
"""Key → id and name of the field, and the answer as it is shown."""


@pytest.mark.parametrize(("key", "form"), FORMS)
def test_an_answer_is_written_as_the_dialect_says(open_workspace, key, form):
    """In that form it is taken; in every other it is 400, and the answer stays."""
    api = open_workspace({f"{KEY}.{key}": form})
    field, name, shown = FIELD[key]
    api.ok("POST", PATH, {field: FORMS[key, form]})
    assert answers(api)[name] == shown
    others = [said for (one, other), said in FORMS.items() if (one == key) and other != form]
    for said in [*others, {"choiceId": ENGINEERING, "more": "x"}, {"choiceIds": "x"}, [{"choiceId": ["x"]}]]:
        assert api.no("POST", PATH, {field: said})[0] == 400
    assert answers(api)[name] == shown


def test_one_choice_is_one_also_in_a_list(open_workspace):
    """A list for a CHOICE field has at most one choice."""
    api = open_workspace({f"{KEY}.value": "list"})
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
