"""The rules of the endpoint group Custom Fields."""

from __future__ import annotations

import pytest

DEPARTMENT = "/custom-fields/f-1"
SALES, ENGINEERING, LEGAL = (
    {"choiceId": f"ch-{n}", "name": name} for n, name in enumerate(("Sales", "Engineering", "Legal"), 1)
)


def department(*choices: object, **more: object) -> dict[str, object]:
    return {"name": "Department", "type": "CHOICE", "choices": list(choices), **more}


def answer_of(api, user: str, field: str) -> object:
    return api.ok("GET", f"/users/{user}")["customFields"].get(field)


@pytest.fixture
def free(api):
    """The workspace once no smart group leans on a field."""
    api.ok("DELETE", "/smart-groups/sg-1")
    return api


def test_post_returns_the_created_field(api):
    """POST answers with the created field: generated ids, `id` equal to `customFieldId`, what was not said left out."""
    made = api.ok(
        "POST", "/custom-fields", {"name": "Site", "type": "CHOICE", "choices": [{"name": "Oslo"}], "isHidden": True}
    )
    assert made == {
        "customFieldId": "f-4",
        "id": "f-4",
        "type": "CHOICE",
        "name": "Site",
        "choices": [{"choiceId": "ch-6", "name": "Oslo"}],
        "isHidden": True,
    }
    assert api.ok("GET", "/custom-fields")["customFields"][-1] == made


def test_ten_fields_at_most(api):
    """A workspace has at most ten custom fields; the eleventh is refused, and the refusal says so."""
    for number in range(7):
        api.ok("POST", "/custom-fields", {"name": f"Field {number}", "type": "TEXT"})
    assert api.no("POST", "/custom-fields", {"name": "One more", "type": "TEXT"}) == (
        400,
        "a workspace can have at most 10 custom fields, and it has 10",
    )
    assert len(api.ok("GET", "/custom-fields")["customFields"]) == 10


def test_put_keeps_and_makes_choices(free):
    """In a PUT existing choices keep their choiceId under a new name; new ones get one; the order counts."""
    put = free.ok("PUT", DEPARTMENT, department({"name": "Finance"}, LEGAL, {**SALES, "name": "Selling"}, ENGINEERING))
    assert [(one["choiceId"], one["name"]) for one in put["choices"]] == [
        ("ch-6", "Finance"),
        ("ch-3", "Legal"),
        ("ch-1", "Selling"),
        ("ch-2", "Engineering"),
    ]
    assert free.ok("GET", "/custom-fields")["customFields"][0] == put
    assert answer_of(free, "u-1", "Department") == {"choices": [{"choiceId": "ch-1", "name": "Selling"}]}


def test_put_drops_choices_with_their_answers(free):
    """Choices that a PUT leaves out are gone, and so are people's answers with them."""
    free.ok("PUT", DEPARTMENT, department(ENGINEERING))
    assert answer_of(free, "u-1", "Department") is None
    assert answer_of(free, "u-3", "Department") == {"choices": [{"choiceId": "ch-2", "name": "Engineering"}]}


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([{"choiceId": "ch-4", "name": "Python"}], "custom field 'f-1' has no choice 'ch-4'"),
        ([SALES, SALES], "choices name the same choiceId twice"),
    ],
)
def test_put_refuses_wrong_choice_ids(free, choices, message):
    """A choiceId of a PUT is one of the field's own, and stands once."""
    assert free.no("PUT", DEPARTMENT, department(*choices)) == (400, message)


def test_put_replaces_the_whole_field(free):
    """PUT replaces everything: a description or a flag that it leaves out is as if never said."""
    free.ok("PUT", DEPARTMENT, department(SALES, description="Where", isHidden=True, isLocked=False))
    assert free.ok("PUT", DEPARTMENT, department(SALES)) == {
        "customFieldId": "f-1",
        "id": "f-1",
        "type": "CHOICE",
        "name": "Department",
        "choices": [SALES],
    }


@pytest.mark.parametrize("cleared", ["", None])
def test_description_is_cleared(free, cleared):
    """An empty description and a null one both clear it."""
    free.ok("PUT", DEPARTMENT, department(SALES, description="Where"))
    assert "description" not in free.ok("PUT", DEPARTMENT, department(SALES, description=cleared))


def test_type_never_changes(free):
    """A PUT with another type is refused."""
    body = {"name": "Department", "type": "TEXT"}
    assert free.no("PUT", DEPARTMENT, body) == (400, "the type of a custom field cannot change: it is CHOICE")


def test_delete_takes_the_answers(free):
    """A deleted field is gone with everybody's answers to it."""
    assert free.call("DELETE", DEPARTMENT).status_code == 204
    assert answer_of(free, "u-1", "Department") is None
    assert [one["name"] for one in free.ok("GET", "/custom-fields")["customFields"]] == ["Skills", "Badge"]


def test_in_use_while_a_condition_names_the_field(api):
    """PUT and DELETE are 403 while a smart group's condition names the field, and pass once none does."""
    refusal = (403, "the custom field is in use by Sales")
    assert api.no("PUT", DEPARTMENT, department(SALES, ENGINEERING, LEGAL, description="Where")) == refusal
    assert api.no("DELETE", DEPARTMENT) == refusal
    conditions = [{"customFieldId": "f-2", "choiceIds": ["ch-4"]}]
    api.ok("POST", "/smart-groups/sg-1/replace-conditions", {"conditions": conditions})
    api.ok("PUT", DEPARTMENT, department(SALES, description="Where"))
    api.ok("DELETE", DEPARTMENT)


def test_in_use_when_a_named_choice_goes(open_workspace):
    """Where only a removed choice counts as use, a PUT is 403 when it drops a choice that a condition names.

    A field goes only when no condition is on it, with or without choices.
    """
    api = open_workspace({"custom-fields.in-use": "removed-choice"})
    assert api.no("PUT", DEPARTMENT, department(ENGINEERING, LEGAL)) == (403, "the custom field is in use by Sales")
    assert api.no("DELETE", DEPARTMENT)[0] == 403
    api.ok("PUT", DEPARTMENT, department({**SALES, "name": "Selling"}, {"name": "Finance"}))
    badge = [{"customFieldId": "f-3", "systemCondition": "IS_ANY"}]
    api.ok("POST", "/smart-groups", {"name": "Badged", "conditions": badge, "managers": []})
    assert api.no("DELETE", "/custom-fields/f-3") == (403, "the custom field is in use by Badged")


def test_never_in_use(open_workspace):
    """Where nothing counts as use, a field goes, and what named it in conditions goes with it."""
    api = open_workspace({"custom-fields.in-use": "never"})
    api.ok("PUT", DEPARTMENT, department(ENGINEERING))
    group = api.ok("GET", "/smart-groups/sg-1", includeMembers="true")
    assert (group["conditions"], group["members"]) == ([{"customFieldId": "f-1", "choiceIds": []}], [])
    api.ok("DELETE", DEPARTMENT)
    assert api.ok("GET", "/smart-groups/sg-1")["conditions"] == []


# The rules of answers to custom fields, and of the smart groups that follow from them.


BO = "u-2"
ANSWERS_DEPARTMENT, SKILLS, BADGE = "f-1", "f-2", "f-3"
ANSWERS_SALES, ANSWERS_ENGINEERING, PYTHON, SQL = "ch-1", "ch-2", "ch-4", "ch-5"
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
    assert answers(api) == {"Department": [ANSWERS_SALES], "Skills": [PYTHON, SQL], "Badge": "B-2"}
    api.ok("POST", PATH, {ANSWERS_DEPARTMENT: ANSWERS_ENGINEERING})
    assert answers(api) == {"Department": [ANSWERS_ENGINEERING], "Skills": [PYTHON, SQL], "Badge": "B-2"}


KEY = "users.update-custom-field-choice"


@pytest.mark.parametrize(
    ("dialect", "cleared", "refused"),
    [
        (
            {},
            {SKILLS: [], BADGE: "", ANSWERS_DEPARTMENT: ""},
            [{SKILLS: None}, {BADGE: None}, {ANSWERS_DEPARTMENT: None}],
        ),
        (
            {f"{KEY}.clear-choice": "null", f"{KEY}.clear-multi-select": "null", f"{KEY}.clear-text": "null"},
            {SKILLS: None, BADGE: None, ANSWERS_DEPARTMENT: None},
            [{SKILLS: []}, {BADGE: ""}, {ANSWERS_DEPARTMENT: ""}, {ANSWERS_DEPARTMENT: []}],
        ),
        ({f"{KEY}.clear-choice": "list"}, {SKILLS: [], BADGE: "", ANSWERS_DEPARTMENT: []}, [{ANSWERS_DEPARTMENT: ""}]),
        (
            {f"{KEY}.clear-{type}": "object" for type in ("choice", "multi-select", "text")},
            {SKILLS: {"choiceIds": []}, BADGE: {"text": ""}, ANSWERS_DEPARTMENT: {"choiceId": ""}},
            [
                {SKILLS: []},
                {BADGE: ""},
                {ANSWERS_DEPARTMENT: ""},
                {ANSWERS_DEPARTMENT: {"choiceId": None}},
                {BADGE: {"value": ""}},
            ],
        ),
        (
            {f"{KEY}.clear-choice": "object-null", f"{KEY}.value": "object-list"},
            {SKILLS: [], BADGE: "", ANSWERS_DEPARTMENT: {"choiceIds": None}},
            [
                {ANSWERS_DEPARTMENT: {"choiceIds": []}},
                {ANSWERS_DEPARTMENT: {}},
                {ANSWERS_DEPARTMENT: {"choiceId": None}},
            ],
        ),
        (
            {f"{KEY}.clear-text": "omit", f"{KEY}.omitted": "clear"},
            {SKILLS: [], ANSWERS_DEPARTMENT: ""},
            [{BADGE: ""}, {BADGE: None}, {BADGE: []}],
        ),
        (
            {f"{KEY}.value": "list"},
            {SKILLS: [], BADGE: "", ANSWERS_DEPARTMENT: []},
            [{ANSWERS_DEPARTMENT: ""}, {ANSWERS_DEPARTMENT: None}],
        ),
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
        {"f-9": ANSWERS_SALES},
        {ANSWERS_DEPARTMENT: "ch-9"},
        {ANSWERS_DEPARTMENT: PYTHON},
        {ANSWERS_DEPARTMENT: [ANSWERS_SALES]},
        {SKILLS: SQL},
        {SKILLS: [SQL, ANSWERS_SALES]},
        {SKILLS: [1]},
        {BADGE: ["B-2"]},
        {BADGE: None},
        {ANSWERS_DEPARTMENT: {"a": ANSWERS_SALES}},
        {"customFields": {ANSWERS_DEPARTMENT: ANSWERS_SALES}},
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
    api.ok("POST", PATH, {"picks": {ANSWERS_DEPARTMENT: ANSWERS_ENGINEERING}})
    assert answers(api) == {"Department": [ANSWERS_ENGINEERING]}
    for body in (
        {ANSWERS_DEPARTMENT: ANSWERS_SALES},
        {"picks": {}, ANSWERS_DEPARTMENT: ANSWERS_SALES},
        {"customFields": {ANSWERS_DEPARTMENT: ANSWERS_SALES}},
    ):
        assert api.no("POST", PATH, body)[0] == 400


FORMS = {
    ("value", "id"): ANSWERS_ENGINEERING,
    ("value", "list"): [ANSWERS_ENGINEERING],
    ("value", "object"): {"choiceId": ANSWERS_ENGINEERING},
    ("value", "object-id"): {"id": ANSWERS_ENGINEERING},
    ("value", "object-list"): {"choiceIds": [ANSWERS_ENGINEERING]},
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
    "value": (ANSWERS_DEPARTMENT, "Department", [ANSWERS_ENGINEERING]),
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
    for said in [*others, {"choiceId": ANSWERS_ENGINEERING, "more": "x"}, {"choiceIds": "x"}, [{"choiceId": ["x"]}]]:
        assert api.no("POST", PATH, {field: said})[0] == 400
    assert answers(api)[name] == shown


def test_one_choice_is_one_also_in_a_list(open_workspace):
    """A list for a CHOICE field has at most one choice."""
    api = open_workspace({f"{KEY}.value": "list"})
    assert api.no("POST", PATH, {ANSWERS_DEPARTMENT: [ANSWERS_SALES, ANSWERS_ENGINEERING]})[0] == 400


def test_answers_left_out_go_where_the_dialect_says_so(open_workspace):
    """With omitted `clear` the answers that a request leaves out are gone."""
    api = open_workspace({"users.update-custom-field-choice.omitted": "clear"})
    api.ok("POST", PATH, {SKILLS: [SQL]})
    assert answers(api) == {"Skills": [SQL]}


def test_members_follow_from_answers(api):
    """A smart group's members are computed anew at every change of an answer."""
    assert members(api) == ["u-1", BO]
    api.ok("POST", PATH, {ANSWERS_DEPARTMENT: ANSWERS_ENGINEERING})
    assert members(api) == ["u-1"]
    api.ok("POST", PATH, {ANSWERS_DEPARTMENT: ANSWERS_SALES})
    assert members(api) == ["u-1", BO]


def test_members_follow_from_conditions(api):
    """A smart group's members are computed anew when its conditions are replaced, by all of them together."""
    conditions = [
        {"customFieldId": ANSWERS_DEPARTMENT, "choiceIds": [ANSWERS_SALES, ANSWERS_ENGINEERING]},
        {"customFieldId": SKILLS, "choiceIds": [SQL]},
    ]
    api.ok("POST", "/smart-groups/sg-1/replace-conditions", {"conditions": conditions})
    assert members(api) == ["u-1", "u-3"]
    api.ok("POST", PATH, {SKILLS: [SQL]})
    assert members(api) == ["u-1", BO, "u-3"]
    groups = api.ok("GET", "/users/extended-info")["users"][1]["memberOfGroups"]
    assert [group["groupId"] for group in groups] == ["g-1", "sg-1"]
