"""The rules that requests and responses one by one do not show: sizes of pages, forms of answers, links, keys."""

import json
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from texts import listed_cases, text_of

from lmsconf.errors import LmsconfError
from lmsconf.sandbox.service import Sandbox

from .conftest import NOW, chosen


@pytest.fixture
def big(open_workspace):
    """A catalog of 120 items, every fourth of which is for sale, where other lists give larger pages."""
    content = [{"name": f"Course {n}", "price": 0 if n % 4 else 490} for n in range(120)]
    return open_workspace({"paging.limit": 1000}, more={"content": content, "content_targets": []})


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


def test_at_most_a_hundred_meetups(open_workspace):
    """Meetups are limited to the first 100 content ids of the catalog; the order by update comes after that."""
    days = [f"2025-01-01T{number // 60:02}:{number % 60:02}:00Z" for number in range(101)]
    content = [{"name": f"M{number}", "type": "MEETUP", "updated": day} for number, day in enumerate(days)]
    targets = [{"content": one["name"], "assign_to": ["everyone"]} for one in content]
    api = open_workspace(more={"content": content, "content_targets": targets})
    names = [one["name"] for one in api.ok("GET", "/content/meetups")["meetups"]]
    assert names == [f"M{number}" for number in range(99, -1, -1)]


@chosen("auth.lifetime")
def test_a_link_signs_a_user_in(api):
    """POST /auth answers a link that holds a secret, never the same twice, and when it expires by the clock."""
    first = api.ok("POST", "/auth", {"userId": "u-2"})
    second = api.ok("POST", "/auth", {"email": "BO.ek@acme.example"})
    assert first["expiresAt"] == second["expiresAt"] == int(NOW * 1000) + 15 * 60_000
    assert first["preSignedInLink"].startswith("https://sandbox.invalid/sign-in?secret=")
    one, other = (parse_qs(urlsplit(link["preSignedInLink"]).query) for link in (first, second))
    assert one["secret"] != other["secret"]
    assert "redirectUri" not in one


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


@chosen("certificates.caller")
def test_anybody_may_ask_for_the_status(api):
    """The header with the calling user's id is optional, and changes nothing."""
    body = {"userId": "u-1", "contentId": "c-1", "contentType": "COURSE"}
    path = f"/manage-certificate/status/{api.ok('POST', '/manage-certificate/participation', body)['progressId']}"
    assert api.client.get(path, headers={"Service-Calling-User-Id": "u-99"}).json() == api.ok("GET", path)


FORMS = json.loads(text_of(__file__, "test_sandbox_content.json"))["test_an_answer_is_written_as_the_dialect_says"]
FIELDS = {
    "value": ("f-1", "Department", ["ch-2"]),
    "value-multi-select": ("f-2", "Skills", ["ch-4", "ch-5"]),
    "value-text": ("f-3", "Badge", "B-2"),
}
"""Key → id and name of the field, and the answer that each form means."""


@listed_cases("key", "form", "written")
def test_an_answer_is_written_as_the_dialect_says(open_workspace, key, form, written):
    """In that form it is taken; in every other it is 400, and the answer stays."""
    api = open_workspace({f"users.update-custom-field-choice.{key}": form})
    (field, name, meant), path = FIELDS[key], "/users/u-2/update-custom-field-choice"
    api.ok("POST", path, {field: written})
    shown = api.ok("GET", "/users/u-2")["customFields"][name]
    assert (shown.get("text") or [choice["choiceId"] for choice in shown["choices"]]) == meant
    others = [said for one, other, said in FORMS if one == key and other != form]
    for said in [*others, {"choiceId": "ch-2", "more": "x"}, {"choiceIds": "x"}, [{"choiceId": ["x"]}]]:
        assert api.no("POST", path, {field: said})[0] == 400
    assert api.ok("GET", "/users/u-2")["customFields"][name] == shown
