"""What every endpoint has in common: the credential, the description that requests must fit, errors, the log."""

import re
import socket
from html.parser import HTMLParser
from urllib.parse import urlsplit

import httpx
import pytest
from waiting import HANGS

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import LmsconfError
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.serve import LARGEST_BODY, serve

from .test_sandbox_rules import JSON, rules

TARGET = {"contentId": "c-1", "targetId": "g-1", "targetType": "GROUP"}


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic sandbox", "sandbox", "Bearer sandböx"]
)
@pytest.mark.parametrize("path", ["/users", "/groups/g-1", "/nowhere"])
def test_a_credential_is_required(api, given, path):
    """Every request needs `Authorization: Bearer` with the right credential; without it nothing else is looked at."""
    with httpx.Client(transport=api.sandbox, base_url="http://sandbox") as client:
        answer = client.delete(path, headers=[(b"authorization", given.encode())] if given is not None else [])
    assert answer.status_code == 401
    assert answer.json()["error"] == "unauthorized"
    assert api.ok("GET", "/groups")["groups"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        *((body, "") for body in (b'{"name": "\xff"}', b'{"name": "\\ud800"}', b"[" * 100_000, b'{"name": "x"} {}')),
    ],
    ids=["empty", "not UTF-8", "half a character", "bottomless", "a second document"],
)
def test_a_body_is_whole_json_in_utf_8(api, body, message):
    """No body at all, bytes that are not UTF-8, half a character, a bottomless body and a second document are 400."""
    answer = api.client.post("/groups", content=body, headers=JSON)
    assert (answer.status_code, answer.json()["error"]) == (400, "bad_request")
    assert answer.json()["message"].startswith(f"the body is not JSON: {message}")


@pytest.mark.parametrize("type", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_body_says_that_it_is_json(api, type):
    """A body of another content type is 400; parameters of the type do no harm."""
    answer = api.client.post("/groups", content=b'{"name": "x"}', headers={"content-type": type})
    assert answer.status_code == 400
    assert "application/json" in answer.json()["message"]
    typed = {"content-type": "Application/JSON; charset=utf-8"}
    assert api.client.post("/groups", content=b'{"name": "x"}', headers=typed).status_code == 200


NEEDED = [
    (operation, key)
    for operation in ApiSpec.default().operations.values()
    for key in ((operation.body or {}).get("required", []))
]


@pytest.mark.parametrize(("operation", "key"), NEEDED, ids=lambda value: getattr(value, "id", value))
def test_what_is_required_is_required(api, operation, key):
    """A body without a key that it needs is a 400 that names the key, whatever else is asked for."""
    path = operation.path.replace("{action}", "ADD")
    for name in operation.path_schemas:
        path = path.replace(f"{{{name}}}", "u-1")
    body = {other: None for other in operation.body["required"] if other != key}
    if "oneOf" in operation.body:
        body["targetId"] = "g-1"
    status, message = api.no(operation.method, path, body)
    assert status == 400
    assert f"'{key}'" in message


def test_the_log_holds_every_request(open_workspace):
    """`log` has method, path, operation and status of each request, and whether it writes; refused and lost too."""
    broken = (Fault(operation="smart-groups.create", cut=True), Fault(operation="users.create", lose_answer=True))
    api = open_workspace(faults=FaultScript(*broken))
    api.call("GET", "/groups", skip=0)
    api.call("POST", "/groups", {"name": "x"})
    api.call("DELETE", "/content/targets", TARGET | {"targetId": "g-9"})
    api.call("GET", "/nowhere")
    for path, body in (("/smart-groups", {}), ("/users", {"email": "eve@acme.example"})):
        with pytest.raises(httpx.RemoteProtocolError):
            api.call("POST", path, body)
    assert api.sandbox.log == [
        ("GET", "/groups", "manual-groups.list", 200, False),
        ("POST", "/groups", "manual-groups.create", 200, True),
        ("DELETE", "/content/targets", "content-targets.delete", 404, True),
        ("GET", "/nowhere", None, 404, False),
        ("POST", "/smart-groups", "smart-groups.create", 0, True),
        ("POST", "/users", "users.create", 0, True),
    ]


# The sandbox behind a port: the same answers as in process, to this machine only.


@pytest.fixture
def served(api):
    """The URL of the workspace of `api` behind a port."""
    with serve(api.sandbox) as server:
        yield server.url


def test_answers_are_the_same_byte_for_byte(open_workspace):
    """The requests of all rules, one after the other, get the same status, headers and bytes over the port."""
    requests = dict.fromkeys(line for rule in rules() for line in rule.lines if re.match("[A-Z]+ /", line))
    inside, outside = open_workspace(), open_workspace()
    with serve(outside.sandbox) as server, httpx.Client(base_url=server.url, headers=inside.client.headers) as client:
        for line in sorted(requests, key=lambda line: line.startswith("DELETE ")):
            method, path, *body = line.split(" ", 2)
            given = {"content": body[0].encode(), "headers": JSON} if body else {}
            near, far = inside.client.request(method, path, **given), client.request(method, path, **given)
            assert (far.status_code, far.content) == (near.status_code, near.content), line
            for name in ("content-type", "content-length", "allow"):
                assert far.headers.get(name) == near.headers.get(name), (name, line)
    assert inside.sandbox.log == outside.sandbox.log
    assert len(inside.sandbox.log) == len(requests)


def test_a_port_of_this_machine_that_is_taken(api, served):
    """The server listens on loopback alone; a port that is taken is an error that names it and a way out."""
    assert served.startswith("http://127.0.0.1:")
    with pytest.raises(LmsconfError, match=f"cannot listen on {served.removeprefix('http://')}") as error:
        serve(api.sandbox, urlsplit(served).port)
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
    parts = urlsplit(served)
    with socket.create_connection((parts.hostname, parts.port), timeout=HANGS) as connection:
        connection.sendall(b"POST /groups HTTP/1.1\r\nhost: " + parts.netloc.encode() + b"\r\n" + header + b"\r\n\r\n")
        assert b"".join(iter(lambda: connection.recv(65536), b"")).startswith(b"HTTP/1.1 " + status)


def test_a_lost_answer_is_a_broken_connection(open_workspace):
    """Where a fault loses the answer, the client sees the connection break, and the change is made."""
    api = open_workspace(faults=FaultScript(Fault(operation="manual-groups.create", lose_answer=True)))
    with serve(api.sandbox) as server, pytest.raises(httpx.RemoteProtocolError):
        httpx.post(f"{server.url}/groups", json={"name": "New"}, headers={"authorization": "Bearer sandbox"})
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


@pytest.mark.parametrize("path", ["/", "/groups", "/users", "/nowhere"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_every_route_is_for_this_machine(api, served, method, path):
    """A request under another name, at another port or with two names is answered by nothing, be it a browser's."""
    port = urlsplit(served).port
    others = (f"evil.example:{port}", "localhost", "127.0.0.1:1", f"127.0.0.1.evil.example:{port}", "")
    for host in (*others, f"localhost:{port}, evil.example"):
        headers = HTML | {"host": host, "authorization": "Bearer sandbox"}
        assert httpx.request(method, served + path, headers=headers).status_code == 421, host
    assert api.sandbox.log == []
    headers = HTML | {"host": f"LOCALHOST:{port}", "authorization": "Bearer sandbox"}
    assert httpx.request(method, served + path, headers=headers).status_code != 421
