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


@pytest.mark.parametrize("type", ["CHOICE", "MULTI_SELECT"])
def test_choices_are_required(api, type):
    """`choices` are required for CHOICE and MULTI_SELECT."""
    status, message = api.no("POST", "/custom-fields", {"name": "Site", "type": type})
    assert status == 400
    assert "choices" in message


def test_text_has_no_choices(api):
    """A TEXT field has no choices, neither in requests nor in answers."""
    assert api.no("POST", "/custom-fields", {"name": "Note", "type": "TEXT", "choices": [{"name": "a"}]})[0] == 400
    assert "choices" not in api.ok("POST", "/custom-fields", {"name": "Note", "type": "TEXT"})


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


def test_unknown_field(api):
    """PUT and DELETE of a field that is not there are 404."""
    assert api.no("PUT", "/custom-fields/f-9", {"name": "x", "type": "TEXT"})[0] == 404
    assert api.no("DELETE", "/custom-fields/f-9")[0] == 404


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
    """Where only a removed choice counts as use, a PUT is 403 when it drops a choice that a condition names."""
    api = open_workspace({"custom-fields.in-use": "removed-choice"})
    assert api.no("PUT", DEPARTMENT, department(ENGINEERING, LEGAL)) == (403, "the custom field is in use by Sales")
    assert api.no("DELETE", DEPARTMENT)[0] == 403
    api.ok("PUT", DEPARTMENT, department({**SALES, "name": "Selling"}, {"name": "Finance"}))


def test_never_in_use(open_workspace):
    """Where nothing counts as use, a field goes, and what named it in conditions goes with it."""
    api = open_workspace({"custom-fields.in-use": "never"})
    api.ok("PUT", DEPARTMENT, department(ENGINEERING))
    group = api.ok("GET", "/smart-groups/sg-1", includeMembers="true")
    assert (group["conditions"], group["members"]) == ([{"customFieldId": "f-1", "choiceIds": []}], [])
    api.ok("DELETE", DEPARTMENT)
    assert api.ok("GET", "/smart-groups/sg-1")["conditions"] == []
