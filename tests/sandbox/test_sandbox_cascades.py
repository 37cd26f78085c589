"""What is left of a smart group when a field or choice goes that it names, and of answers to fields of one name."""

from __future__ import annotations

from sandbox.unspecified import chosen

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
