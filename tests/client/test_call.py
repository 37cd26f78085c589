"""One call: what is sent, what is refused before, and what each answer means."""

import gzip
import json
import random
import zlib
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from texts import listed_cases

from lmsconf.api.client import Client, Exchange
from lmsconf.errors import (
    ApiError,
    ExitCode,
    InvalidResponse,
    LmsconfError,
    Problem,
    ProblemsFound,
    Rejected,
    Unauthorized,
    Unreachable,
    WriteOutcomeUnknown,
)
from lmsconf.project.config_reader import read_project_file
from lmsconf.project.credentials import TokenUnavailable, env_token

from .network import CANARY, Clock, Network, client, raw, said

What = tuple[str, dict[str, str], dict[str, object] | None]

READ: What = ("manual-groups.members", {"groupId": "g-1"}, None)
WRITE: What = ("manual-groups.rename", {"groupId": "g-1"}, {"name": "Sales"})
CREATE: What = ("manual-groups.create", {}, {"name": "Sales"})


def perform(by: Client, what: What) -> object:
    """Makes one of the calls above."""
    operation, path, body = what
    return by.call(operation, path=path, body=body)


def failure(what: What, *script: httpx.Response | Exception) -> ApiError:
    """The error that a call ends in."""
    with pytest.raises(ApiError) as caught:
        perform(client(*script), what)
    return caught.value


def test_a_call_is_one_request_as_described() -> None:
    """Method, path, query, credential and JSON body are those of the operation, under the service's URL."""
    network = Network(said(200, {"groupId": "g-7"}))
    made = Client("https://lms.example/api/", CANARY + "\n", transport=network)
    assert made.call("manual-groups.create", body={"name": "Säljare"}) == {"groupId": "g-7"}
    (request,) = network.requests
    assert (request.method, str(request.url)) == ("POST", "https://lms.example/api/groups")
    assert request.headers["authorization"] == f"Bearer {CANARY}"
    assert request.headers["content-type"] == "application/json"
    assert request.content == '{"name":"Säljare"}'.encode()


@pytest.mark.parametrize("page", [b"<!doctype html><title>Sign in</title>", b"\n <html>"])
def test_a_page_is_no_success(page: bytes) -> None:
    """Where nothing is answered, a page for people means that the service may never have heard of the call."""
    assert isinstance(failure(WRITE, raw(200, page)), InvalidResponse)
    assert perform(client(raw(200, b"OK")), WRITE) is None


@pytest.mark.parametrize(
    ("operation", "given", "reason"),
    [
        ("users.list", {"query": {"sort": "x"}}, r"no query parameter \['sort'\]"),
        ("content-targets.list", {}, r"needs the query parameter \['contentId'\]"),
        ("users.get", {}, r"takes the path parameters \['userId'\]"),
        ("users.get", {"path": {"userId": ".."}}, r"is not allowed in a path"),
        ("users.list", {"body": {}}, r"takes no body"),
        ("smart-groups.rename", {"path": {"smartGroupId": "s"}}, r"takes a JSON object"),
        ("smart-groups.rename", {"path": {"smartGroupId": "s"}, "body": {}}, r"needs the body property \['name'\]"),
        ("smart-groups.rename", {"path": {"smartGroupId": "s"}, "body": {"name": ("a",)}}, r"is not a JSON value"),
        ("smart-groups.rename", {"path": {"smartGroupId": "s"}, "body": {"name": float("nan")}}, r"not JSON compliant"),
        ("users.list", {"query": {"filter": {"a": 1}}}, r"cannot be the query parameter filter"),
        ("manual-groups.rename", {"path": {"groupId": "g"}, "body": {"name": "A"}}, r"no body property \['name'\]"),
    ],
)
def test_misuse_is_told_before_anything_is_sent(operation: str, given: dict[str, object], reason: str) -> None:
    """Names that an operation lacks, missing ones and values that are no JSON are a ValueError, and no request."""
    network = Network(raw(200))
    with pytest.raises(ValueError, match=reason):
        client(network=network, dialect={"manual-groups.rename.name": "newName"}).call(operation, **given)
    assert network.requests == []


def test_a_planned_call_is_sent_as_it_stands() -> None:
    """A filled path is sent unchanged, and only for the operation that it belongs to."""
    network = Network(raw(204))
    sender = client(network=network)
    sender.send("DELETE", "/groups/a%2Fb/members/u", operation="manual-groups.remove-member")
    assert network.requests[0].url.raw_path == b"/groups/a%2Fb/members/u"
    with pytest.raises(ValueError, match=r"DELETE /groups/g is not manual-groups\.remove-member"):
        sender.send("DELETE", "/groups/g", operation="manual-groups.remove-member")


def test_other_words_are_spoken_for_a_trial_only() -> None:
    """Also where the service refuses it: what follows is sent in the words from before."""
    network = Network(said(409), raw(204))
    by = client(network=network)
    with pytest.raises(Rejected), by.speaking({"manual-groups.rename.name": "newName"}):
        by.call("manual-groups.rename", path={"groupId": "g-1"}, body={"newName": "Sales"})
    perform(by, WRITE)
    assert [json.loads(request.content) for request in network.requests] == [{"newName": "Sales"}, {"name": "Sales"}]


@listed_cases("method", "path", "reason")
def test_no_request_leads_elsewhere(method: str, path: str, reason: str) -> None:
    """What could reach another host, carry a query, step upwards or begin another line or request is refused."""
    network = Network(raw(200))
    with pytest.raises(ValueError, match=reason):
        client(network=network).send(method, path)
    assert network.requests == []


@listed_cases("id")
def test_no_id_leads_elsewhere(id: str) -> None:
    """Whatever an id holds, it is one segment: host, operation and id arrive as they were meant."""
    network = Network(raw(200))
    made = Client("https://lms.example/api", CANARY, transport=network)
    made.call("manual-groups.remove-member", path={"groupId": id, "userId": "u"})
    (request,) = network.requests
    assert (request.url.host, request.headers["host"]) == ("lms.example", "lms.example")
    before, inside, after = request.url.raw_path.decode().partition(quote(id, safe=""))
    assert (before, inside != "", after) == ("/api/groups/", True, "/members/u")


@pytest.mark.parametrize("status", [300, 301, 302, 303, 305, 307, 308, 399])
@listed_cases("to", "named")
def test_a_redirect_is_told_and_never_followed(status: int, to: str, named: str) -> None:
    """The token goes to one host, whatever was asked: the other is named, without what may be a secret before it."""
    for what in (READ, WRITE):
        network = Network(raw(status, b"", location=to))
        with pytest.raises(Rejected) as caught:
            perform(Client("https://lms.example", CANARY, transport=network), what)
        assert len(network.requests) == 1
        assert str(caught.value.hint).startswith(f"It redirects{named}, and redirects are not followed.")


def test_a_redirect_that_cannot_be_read_is_a_lost_answer() -> None:
    """It was received, so of a write nobody knows; it is not followed either, nor is what may be a password shown."""
    for to in ("https:e", "http://user:pass/word@host"):
        network = Network(raw(301, b"", location=to))
        with pytest.raises(WriteOutcomeUnknown, match=r"\A(?!.*pass)"):
            perform(client(network=network), WRITE)
        assert len(network.requests) == 1
    assert failure(READ, raw(300, b"", location="https://secret@[::1")).hint == MOVED


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Sign in</html>",
        b'{"userIds": []',
        b'{"userIds": [], "userIds": ["u"]}',
        b'{"userIds": [NaN]}',
        b'{"userIds": [1e999]}',
        b'{"userIds": ["\\ud800"]}',
        b'{"userIds": ["\\uD800"]}',
        b'{"userIds": ["\xff"]}',
        b"[" * 100_000,
        b"1" * 5_000,
        b'["u-1"]',
        b"null",
    ],
    ids=lambda body: repr(body[:30]),
)
@pytest.mark.parametrize("what", [READ, CREATE], ids=["read", "create"])
def test_an_answer_that_cannot_be_used_is_a_bad_answer(what: What, body: bytes) -> None:
    """A needed answer that is not the right JSON, to a read or to a write, is InvalidResponse and never a value."""
    error = failure(what, raw(200, body))
    assert isinstance(error, InvalidResponse)
    assert (error.status, error.operation) == (200, what[0])


@pytest.mark.parametrize("what", [READ, CREATE], ids=["read", "create"])
def test_an_answer_of_too_many_values_is_not_decoded(what: What) -> None:
    """A body that would take too much memory is refused as such, and its beginning is shown."""
    error = failure(what, raw(200, b'{"userIds": [' + b"{}," * 200_000 + b"{}]}"))
    assert isinstance(error, InvalidResponse)
    assert "it holds more values than fit in 64 MiB of memory" in error.message


def test_answers_are_read_leniently() -> None:
    """Unknown keys, nulls, a byte order mark and whole surrogate pairs are fine."""
    body = b'\xef\xbb\xbf{"userIds": null, "more": "\\ud83d\\ude00"}'
    assert perform(client(raw(200, body)), READ) == {"userIds": None, "more": "😀"}


STATUSES = {
    (Rejected, Rejected): (300, 301, 307, 400, 404, 409, 418, 499),
    (Unauthorized, Unauthorized): (401,),
    (Unauthorized, Rejected): (403,),
    (Unreachable, Unreachable): (429,),
    (Unreachable, WriteOutcomeUnknown): (500, 501, 502, 503, 504),
}
"""What a read and a write end in → after which statuses."""


@pytest.mark.parametrize(("on_read", "on_write"), STATUSES)
def test_every_status_means_one_thing(on_read: type[ApiError], on_write: type[ApiError]) -> None:
    """A refusal, a refused credential, nobody there, or nobody knows: the kind of error says which."""
    for status, (what, kind) in product(STATUSES[on_read, on_write], ((READ, on_read), (WRITE, on_write))):
        error = failure(what, said(status, {"error": "why"}))
        assert type(error) is kind
        assert (error.status, error.body, error.operation) == (status, '{"error": "why"}', what[0])
        assert f"sandbox answered {status}" in error.message


@listed_cases("operation", "given", "status", "hint")
def test_a_refusal_says_what_to_look_at(operation: str, given: dict[str, Any], status: int, hint: str | None) -> None:
    """The token, its rights, names and page sizes of the dialect, or the URL: a 404 of a read that names nothing.

    A 404 of a write says nothing of the URL: reads have shown that it is right before anything is written.
    """
    network = Network(said(status, {"message": "limit must not exceed 50"}))
    made = Client("https://h.example/api/", CANARY, transport=network, url_name="`url` of the workspace w")
    with pytest.raises(ApiError) as caught:
        made.call(operation, **given)
    assert caught.value.hint == hint


@pytest.mark.parametrize(("seconds", "silent"), [(60.0, 30.0), (20.0, 20.0), (5.0, 5.0)])
def test_a_request_has_so_long_to_connect_and_to_be_silent(seconds: float, silent: float) -> None:
    """Ten seconds for the connection and thirty for each read and write, and never more than for the whole."""
    network = Network(said(200, {"userIds": []}))
    perform(Client("http://sandbox", CANARY, transport=network, seconds=seconds), READ)
    asked = network.requests[0].extensions["timeout"]
    assert asked == {"connect": min(10.0, seconds), "read": silent, "write": silent, "pool": seconds}


def test_errors_show_a_safe_excerpt() -> None:
    """At most 300 characters of a body are shown, on one line, with nothing that a terminal would act upon."""
    error = failure(WRITE, raw(400, ("\x1b[31mno\r\n\u202eevil\u2028" + "x" * 5_000).encode()))
    assert error.body is not None
    assert error.body.startswith("\\u001b[31mno\\u000d\\u000a\\u202eevil\\u2028xxx")
    assert error.body.count("x") < 300
    assert error.message.isprintable()


def test_the_trace_hears_of_every_try() -> None:
    """Each try is told, with its status or why there is none."""
    told: list[Exchange] = []
    clock = Clock()
    script = (said(503), httpx.ReadTimeout("slow"), said(200, {"userIds": []}))
    perform(client(*script, clock=clock, told=told), READ)
    assert [one.retry_in for one in told] == [*clock.waits, None]
    assert [(one.attempt, one.status, one.failure) for one in told] == [
        (1, 503, None),
        (2, None, "slow"),
        (3, 200, None),
    ]
    assert {(one.operation, one.method, one.path) for one in told} == {(READ[0], "GET", "/groups/g-1/members")}


ANSWERED = "POST /groups/g-1/rename at sandbox answered"
MOVED = "It redirects, and redirects are not followed. Set the workspace's url to the API's own address."
LATER = "Try again later; a lower --max-rate or --parallelism asks less at a time."
LOST = "Run again: lmsconf reads the workspace before it repeats a call."


@pytest.mark.parametrize(
    ("what", "answer", "message", "hint"),
    [
        (READ, raw(500), "GET /groups/g-1/members at sandbox answered 500 (tried 4 times)", LATER),
        (WRITE, raw(500, b" oh\n"), f"{ANSWERED} 500: oh", LOST),
        (WRITE, raw(503, b"", Retry_After="50"), f"{ANSWERED} 503 (tried 2 times)", LATER),
        (
            WRITE,
            raw(503, b"", Retry_After="99"),
            f"{ANSWERED} 503 (tried 37 times) and asks to wait 1 minute 40 seconds",
            LATER,
        ),
        (WRITE, raw(502, b"", Retry_After="99"), f"{ANSWERED} 502", LOST),
        (WRITE, raw(399), f"{ANSWERED} 399", MOVED),
        (WRITE, raw(499), f"{ANSWERED} 499", None),
    ],
)
def test_a_refusal_says_how_often_it_came_and_what_to_do(
    what: What, answer: httpx.Response, message: str, hint: str | None
) -> None:
    """One try is not counted, and a wait is told that takes more than a minute."""
    error = failure(what, answer)
    assert (error.message, error.hint) == (message, hint)


def test_compressed_answers_are_read() -> None:
    """gzip is asked for and understood; what was not asked for, or is cut in its text, is a bad answer."""
    packed = gzip.compress(b'{"userIds": ["u"]}')

    def answer(content: bytes, encoding: str = "gzip") -> httpx.Response:
        return httpx.Response(200, stream=httpx.ByteStream(content), headers={"Content-Encoding": encoding})

    assert perform(client(answer(packed)), READ) == {"userIds": ["u"]}
    # A text of which a part is repeated as far away as the compression looks back.
    far = bytes(random.Random(1).choices(b"0123456789abcdef", k=30_000))  # noqa: S311  # no secret
    text = json.dumps({"userIds": [(far + far).decode()]}).encode()
    assert perform(client(answer(gzip.compress(text))), READ) == json.loads(text)
    not_packed = (packed[:-12], b"{}", b"\x1f\x8b\x08nonsense", zlib.compress(b'{"userIds": []}'))
    for what, content in product((READ, CREATE), not_packed):
        assert type(failure(what, answer(content))) is InvalidResponse
    assert type(failure(READ, answer(packed, "br"))) is InvalidResponse


def test_an_answer_is_never_held_beyond_its_limit() -> None:
    """A body that is too long by a byte, as sent or once unpacked, is a bad answer before it is in memory."""
    # An empty block that has not ended: a packed text that comes to nothing, however long it is.
    nothing = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * 400
    fits = b'{"userIds": []' + b" " * 985 + b"}"

    def read(body: bytes, **headers: str) -> object:
        answer = httpx.Response(200, stream=httpx.ByteStream(body), headers=headers)
        return perform(Client("http://sandbox", CANARY, transport=Network(answer), max_bytes=1_000), READ)

    packed = {"Content-Encoding": "gzip"}
    assert read(fits) == read(gzip.compress(fits), **packed) == {"userIds": []}
    for body, headers in (
        *((fits + b" ", {}), (b"x" * 2_000, {}), (gzip.compress(fits + b" "), packed)),
        *((gzip.compress(b" " * 10_000_000), packed), (nothing, packed)),
    ):
        with pytest.raises(InvalidResponse, match=r"it is longer than 1,000 bytes"):
            read(body, **headers)


def test_a_dripping_answer_ends_with_the_deadline() -> None:
    """A service that never quite falls silent is given up: the read as unreachable, the write as lost."""

    class Drip(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                yield b" "

    network = Network(answering=lambda _: httpx.Response(200, stream=Drip()))
    once = Clock().retry(max_attempts=1)
    impatient = client(network=network, retry=once, seconds=0.02, max_bytes=1_000_000)  # a second's, if it never ended
    with pytest.raises(Unreachable, match=r"no complete response within 0\.02 s"):
        perform(impatient, READ)
    with pytest.raises(WriteOutcomeUnknown):
        perform(impatient, WRITE)


@pytest.mark.parametrize("what", [READ, WRITE], ids=["read", "write"])
@listed_cases("said_of_it", "hint", "tries")
def test_what_keeps_a_connection_from_being_made_is_named(what: What, said_of_it: str, hint: str, tries: int) -> None:
    """OpenSSL's word for it and what to do, by which check a certificate failed; the next try would get the same."""
    network = Network(httpx.ConnectError(said_of_it))
    with pytest.raises(Unreachable) as caught:
        perform(client(network=network), what)
    assert (caught.value.hint, len(network.requests)) == (hint, tries)


def named_by_project(folder: Path, url: str) -> list[Problem]:
    """What the project file says of a URL."""
    (folder / "lmsconf.yaml").write_text(f"workspaces:\n  w: {{url: {json.dumps(url)}}}\n", encoding="utf-8")
    try:
        read_project_file(folder)
    except ProblemsFound as found:
        return list(found.problems)
    return []


@listed_cases("url")
def test_only_safe_urls_are_given_a_token(tmp_path: Path, url: str) -> None:
    """https, or http to this machine, and nothing but a host and a path; what the URL hides is not repeated.

    The project file says the same, with its line.
    """
    (problem,) = named_by_project(tmp_path, url)
    assert (problem.code, str(problem.source)) == ("project/url", "lmsconf.yaml:2:12")
    with pytest.raises(LmsconfError) as caught:
        Client(url, CANARY)
    assert caught.value.exit == ExitCode.ERROR
    assert (
        caught.value.message == f"the workspace's url cannot be used: {problem.message.removeprefix('workspaces.w: ')}"
    )
    assert "secret" not in caught.value.message
    assert caught.value.hint == problem.hint != ""


@listed_cases("url")
def test_safe_urls_are_those_of_the_project_file(tmp_path: Path, url: str) -> None:
    """With any port and path, and every name of this machine."""
    assert named_by_project(tmp_path, url) == []
    Client(url, CANARY).close()


@listed_cases("token", "reason")
def test_credential_and_client_agree_on_tokens(token: str, reason: str) -> None:
    """One newline at the end is a file's; what no header may hold is refused by both, without repeating it."""
    found = env_token("T", {"T": token})
    if not reason:
        assert found.secret().reveal() == "fine"
        Client("https://h", token).close()
        return
    with pytest.raises(TokenUnavailable) as missing:
        found.secret()
    assert missing.value.message == f"the environment variable T does not hold a valid token: {reason}"
    with pytest.raises(LmsconfError) as refused:
        Client("https://h", token)
    assert refused.value.message == f"the token cannot be used: {reason}"


@pytest.mark.parametrize("what", [WRITE, CREATE])
def test_a_client_that_only_reads_sends_no_write(what: What) -> None:
    """Whoever asks for one gets an error, and the service hears nothing; a read goes out as ever."""
    network = Network(said(200, {"userIds": []}))
    reading = Client("https://lms.example", CANARY, transport=network, only_reads=True)
    with pytest.raises(ValueError, match="this client is read-only"):
        perform(reading, what)
    with pytest.raises(ValueError, match="this client is read-only"):
        reading.send("DELETE", "/groups/g-1")
    assert network.requests == []
    assert perform(reading, READ) == {"userIds": []}
