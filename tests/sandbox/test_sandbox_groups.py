"""The rules of the endpoint groups Manual Groups and Smart Groups."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from sandbox.conftest import chosen

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.handlers import CHOICES

SALES, ENGINEERING, LEGAL, PYTHON, SQL = ("ch-1", "ch-2", "ch-3", "ch-4", "ch-5")


def condition(field: str, *choices: str, system: str | None = None) -> dict[str, object]:
    said = {"customFieldId": field, "choiceIds": list(choices)}
    return said if system is None else said | {"systemCondition": system}


def members(api, *conditions: object) -> list[str]:
    """Who is in a smart group with these conditions."""
    made = api.ok("POST", "/smart-groups", {"name": "New", "conditions": list(conditions)})["smartGroupId"]
    return api.ok("GET", f"/smart-groups/{made}", includeMembers="true")["members"]


def test_a_group_begins_with_its_people(api):
    """POST /groups takes first members and managers, and answers with the new id."""
    made = api.ok("POST", "/groups", {"name": "New", "memberIds": ["u-2", "u-1", "u-2"], "managerIds": ["u-3"]})
    assert made == {"groupId": "g-2"}
    assert api.ok("GET", "/groups/g-2/members") == {"userIds": ["u-1", "u-2"]}
    assert api.ok("GET", "/groups/g-2/managers") == {"userIds": ["u-3"]}


def test_group_names_may_repeat_and_are_paged(api):
    """Names need not be unique; GET /groups is paged by skip and limit in the order of creation."""
    for name in ("Coaches", "Zebra", "Alpha"):
        api.ok("POST", "/groups", {"name": name})
    names = [one["name"] for one in api.ok("GET", "/groups")["groups"]]
    assert names == ["Coaches", "Coaches", "Zebra", "Alpha"]
    assert api.ok("GET", "/groups", skip=1, limit=2)["groups"] == [
        {"groupId": "g-2", "name": "Coaches"},
        {"groupId": "g-3", "name": "Zebra"},
    ]


@pytest.mark.parametrize("listing", ["members", "managers"])
def test_adding_is_a_union(api, listing):
    """Adding people keeps who is there, and adding somebody again is no error."""
    for ids in (["u-2", "u-3"], ["u-3", "u-4"]):
        assert api.call("POST", f"/groups/g-1/{listing}", {"userIds": ids}).status_code == 204
    assert set(api.ok("GET", f"/groups/g-1/{listing}")["userIds"]) >= {"u-2", "u-3", "u-4"}


@pytest.mark.parametrize("path", ["/groups/g-1/members", "/groups/g-1/managers", "/smart-groups/sg-1/managers"])
def test_adding_an_unknown_user_adds_nobody(api, path):
    """An unknown user id is 400, and nobody of that call is added."""
    before = api.ok("GET", path)
    assert api.no("POST", path, {"userIds": ["u-3", "u-99"]}) == (400, "there is no user 'u-99'")
    assert api.ok("GET", path) == before


@pytest.mark.parametrize("path", ["/groups/g-1/members", "/groups/g-1/managers", "/smart-groups/sg-1/managers"])
def test_removing_people(api, path):
    """Removing takes one person; one who was not in it is no error, one who does not exist is 404."""
    api.ok("POST", path, {"userIds": ["u-3", "u-4"]})
    assert api.call("DELETE", f"{path}/u-3").status_code == 204
    assert api.call("DELETE", f"{path}/u-3").status_code == 204
    assert "u-3" not in api.ok("GET", path)["userIds"]
    assert "u-4" in api.ok("GET", path)["userIds"]
    assert api.no("DELETE", f"{path}/u-99") == (404, "there is no user 'u-99'")


def test_renaming_keeps_everything_else(api):
    """A renamed group keeps its id and its people."""
    api.ok("POST", "/groups/g-1/rename", {"name": "Mentors"})
    assert api.ok("GET", "/groups")["groups"] == [{"groupId": "g-1", "name": "Mentors"}]
    assert api.ok("GET", "/groups/g-1/members") == {"userIds": ["u-2"]}


@chosen("targets.groups")
def test_a_deleted_group_leaves_nothing(api):
    """A deleted group is gone from the list, from people and from the targets; a second DELETE is 404."""
    assert api.call("DELETE", "/groups/g-1").status_code == 204
    assert api.ok("GET", "/groups") == {"groups": []}
    assert api.ok("GET", "/users/u-2")["memberOfGroups"] == [
        {"groupId": "sg-1", "groupType": "SMART_GROUP", "name": "Sales"}
    ]
    assert [one["targetType"] for one in api.ok("GET", "/content/targets", contentId="c-1")["targets"]] == ["EVERYONE"]
    assert api.no("DELETE", "/groups/g-1")[0] == 404


def test_smart_groups_are_searched_by_name(api):
    """`filter` is a part of the name without regard to case, also beyond ASCII; the list is paged."""
    for name in ("Nordic ÅSA", "Presales", "Legal"):
        api.ok("POST", "/smart-groups", {"name": name, "conditions": [condition("f-1", SALES)]})

    def names(**query: object) -> list[str]:
        return [one["name"] for one in api.ok("GET", "/smart-groups", **query)["smartGroups"]]

    assert names(filter="sALe") == ["Sales", "Presales"]
    assert names(filter="åsa") == ["Nordic ÅSA"]
    assert names(filter="sale", skip=1) == ["Presales"]
    assert names() == ["Sales", "Nordic ÅSA", "Presales", "Legal"]


def test_a_smart_group_in_full(api):
    """GET shows conditions and managers; members only with includeMembers=true."""
    conditions = [condition("f-2", SQL, PYTHON, system="IS_ANY"), condition("f-1", SALES)]
    id = api.ok("POST", "/smart-groups", {"name": "New", "conditions": conditions, "managers": ["u-2"]})["smartGroupId"]
    whole = {"smartGroupId": id, "name": "New", "conditions": conditions, "managers": ["u-2"]}
    assert api.ok("GET", f"/smart-groups/{id}") == whole
    assert api.ok("GET", f"/smart-groups/{id}", includeMembers="false") == whole
    assert api.ok("GET", f"/smart-groups/{id}", includeMembers="true") == whole | {"members": ["u-1"]}


def test_conditions_are_joined_by_and_choices_by_or(api):
    """A member meets every condition, by any one of its choices; archived people are no members."""
    assert members(api, condition("f-1", SALES)) == ["u-1", "u-2"]
    assert members(api, condition("f-1", SALES, ENGINEERING)) == ["u-1", "u-2", "u-3"]
    assert members(api, condition("f-2", PYTHON, SQL)) == ["u-1", "u-3"]
    assert members(api, condition("f-1", SALES, ENGINEERING), condition("f-2", SQL)) == ["u-1", "u-3"]
    assert members(api, condition("f-2", PYTHON), condition("f-2", SQL)) == ["u-1"]
    assert members(api, condition("f-1", LEGAL)) == []


def test_a_system_condition_means_any_answer(api):
    """Without choices it is met by everybody who answered, also in text; beside choices it is met by those."""
    assert members(api, condition("f-2", system="IS_ANY")) == ["u-1", "u-3"]
    assert members(api, condition("f-3", system="IS_ANY")) == ["u-1"]
    assert members(api, condition("f-2", PYTHON, system="IS_ANY")) == ["u-1"]
    assert members(api, condition("f-1", SALES), condition("f-2", system="IS_ANY")) == ["u-1"]
    assert members(api, condition("f-2", system="SOMETHING_ELSE")) == ["u-1", "u-3"]


ALONE, BESIDE = (f"smart-groups.system-condition.{where}" for where in ("alone", "with-choices"))
MEANT = {
    "choices": ([], ["u-1"], []),
    "any-answer": (["u-1", "u-3"], ["u-1", "u-3"], ["u-1"]),
    "always": (["u-1", "u-2", "u-3"], ["u-1", "u-2", "u-3"], ["u-1", "u-2"]),
}
"""Value → the members of a group whose condition has it alone, beside a choice, and alone with another condition."""


@pytest.mark.parametrize("value", MEANT)
def test_a_system_condition_means_what_the_dialect_says(open_workspace, value):
    """Any answer to the field, true for everybody, or the choices only: for members and for a person's groups."""
    api = open_workspace({ALONE: value, BESIDE: value})
    said = [
        [condition("f-2", system="IS_ANY")],
        [condition("f-2", PYTHON, system="IS_ODD")],
        [condition("f-1", SALES), condition("f-2", system="IS_ANY")],
    ]
    for conditions, meant in zip(said, MEANT[value], strict=True):
        assert members(api, *conditions) == meant
        id = api.ok("GET", "/smart-groups")["smartGroups"][-1]["smartGroupId"]
        assert [user for user in ("u-1", "u-2", "u-3") if id in groups_of(api, user)] == meant


def test_both_views_of_membership_agree(api):
    """A person's groups and a group's members tell the same."""
    for conditions in (
        [condition("f-2", PYTHON, SQL), condition("f-1", SALES)],
        [condition("f-2", system="IS_ANY")],
        [condition("f-3", system="IS_ANY"), condition("f-2", SQL)],
    ):
        api.ok("POST", "/smart-groups", {"name": "New", "conditions": conditions})
    by_group = {
        (id, person)
        for id in ("sg-1", "sg-2", "sg-3", "sg-4")
        for person in api.ok("GET", f"/smart-groups/{id}", includeMembers="true")["members"]
    }
    by_person = {
        (group["groupId"], person["userId"])
        for person in api.ok("GET", "/users/extended-info")["users"]
        for group in person["memberOfGroups"]
        if group["groupType"] == "SMART_GROUP"
    }
    assert by_group == by_person
    assert len(by_group) == 6


@pytest.mark.parametrize(
    ("conditions", "message"),
    [
        ([], "body.conditions must contain at least 1 items"),
        ([condition("f-9", SALES)], "conditions[0]: there is no custom field 'f-9'"),
        ([condition("f-1", SALES), condition("f-1", PYTHON)], "conditions[1]: custom field 'f-1' has no choice 'ch-4'"),
        ([condition("f-1")], "body.conditions[0] must contain at least one of choiceIds, systemCondition"),
        ([condition("f-3", SALES)], "conditions[0]: custom field 'f-3' has no choice 'ch-1'"),
    ],
)
def test_conditions_fit_the_fields(api, conditions, message):
    """Conditions, at least one, are checked against the fields when a group is made and when they are replaced."""
    assert api.no("POST", "/smart-groups", {"name": "New", "conditions": conditions}) == (400, message)
    assert api.no("POST", "/smart-groups/sg-1/replace-conditions", {"conditions": conditions}) == (400, message)
    assert api.ok("GET", "/smart-groups/sg-1")["conditions"] == [condition("f-1", SALES)]
    assert len(api.ok("GET", "/smart-groups")["smartGroups"]) == 1


def test_replacing_conditions_discards_all_before(api):
    """replace-conditions discards all previous conditions and recalculates membership."""
    api.ok("POST", "/smart-groups/sg-1/replace-conditions", {"conditions": [condition("f-2", SQL)]})
    group = api.ok("GET", "/smart-groups/sg-1", includeMembers="true")
    assert (group["conditions"], group["members"]) == ([condition("f-2", SQL)], ["u-1", "u-3"])


def test_deleting_a_smart_group_is_idempotent(api):
    """DELETE of a smart group is 204, also when there is none; its targets go with it."""
    api.ok("POST", "/content/targets", {"contentId": "c-2", "targetId": "sg-1"})
    for _ in range(2):
        assert api.call("DELETE", "/smart-groups/sg-1").status_code == 204
    assert api.ok("GET", "/smart-groups") == {"smartGroups": []}
    assert api.ok("GET", "/content/targets", contentId="c-2") == {"targets": []}


# The rules, defaults and limits that the specification states, each with the test of this folder that shows it.


NEEDED = [
    (operation, key)
    for operation in ApiSpec.default().operations.values()
    for key in ((operation.body or {}).get("required", []))
]


@pytest.mark.parametrize(("operation", "key"), NEEDED, ids=lambda value: getattr(value, "id", value))
def test_what_is_required_is_required(api, operation, key):
    """A body without a key that it needs is a 400 that names the key, whatever else is asked for."""
    path = operation.path.replace("{action}", "ADD")
    for name in operation.path_schemas:
        path = path.replace(f"{{{name}}}", "u-1")
    body = {other: None for other in operation.body["required"] if other != key}
    if "oneOf" in operation.body:
        body["targetId"] = "g-1"
    status, message = api.no(operation.method, path, body)
    assert status == 400
    assert f"'{key}'" in message


# What is left of a smart group when a field or choice goes that it names, and of answers to fields of one name.


NEVER = {"custom-fields.in-use": "never"}


def groups_of(api, user: str) -> list[object]:
    """The ids of the groups that somebody is in."""
    people = api.ok("GET", "/users/extended-info")["users"]
    return [group["groupId"] for person in people if person["userId"] == user for group in person["memberOfGroups"]]


@chosen("smart-groups.left")
def test_a_field_takes_its_conditions_along(open_workspace):
    """Where a field in use may go, the conditions on other fields still decide, in every view of the members."""
    api = open_workspace(NEVER)
    both = [{"customFieldId": "f-1", "choiceIds": ["ch-2"]}, {"customFieldId": "f-2", "choiceIds": ["ch-5"]}]
    group = api.ok("POST", "/smart-groups", {"name": "Both", "conditions": both})["smartGroupId"]
    assert api.ok("GET", f"/smart-groups/{group}", includeMembers=True)["members"] == ["u-3"]
    api.ok("DELETE", "/custom-fields/f-1")
    shown = api.ok("GET", f"/smart-groups/{group}", includeMembers=True)
    assert (shown["conditions"], shown["members"]) == (both[1:], ["u-1", "u-3"])
    assert [group in groups_of(api, user) for user in ("u-1", "u-2", "u-3")] == [True, False, True]
    api.ok("DELETE", "/custom-fields/f-2")
    shown = api.ok("GET", f"/smart-groups/{group}", includeMembers=True)
    assert (shown["conditions"], shown["members"], groups_of(api, "u-3")) == ([], [], [])


@chosen("smart-groups.left")
def test_a_condition_is_what_it_shows(open_workspace):
    """IS_ANY beside choices means those choices; when the last of them has gone it means any answer."""
    api = open_workspace(NEVER)
    conditions = [{"customFieldId": "f-1", "choiceIds": ["ch-2"], "systemCondition": "IS_ANY"}]
    group = api.ok("POST", "/smart-groups", {"name": "Engineers", "conditions": conditions})["smartGroupId"]
    assert api.ok("GET", f"/smart-groups/{group}", includeMembers=True)["members"] == ["u-3"]
    kept = [{"choiceId": "ch-1", "name": "Sales"}, {"choiceId": "ch-3", "name": "Legal"}]
    api.ok("PUT", "/custom-fields/f-1", {"name": "Department", "type": "CHOICE", "choices": kept})
    shown = api.ok("GET", f"/smart-groups/{group}", includeMembers=True)
    assert shown["conditions"] == [{**conditions[0], "choiceIds": []}]
    assert shown["members"] == ["u-1", "u-2"]


@chosen("users.answers.twins")
def test_of_two_fields_with_one_name_the_younger_is_shown(api):
    """A person's answers are keyed by name, so of two fields with one name the younger's is shown, of whatever type."""
    made = api.ok("POST", "/custom-fields", {"name": "Badge", "type": "MULTI_SELECT", "choices": [{"name": "Gold"}]})
    (gold,) = made["choices"]
    api.ok("POST", "/users/u-1/update-custom-field-choice", {made["id"]: [gold["choiceId"]]})
    assert api.ok("GET", "/users/u-1")["customFields"]["Badge"] == {"choices": [gold]}
    api.ok("DELETE", f"/custom-fields/{made['id']}")
    assert api.ok("GET", "/users/u-1")["customFields"]["Badge"] == {"text": "B-1"}


# What was chosen where the specification is silent is listed, and each choice has a test that shows it.


def shown() -> set[str]:
    """The names that tests of this folder are marked with."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = [one for one in node.decorator_list if isinstance(one, ast.Call)]
                names = [one.args for one in marks if isinstance(one.func, ast.Name) and one.func.id == "chosen"]
                found |= {ast.literal_eval(name) for some in names for name in some}
    return found


def test_each_choice_has_a_test():
    """Every choice is shown by a test, and every test that shows one names one that is listed."""
    assert shown() == CHOICES.keys()


def test_choices_are_sentences():
    """A choice is told in a sentence, each in its own."""
    assert all(text[0].isupper() and text.endswith(".") for text in CHOICES.values())
    assert len(set(CHOICES.values())) == len(CHOICES)
