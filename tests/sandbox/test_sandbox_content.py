"""The rules of the endpoint groups Content Catalog and Content Targeting."""

from __future__ import annotations

import pytest
from texts import listed_cases

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.service import Sandbox

from .conftest import Caller, chosen


def targets(api, content: str = "c-2") -> list[dict[str, object]]:
    return api.ok("GET", "/content/targets", contentId=content)["targets"]


def times(target: dict[str, object]) -> tuple[object, object]:
    return target.get("startTime"), target.get("finishTime")


@pytest.fixture
def big():
    """A catalog of 120 items, every fourth of which is for sale, where other lists give larger pages."""
    sandbox = Sandbox(spec=ApiSpec({"paging.limit": 1000}))
    with sandbox.store.write_transaction() as repository:
        fill_workspace(
            repository, {"content": [{"name": f"Course {n}", "price": 0 if n % 4 else 490} for n in range(120)]}
        )
    yield Caller(sandbox)
    sandbox.close_workspace()


def test_a_catalog_page_holds_at_most_a_hundred(big):
    """Values of `limit` above 100 are capped to 100, which is also the default; `total` counts everything."""
    for query in ({}, {"limit": 100}, {"limit": 5000}):
        page = big.ok("GET", "/content/all", **query)
        assert (len(page["courses"]), page["skip"], page["limit"], page["total"]) == (100, 0, 100, 120)
    last = big.ok("GET", "/content/all", skip=100)
    assert [one["courseId"] for one in last["courses"]] == [f"c-{n}" for n in range(101, 121)]
    assert big.ok("GET", "/content/all", skip=200)["courses"] == []


def test_only_what_is_for_sale(big):
    """onlySellable=true leaves what has a price, and counts only that."""
    page = big.ok("GET", "/content/all", onlySellable="true", limit=7)
    assert page["total"] == 30
    assert {one["price"] for one in page["courses"]} == {490}
    assert big.ok("GET", "/content/all", onlySellable="false")["total"] == 120


def test_content_says_which_groups_see_it(api):
    """visibleForGroups has the groups that content is assigned to, EVERYONE among them, and no single people."""
    api.ok("POST", "/content/targets", {"contentId": "c-1", "userId": "u-1"})
    api.ok("POST", "/content/targets", {"contentId": "c-1", "targetId": "sg-1"})
    assert api.ok("GET", "/content/c-1")["visibleForGroups"] == ["EVERYONE", "g-1", "sg-1"]
    assert api.ok("GET", "/content/c-2")["visibleForGroups"] == []


def test_content_of_some_groups(api):
    """groupIds[] leaves what at least one of the groups sees; without it there is no filter."""
    api.ok("POST", "/content/targets", {"contentId": "c-2", "targetId": "sg-1"})
    api.ok("POST", "/content/targets", {"contentId": "c-2", "userId": "u-1"})

    def seen(*groups: str) -> list[str]:
        return [one["courseId"] for one in api.ok("GET", "/content/all", **{"groupIds[]": list(groups)})["courses"]]

    assert seen("g-1") == ["c-1"]
    assert seen("sg-1", "g-1") == ["c-1", "c-2"]
    assert seen("EVERYONE") == ["c-1"]
    assert seen("u-1") == []
    assert seen() == ["c-1", "c-2"]


@pytest.mark.parametrize(
    ("audience", "shown"),
    [
        ({"userId": "u-1"}, ("u-1", "USER", "Anna Berg")),
        ({"targetId": "g-1"}, ("g-1", "GROUP", "Coaches")),
        ({"targetId": "sg-1"}, ("sg-1", "SMART_GROUP", "Sales")),
        ({"targetId": "EVERYONE"}, ("EVERYONE", "EVERYONE", "Everyone")),
    ],
)
def test_content_is_assigned_to_an_audience(api, audience, shown):
    """POST with userId or targetId assigns to a user, a group of either kind or everyone; the target has its name."""
    assert api.call("POST", "/content/targets", {"contentId": "c-2", **audience}).status_code == 204
    (target,) = targets(api)
    assert (target["targetId"], target["targetType"], target["name"]) == shown
    assert target == target | {"contentId": "c-2", "contentType": "SCORM", "mandatory": False, "updatedBy": "api"}
    assert target["createdAt"] == target["updatedAt"] == "2026-01-01T00:00:00Z"


def test_an_assignment_is_replaced_whole(api):
    """POST on an existing target makes it what the body says: left out is false, and open."""
    full = {"mandatory": True, "startTime": "2026-01-05T00:00:00+01:00", "finishTime": "2026-12-31T23:59:59Z"}
    api.ok("POST", "/content/targets", {"contentId": "c-2", "targetId": "g-1", **full})
    assert times(targets(api)[0]) == ("2026-01-04T23:00:00Z", "2026-12-31T23:59:59Z")
    assert targets(api)[0]["mandatory"] is True
    api.ok("POST", "/content/targets", {"contentId": "c-2", "targetId": "g-1", "startTime": None})
    (target,) = targets(api)
    assert times(target) == (None, None)
    assert target["mandatory"] is False


def test_an_assignment_says_when_it_changed():
    """createdAt stays and updatedAt moves when an assignment is replaced."""
    hours = iter(range(0, 3600 * 10, 3600))
    caller = Caller(Sandbox(clock=lambda: next(hours)))
    with caller.sandbox.store.write_transaction() as repository:
        fill_workspace(repository, {"content": [{"name": "Course", "id": "c-2"}], "groups": [{"name": "Coaches"}]})
    for _ in range(2):
        caller.ok("POST", "/content/targets", {"contentId": "c-2", "targetId": "g-1"})
    (target,) = targets(caller)
    assert target["createdAt"] < target["updatedAt"]


def test_an_assignment_may_have_to_be_made_again(open_workspace):
    """Where the dialect says recreate, POST on an existing target is 409 and changes nothing until it is deleted."""
    api = open_workspace({"content-targets.on-existing": "recreate"})
    body = {"contentId": "c-1", "targetId": "g-1", "mandatory": True}
    assert api.no("POST", "/content/targets", body)[0] == 409
    assert [one["mandatory"] for one in targets(api, "c-1")] == [False, False]
    api.ok("DELETE", "/content/targets", {"contentId": "c-1", "targetId": "g-1", "targetType": "GROUP"})
    api.ok("POST", "/content/targets", body)
    assert [one["mandatory"] for one in targets(api, "c-1")] == [False, True]


@listed_cases("format", "right", "shown", "wrong")
def test_times_have_the_form_of_the_dialect(open_workspace, format, right, shown, wrong):
    """Times are taken in the dialect's form alone, and shown in it as texts."""
    api = open_workspace({"content-targets.time-format": format})
    body = {"contentId": "c-2", "targetId": "g-1"}
    assert api.no("POST", "/content/targets", body | {"startTime": wrong})[0] == 400
    api.ok("POST", "/content/targets", body | {"startTime": right})
    assert times(targets(api)[0]) == (shown, None)


def test_times_are_cut_to_the_minute_where_the_dialect_says_so(open_workspace):
    """With content-targets.time-precision minute, the seconds of a time are cut off."""
    api = open_workspace({"content-targets.time-precision": "minute"})
    body = {"contentId": "c-2", "targetId": "g-1", "finishTime": "2026-01-05T23:59:59Z"}
    api.ok("POST", "/content/targets", body)
    assert times(targets(api)[0]) == (None, "2026-01-05T23:59:00Z")


@pytest.mark.parametrize(
    ("start", "finish", "visible"),
    [
        (None, None, True),
        ("2025-12-31T23:59:59Z", None, True),
        ("2026-01-01T00:00:01Z", None, False),
        (None, "2026-01-01T00:00:00Z", False),
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", True),
    ],
)
def test_visibility_follows_the_clock(api, start, finish, visible):
    """visibilityIsActive: now, 2026-01-01, is inside the window; scheduleTriggerIsActive: there is one."""
    api.ok("POST", "/content/targets", {"contentId": "c-2", "userId": "u-1", "startTime": start, "finishTime": finish})
    (target,) = targets(api)
    assert target["visibilityIsActive"] is visible
    assert target["scheduleTriggerIsActive"] is (start is not None or finish is not None)


def test_an_assignment_is_taken_away(api):
    """DELETE, with a JSON body, takes one target away; one that is not there is 404."""
    body = {"contentId": "c-1", "targetId": "EVERYONE", "targetType": "EVERYONE"}
    assert api.call("DELETE", "/content/targets", body).status_code == 204
    assert [one["targetId"] for one in targets(api, "c-1")] == ["g-1"]
    assert api.no("DELETE", "/content/targets", body)[0] == 404
    assert api.no("DELETE", "/content/targets", body | {"targetId": "g-1"})[0] == 404


MEETUPS = {
    "content": [
        {"name": "Course"},
        {"name": "Program", "type": "PROGRAM"},
        {
            "name": "Old",
            "type": "MEETUP",
            "updated": "2025-01-01T00:00:00Z",
            "programs": ["Program"],
            "categories": ["Safety"],
            "link": "https://acme.example/old",
            "occasions": [
                {"starts": "2026-02-01T09:00:00+01:00", "attending": "12"},
                {"starts": "2026-03-01T08:00:00Z"},
            ],
        },
        {"name": "New", "type": "MEETUP", "updated": "2025-06-01T00:00:00Z"},
        {"name": "Hidden", "type": "MEETUP"},
        {"name": "For coaches", "type": "MEETUP", "updated": "2025-03-01T00:00:00Z"},
    ],
    "content_targets": [
        *({"content": name, "assign_to": ["everyone"]} for name in ("Course", "Old", "New")),
        {"content": "For coaches", "assign_to": [{"group": "Coaches"}]},
        {"content": "Hidden", "assign_to": [{"user": "bo.ek@acme.example"}]},
    ],
}


def test_meetups_of_everyone(open_workspace):
    """Without groupIds[] the meetups are those for EVERYONE, the last updated first, with programs and attendance."""
    meetups = open_workspace(more=MEETUPS).ok("GET", "/content/meetups")["meetups"]
    assert [one["name"] for one in meetups] == ["New", "Old"]
    assert meetups[1] == {
        "contentId": "c-3",
        "name": "Old",
        "lastUpdatedAt": 1_735_689_600_000,
        "partOfPrograms": ["c-2"],
        "categories": ["Safety"],
        "link": "https://acme.example/old",
        "occasions": [
            {"occasionId": "c-3-1", "startTime": 1_769_932_800_000, "attendanceCount": 12},
            {"occasionId": "c-3-2", "startTime": 1_772_352_000_000, "attendanceCount": 0},
        ],
    }
    assert meetups[0]["occasions"] == []


@chosen("meetups.visible")
def test_meetups_of_groups(open_workspace):
    """groupIds[] names the groups whose meetups are wanted; EVERYONE is one of them only if it is named."""
    api = open_workspace(more=MEETUPS)
    found = {
        query: api.ok("GET", f"/content/meetups?{query}")["meetups"] for query in ("groupIds[]=g-1", "groupIds[]=x")
    }
    assert [[one["name"] for one in meetups] for meetups in found.values()] == [["For coaches"], []]
    both = api.ok("GET", "/content/meetups?groupIds[]=g-1&groupIds[]=EVERYONE")["meetups"]
    assert [one["name"] for one in both] == ["New", "For coaches", "Old"]


def test_at_most_a_hundred_meetups(open_workspace):
    """Meetups are limited to the first 100 content ids of the catalog; the order by update comes after that."""
    days = [f"2025-01-01T{number // 60:02}:{number % 60:02}:00Z" for number in range(101)]
    content = [{"name": f"M{number}", "type": "MEETUP", "updated": day} for number, day in enumerate(days)]
    targets = [{"content": one["name"], "assign_to": ["everyone"]} for one in content]
    api = open_workspace(more={"content": content, "content_targets": targets})
    names = [one["name"] for one in api.ok("GET", "/content/meetups")["meetups"]]
    assert names == [f"M{number}" for number in range(99, -1, -1)]


def test_names_in_answers_are_the_dialects(open_workspace):
    """Where an answer's names are assumed, the sandbox says them as the dialect does, at any depth."""
    words = {"content.meetups.occasions": "dates", "content.meetups.occasions.attendanceCount": "people"}
    old = open_workspace(words, more=MEETUPS).ok("GET", "/content/meetups")["meetups"][1]
    assert old["dates"][0]["people"] == 12
    assert "occasions" not in old


def test_the_catalog_tells_programs_and_more(open_workspace):
    """A catalog item tells of which programs it is a part, its categories, metadata, link and image, not occasions."""
    more = {"name": "x", "programs": ["P"], "categories": ["A", "B"], "metadata": {"k": "v"}, "link": "l", "image": "i"}
    api = open_workspace(more={"content": [more, {"name": "P", "type": "PROGRAM"}], "content_targets": []})
    item = api.ok("GET", "/content/c-1")
    told = {"partOfPrograms": ["c-2"], "categories": ["A", "B"], "metadata": {"k": "v"}, "link": "l"}
    assert item == item | told | {"backgroundImageUrl": "i"}
    assert "occasions" not in item
