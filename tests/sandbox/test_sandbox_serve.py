"""The sandbox behind a port: the same answers as in process, to this machine only."""

from __future__ import annotations

import socket
from html.parser import HTMLParser
from urllib.parse import urlsplit

import httpx
import pytest
from waiting import HANGS

from lmsconf.errors import LmsconfError
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.serve import LARGEST_BODY, serve

JOURNEY = [
    ("GET", "/users/extended-info?limit=2", None),
    ("POST", "/groups", {"name": "Ålesund", "memberIds": ["u-1"]}),
    ("POST", "/groups/g-2/members", {"userIds": ["u-2"]}),
    ("GET", "/groups/g-2/members", None),
    ("DELETE", "/groups/g-2/members/u-2", None),
    ("PUT", "/custom-fields/f-1", {"name": "x", "type": "CHOICE", "choices": []}),
    ("POST", "/content/targets", {"contentId": "c-2", "targetId": "g-2", "mandatory": True}),
    ("DELETE", "/content/targets", {"contentId": "c-2", "targetId": "g-2", "targetType": "GROUP"}),
    ("GET", "/content/targets?contentId=c-2", None),
    ("DELETE", "/groups/g-2", None),
    ("GET", "/groups/g-2", None),
    ("GET", "/no%20where?x=%C3%A5", None),
    ("POST", "/users", {"email": "åse@acme.example", "firstName": "Åse"}),
    ("POST", "/users/u-5/update-custom-field-choice", {"f-1": "ch-1"}),
    ("POST", "/users/u-5/access/ADD", {"applicationId": "create"}),
    ("POST", "/users/u-5/make-manager/maybe", None),
    ("POST", "/auth?redirectUri=https%3A%2F%2Facme.example", {"userId": "u-5"}),
    ("POST", "/manage-certificate/participation", {"userId": "u-5", "contentId": "c-1", "contentType": "COURSE"}),
    ("GET", "/manage-certificate/status/job-1", None),
    ("GET", "/users/certificates?userIds[]=u-5&flatView=true", None),
    ("POST", "/analyse/results", {"options": {"orderBy": "userName"}}),
    ("GET", "/analyse/event-logs/content/c-1/user/u-5", None),
    ("PUT", "/users/u-5/order-details", {"note": "ø"}),
    ("DELETE", "/users/u-5", None),
]


@pytest.fixture
def served(api):
    """The workspace of `api` behind a port, and a client that speaks to it."""
    headers = {"authorization": "Bearer sandbox"}
    with serve(api.sandbox) as server, httpx.Client(base_url=server.url, headers=headers) as client:
        yield client


def talk(server, request: bytes) -> bytes:
    """What the server sends back to those bytes until it closes the connection."""
    with socket.create_connection((urlsplit(server).hostname, urlsplit(server).port), timeout=HANGS) as connection:
        connection.sendall(request)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_answers_are_the_same_byte_for_byte(open_workspace):
    """A whole journey of requests gets the same status, headers and bytes over the port as in process."""
    inside, outside = open_workspace(), open_workspace()
    with serve(outside.sandbox) as server, httpx.Client(base_url=server.url) as client:
        for method, path, body in JOURNEY:
            near = inside.call(method, path, body)
            far = client.request(method, path, json=body, headers={"authorization": "Bearer sandbox"})
            assert (far.status_code, far.content) == (near.status_code, near.content)
            assert far.headers.get("content-type") == near.headers.get("content-type")
            assert far.headers.get("content-length") == near.headers.get("content-length")
    assert inside.sandbox.log == outside.sandbox.log
    assert len(inside.sandbox.log) == len(JOURNEY)


def test_only_this_machine_is_served(api):
    """The server listens on loopback alone."""
    with serve(api.sandbox) as server:
        assert server.url.startswith("http://127.0.0.1:")


def test_a_port_that_is_taken(api):
    """A port that is taken is an error that names it and a way out."""
    with serve(api.sandbox) as server:
        port = urlsplit(server.url).port
        with pytest.raises(LmsconfError, match=f"cannot listen on 127.0.0.1:{port}") as error:
            serve(api.sandbox, port)
    assert error.value.hint == "Choose another port with --port"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"transfer-encoding: chunked", b"411"),
        (b"content-length: -1", b"411"),
        (b"content-length: " + str(LARGEST_BODY + 1).encode(), b"413"),
    ],
)
def test_a_body_has_a_length_within_bounds(served, header, status):
    """A body whose length is not said, or is beyond bounds, is refused unread, and the connection ends."""
    host = served.base_url.netloc
    answer = talk(str(served.base_url), b"POST /groups HTTP/1.1\r\nhost: " + host + b"\r\n" + header + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 " + status)


def test_a_lost_answer_is_a_broken_connection(open_workspace):
    """Where a fault loses the answer, the client sees the connection break, and the change is made."""
    api = open_workspace(faults=FaultScript(Fault(operation="manual-groups.create", lose_answer=True)))
    headers = {"authorization": "Bearer sandbox"}
    with serve(api.sandbox) as server, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{server.url}/groups", json={"name": "New"}, headers=headers)
    assert len(api.ok("GET", "/groups")["groups"]) == 2


def test_stopping_ends_open_connections(api):
    """A stopped server does not wait for clients that keep their connection."""
    server = serve(api.sandbox).start()
    with httpx.Client(base_url=server.url) as client:
        client.get("/groups")
        server.stop()
        with pytest.raises(httpx.TransportError):
            client.get("/groups")


# The page that a served sandbox shows to people.


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
def page_served(api):
    """The address of the workspace of `api`."""
    with serve(api.sandbox) as server:
        yield server.url


def test_the_page_shows_the_workspace_and_the_last_calls(api, page_served):
    """GET / for a browser is a page about people, fields, groups, content and the last calls, the latest first."""
    api.call("GET", "/groups")
    api.call("GET", "/nowhere")
    answer = httpx.get(page_served, headers=HTML)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    seen = PageContent(answer.text)
    for text in ("Last calls: 2", "People: 4", "Custom fields: 3", "Groups: 2", "Content: 2", "anna.berg@acme.example"):
        assert text in seen.texts
    assert seen.texts.index("/nowhere") < seen.texts.index("/groups")
    assert "Sales, Engineering, Legal" in seen.texts


def test_the_page_escapes_everything_and_runs_nothing(api, page_served):
    """Whatever stands in the workspace or was called is text on the page; it has no script, form, link or handler."""
    api.ok("POST", "/groups", {"name": EVIL})
    api.ok("POST", "/custom-fields", {"name": EVIL, "type": "CHOICE", "choices": [{"name": EVIL}]})
    api.ok("POST", "/users/u-2/update-fullname", {"firstName": EVIL, "lastName": EVIL})
    api.call("GET", "/groups/" + EVIL)
    answer = httpx.get(page_served, headers=HTML)
    seen = PageContent(answer.text)
    assert set(seen.tags) <= {
        *("html", "head", "meta", "title", "style", "body", "main", "div", "h1", "table", "caption", "tr", "th", "td")
    }
    assert seen.attributes == {
        *("lang", "charset", "scope", "class", "name", "content", "role", "tabindex", "aria-label")
    }
    assert EVIL in seen.texts
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_the_page_holds_no_secret(api, page_served):
    """Neither the credential nor a sign-in link's secret is on the page."""
    api.sandbox.keys.revoke("sandbox")
    key = api.sandbox.keys.create()
    link = httpx.post(f"{page_served}/auth", json={"userId": "u-2"}, headers={"authorization": f"Bearer {key}"}).json()
    page = httpx.get(page_served, headers=HTML).text
    assert key not in page
    assert link["preSignedInLink"].partition("secret=")[2] not in page


def test_the_page_is_short(api, page_served):
    """A table shows its first 50 rows and says of how many."""
    for number in range(60):
        api.ok("POST", "/groups", {"name": f"Group {number}"})
    seen = PageContent(httpx.get(page_served, headers=HTML).text)
    assert "Groups: 50 of 62" in seen.texts
    assert "Last calls: 50 of 60" in seen.texts
    assert "Group 59" not in seen.texts


def test_the_page_is_for_this_machine(api, page_served):
    """Under a name that is not this machine's own the page is not shown, so that no site can read it."""
    port = urlsplit(page_served).port
    for host, status in (("evil.example", 421), ("localhost", 200), ("127.0.0.1", 200)):
        assert httpx.get(page_served, headers=HTML | {"host": f"{host}:{port}"}).status_code == status
    assert httpx.get(page_served, headers=HTML | {"host": "evil.example"}).status_code == 421


@pytest.mark.sampled
@pytest.mark.parametrize("path", ["/", "/groups", "/users", "/nowhere"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_every_route_is_for_this_machine(api, page_served, method, path):
    """A request under another name, at another port or with two names is answered by nothing, token or not.

    So a site whose name leads here cannot use the workspace through the browser of somebody who runs a sandbox.
    """
    port = urlsplit(page_served).port
    others = (f"evil.example:{port}", "localhost", "127.0.0.1:1", f"127.0.0.1.evil.example:{port}", "")
    for host in (*others, f"localhost:{port}, evil.example"):
        headers = {"host": host, "authorization": "Bearer sandbox"}
        assert httpx.request(method, page_served + path, headers=headers).status_code == 421, host
    assert api.sandbox.log == []
    headers = {"host": f"LOCALHOST:{port}", "authorization": "Bearer sandbox"}
    assert httpx.request(method, page_served + path, headers=headers).status_code != 421
