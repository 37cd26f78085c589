"""The rules of the endpoint groups Content Catalog and Content Targeting."""

import pytest
from texts import listed_cases

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

from .conftest import DAY, NOW, Caller, chosen


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


@listed_cases("format", "right", "shown", "wrong")
def test_times_have_the_form_of_the_dialect(open_workspace, format, right, shown, wrong):
    """Times are taken in the dialect's form alone, and shown in it as texts."""
    api = open_workspace({"content-targets.time-format": format})
    body = {"contentId": "c-2", "targetId": "g-1"}
    assert api.no("POST", "/content/targets", body | {"startTime": wrong})[0] == 400
    api.ok("POST", "/content/targets", body | {"startTime": right})
    assert times(targets(api)[0]) == (shown, None)


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


def test_at_most_a_hundred_meetups(open_workspace):
    """Meetups are limited to the first 100 content ids of the catalog; the order by update comes after that."""
    days = [f"2025-01-01T{number // 60:02}:{number % 60:02}:00Z" for number in range(101)]
    content = [{"name": f"M{number}", "type": "MEETUP", "updated": day} for number, day in enumerate(days)]
    targets = [{"content": one["name"], "assign_to": ["everyone"]} for one in content]
    api = open_workspace(more={"content": content, "content_targets": targets})
    names = [one["name"] for one in api.ok("GET", "/content/meetups")["meetups"]]
    assert names == [f"M{number}" for number in range(99, -1, -1)]


def test_the_catalog_tells_programs_and_more(open_workspace):
    """A catalog item tells of which programs it is a part, its categories, metadata, link and image, not occasions."""
    more = {"name": "x", "programs": ["P"], "categories": ["A", "B"], "metadata": {"k": "v"}, "link": "l", "image": "i"}
    api = open_workspace(more={"content": [more, {"name": "P", "type": "PROGRAM"}], "content_targets": []})
    item = api.ok("GET", "/content/c-1")
    told = {"partOfPrograms": ["c-2"], "categories": ["A", "B"], "metadata": {"k": "v"}, "link": "l"}
    assert item == item | told | {"backgroundImageUrl": "i"}
    assert "occasions" not in item


# The rules of the endpoint group Analytics: results and statistics with their filters, and the event log.


ANNA, BO, CY, DI = "u-1", "u-2", "u-3", "u-4"
TODAY = int(NOW * 1000)


def mail(name: str) -> str:
    return f"{name}@acme.example"


MORE = {
    "content": [{"name": "GDPR basics"}, {"name": "Fire safety"}, {"name": "Onboarding", "type": "PROGRAM"}],
    "content_targets": [
        {"content": "GDPR basics", "assign_to": [{"smart_group": "Sales"}], "mandatory": True},
        {"content": "GDPR basics", "assign_to": ["everyone"]},
        {"content": "Fire safety", "assign_to": [{"user": mail("cy.dahl")}], "visible_until": "2025-01-01T00:00:00Z"},
        {"content": "Fire safety", "assign_to": [{"group": "Coaches"}]},
    ],
    "participations": [
        {
            "user": mail("anna.berg"),
            "content": "GDPR basics",
            "state": "APPROVED",
            "revision": "2",
            "enrolled": "2025-01-01T00:00:00Z",
            "updated": "2025-03-01T00:00:00Z",
            "events": [
                {"status": "IN_PROGRESS", "at": "2025-02-01T00:00:00Z", "mandatory": True},
                {"status": "APPROVED", "at": "2025-03-01T00:00:00Z", "mandatory": True, "revision": "2"},
                {"status": "NOT_STARTED", "at": "2025-01-01T00:00:00Z"},
            ],
        },
        {
            "user": mail("cy.dahl"),
            "content": "GDPR basics",
            "state": "IN_PROGRESS",
            "percentage": "40",
            "updated": "2025-06-01T00:00:00Z",
        },
        {"user": mail("bo.ek"), "content": "Onboarding", "state": "FAILED", "updated": "2025-05-01T00:00:00Z"},
        {"user": mail("bo.ek"), "content": "Fire safety", "state": "APPROVED", "updated": "2024-01-01T00:00:00Z"},
        {"user": mail("di.lund"), "content": "GDPR basics", "state": "APPROVED"},
    ],
    "certificates": [
        {
            "user": mail("anna.berg"),
            "content": "GDPR basics",
            "issued": "2025-03-01T00:00:00Z",
            "expires": "2026-03-01T00:00:00Z",
        },
        {
            "user": mail("bo.ek"),
            "content": "Fire safety",
            "issued": "2024-01-01T00:00:00Z",
            "expires": "2025-12-01T00:00:00Z",
        },
    ],
}
ROWS = [("c-1", ANNA), ("c-1", BO), ("c-1", CY), ("c-2", BO), ("c-2", CY), ("c-3", BO)]
"""Everybody active with what they are enrolled in, and Bo with what he took part in all the same."""


@pytest.fixture
def studied(open_workspace, clock):
    """A caller of a workspace where people have done something."""
    return open_workspace(clock=clock, more=MORE)


def rows(studied, **filters: object) -> list[tuple[str, str]]:
    """Content and person of each result, sorted."""
    return sorted((one["contentId"], one["userId"]) for one in results(studied, **filters))


def results(studied, **filters: object) -> list[dict[str, object]]:
    return studied.ok("POST", "/analyse/results", filters)["list"]


@chosen("analytics.rows")
def test_results_are_about_active_people_and_their_content(studied):
    """There is one result for each active person and content they are enrolled in or took part in; no filter is all."""
    assert rows(studied) == ROWS


def test_what_a_result_tells(studied):
    """A result tells content, person, state, progress, enrolment and the dates of the certificate."""
    (anna,) = results(studied, userIds=[ANNA])
    assert anna == {
        "contentId": "c-1",
        "contentType": "COURSE",
        "contentName": "GDPR basics",
        "userId": ANNA,
        "userName": "Anna Berg",
        "userDisplayName": "Anna Berg",
        "userEmail": "anna.berg@acme.example",
        "state": "APPROVED",
        "occuredAt": 1_740_787_200_000,
        "enrolledAt": 1_735_689_600_000,
        "certificateIssuedAt": 1_740_787_200_000,
        "certificateExpiresAt": 1_772_323_200_000,
        "contentRevision": 2,
        "percentageProgress": 100,
        "mandatory": True,
    }


@chosen("analytics.state")
def test_the_states_of_results(studied, clock):
    """NOT_STARTED without a participation, EXPIRED once the certificate has expired, else the participation's state."""
    states = {(one["contentId"], one["userId"]): one["state"] for one in results(studied)}
    expected = ["APPROVED", "NOT_STARTED", "IN_PROGRESS", "EXPIRED", "NOT_STARTED", "FAILED"]
    assert [states[row] for row in ROWS] == expected
    clock.move(days=60)
    assert results(studied, userIds=[ANNA])[0]["state"] == "EXPIRED"


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"contentName": "SAFE"}, ROWS[3:5]),
        ({"contentIds": ["c-3", "c-99"]}, ROWS[5:]),
        ({"contentIds": []}, []),
        ({"userIds": [CY, DI]}, [ROWS[2], ROWS[4]]),
        ({"groupIds": ["g-1"]}, [ROWS[1], ROWS[3], ROWS[5]]),
        ({"groupIds": ["sg-1"]}, [ROWS[0], ROWS[1], ROWS[3], ROWS[5]]),
        ({"groupIds": ["g-1", "EVERYONE"]}, ROWS),
        ({"groupIds": ["g-99"]}, []),
        ({"progress": ["FAILED", "EXPIRED"]}, [ROWS[3], ROWS[5]]),
        ({"progress": ["NOT_STARTED"]}, [ROWS[1], ROWS[4]]),
        ({"progress": ["APPROVED"]}, [ROWS[0]]),
        ({"progress": ["IN_PROGRESS"]}, [ROWS[2]]),
        ({"enrollment": ["MANDATORY"]}, ROWS[:2]),
        ({"enrollment": ["OPTIONAL"]}, ROWS[2:5]),
        ({"enrollment": ["NOT_ENROLLED"]}, [ROWS[5]]),
        ({"attributes": [{"customFieldId": "f-1", "choices": ["ch-2", "ch-3"]}]}, [ROWS[2], ROWS[4]]),
        (
            {
                "attributes": [
                    {"customFieldId": "f-1", "choices": ["ch-1", "ch-2"]},
                    {"customFieldId": "f-2", "choices": ["ch-4"]},
                ]
            },
            [ROWS[0]],
        ),
        ({"attributes": [{"customFieldId": "f-1", "choices": []}]}, []),
        ({"expiryDateRange": {"start": "2026-03-01T00:00:00Z"}}, [ROWS[0]]),
        ({"expiryDateRange": {"end": "2025-12-01T01:00:00+01:00"}}, [ROWS[3]]),
        ({"expiryDateRange": {"start": "2025-12-02T00:00:00Z", "end": "2026-02-28T00:00:00Z"}}, []),
        ({"updatedAtDateRange": {"start": "2025-05-01T00:00:00Z", "end": "2025-06-01T00:00:00Z"}}, [ROWS[2], ROWS[5]]),
        ({"updatedAtDateRange": {}}, ROWS),
        ({"userIds": [BO], "progress": ["NOT_STARTED"], "contentName": "gdpr"}, [ROWS[1]]),
    ],
)
@chosen("analytics.enrollment", "analytics.ranges", "analytics.attributes")
def test_filters(studied, filters, found):
    """Each filter leaves what fits, and several leave what fits all; statistics count what results list."""
    assert rows(studied, **filters) == found
    counts = studied.ok("POST", "/analyse/statistics", filters)["statistics"]
    assert sum(counts.values()) == len(found)


def test_statistics_count_states(studied):
    """Statistics count participations by state."""
    assert studied.ok("POST", "/analyse/statistics", {})["statistics"] == {
        "notStartedCount": 2,
        "inProgressCount": 1,
        "approvedCount": 1,
        "failedCount": 1,
        "expiredCount": 1,
    }
    assert studied.no("POST", "/analyse/statistics", {"options": {}})[0] == 400


def order(studied, **options: object) -> list[tuple[str, str]]:
    return [(one["contentId"], one["userId"]) for one in results(studied, options=options)]


@chosen("analytics.order")
def test_results_are_ordered(studied):
    """orderBy and order arrange results, equal ones as they came; what has no value comes last, either way."""
    newest = [ROWS[1], ROWS[4], ROWS[2], ROWS[5], ROWS[0], ROWS[3]]
    assert order(studied) == order(studied, orderBy="updatedAt", order="DESC") == newest
    assert order(studied, order="ASC") == [ROWS[3], ROWS[0], ROWS[5], ROWS[2], ROWS[1], ROWS[4]]
    by_expiry = {
        direction: order(studied, orderBy="certificateExpiresAt", order=direction) for direction in ("ASC", "DESC")
    }
    assert by_expiry["ASC"][:2] == by_expiry["DESC"][1::-1] == [ROWS[3], ROWS[0]]
    assert by_expiry["ASC"][2:] == by_expiry["DESC"][2:]
    assert order(studied, orderBy="userName", order="ASC")[0] == ROWS[0]
    assert studied.no("POST", "/analyse/results", {"options": {"orderBy": "colour"}})[0] == 400
    assert studied.no("POST", "/analyse/results", {"options": {"order": "down"}})[0] == 400


def test_results_are_paged(open_workspace, clock):
    """options.skip and options.limit cut a page out of the order, no larger than paging.limit."""
    studied = open_workspace({"paging.limit": 2}, clock=clock, more=MORE)
    assert order(studied, skip=1, limit=5, orderBy="contentId", order="ASC") == ROWS[1:3]
    assert order(studied, limit=0) == []
    assert studied.no("POST", "/analyse/results", {"options": {"skip": -1}})[0] == 400


def test_content_name_has_the_name_of_the_dialect(open_workspace):
    """The filter on a content's name is called what the dialect says, for results and statistics alike."""
    studied = open_workspace({"analytics.contentName": "title"}, more=MORE)
    assert rows(studied, title="onboard") == [ROWS[5]]
    assert studied.ok("POST", "/analyse/statistics", {"title": "onboard"})["statistics"]["failedCount"] == 1
    assert studied.no("POST", "/analyse/results", {"contentName": "x"})[0] == 400


def test_the_event_log_has_the_newest_first(studied):
    """The history of a person with a content is ordered by time, the most recent first."""
    log = studied.ok("GET", f"/analyse/event-logs/content/c-1/user/{ANNA}")
    assert [one["timestamp"] for one in log] == ["2025-03-01T00:00:00Z", "2025-02-01T00:00:00Z", "2025-01-01T00:00:00Z"]
    assert log[0] == {
        "id": "e-2",
        "contentId": "c-1",
        "userId": ANNA,
        "participationId": "p-1",
        "status": "APPROVED",
        "revisionNumber": 2,
        "timestamp": "2025-03-01T00:00:00Z",
        "mandatory": True,
        "manually": False,
    }
    assert studied.ok("GET", f"/analyse/event-logs/content/c-3/user/{ANNA}") == []
    assert studied.no("GET", "/analyse/event-logs/content/c-1/user/u-99")[0] == 404
    assert studied.no("GET", f"/analyse/event-logs/content/c-99/user/{ANNA}")[0] == 404


def test_an_archived_person_is_in_no_result(studied, clock):
    """Somebody who is archived, by hand or at a date, is in no result from then on."""
    studied.ok("POST", f"/users/{BO}/set-custom-archived-date", {"date": TODAY + DAY})
    assert rows(studied, userIds=[BO]) != []
    clock.move(days=1)
    assert rows(studied, userIds=[BO]) == []
