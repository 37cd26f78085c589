"""The rules of the endpoint group Users, as far as configuration reads it."""

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import yaml
from texts import listed_cases, text_of

from lmsconf.errors import LmsconfError
from lmsconf.sandbox.service import Sandbox

from .conftest import NOW, chosen


def test_one_user(api):
    """GET /users/{userId} joins what the lists tell; somebody who is not there is 404."""
    plain, extended = api.ok("GET", "/users")["users"][3], api.ok("GET", "/users/extended-info")["users"][3]
    del extended["availableApplications"]
    whole = api.ok("GET", "/users/u-4")
    assert whole == whole | plain | extended
    assert whole["applicationIds"] == ["learn"]
    assert api.no("GET", "/users/u-99") == (404, "there is no user 'u-99'")


# The rules of the endpoint group Users, where accounts are made, changed, archived and deleted.


ANNA, BO = "u-1", "u-2"  # an admin, and nobody in particular
TODAY = int(NOW * 1000)


def archived_at(api, id: str) -> object:
    return api.ok("GET", f"/users/{id}").get("archivedAt")


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


def test_an_admin_is_not_archived(api):
    """Archiving an admin is 400 and changes nothing; once the right is revoked it works."""
    assert api.no("POST", f"/users/{ANNA}/archive")[0] == 400
    assert archived_at(api, ANNA) is None
    api.ok("POST", f"/users/{ANNA}/make-admin/false")
    api.ok("POST", f"/users/{ANNA}/archive")
    assert archived_at(api, ANNA) == TODAY


@listed_cases("method", "path", "body")
@chosen("ids", "errors")
def test_an_unknown_user_is_not_found(api, method, path, body):
    """Whatever is asked of somebody who is not there is 404."""
    assert api.no(method, f"/users/u-99{path}", body) == (404, "there is no user 'u-99'")


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


# The rules of the endpoint groups Authentication and User Access, of API keys, and of order details.


def link(answer: dict[str, object]) -> dict[str, list[str]]:
    """The parameters of a sign-in link."""
    return parse_qs(urlsplit(str(answer["preSignedInLink"])).query)


@chosen("auth.lifetime")
def test_a_link_signs_a_user_in(certified):
    """POST /auth answers a link that holds a secret, never the same twice, and when it expires by the clock."""
    first = certified.ok("POST", "/auth", {"userId": BO})
    second = certified.ok("POST", "/auth", {"email": "BO.ek@acme.example"})
    assert first["expiresAt"] == second["expiresAt"] == TODAY + 15 * 60_000
    assert first["preSignedInLink"].startswith("https://sandbox.invalid/sign-in?secret=")
    assert link(first)["secret"] != link(second)["secret"]
    assert "redirectUri" not in link(first)


@chosen("users.applications.own")
@pytest.mark.parametrize("right", ["admin", "manager"])
def test_rights_are_granted_and_revoked(certified, right):
    """make-admin and make-manager set the flag to the value of endow, and touch nothing else."""
    before = certified.ok("GET", f"/users/{BO}")
    for endow, value in (("true", True), ("true", True), ("false", False)):
        certified.ok("POST", f"/users/{BO}/make-{right}/{endow}")
        assert certified.ok("GET", f"/users/{BO}") == before | {right: value}
    assert certified.no("POST", f"/users/{BO}/make-{right}/yes") == (
        400,
        "path parameter 'endow' must be one of true, false, not 'yes'",
    )


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


COURSE = ("c-1", "COURSE")
MORE = yaml.safe_load(text_of(__file__, "sandbox_certificates.yaml"))
ISSUED = 1_748_736_000_000


@pytest.fixture
def certified(open_workspace, clock):
    """A caller of a workspace with certificates."""
    return open_workspace(clock=clock, more=MORE)


def start(certified, person: str = ANNA, content: tuple[str, str] = COURSE, **dates: object) -> str:
    """Starts a generation and gives its progress id."""
    body = {"userId": person, "contentId": content[0], "contentType": content[1], **dates}
    return str(certified.ok("POST", "/manage-certificate/participation", body)["progressId"])


def certificates(certified, person: str) -> list[dict[str, object]]:
    return certified.ok("GET", f"/users/{person}/certificates")["certificates"]


def test_one_users_certificates(certified):
    """A certificate tells its content, dates, file and attachments, and what recertifies it, not nested further."""
    answer = certified.ok("GET", f"/users/{BO}/certificates")
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
    assert certificates(certified, ANNA) == []


@chosen("certificates.expired")
def test_a_certificate_expires(certified, clock):
    """A certificate is ACTIVE until the moment that it expires."""
    clock.now = 1_767_398_400_000 - 1
    assert certificates(certified, BO)[0]["status"] == "ACTIVE"
    clock.now += 1
    assert certificates(certified, BO)[0]["status"] == "EXPIRED"
    assert certificates(certified, BO)[1]["status"] == "ACTIVE"


@chosen("certificates.caller")
def test_anybody_may_ask_for_the_status(certified):
    """The header with the calling user's id is optional, and changes nothing."""
    path = f"/manage-certificate/status/{start(certified)}"
    assert certified.client.get(path, headers={"Service-Calling-User-Id": "u-99"}).json() == certified.ok("GET", path)
