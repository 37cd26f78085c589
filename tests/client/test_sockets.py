"""What real sockets do to a request: each ends in the right error, for a read and for a write, and in time."""

import logging
import socket
import ssl
import struct
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from self_signed import make_certificate
from texts import listed_cases
from waiting import HANGS, awaited

from lmsconf.api import Service
from lmsconf.api.client import Client
from lmsconf.api.transport import HttpTransport
from lmsconf.errors import ApiError, InvalidResponse, Unreachable, WriteOutcomeUnknown

from .network import CANARY, Clock, one_call

SECONDS, DRIP = 1.0, 0.05
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
NOBODY = b'Content-Length: 14\r\n\r\n{"userIds":[]}'
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
Peer = Callable[[socket.socket], None]


def heard(peer: socket.socket) -> None:
    """Reads the request as far as its header goes."""
    text = b""
    while b"\r\n\r\n" not in text:
        got = peer.recv(65536)
        if not got:
            return
        text += got


def cut(peer: socket.socket) -> None:
    """Hangs up with a reset instead of a goodbye."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def after_the_request(*parts: bytes, pause: float = 0.0, then: Peer = socket.socket.close) -> Peer:
    """A peer that hears the request, sends these parts, with a pause after each, and does that."""

    def answer(peer: socket.socket) -> None:
        heard(peer)
        for part in parts:
            peer.sendall(part)
            time.sleep(pause)
        then(peer)

    return answer


def hold(peer: socket.socket) -> None:
    """Says nothing until the other side has gone."""
    peer.settimeout(HANGS)
    with suppress(OSError):
        while peer.recv(65536):
            pass


def keeps_answering(answer: bytes, met: list[socket.socket]) -> Peer:
    """A peer that gives each request on a connection this answer. met: the connections so far."""

    def talk(peer: socket.socket) -> None:
        met.append(peer)
        while peer.recv(65536):
            peer.sendall(answer)

    return talk


BEHAVIOURS: dict[str, Peer] = {
    "reset at accept": cut,
    "goodbye at accept": socket.socket.close,
    "reset after the request": after_the_request(then=cut),
    "goodbye after the request": after_the_request(),
    "short body": after_the_request(HEAD + b"Content-Length: 100\r\n\r\n{"),
    "a body of one byte less": after_the_request(HEAD + b"Content-Length: 3\r\n\r\n{}"),
    "reset in the body": after_the_request(HEAD + b"Content-Length: 100\r\n\r\n{", pause=0.02, then=cut),
    "garbage": after_the_request(b"\x00\x01 no HTTP at all\r\n\r\n"),
    "half a header": after_the_request(HEAD),
    "silence": hold,
    "silence after the header": after_the_request(HEAD + b"Content-Length: 9\r\n\r\n", then=hold),
    "a body that drips": after_the_request(HEAD + b"Content-Length: 1000\r\n\r\n", *[b" "] * 100, pause=DRIP),
    "a huge header": after_the_request(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", then=hold),
    "a bad chunk": after_the_request(CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n"),
    "chunks that end early": after_the_request(CHUNKED + b"2\r\n{}\r\n"),
    "two lengths": after_the_request(HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    "two lengths, the shorter last": after_the_request(HEAD + b"Content-Length: 3\r\nContent-Length: 2\r\n\r\n{}"),
    "a length that is no number": after_the_request(HEAD + b"Content-Length: 2x\r\n\r\n{}"),
    "a negative length": after_the_request(HEAD + b"Content-Length: -2\r\n\r\n{}"),
    "a negative chunk": after_the_request(CHUNKED + b"-1\r\n", *[b" " * 1_000_000] * 50),
    "a coding that nobody asked for": after_the_request(
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", then=hold
    ),
    "a field without a colon": after_the_request(b"HTTP/1.1 200 OK\r\nno field\r\nContent-Length: 2\r\n\r\n{}"),
    "another version": after_the_request(b"HTTP/2 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
}


ENDLESS = {one for one in BEHAVIOURS if "drips" in one or "silence" in one}


@contextmanager
def listening(behaviour: Peer) -> Iterator[str]:
    """A service of this machine in which every connection meets that."""
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def meet(peer: socket.socket) -> None:
        with suppress(OSError), peer:
            behaviour(peer)

    def serve() -> None:
        while not over.is_set():
            with suppress(OSError):
                peer, _ = server.accept()
                peer.settimeout(HANGS)
                threading.Thread(target=meet, args=(peer,), daemon=True).start()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
    finally:
        over.set()
        server.shutdown(socket.SHUT_RDWR)  # ends the accept that waits
        thread.join()
        server.close()


def ended(url: str, *, writes: bool, seconds: float = HANGS) -> ApiError:
    """The error that one try ends in, which may take so many seconds."""
    with (
        Client(url, CANARY, retry=Clock().retry(max_attempts=1, clock=time.monotonic), seconds=seconds) as by,
        pytest.raises(ApiError) as caught,
    ):
        one_call(by, writes=writes)
    return caught.value


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_what_a_connection_does_ends_in_the_right_error(name: str) -> None:
    """A read is Unreachable, and of a write nobody knows: whatever the connection does."""
    with listening(BEHAVIOURS[name]) as url:
        for writes, kind in ((False, Unreachable), (True, WriteOutcomeUnknown)):
            error = ended(url, writes=writes, seconds=SECONDS if name in ENDLESS else HANGS)
            # A reset can be quicker than the end of the handshake, and then nothing was sent.
            assert type(error) is kind or (name == "reset at accept" and type(error) is Unreachable)
            assert error.message.split(": ", 1)[1]
            assert error.message.endswith(("timed out", "no complete response within 1 s")) == (name in ENDLESS)


WHOLE: dict[str, bytes] = {
    "a length": HEAD + NOBODY,
    "two equal lengths": HEAD + b'content-length: 14\r\nContent-Length: 14\r\n\r\n{"userIds":[]}',
    "until the end": HEAD + b'\r\n{"userIds":[]}',
    "chunks": HEAD + b'transfer-encoding: Chunked\r\n\r\n4;x=y\r\n{"us\r\na\r\nerIds":[]}\r\n0\r\nX: y\r\n\r\n',
    "chunks and a length": HEAD
    + b'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\ne\r\n{"userIds":[]}\r\n0\r\n\r\n',
    "interim responses": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + (HEAD + NOBODY),
    "no reason": b'HTTP/1.1 200\r\nContent-Length: 14\r\n\r\n{"userIds":[]}',
    "line feeds": b'HTTP/1.0 200 OK\nContent-Length:14\n\n{"userIds":[]}',
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_response_is_read_whatever_its_form(name: str) -> None:
    """Every form of HTTP/1.1 that a service may choose; what begins like it and ends early is none."""
    whole = WHOLE[name]
    with listening(after_the_request(whole)) as url, Client(url, CANARY) as by:
        assert one_call(by) == {"userIds": []}
    in_the_body = [] if name == "until the end" else [whole.index(b"erIds")]
    for cut_at in (whole.index(b"200"), whole.index(b"\n\n" if name == "line feeds" else b"\r\n\r\n"), *in_the_body):
        with listening(after_the_request(whole[:cut_at])) as url:
            assert type(ended(url, writes=True)) is WriteOutcomeUnknown


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_a_status_without_a_body_has_none(status: bytes) -> None:
    """Its end is the end of its header, whatever length it names: nothing is waited for."""
    answer = b"HTTP/1.1 " + status + b"\r\nContent-Length: 5\r\n\r\n"
    with listening(after_the_request(answer, then=hold)) as url:
        http_transport = HttpTransport(url, CANARY, transport=None, seconds=HANGS, max_bytes=1_000)
        assert http_transport.send("GET", "/groups", None).body == b""
        http_transport.close()


def test_a_connection_that_the_service_has_closed_is_not_used_again() -> None:
    """Whether it said so or not, the next read goes over a new one, without a failure and a pause."""
    closed = threading.Event()

    def hang_up(peer: socket.socket) -> None:
        peer.close()
        closed.set()

    for field in (b"", b"Connection: close\r\n"):
        tries = list[int]()
        with (
            listening(after_the_request(HEAD + field + NOBODY, then=hang_up)) as url,
            Client(url, CANARY, on_call=lambda exchange, tries=tries: tries.append(exchange.attempt)) as by,  # type: ignore[misc]  # mypy does not infer a lambda with a default
        ):
            for _ in range(3):
                one_call(by)
                assert closed.wait(HANGS)
                closed.clear()
        assert tries == [1, 1, 1]


def test_a_body_that_is_not_read_to_its_end_costs_its_connection() -> None:
    """What is left of a response that is too long does not become the next one."""
    inner = HEAD + b"Content-Length: 0\r\n\r\n"
    answer = HEAD + b"Content-Length: 3000000\r\n\r\n" + (b" " * 1_500_000 + inner).ljust(3_000_000)
    with listening(keeps_answering(answer, met := [])) as url, Client(url, CANARY, max_bytes=1_000_000) as by:
        for _ in range(2):
            with pytest.raises(InvalidResponse, match="it is longer than 1,000,000 bytes"):
                one_call(by)
    assert len(met) == 2


def test_the_next_request_has_a_deadline_of_its_own() -> None:
    """A connection that is kept does not keep the deadline of the request before."""
    clock = Clock()
    with listening(keeps_answering(HEAD + NOBODY, met := [])) as url:
        http_transport = HttpTransport(url, CANARY, transport=None, seconds=HANGS, max_bytes=1_000, clock=clock)
        for _ in range(3):
            assert http_transport.send("GET", "/groups/g/members", None).body == b'{"userIds":[]}'
            clock.time += HANGS - 1
        http_transport.close()
    assert len(met) == 1


@pytest.mark.sampled(day=8, daily=False)
def test_nothing_is_sent_on_a_connection_that_was_idle() -> None:
    """A service may hang up on a connection just as it is used again, and of a write nobody would know then."""
    with listening(keeps_answering(HEAD + NOBODY, met := [])) as url, Client(url, CANARY) as by:
        one_call(by)
        time.sleep(2.2 * SECONDS)
        one_call(by)
    assert len(met) == 2


def test_a_service_closes_its_connection() -> None:
    """At the end of `with`, the other side of its connection sees that it is closed."""
    closed = threading.Event()

    def talk(peer: socket.socket) -> None:
        keeps_answering(HEAD + NOBODY, [])(peer)
        closed.set()

    with listening(talk) as url:
        with Service.at(url, CANARY) as given:
            assert given.groups.members("g") == {"userIds": []}
            assert not closed.is_set()
        awaited(closed)


def test_debug_logs_of_the_libraries_hold_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a service repeats in the headers of its answer, and whatever listens to everything that is logged."""
    link = b"Location: https://files.example/canary-file?X-Amz-Signature=canary-signature\r\n"
    echo = after_the_request(
        b"HTTP/1.1 302 Found\r\n" + link + b"X-Sent: " + CANARY.encode() + b"\r\nContent-Length: 0\r\n\r\n"
    )
    with caplog.at_level(logging.DEBUG), listening(echo) as url:
        ended(url, writes=False)
    assert "302" in caplog.text
    assert CANARY not in caplog.text
    assert "canary-signature" not in caplog.text


# Which variable of the environment names the proxy to a service, and requests that go through one.


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the environment names one."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.sampled(day=3)
@listed_cases("environ", "variable")
def test_a_proxy_that_is_not_there_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str], variable: str | None
) -> None:
    """In either spelling; none where NO_PROXY has the host."""
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with Client("https://lms.invalid/api", CANARY, retry=Clock().retry(max_attempts=1)) as by:
        with pytest.raises(Unreachable) as caught:
            one_call(by, writes=True)
        hint = caught.value.hint or ""
    assert hint.startswith(f"Check the proxy that {variable} names" if variable else "Check the workspace's url")


@pytest.mark.usefixtures("no_proxy")
def test_a_service_on_this_machine_is_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over plain http no proxy gets the request, which has the token in it, whichever variable names one."""
    direct, through = list[socket.socket](), list[socket.socket]()
    answer = HEAD + NOBODY
    with listening(keeps_answering(answer, direct)) as url, listening(keeps_answering(answer, through)) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy)
        with Client(url, CANARY) as by:
            one_call(by)
    assert (len(direct), len(through)) == (1, 0)


@contextmanager
def tunnelling(context: ssl.SSLContext, refuse: bytes = b"") -> Iterator[tuple[str, list[bytes], list[int]]]:
    """A proxy that answers as the service at the other end of its tunnel: host and port, CONNECT requests, and requests
    in each tunnel.
    """
    connects: list[bytes] = []
    requests: list[int] = []

    def meet(peer: socket.socket) -> None:
        connects.append(peer.recv(65536))
        if refuse:
            peer.sendall(refuse)
            return
        peer.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n")
        number = len(requests)
        requests.append(0)
        with context.wrap_socket(peer, server_side=True) as secured:
            while text := secured.recv(65536):
                if b" HTTP/1.1\r\n" in text:  # a body may come after it
                    requests[number] += 1
                    secured.sendall(HEAD + NOBODY)

    with listening(meet) as url:
        yield url.removeprefix("http://"), connects, requests


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_proxy: None) -> ssl.SSLContext:
    """The certificate of lms.invalid, which only this test trusts."""
    certificate, context = make_certificate(tmp_path, "lms.invalid")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


@pytest.mark.sampled(daily=False)
def test_requests_go_through_the_tunnel_of_a_proxy(service: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy sees the host and its own credential; the reads of a client share one tunnel."""
    with tunnelling(service) as (proxy, connects, requests):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s%40cret@{proxy}")
        with Client("https://lms.invalid/api", CANARY) as by:
            for _ in range(3):
                assert one_call(by) == {"userIds": []}
        with Client("https://lms.invalid/api", CANARY) as by:
            by.send("POST", "/groups/g/members", body={"userIds": ["u"]})
    assert requests == [3, 1]
    for connect in connects:
        assert connect.startswith(b"CONNECT lms.invalid:443 HTTP/1.")
        assert b"Proxy-Authorization: Basic " + b64encode(b"me:s@cret") + b"\r\n" in connect
        assert CANARY.encode() not in connect


@pytest.mark.sampled(daily=False)
def test_nothing_is_sent_through_a_proxy_that_refuses(service: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write is not open then: the error names the variable, and not the password in it."""
    with tunnelling(service, b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as (proxy, connects, _):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s3cret@{proxy}")
        with (
            Client("https://lms.invalid/api", CANARY, retry=Clock().retry(max_attempts=2)) as by,
            pytest.raises(Unreachable) as caught,
        ):
            one_call(by, writes=True)
    assert type(caught.value) is not WriteOutcomeUnknown
    assert len(connects) == 2
    assert "HTTPS_PROXY" in (caught.value.hint or "")
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
