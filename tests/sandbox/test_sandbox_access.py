"""The rules of the endpoint groups Authentication and User Access, of API keys, and of order details."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from lmsconf.errors import LmsconfError
from lmsconf.sandbox.service import Sandbox

from .conftest import DAY, NOW, chosen

ANNA, BO, CY, DI = "u-1", "u-2", "u-3", "u-4"
ALL = ["achievements", "analyse", "create", "learn", "follow-up"]
TODAY = int(NOW * 1000)


def link(answer: dict[str, object]) -> dict[str, list[str]]:
    """The parameters of a sign-in link."""
    return parse_qs(urlsplit(str(answer["preSignedInLink"])).query)


@chosen("auth.lifetime")
def test_a_link_signs_a_user_in(api):
    """POST /auth answers a link that holds a secret, never the same twice, and when it expires by the clock."""
    first = api.ok("POST", "/auth", {"userId": BO})
    second = api.ok("POST", "/auth", {"email": "BO.ek@acme.example"})
    assert first["expiresAt"] == second["expiresAt"] == TODAY + 15 * 60_000
    assert first["preSignedInLink"].startswith("https://sandbox.invalid/sign-in?secret=")
    assert link(first)["secret"] != link(second)["secret"]
    assert "redirectUri" not in link(first)


def test_the_user_id_takes_precedence(open_workspace):
    """Where userId and email are both given, the userId decides, even if nobody has that e-mail; neither is 400."""
    api = open_workspace()
    api.ok("POST", "/auth", {"userId": BO, "email": "nobody@acme.example"})
    assert api.no("POST", "/auth", {"userId": "u-99", "email": "bo.ek@acme.example"})[0] == 404
    assert api.no("POST", "/auth", {"email": "nobody@acme.example"})[0] == 404
    assert api.no("POST", "/auth", {}) == (400, "body must contain at least one of userId, email")


@chosen("auth.archived")
def test_no_link_for_the_archived(api):
    """An archived user gets no link."""
    assert api.no("POST", "/auth", {"userId": DI})[0] == 400


@pytest.mark.parametrize("application", ALL)
def test_applications_are_given_and_taken(api, application):
    """ADD and REMOVE give and take each of the five applications."""
    api.ok("POST", f"/users/{BO}/access/ADD", {"applicationId": application})
    assert set(api.ok("GET", f"/users/{BO}")["applicationIds"]) == {"learn", application}
    api.ok("POST", f"/users/{BO}/access/REMOVE", {"applicationId": application})
    extended = api.ok("GET", "/users/extended-info", filter="bo.ek")["users"][0]
    assert extended["availableApplications"] == [one for one in ["learn"] if one != application]


@chosen("users.access.again")
def test_an_application_is_there_or_not(api):
    """Giving one that is there, and taking one that is not, changes nothing."""
    api.ok("POST", f"/users/{BO}/access/ADD", {"applicationId": "learn"})
    api.ok("POST", f"/users/{BO}/access/REMOVE", {"applicationId": "create"})
    assert api.ok("GET", f"/users/{BO}")["applicationIds"] == ["learn"]


@chosen("users.applications.own")
@pytest.mark.parametrize("right", ["admin", "manager"])
def test_rights_are_granted_and_revoked(api, right):
    """make-admin and make-manager set the flag to the value of endow, and touch nothing else."""
    before = api.ok("GET", f"/users/{BO}")
    for endow, value in (("true", True), ("true", True), ("false", False)):
        api.ok("POST", f"/users/{BO}/make-{right}/{endow}")
        assert api.ok("GET", f"/users/{BO}") == before | {right: value}
    assert api.no("POST", f"/users/{BO}/make-{right}/yes") == (
        400,
        "path parameter 'endow' must be one of true, false, not 'yes'",
    )


DETAILS = {
    "email": "pay@acme.example",
    "firstName": "Pat",
    "companyName": "Acme",
    "phoneCode": "+47",
    "address": {"street": "Gate 1", "city": "Oslo", "zip": "0150"},
    "companyPayment": True,
    "note": "by post",
}


@chosen("orders.first")
def test_order_details_before_any(api):
    """Somebody about whom nothing was stored has payments that are not disabled, and nothing else."""
    assert api.ok("GET", f"/users/{BO}/order-details") == {"disablePayment": False}


@chosen("orders.replace")
def test_order_details_are_stored(timed, clock):
    """PUT stores the details whole and answers them, with ISO times of the first and of the last change."""
    times = {"createdAt": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-01T00:00:00Z"}
    assert timed.ok("PUT", f"/users/{BO}/order-details", DETAILS) == DETAILS | {"disablePayment": False} | times
    timed.ok("PUT", f"/users/{BO}/disable-payment", {"disablePayment": True})
    clock.move(days=1)
    after = timed.ok("PUT", f"/users/{BO}/order-details", {"note": "x"})
    assert after == {"note": "x", "disablePayment": True} | times | {"updatedAt": "2026-01-02T00:00:00Z"}
    assert timed.ok("GET", f"/users/{BO}/order-details") == after
    assert timed.ok("GET", f"/users/{CY}/order-details") == {"disablePayment": False}


def test_payment_is_disabled_and_enabled(api):
    """PUT disable-payment turns the switch and answers the order details."""
    api.ok("PUT", f"/users/{BO}/order-details", DETAILS)
    for switch in (True, False):
        answer = api.ok("PUT", f"/users/{BO}/disable-payment", {"disablePayment": switch})
        assert answer == api.ok("GET", f"/users/{BO}/order-details")
        assert (answer["disablePayment"], answer["address"]) == (switch, DETAILS["address"])


def test_nested_names_of_the_dialect(open_workspace):
    """The dialect names parts of a body at any depth."""
    api = open_workspace({"users.set-order-details.address.zip": "postcode"})
    assert api.ok("PUT", f"/users/{BO}/order-details", {"address": {"postcode": "1"}})["address"] == {"zip": "1"}
    assert api.no("PUT", f"/users/{BO}/order-details", {"address": {"zip": "1"}})[0] == 400


def test_three_api_keys_at_most():
    """Up to three keys are active at a time, each opens the workspace, and a revoked one does not any more."""
    sandbox = Sandbox(token="first")
    keys = ["first", sandbox.keys.create(), sandbox.keys.create()]
    assert len(set(keys)) == 3
    with pytest.raises(LmsconfError, match="at most 3 API keys"):
        sandbox.keys.create()
    sandbox.keys.revoke("first")
    with httpx.Client(transport=sandbox, base_url="http://sandbox") as client:
        answers = [client.get("/groups", headers={"authorization": f"Bearer {key}"}).status_code for key in keys]
    assert answers == [401, 200, 200]
    with pytest.raises(LmsconfError, match="not active"):
        sandbox.keys.revoke("first")
    assert sandbox.keys.create() not in keys
    sandbox.close_workspace()


# The rules of the endpoint groups User Certificates and Certificate Management.


CERTIFICATES_ANNA, CERTIFICATES_BO, CERTIFICATES_CY, CERTIFICATES_DI = "u-1", "u-2", "u-3", "u-4"
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


def start(api, person: str = CERTIFICATES_ANNA, content: tuple[str, str] = COURSE, **dates: object) -> str:
    """Starts a generation and gives its progress id."""
    body = {"userId": person, "contentId": content[0], "contentType": content[1], **dates}
    return str(api.ok("POST", "/manage-certificate/participation", body)["progressId"])


def refused(api, **body: object) -> int:
    whole = {"userId": CERTIFICATES_ANNA, "contentId": "c-1", "contentType": "COURSE"} | body
    return api.no("POST", "/manage-certificate/participation", whole)[0]


def certificates(api, person: str) -> list[dict[str, object]]:
    return api.ok("GET", f"/users/{person}/certificates")["certificates"]


def test_one_users_certificates(api):
    """A certificate tells its content, dates, file and attachments, and what recertifies it, not nested further."""
    answer = api.ok("GET", f"/users/{CERTIFICATES_BO}/certificates")
    first, second = answer["certificates"]
    assert answer["userId"] == CERTIFICATES_BO
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
    assert certificates(api, CERTIFICATES_ANNA) == []


@chosen("certificates.grouped")
def test_certificates_by_user(api):
    """Without flatView the answer is grouped by user: each value is a certificate. userIds[] says whose."""
    grouped = api.ok("GET", "/users/certificates")["usersWithCertificates"]
    assert {person: one["certificateId"] for person, one in grouped.items()} == {
        BO: "cert-1",
        CERTIFICATES_CY: "cert-3",
    }
    assert api.ok("GET", "/users/certificates", flatView="false") == {"usersWithCertificates": grouped}
    only = api.ok("GET", "/users/certificates?userIds[]=u-3&userIds[]=u-1")
    assert only == {"usersWithCertificates": {CERTIFICATES_CY: grouped[CERTIFICATES_CY]}}


@chosen("certificates.flat")
def test_certificates_in_a_flat_view(api):
    """With flatView each certificate stands by itself and names its user."""
    flat = api.ok("GET", "/users/certificates", flatView="true")["certificates"]
    assert [(one["userId"], one["certificateId"]) for one in flat] == [
        (CERTIFICATES_BO, "cert-1"),
        (CERTIFICATES_BO, "cert-2"),
        (CERTIFICATES_CY, "cert-3"),
    ]
    assert api.ok("GET", "/users/certificates?flatView=true&userIds[]=u-3")["certificates"] == flat[2:]


@chosen("certificates.expired")
def test_a_certificate_expires(api, clock):
    """A certificate is ACTIVE until the moment that it expires."""
    clock.now = 1_767_398_400_000 - 1
    assert certificates(api, CERTIFICATES_BO)[0]["status"] == "ACTIVE"
    clock.now += 1
    assert certificates(api, CERTIFICATES_BO)[0]["status"] == "EXPIRED"
    assert certificates(api, CERTIFICATES_BO)[1]["status"] == "ACTIVE"


@chosen("certificates.start.at-once")
def test_a_generation_issues_a_certificate(api):
    """Starting a generation makes a progress record, whose status can be read, and issues the certificate."""
    progress = start(api, issuedAt=TODAY - DAY, expiresAt=TODAY + DAY)
    assert api.ok("GET", f"/manage-certificate/status/{progress}") == {"progressId": progress, "status": "DONE"}
    (made,) = certificates(api, CERTIFICATES_ANNA)
    assert (made["contentId"], made["issued"], made["expiresAt"]) == ("c-1", TODAY - DAY, TODAY + DAY)
    assert start(api) != progress
    assert api.no("GET", "/manage-certificate/status/job-99")[0] == 404


@chosen("certificates.one")
def test_a_generation_replaces_a_certificate(api):
    """A second generation for the same user and content leaves one certificate, with the dates given last."""
    start(api, CERTIFICATES_BO)
    assert [(one["contentId"], one["issued"], "expiresAt" in one) for one in certificates(api, CERTIFICATES_BO)] == [
        ("c-2", 1_746_057_600_000, False),
        ("c-1", TODAY, False),
    ]


@chosen("certificates.start.participation")
def test_a_generation_records_a_participation(api):
    """It records the participation as approved, and an event that says it was done by hand."""
    start(api, CERTIFICATES_CY, PACKAGE)
    (event,) = api.ok("GET", f"/analyse/event-logs/content/c-2/user/{CERTIFICATES_CY}")
    assert (event["status"], event["manually"], event["mandatory"]) == ("APPROVED", True, False)
    (row,) = api.ok("POST", "/analyse/results", {"userIds": [CERTIFICATES_CY], "contentIds": ["c-2"]})["list"]
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
    assert certificates(api, CERTIFICATES_ANNA) == []


@chosen("certificates.start.account", "ids")
@pytest.mark.parametrize(
    "body", [{"userId": "u-99"}, {"userId": CERTIFICATES_DI}, {"contentId": "c-99"}, {"contentType": "SCORM"}]
)
def test_account_and_content_are_checked(api, body):
    """The target account is verified, and the content with its type: unknown, archived or another type is 400."""
    assert refused(api, **body) == 400


@chosen("certificates.delete.history")
def test_a_certificate_is_removed(api):
    """DELETE needs no content type, and takes that certificate alone; again it is 404. The history stays."""
    start(api, CERTIFICATES_BO)
    path = "/manage-certificate/participation/users/u-2/contents/c-1"
    assert api.call("DELETE", path).status_code == 204
    assert [one["contentId"] for one in certificates(api, CERTIFICATES_BO)] == ["c-2"]
    assert len(api.ok("GET", f"/analyse/event-logs/content/c-1/user/{CERTIFICATES_BO}")) == 1
    assert api.no("DELETE", path)[0] == 404


@chosen("certificates.caller")
def test_anybody_may_ask_for_the_status(api):
    """The header with the calling user's id is optional, and changes nothing."""
    path = f"/manage-certificate/status/{start(api)}"
    assert api.client.get(path, headers={"Service-Calling-User-Id": "u-99"}).json() == api.ok("GET", path)
