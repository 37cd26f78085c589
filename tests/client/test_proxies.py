"""Which variable of the environment names the proxy to a service, and requests that go through one."""

from __future__ import annotations

import socket
import ssl
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from self_signed import make_certificate
from waiting import HANGS

from lmsconf.api.client import Client
from lmsconf.errors import Unreachable, WriteOutcomeUnknown
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox

from .network import CANARY, Clock, one_call

VARIABLES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy")


@pytest.mark.parametrize(
    ("environ", "variable"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://127.0.0.1:1"}, "HTTPS_PROXY"),
        ({"https_proxy": "127.0.0.1:1"}, "https_proxy"),
        ({"ALL_PROXY": "http://127.0.0.1:1"}, "ALL_PROXY"),
        ({"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "lms.invalid"}, None),
        ({"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "other.invalid"}, "HTTPS_PROXY"),
    ],
)
def test_a_proxy_that_is_not_there_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], variable: str | None
) -> None:
    """In either spelling; none where NO_PROXY has the host."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with Client("https://lms.invalid/api", CANARY, retry=Clock().retry(max_attempts=1)) as by:
        with pytest.raises(Unreachable) as caught:
            one_call(by, writes=True)
        hint = caught.value.hint or ""
    assert hint.startswith(f"Check the proxy that {variable} names" if variable else "Check the workspace's url")


def test_a_service_on_this_machine_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the environment says, and whether or not its proxies could be used."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "ftp://127.0.0.1:1")
    with serve(Sandbox(token=CANARY)) as server, Client(server.url, CANARY) as by:
        assert by.call("manual-groups.list", query={"skip": 0, "limit": 1}) == {"groups": []}


ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"userIds":[]}'


@contextmanager
def tunnelling(context: ssl.SSLContext, refuse: bytes = b"") -> Iterator[tuple[int, list[bytes], list[int]]]:
    """A proxy that answers as the service at the other end of its tunnel: port, CONNECT requests, requests in each."""
    connects: list[bytes] = []
    requests: list[int] = []

    def meet(peer: socket.socket) -> None:
        peer.settimeout(HANGS)
        connects.append(peer.recv(65536))
        if refuse:
            peer.sendall(refuse)
            peer.close()
            return
        peer.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n")
        number = len(requests)
        requests.append(0)
        with context.wrap_socket(peer, server_side=True) as secured:
            while text := secured.recv(65536):
                if b" HTTP/1.1\r\n" in text:  # a body may come after it
                    requests[number] += 1
                    secured.sendall(ANSWER)

    def serve() -> None:
        while True:
            try:
                peer, _ = listening.accept()
            except OSError:
                return
            with suppress(OSError):
                meet(peer)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1], connects, requests
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """The certificate of lms.invalid, which only this test trusts."""
    certificate, context = make_certificate(tmp_path, "lms.invalid")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


def test_requests_go_through_the_tunnel_of_a_proxy(service: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy sees the host and its own credential; the reads of a client share one tunnel."""
    with tunnelling(service) as (port, connects, requests):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s%40cret@127.0.0.1:{port}")
        with Client("https://lms.invalid/api", CANARY) as by:
            for _ in range(3):
                assert by.call("manual-groups.members", path={"groupId": "g"}) == {"userIds": []}
        with Client("https://lms.invalid/api", CANARY) as by:
            by.send("POST", "/groups/g/members", body={"userIds": ["u"]})
    assert requests == [3, 1]
    for connect in connects:
        assert connect.startswith(b"CONNECT lms.invalid:443 HTTP/1.")
        assert b"Proxy-Authorization: Basic " + b64encode(b"me:s@cret") + b"\r\n" in connect
        assert CANARY.encode() not in connect


def test_nothing_is_sent_through_a_proxy_that_refuses(service: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is not open then: the error names the variable, and not the password in it."""
    refused = b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n"
    with tunnelling(service, refused) as (port, connects, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s3cret@127.0.0.1:{port}")
        with (
            Client("https://lms.invalid/api", CANARY, retry=Clock().retry(max_attempts=2)) as by,
            pytest.raises(Unreachable) as caught,
        ):
            one_call(by, writes=True)
    assert type(caught.value) is not WriteOutcomeUnknown
    assert len(connects) == 2
    assert "HTTPS_PROXY" in (caught.value.hint or "")
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
