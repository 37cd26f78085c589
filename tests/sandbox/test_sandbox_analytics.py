"""The rules of the endpoint group Analytics: results and statistics with their filters, and the event log."""

from __future__ import annotations

import pytest

from .conftest import DAY, NOW, chosen

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
def api(open_workspace, clock):
    """A caller of a workspace where people have done something."""
    return open_workspace(clock=clock, more=MORE)


def rows(api, **filters: object) -> list[tuple[str, str]]:
    """Content and person of each result, sorted."""
    return sorted((one["contentId"], one["userId"]) for one in results(api, **filters))


def results(api, **filters: object) -> list[dict[str, object]]:
    return api.ok("POST", "/analyse/results", filters)["list"]


@chosen("analytics.rows")
def test_results_are_about_active_people_and_their_content(api):
    """There is one result for each active person and content they are enrolled in or took part in; no filter is all."""
    assert rows(api) == ROWS


def test_what_a_result_tells(api):
    """A result tells content, person, state, progress, enrolment and the dates of the certificate."""
    (anna,) = results(api, userIds=[ANNA])
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
def test_the_states_of_results(api, clock):
    """NOT_STARTED without a participation, EXPIRED once the certificate has expired, else the participation's state."""
    states = {(one["contentId"], one["userId"]): one["state"] for one in results(api)}
    expected = ["APPROVED", "NOT_STARTED", "IN_PROGRESS", "EXPIRED", "NOT_STARTED", "FAILED"]
    assert [states[row] for row in ROWS] == expected
    clock.move(days=60)
    assert results(api, userIds=[ANNA])[0]["state"] == "EXPIRED"


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
def test_filters(api, filters, found):
    """Each filter leaves what fits, and several leave what fits all; statistics count what results list."""
    assert rows(api, **filters) == found
    counts = api.ok("POST", "/analyse/statistics", filters)["statistics"]
    assert sum(counts.values()) == len(found)


@pytest.mark.parametrize(
    "filters",
    [
        {"progress": ["DONE"]},
        {"enrollment": ["mandatory"]},
        {"attributes": [{"customFieldId": "f-1"}]},
        {"expiryDateRange": {"from": "2026-03-01T00:00:00Z"}},
        {"expiryDateRange": {"start": "2026-03-01"}},
        {"updatedAtDateRange": {"end": "2026-13-01T00:00:00Z"}},
        {"contentIds": "c-1"},
        {"colour": "red"},
    ],
)
@pytest.mark.parametrize("path", ["/analyse/results", "/analyse/statistics"])
def test_filters_fit_the_description(api, path, filters):
    """An unknown filter, a value that it cannot have and a date that is none are 400."""
    assert api.no("POST", path, filters)[0] == 400


def test_statistics_count_states(api):
    """Statistics count participations by state."""
    assert api.ok("POST", "/analyse/statistics", {})["statistics"] == {
        "notStartedCount": 2,
        "inProgressCount": 1,
        "approvedCount": 1,
        "failedCount": 1,
        "expiredCount": 1,
    }
    assert api.no("POST", "/analyse/statistics", {"options": {}})[0] == 400


def order(api, **options: object) -> list[tuple[str, str]]:
    return [(one["contentId"], one["userId"]) for one in results(api, options=options)]


@chosen("analytics.order")
def test_results_are_ordered(api):
    """orderBy and order arrange results, equal ones as they came; what has no value comes last, either way."""
    newest = [ROWS[1], ROWS[4], ROWS[2], ROWS[5], ROWS[0], ROWS[3]]
    assert order(api) == order(api, orderBy="updatedAt", order="DESC") == newest
    assert order(api, order="ASC") == [ROWS[3], ROWS[0], ROWS[5], ROWS[2], ROWS[1], ROWS[4]]
    by_expiry = {
        direction: order(api, orderBy="certificateExpiresAt", order=direction) for direction in ("ASC", "DESC")
    }
    assert by_expiry["ASC"][:2] == by_expiry["DESC"][1::-1] == [ROWS[3], ROWS[0]]
    assert by_expiry["ASC"][2:] == by_expiry["DESC"][2:]
    assert order(api, orderBy="userName", order="ASC")[0] == ROWS[0]
    assert api.no("POST", "/analyse/results", {"options": {"orderBy": "colour"}})[0] == 400
    assert api.no("POST", "/analyse/results", {"options": {"order": "down"}})[0] == 400


def test_results_are_paged(open_workspace, clock):
    """options.skip and options.limit cut a page out of the order, no larger than paging.limit."""
    api = open_workspace({"paging.limit": 2}, clock=clock, more=MORE)
    assert order(api, skip=1, limit=5, orderBy="contentId", order="ASC") == ROWS[1:3]
    assert order(api, limit=0) == []
    assert api.no("POST", "/analyse/results", {"options": {"skip": -1}})[0] == 400


def test_content_name_has_the_name_of_the_dialect(open_workspace):
    """The filter on a content's name is called what the dialect says, for results and statistics alike."""
    api = open_workspace({"analytics.contentName": "title"}, more=MORE)
    assert rows(api, title="onboard") == [ROWS[5]]
    assert api.ok("POST", "/analyse/statistics", {"title": "onboard"})["statistics"]["failedCount"] == 1
    assert api.no("POST", "/analyse/results", {"contentName": "x"})[0] == 400


def test_the_event_log_has_the_newest_first(api):
    """The history of a person with a content is ordered by time, the most recent first."""
    log = api.ok("GET", f"/analyse/event-logs/content/c-1/user/{ANNA}")
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
    assert api.ok("GET", f"/analyse/event-logs/content/c-3/user/{ANNA}") == []
    assert api.no("GET", "/analyse/event-logs/content/c-1/user/u-99")[0] == 404
    assert api.no("GET", f"/analyse/event-logs/content/c-99/user/{ANNA}")[0] == 404


def test_an_archived_person_is_in_no_result(api, clock):
    """Somebody who is archived, by hand or at a date, is in no result from then on."""
    api.ok("POST", f"/users/{BO}/set-custom-archived-date", {"date": TODAY + DAY})
    assert rows(api, userIds=[BO]) != []
    clock.move(days=1)
    assert rows(api, userIds=[BO]) == []
