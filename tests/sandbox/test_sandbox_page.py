"""The page that a served sandbox shows to people."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import urlsplit

import httpx
import pytest

from lmsconf.sandbox.serve import serve

HTML = {"accept": "text/html,application/xhtml+xml"}
EVIL = '<script>alert("1")</script>&amp;'


class PageContent(HTMLParser):
    """The tags and the texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture
def served(api):
    """The address of the workspace of `api`."""
    with serve(api.sandbox) as server:
        yield server.url


def test_the_page_shows_the_workspace_and_the_last_calls(api, served):
    """GET / for a browser is a page about people, fields, groups, content and the last calls, the latest first."""
    api.call("GET", "/groups")
    api.call("GET", "/nowhere")
    answer = httpx.get(served, headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    seen = PageContent(answer.text)
    for text in ("Last calls: 2", "People: 4", "Custom fields: 3", "Groups: 2", "Content: 2", "anna.berg@acme.example"):
        assert text in seen.texts
    assert seen.texts.index("/nowhere") < seen.texts.index("/groups")
    assert "Sales, Engineering, Legal" in seen.texts


def test_the_page_escapes_everything_and_runs_nothing(api, served):
    """Whatever stands in the workspace or was called is text on the page; it has no script, form, link or handler."""
    api.ok("POST", "/groups", {"name": EVIL})
    api.ok("POST", "/custom-fields", {"name": EVIL, "type": "CHOICE", "choices": [{"name": EVIL}]})
    api.ok("POST", "/users/u-2/update-fullname", {"firstName": EVIL, "lastName": EVIL})
    api.call("GET", "/groups/" + EVIL)
    answer = httpx.get(served, headers=HTML)
    seen = PageContent(answer.text)
    assert set(seen.tags) <= {
        *("html", "head", "meta", "title", "style", "body", "main", "div", "h1", "table", "caption", "tr", "th", "td")
    }
    assert seen.attributes == {
        *("lang", "charset", "scope", "class", "name", "content", "role", "tabindex", "aria-label")
    }
    assert EVIL in seen.texts
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_holds_no_secret(api, served):
    """Neither the credential nor a sign-in link's secret is on the page."""
    api.sandbox.keys.revoke("sandbox")
    key = api.sandbox.keys.create()
    link = httpx.post(f"{served}/auth", json={"userId": "u-2"}, headers={"authorization": f"Bearer {key}"}).json()
    page = httpx.get(served, headers=HTML).text
    assert key not in page
    assert link["preSignedInLink"].partition("secret=")[2] not in page


def test_the_page_is_short(api, served):
    """A table shows its first 50 rows and says of how many."""
    for number in range(60):
        api.ok("POST", "/groups", {"name": f"Group {number}"})
    seen = PageContent(httpx.get(served, headers=HTML).text)
    assert "Groups: 50 of 62" in seen.texts
    assert "Last calls: 50 of 60" in seen.texts
    assert "Group 59" not in seen.texts


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [("GET", "/", {"accept": "application/json"}), ("POST", "/", HTML), ("GET", "/groups", HTML)],
)
def test_only_browsers_at_the_root_see_it(api, served, method, path, headers):
    """Everything else needs the credential as ever."""
    assert httpx.request(method, served + path, headers=headers).status_code == 401


def test_the_page_is_for_this_machine(api, served):
    """Under a name that is not this machine's own the page is not shown, so that no site can read it."""
    port = urlsplit(served).port
    for host, status in (("evil.example", 421), ("localhost", 200), ("127.0.0.1", 200)):
        assert httpx.get(served, headers=HTML | {"host": f"{host}:{port}"}).status_code == status
    assert httpx.get(served, headers=HTML | {"host": "evil.example"}).status_code == 421


@pytest.mark.sampled
@pytest.mark.parametrize("path", ["/", "/groups", "/users", "/nowhere"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_every_route_is_for_this_machine(api, served, method, path):
    """A request under another name, at another port or with two names is answered by nothing, token or not.

    So a site whose name leads here cannot use the workspace through the browser of somebody who runs a sandbox.
    """
    port = urlsplit(served).port
    others = (f"evil.example:{port}", "localhost", "127.0.0.1:1", f"127.0.0.1.evil.example:{port}", "")
    for host in (*others, f"localhost:{port}, evil.example"):
        headers = {"host": host, "authorization": "Bearer sandbox"}
        assert httpx.request(method, served + path, headers=headers).status_code == 421, host
    assert api.sandbox.log == []
    headers = {"host": f"LOCALHOST:{port}", "authorization": "Bearer sandbox"}
    assert httpx.request(method, served + path, headers=headers).status_code != 421


def test_looking_changes_nothing(api, served):
    """The page is no call: it is not in the log."""
    httpx.get(served, headers=HTML)
    assert api.sandbox.log == []
