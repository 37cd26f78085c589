"""The rules of the endpoint group Custom Fields."""

import ast
from pathlib import Path

import pytest

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.handlers import CHOICES

from .test_sandbox_rules import rules

# The rules of answers to custom fields, and of the smart groups that follow from them.


BO = "u-2"
DEPARTMENT, SKILLS, BADGE = "f-1", "f-2", "f-3"
SALES, ENGINEERING, _, PYTHON, SQL = (f"ch-{number}" for number in range(1, 6))
PATH = f"/users/{BO}/update-custom-field-choice"


def answers(api) -> dict[str, object]:
    """Field name → ids of choices, or the text."""
    said = api.ok("GET", f"/users/{BO}")["customFields"]
    return {
        name: [c["choiceId"] for c in one["choices"]] if "choices" in one else one["text"] for name, one in said.items()
    }


KEY = "users.update-custom-field-choice"


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


# The rules of the endpoint groups Manual Groups and Smart Groups.


def condition(field: str, *choices: str, system: str | None = None) -> dict[str, object]:
    said = {"customFieldId": field, "choiceIds": list(choices)}
    return said if system is None else said | {"systemCondition": system}


def members(api, *conditions: object) -> list[str]:
    """Who is in a smart group with these conditions."""
    made = api.ok("POST", "/smart-groups", {"name": "New", "conditions": list(conditions)})["smartGroupId"]
    return api.ok("GET", f"/smart-groups/{made}", includeMembers="true")["members"]


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


def groups_of(api, user: str) -> list[object]:
    """The ids of the groups that somebody is in."""
    people = api.ok("GET", "/users/extended-info")["users"]
    return [group["groupId"] for person in people if person["userId"] == user for group in person["memberOfGroups"]]


# What was chosen where the specification is silent is listed, and each choice has a test that shows it.


def shown() -> set[str]:
    """The names that tests and rules of this folder are marked with."""
    found: set[str] = set()
    for path in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                marks = [one for one in node.decorator_list if isinstance(one, ast.Call)]
                names = [one.args for one in marks if isinstance(one.func, ast.Name) and one.func.id == "chosen"]
                found |= {ast.literal_eval(name) for some in names for name in some}
    for rule in rules():
        found |= set(rule.settings.get("chosen", "").split(", ")) - {""}
    return found


def test_each_choice_has_a_test():
    """Every choice is shown by a test, and every test that shows one names one that is listed."""
    assert shown() == CHOICES.keys()


def test_choices_are_sentences():
    """A choice is told in a sentence, each in its own."""
    assert all(text[0].isupper() and text.endswith(".") for text in CHOICES.values())
    assert len(set(CHOICES.values())) == len(CHOICES)
