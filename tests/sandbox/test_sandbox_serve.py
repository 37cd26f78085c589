"""The sandbox behind a port: the same answers as in process, to this machine only."""

from __future__ import annotations

import socket
import time
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


def test_a_connection_is_kept(served):
    """Many requests go over one connection, and none waits for a delayed acknowledgement."""
    address = served.base_url.host, served.base_url.port
    host = "{}:{}".format(*address)
    request = f"GET /groups HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer sandbox\r\n\r\n".encode()
    with socket.create_connection(address, timeout=HANGS) as connection:
        for _ in range(50):
            connection.sendall(request)
            # A header that left before its body would come alone, and the body only after an acknowledgement.
            answer = connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert answer.endswith(b"}")


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


def test_latency_comes_before_each_answer(api):
    """A server with latency takes that long at least."""
    with serve(api.sandbox, latency=0.05) as server:
        begun = time.perf_counter()
        httpx.get(f"{server.url}/groups")
        assert time.perf_counter() - begun >= 0.05


def test_stopping_ends_open_connections(api):
    """A stopped server does not wait for clients that keep their connection."""
    server = serve(api.sandbox).start()
    with httpx.Client(base_url=server.url) as client:
        client.get("/groups")
        server.stop()
        with pytest.raises(httpx.TransportError):
            client.get("/groups")
