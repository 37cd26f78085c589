"""The rules of the endpoint group Users, as far as configuration reads it."""

from __future__ import annotations

import pytest

BOTH = pytest.mark.parametrize("path", ["/users", "/users/extended-info"])


@BOTH
def test_users_are_paged_in_the_order_they_came(api, path):
    """skip and limit cut one page out of a stable order; matchCount counts everybody, and the page says what it is."""
    page = api.ok("GET", path, skip=1, limit=2)
    assert [one["userId"] for one in page["users"]] == ["u-2", "u-3"]
    assert {key: page[key] for key in ("skip", "limit", "filter", "matchCount")} == {
        "skip": 1,
        "limit": 2,
        "filter": "",
        "matchCount": 4,
    }
    assert [one["userId"] for one in api.ok("GET", path)["users"]] == ["u-1", "u-2", "u-3", "u-4"]
    assert api.ok("GET", path, skip=4)["users"] == []


@BOTH
@pytest.mark.parametrize(
    ("filter", "found"),
    [("BERG", ["u-1"]), ("bo ek", ["u-2"]), ("cy.dahl@", ["u-3"]), ("acme", ["u-1", "u-2", "u-3", "u-4"]), ("%", [])],
)
def test_users_are_searched_by_name_and_mail(api, path, filter, found):
    """`filter` is a part of the name or of the e-mail, without regard to case; matchCount counts what matches."""
    page = api.ok("GET", path, filter=filter, limit=3)
    assert [one["userId"] for one in page["users"]] == found[:3]
    assert (page["matchCount"], page["filter"]) == (len(found), filter)


@pytest.mark.parametrize(
    ("path", "listing"),
    [("/users", "users"), ("/users/extended-info", "users"), ("/groups", "groups"), ("/smart-groups", "smartGroups")],
)
def test_a_page_is_never_larger_than_the_dialect_says(open_workspace, path, listing):
    """paging.limit is the largest page that a list gives, whatever is asked for."""
    api = open_workspace({"paging.limit": 1})
    api.ok("POST", "/groups", {"name": "Second"})
    conditions = [{"customFieldId": "f-2", "systemCondition": "IS_ANY"}]
    api.ok("POST", "/smart-groups", {"name": "Second", "conditions": conditions})
    assert len(api.ok("GET", path, limit=50)[listing]) == 1
    assert len(api.ok("GET", path, skip=1)[listing]) == 1


@pytest.mark.parametrize("path", ["/users", "/users/extended-info", "/groups", "/smart-groups", "/content/all"])
@pytest.mark.parametrize("name", ["skip", "limit"])
@pytest.mark.parametrize("value", ["-1", "1.5", "one", "", "2147483648", "٣"])
def test_skip_and_limit_are_counts(api, path, name, value):
    """skip and limit are 32-bit whole numbers, and not negative."""
    status, message = api.no("GET", path, **{name: value})
    assert status == 400
    assert f"query parameter {name!r} must be" in message


def test_answers_are_keyed_by_field_name(api):
    """customFields has field names as keys: choices with id and name, or a text."""
    first, second = api.ok("GET", "/users", limit=2)["users"]
    assert first["customFields"] == {
        "Department": {"choices": [{"choiceId": "ch-1", "name": "Sales"}]},
        "Skills": {"choices": [{"choiceId": "ch-4", "name": "Python"}, {"choiceId": "ch-5", "name": "SQL"}]},
        "Badge": {"text": "B-1"},
    }
    assert second["customFields"] == {"Department": {"choices": [{"choiceId": "ch-1", "name": "Sales"}]}}


def test_only_the_plain_list_says_who_is_archived(api):
    """archivedAt stands in GET /users for archived people alone, and never in extended-info."""
    plain = api.ok("GET", "/users")["users"]
    assert [one.get("archivedAt") for one in plain] == [None, None, None, 1_767_225_600_000]
    assert all("archivedAt" not in one for one in api.ok("GET", "/users/extended-info")["users"])
    assert all("memberOfGroups" not in one for one in plain)


def test_extended_info_tells_groups_and_rights(api):
    """Memberships of both kinds, managed groups, the flags and the applications stand in extended-info."""
    api.ok("POST", "/smart-groups/sg-1/managers", {"userIds": ["u-1"]})
    people = {one["userId"]: one for one in api.ok("GET", "/users/extended-info")["users"]}
    coaches = {"groupId": "g-1", "groupType": "GROUP", "name": "Coaches"}
    sales = {"groupId": "sg-1", "groupType": "SMART_GROUP", "name": "Sales"}
    assert people["u-2"]["memberOfGroups"] == [coaches, sales]
    assert people["u-1"]["memberOfGroups"] == [sales]
    assert people["u-1"]["managerOfGroups"] == [coaches, sales]
    assert people["u-4"]["memberOfGroups"] == []
    assert [(one["admin"], one["manager"]) for one in people.values()] == [
        (True, False),
        (False, False),
        (False, True),
        (False, False),
    ]
    assert people["u-1"]["availableApplications"] == ["achievements", "analyse", "create", "learn", "follow-up"]
    assert people["u-2"]["availableApplications"] == ["learn"]


def test_one_user(api):
    """GET /users/{userId} joins what the lists tell; somebody who is not there is 404."""
    plain, extended = api.ok("GET", "/users")["users"][3], api.ok("GET", "/users/extended-info")["users"][3]
    del extended["availableApplications"]
    whole = api.ok("GET", "/users/u-4")
    assert whole == whole | plain | extended
    assert whole["applicationIds"] == ["learn"]
    assert api.no("GET", "/users/u-99") == (404, "there is no user 'u-99'")


@pytest.mark.parametrize(
    ("path", "listing"),
    [("/users", "users"), ("/users/extended-info", "users"), ("/groups", "groups"), ("/smart-groups", "smartGroups")],
)
def test_lists_begin_at_0_with_100(open_workspace, path, listing):
    """skip is 0 and limit 100 where they are left out; a larger limit is honoured where the dialect has no smaller."""
    condition = {"field": "Department", "choices": ["Sales"]}
    more = {
        "people": [{"email": f"p{number}@acme.example"} for number in range(101)],
        "groups": [{"name": f"G{number}"} for number in range(101)],
        "smart_groups": [{"name": f"S{number}", "conditions": [condition]} for number in range(101)],
        "content_targets": [],
    }
    api = open_workspace({"paging.limit": 1000}, more=more)
    everything = api.ok("GET", path, skip=0, limit=200)[listing]
    assert len(everything) == 101
    assert api.ok("GET", path)[listing] == api.ok("GET", path, skip=0, limit=100)[listing] == everything[:100]
