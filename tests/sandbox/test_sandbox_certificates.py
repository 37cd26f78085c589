"""The rules of the endpoint groups User Certificates and Certificate Management."""

from __future__ import annotations

import pytest

from .conftest import DAY, NOW
from .unspecified import chosen

ANNA, BO, CY, DI = "u-1", "u-2", "u-3", "u-4"
TODAY = int(NOW * 1000)
COURSE, PACKAGE = ("c-1", "COURSE"), ("c-2", "SCORM")
MORE = {
    "certificates": [
        {
            "user": "bo.ek@acme.example",
            "content": "GDPR basics",
            "issued": "2025-06-01T00:00:00Z",
            "expires": "2026-01-03T00:00:00Z",
            "recertification": "Fire safety",
            "notify": "true",
            "attachments": [{"url": "https://acme.example/a.pdf", "name": "a"}, {"url": "https://acme.example/b.pdf"}],
        },
        {"user": "bo.ek@acme.example", "content": "Fire safety", "issued": "2025-05-01T00:00:00Z"},
        {"user": "cy.dahl@acme.example", "content": "Fire safety", "issued": "2025-05-02T00:00:00Z"},
    ]
}
ISSUED = 1_748_736_000_000


@pytest.fixture
def api(open_workspace, clock):
    """A caller of a workspace with certificates."""
    return open_workspace(clock=clock, more=MORE)


def start(api, person: str = ANNA, content: tuple[str, str] = COURSE, **dates: object) -> str:
    """Starts a generation and gives its progress id."""
    body = {"userId": person, "contentId": content[0], "contentType": content[1], **dates}
    return str(api.ok("POST", "/manage-certificate/participation", body)["progressId"])


def refused(api, **body: object) -> int:
    whole = {"userId": ANNA, "contentId": "c-1", "contentType": "COURSE"} | body
    return api.no("POST", "/manage-certificate/participation", whole)[0]


def certificates(api, person: str) -> list[dict[str, object]]:
    return api.ok("GET", f"/users/{person}/certificates")["certificates"]


def test_one_users_certificates(api):
    """A certificate tells its content, dates, file and attachments, and what recertifies it, not nested further."""
    answer = api.ok("GET", f"/users/{BO}/certificates")
    first, second = answer["certificates"]
    assert answer["userId"] == BO
    assert first == {
        "contentId": "c-1",
        "contentType": "COURSE",
        "contentName": "GDPR basics",
        "certificateId": "cert-1",
        "issued": ISSUED,
        "expiresAt": 1_767_398_400_000,
        "pdfUri": "https://sandbox.invalid/certificates/cert-1.pdf",
        "status": "ACTIVE",
        "recertificationContentId": "c-2",
        "recertificationCertificate": second,
        "certificateAttachment": "https://acme.example/a.pdf",
        "certificateAttachments": [
            {"url": "https://acme.example/a.pdf", "name": "a", "createdAt": ISSUED},
            {"url": "https://acme.example/b.pdf", "name": "", "createdAt": ISSUED},
        ],
        "expiredNotificationEnabled": True,
    }
    assert not second.keys() & {"expiresAt", "recertificationContentId", "certificateAttachment"}
    assert certificates(api, ANNA) == []


@chosen("certificates.grouped")
def test_certificates_by_user(api):
    """Without flatView the answer is grouped by user: each value is a certificate. userIds[] says whose."""
    grouped = api.ok("GET", "/users/certificates")["usersWithCertificates"]
    assert {person: one["certificateId"] for person, one in grouped.items()} == {BO: "cert-1", CY: "cert-3"}
    assert api.ok("GET", "/users/certificates", flatView="false") == {"usersWithCertificates": grouped}
    only = api.ok("GET", "/users/certificates?userIds[]=u-3&userIds[]=u-1")
    assert only == {"usersWithCertificates": {CY: grouped[CY]}}


@chosen("certificates.flat")
def test_certificates_in_a_flat_view(api):
    """With flatView each certificate stands by itself and names its user."""
    flat = api.ok("GET", "/users/certificates", flatView="true")["certificates"]
    assert [(one["userId"], one["certificateId"]) for one in flat] == [(BO, "cert-1"), (BO, "cert-2"), (CY, "cert-3")]
    assert api.ok("GET", "/users/certificates?flatView=true&userIds[]=u-3")["certificates"] == flat[2:]


@chosen("certificates.expired")
def test_a_certificate_expires(api, clock):
    """A certificate is ACTIVE until the moment that it expires."""
    clock.now = 1_767_398_400_000 - 1
    assert certificates(api, BO)[0]["status"] == "ACTIVE"
    clock.now += 1
    assert certificates(api, BO)[0]["status"] == "EXPIRED"
    assert certificates(api, BO)[1]["status"] == "ACTIVE"


@chosen("certificates.start.at-once")
def test_a_generation_issues_a_certificate(api):
    """Starting a generation makes a progress record, whose status can be read, and issues the certificate."""
    progress = start(api, issuedAt=TODAY - DAY, expiresAt=TODAY + DAY)
    assert api.ok("GET", f"/manage-certificate/status/{progress}") == {"progressId": progress, "status": "DONE"}
    (made,) = certificates(api, ANNA)
    assert (made["contentId"], made["issued"], made["expiresAt"]) == ("c-1", TODAY - DAY, TODAY + DAY)
    assert start(api) != progress
    assert api.no("GET", "/manage-certificate/status/job-99")[0] == 404


@chosen("certificates.one")
def test_a_generation_replaces_a_certificate(api):
    """A second generation for the same user and content leaves one certificate, with the dates given last."""
    start(api, BO)
    assert [(one["contentId"], one["issued"], "expiresAt" in one) for one in certificates(api, BO)] == [
        ("c-2", 1_746_057_600_000, False),
        ("c-1", TODAY, False),
    ]


@chosen("certificates.start.participation")
def test_a_generation_records_a_participation(api):
    """It records the participation as approved, and an event that says it was done by hand."""
    start(api, CY, PACKAGE)
    (event,) = api.ok("GET", f"/analyse/event-logs/content/c-2/user/{CY}")
    assert (event["status"], event["manually"], event["mandatory"]) == ("APPROVED", True, False)
    (row,) = api.ok("POST", "/analyse/results", {"userIds": [CY], "contentIds": ["c-2"]})["list"]
    assert (row["state"], row["percentageProgress"], row["certificateIssuedAt"]) == ("APPROVED", 100, TODAY)


@chosen("certificates.start.dates")
@pytest.mark.parametrize(
    "dates",
    [
        {"issuedAt": TODAY + 1},
        {"expiresAt": TODAY},
        {"issuedAt": TODAY - DAY, "expiresAt": TODAY - DAY},
        {"issuedAt": "2026-01-01"},
        {"expiresAt": 10**30},
    ],
)
def test_the_dates_of_a_certificate_are_checked(api, dates):
    """Issued in the future, expired when issued, or no epoch milliseconds: 400, and nothing is made."""
    assert refused(api, **dates) == 400
    assert certificates(api, ANNA) == []


@chosen("certificates.start.account", "ids")
@pytest.mark.parametrize("body", [{"userId": "u-99"}, {"userId": DI}, {"contentId": "c-99"}, {"contentType": "SCORM"}])
def test_account_and_content_are_checked(api, body):
    """The target account is verified, and the content with its type: unknown, archived or another type is 400."""
    assert refused(api, **body) == 400


@pytest.mark.parametrize("missing", ["userId", "contentId", "contentType"])
def test_what_a_generation_needs(api, missing):
    """userId, contentId and contentType are required."""
    body = {"userId": ANNA, "contentId": "c-1", "contentType": "COURSE"}
    del body[missing]
    assert api.no("POST", "/manage-certificate/participation", body)[0] == 400


@chosen("certificates.delete.history")
def test_a_certificate_is_removed(api):
    """DELETE needs no content type, and takes that certificate alone; again it is 404. The history stays."""
    start(api, BO)
    path = "/manage-certificate/participation/users/u-2/contents/c-1"
    assert api.call("DELETE", path).status_code == 204
    assert [one["contentId"] for one in certificates(api, BO)] == ["c-2"]
    assert len(api.ok("GET", f"/analyse/event-logs/content/c-1/user/{BO}")) == 1
    assert api.no("DELETE", path)[0] == 404


def test_an_invitation_does_nothing(api):
    """POST invite takes no body, has no effect and says nothing."""
    before = api.ok("GET", "/users/certificates")
    answer = api.call("POST", "/manage-certificate/invite")
    assert (answer.status_code, answer.content) == (204, b"")
    assert api.ok("GET", "/users/certificates") == before
    assert api.no("POST", "/manage-certificate/invite", {"userId": BO})[0] == 400


@chosen("certificates.caller")
def test_anybody_may_ask_for_the_status(api):
    """The header with the calling user's id is optional, and changes nothing."""
    path = f"/manage-certificate/status/{start(api)}"
    assert api.client.get(path, headers={"Service-Calling-User-Id": "u-99"}).json() == api.ok("GET", path)
