"""The rules of the endpoint group Users, as far as configuration reads it."""

from __future__ import annotations

import pytest
from texts import listed_cases

from .conftest import DAY, NOW, chosen

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


# The rules of the endpoint group Users, where accounts are made, changed, archived and deleted.


ANNA, BO, CY, DI = "u-1", "u-2", "u-3", "u-4"  # an admin, nobody in particular, a manager, and who is archived
TODAY = int(NOW * 1000)


def archived_at(api, id: str) -> object:
    return api.ok("GET", f"/users/{id}").get("archivedAt")


@chosen("users.create.first")
def test_an_account_is_created(api):
    """POST /users makes an account and answers its id, and that it is new."""
    body = {"email": "eve@acme.example", "firstName": "Eve", "lastName": "Moe", "language": "sv"}
    assert api.ok("POST", "/users", body | {"sendWelcomeEmail": True}) == {"userId": "u-5", "newUser": True}
    eve = api.ok("GET", "/users/u-5")
    assert eve == eve | {"email": "eve@acme.example", "firstName": "Eve", "lastName": "Moe", "language": "sv"}
    assert eve == eve | {"admin": False, "manager": False, "applicationIds": ["learn"], "createdAt": TODAY}
    api.ok("POST", "/users", {"email": "flo@acme.example"})
    assert api.ok("GET", "/users/u-6")["language"] == "en"


@chosen("users.create.known", "users.email.shape")
def test_an_account_that_exists_is_not_created_again(api):
    """newUser is false where the e-mail has an account, whatever its case; the account stays as it was."""
    before = api.ok("GET", f"/users/{BO}")
    body = {"email": "BO.EK@acme.example", "firstName": "Bob", "language": "sv"}
    assert api.ok("POST", "/users", body) == {"userId": BO, "newUser": False}
    assert api.ok("GET", f"/users/{BO}") == before
    assert api.ok("GET", "/users")["matchCount"] == 4


BAD_EMAILS = pytest.mark.parametrize(
    "email", ["", "bo", "bo@", "@acme.example", "bo ek@acme.example", "bo@acme", "a@b@c.d"]
)
BAD_LANGUAGES = pytest.mark.parametrize("language", ["", "EN", "english", "e", "sv_SE", "-"])


@BAD_EMAILS
def test_an_email_is_shaped_like_one(api, email):
    """Every user needs an e-mail-shaped identifier: anything else is 400, when made and when changed."""
    assert api.no("POST", "/users", {"email": email})[0] == 400
    assert api.no("POST", f"/users/{BO}/update-email", {"email": email})[0] == 400
    assert api.ok("GET", f"/users/{BO}")["email"] == "bo.ek@acme.example"


@chosen("users.language.shape")
@BAD_LANGUAGES
def test_a_language_is_a_lowercase_code(api, language):
    """A language that is no lowercase code is 400, when an account is made and when it is changed."""
    assert api.no("POST", "/users", {"email": "eve@acme.example", "language": language})[0] == 400
    assert api.no("POST", f"/users/{BO}/update-language", {"language": language})[0] == 400


@chosen("users.email.taken")
def test_an_email_is_changed(api):
    """POST update-email gives another e-mail, unless another account has it: then 409. The own one may change case."""
    api.ok("POST", f"/users/{BO}/update-email", {"email": "Bo.Ek@acme.example"})
    assert api.ok("GET", f"/users/{BO}")["email"] == "Bo.Ek@acme.example"
    assert api.no("POST", f"/users/{BO}/update-email", {"email": "ANNA.berg@acme.example"})[0] == 409


def test_a_name_is_changed_in_part(api):
    """POST update-fullname takes first name, last name, or both, and leaves the other; neither is 400."""
    api.ok("POST", f"/users/{BO}/update-fullname", {"firstName": "Bob"})
    api.ok("POST", f"/users/{CY}/update-fullname", {"lastName": "Moe"})
    api.ok("POST", f"/users/{DI}/update-fullname", {"firstName": "", "lastName": "Lee"})
    names = [(one["firstName"], one["lastName"]) for one in api.ok("GET", "/users")["users"]]
    assert names == [("Anna", "Berg"), ("Bob", "Ek"), ("Cy", "Moe"), ("", "Lee")]
    assert api.no("POST", f"/users/{BO}/update-fullname", {})[0] == 400


@pytest.mark.parametrize(("mode", "after"), [("replace", {"b": "3"}), ("merge", {"a": "1", "b": "3"})])
def test_metadata_is_replaced_or_merged(open_workspace, mode, after):
    """POST update-metadata replaces the metadata, or merges it in, as users.update-metadata.mode says."""
    api = open_workspace({"users.update-metadata.mode": mode})
    api.ok("POST", f"/users/{BO}/update-metadata", {"metadata": {"a": "1", "b": "2"}})
    api.ok("POST", f"/users/{BO}/update-metadata", {"metadata": {"b": "3"}})
    assert api.ok("GET", f"/users/{BO}")["metadata"] == after
    assert api.ok("GET", "/users")["users"][1]["metadata"] == after


@chosen("users.archive.again", "smart-groups.archived")
def test_an_account_is_archived_and_comes_back(timed, clock):
    """Archiving sets archivedAt and takes the person out of smart groups; unarchiving ends both. Twice is once."""
    timed.ok("POST", f"/users/{BO}/unarchive")
    timed.ok("POST", f"/users/{BO}/archive")
    clock.move(days=1)
    timed.ok("POST", f"/users/{BO}/archive")
    assert archived_at(timed, BO) == TODAY
    assert timed.ok("GET", "/smart-groups/sg-1", includeMembers="true")["members"] == [ANNA]
    timed.ok("POST", f"/users/{BO}/unarchive")
    assert archived_at(timed, BO) is None
    assert timed.ok("GET", "/smart-groups/sg-1", includeMembers="true")["members"] == [ANNA, BO]


def test_an_admin_is_not_archived(api):
    """Archiving an admin is 400 and changes nothing; once the right is revoked it works."""
    assert api.no("POST", f"/users/{ANNA}/archive")[0] == 400
    assert archived_at(api, ANNA) is None
    api.ok("POST", f"/users/{ANNA}/make-admin/false")
    api.ok("POST", f"/users/{ANNA}/archive")
    assert archived_at(api, ANNA) == TODAY


@chosen("users.archive-date.past")
def test_an_account_is_archived_at_its_date(timed, clock):
    """A custom archive date is shown, and the account is archived at that date; unarchiving then ends the date."""
    date = TODAY + 2 * DAY
    timed.ok("POST", f"/users/{BO}/set-custom-archived-date", {"date": date})
    clock.move(days=1)
    bo = timed.ok("GET", "/users")["users"][1]
    assert (bo["customArchiveDate"], bo.get("archivedAt")) == (date, None)
    clock.move(days=3)
    assert archived_at(timed, BO) == date
    assert timed.ok("GET", "/smart-groups/sg-1", includeMembers="true")["members"] == [ANNA]
    timed.ok("POST", f"/users/{BO}/unarchive")
    assert timed.ok("GET", f"/users/{BO}").keys() & {"archivedAt", "customArchiveDate"} == set()


def test_an_archive_date_is_cleared(timed, clock):
    """null clears the custom archive date, and then nothing happens at it; a date to come survives unarchiving."""
    timed.ok("POST", f"/users/{BO}/set-custom-archived-date", {"date": TODAY + DAY})
    timed.ok("POST", f"/users/{DI}/set-custom-archived-date", {"date": TODAY + 9 * DAY})
    timed.ok("POST", f"/users/{BO}/set-custom-archived-date", {"date": None})
    timed.ok("POST", f"/users/{DI}/unarchive")
    clock.move(days=2)
    assert timed.ok("GET", f"/users/{BO}").keys() & {"archivedAt", "customArchiveDate"} == set()
    assert timed.ok("GET", f"/users/{DI}")["customArchiveDate"] == TODAY + 9 * DAY


@pytest.mark.parametrize("id", [ANNA, CY])
def test_admins_and_managers_have_no_archive_date(api, id):
    """A custom archive date for an admin or a manager is 400; null, which only clears, is not."""
    assert api.no("POST", f"/users/{id}/set-custom-archived-date", {"date": TODAY})[0] == 400
    api.ok("POST", f"/users/{id}/set-custom-archived-date", {"date": None})
    assert "customArchiveDate" not in api.ok("GET", f"/users/{id}")


@chosen("users.archive-date.grant")
@pytest.mark.parametrize("right", ["admin", "manager"])
def test_a_grant_ends_the_archive_date(timed, clock, right):
    """Who becomes admin or manager has no custom archive date any more, and stays active."""
    timed.ok("POST", f"/users/{BO}/set-custom-archived-date", {"date": TODAY + DAY})
    timed.ok("POST", f"/users/{BO}/make-{right}/false")
    assert timed.ok("GET", f"/users/{BO}")["customArchiveDate"] == TODAY + DAY
    timed.ok("POST", f"/users/{BO}/make-{right}/true")
    clock.move(days=2)
    assert timed.ok("GET", f"/users/{BO}").keys() & {"archivedAt", "customArchiveDate"} == set()


@chosen("users.delete.all")
def test_an_account_is_deleted_with_all_that_is_about_it(api):
    """DELETE takes the account, its memberships, answers, targets, certificates and history; other people's stay."""
    api.ok("POST", "/content/targets", {"contentId": "c-2", "userId": BO})
    for person in (BO, CY):
        start = {"userId": person, "contentId": "c-1", "contentType": "COURSE"}
        api.ok("POST", "/manage-certificate/participation", start)
    api.ok("PUT", f"/users/{BO}/order-details", {"note": "x"})
    api.ok("DELETE", f"/users/{BO}")
    assert api.no("GET", f"/users/{BO}")[0] == 404
    assert api.ok("GET", "/users")["matchCount"] == 3
    assert api.ok("GET", "/groups/g-1/members") == {"userIds": []}
    assert api.ok("GET", "/content/targets", contentId="c-2") == {"targets": []}
    assert api.ok("GET", "/users/certificates")["usersWithCertificates"].keys() == {CY}
    assert api.ok("GET", "/smart-groups/sg-1", includeMembers="true")["members"] == [ANNA]
    assert api.ok("POST", "/users", {"email": "bo.ek@acme.example"}) == {"userId": "u-5", "newUser": True}


@listed_cases("method", "path", "body")
@chosen("ids", "errors")
def test_an_unknown_user_is_not_found(api, method, path, body):
    """Whatever is asked of somebody who is not there is 404."""
    assert api.no(method, f"/users/u-99{path}", body) == (404, "there is no user 'u-99'")


def found(api, **body: object) -> list[object]:
    return [one["userId"] for one in api.ok("POST", "/users/search", body)["users"]]


def test_a_search_is_for_a_part_of_name_or_email(api):
    """The text of POST /users/search matches a user's name or e-mail; without one everybody is found."""
    assert found(api, text="BERG") == [ANNA]
    assert found(api, text="cy.dahl@") == [CY]
    assert found(api) == [ANNA, BO, CY, DI]


@chosen("users.search.pairs")
def test_a_search_is_for_metadata(api):
    """`metadata` finds those who hold every pair that is given, together with the text."""
    for id, metadata in ((BO, {"site": "Oslo", "badge": "1"}), (CY, {"site": "Oslo"}), (DI, {"site": "oslo"})):
        api.ok("POST", f"/users/{id}/update-metadata", {"metadata": metadata})
    assert found(api, metadata={"site": "Oslo"}) == [BO, CY]
    assert found(api, metadata={"site": "Oslo", "badge": "1"}) == [BO]
    assert found(api, metadata={"site": "Oslo"}, text="dahl") == [CY]
    assert found(api, metadata={}) == [ANNA, BO, CY, DI]


def test_a_search_is_paged(open_workspace):
    """skip and limit cut a page out of what is found, no larger than paging.limit; matchCount counts all of it."""
    api = open_workspace({"paging.limit": 2})
    answer = api.ok("POST", "/users/search", {"text": "acme", "skip": 1, "limit": 3})
    assert ([one["userId"] for one in answer["users"]], answer["matchCount"]) == ([BO, CY], 4)
    assert api.no("POST", "/users/search", {"skip": -1})[0] == 400
    assert api.no("POST", "/users/search", {"limit": 2**31})[0] == 400


def test_a_search_tells_groups_only_when_asked(api):
    """With includeGroups each user has groups and applications, else neither; rights and answers are always there."""
    plain = api.ok("POST", "/users/search", {"text": "bo.ek"})["users"][0]
    full = api.ok("POST", "/users/search", {"text": "bo.ek", "includeGroups": True})["users"][0]
    extended = api.ok("GET", "/users/extended-info", filter="bo.ek")["users"][0]
    assert plain.keys() == {
        *("userId", "email", "firstName", "lastName", "customFields", "metadata", "admin", "manager"),
    }
    assert full == plain | extended
    assert [group["groupId"] for group in full["memberOfGroups"]] == ["g-1", "sg-1"]


def test_search_has_the_names_of_the_dialect(open_workspace):
    """Text and paging of a search have the names that the dialect gives them."""
    api = open_workspace({"users.search.text": "query", "users.search.limit": "size"})
    assert found(api, query="a", size=1) == [ANNA]
    assert api.no("POST", "/users/search", {"text": "a"})[0] == 400


@chosen("silent-fields")
def test_what_is_not_known_is_left_out(api):
    """A user has no avatar, e-mail status, last sign-in, time zone or date of deletion as long as nobody sets one."""
    unknown = {"avatarUrl", "emailStatus", "lastLoginAt", "timeZone", "scheduledDeleteDate"}
    assert not api.ok("GET", f"/users/{BO}").keys() & unknown
    assert not api.ok("GET", "/users")["users"][0].keys() & unknown
