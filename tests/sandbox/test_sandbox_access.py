"""The rules of the endpoint groups Authentication and User Access, of API keys, and of order details."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from lmsconf.errors import LmsconfError
from lmsconf.sandbox.service import Sandbox

from .conftest import NOW
from .unspecified import chosen

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


def test_a_link_leads_on(api):
    """redirectUri, empty by default, is where the link leads after the sign-in."""
    target = "https://acme.example/a b?x=1&y=å"
    assert link(api.ok("POST", "/auth", {"userId": BO}, redirectUri=target))["redirectUri"] == [target]


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


@pytest.mark.parametrize(("action", "application"), [("ADD", "teach"), ("add", "learn"), ("GRANT", "learn")])
def test_other_actions_and_applications(api, action, application):
    """An action that is neither ADD nor REMOVE, and a sixth application, are 400."""
    assert api.no("POST", f"/users/{BO}/access/{action}", {"applicationId": application})[0] == 400


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


@pytest.mark.parametrize(
    "body", [{"notes": "x"}, {"address": {"town": "Oslo"}}, {"companyPayment": "yes"}, {"disablePayment": True}]
)
def test_order_details_fit_the_description(api, body):
    """A detail that is unknown, or of another type, is 400."""
    assert api.no("PUT", f"/users/{BO}/order-details", body)[0] == 400


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
    assert len(set(keys)) == len(sandbox.keys) == 3
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
