"""What a service can make a plan cost: it ends with a sentence, soon, and in little memory, whatever is answered."""

import json
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

MOST = 300 * 1024
"""How much memory a run may take, in KiB."""
MANIFESTS = """
custom_fields: [{name: Country, type: CHOICE, choices: [SE]}]
groups: [{name: Group 1, members: [person1@acme.example]}, {name: Group 2, managers: []}]
smart_groups: [{name: Smart 1, conditions: [{field: Country, choices: [SE]}]}]
content_targets: [{content: Content 1, assign_to: [{group: Group 1}]}]
"""
Query = Mapping[str, str]
Body = Callable[[Query], Iterable[bytes]]
"""What answers a path: its query → the chunks of the body."""


def page(name: str, row: Callable[[int], dict[str, object]], most: int, total: str | None = None) -> Body:
    """A listing of so many rows, a hundred to a page at most."""

    def body(query: Query) -> Iterable[bytes]:
        skip, limit = int(query.get("skip", 0)), min(int(query.get("limit", most)), 100 if "skip" in query else most)
        rows = [row(number) for number in range(skip, min(most, skip + limit))]
        return [json.dumps({name: rows, **({total: most} if total else {})}).encode()]

    return body


def user(number: int) -> dict[str, object]:
    more = {"firstName": f"First {number}", "lastName": "Last", "metadata": {"badge": f"{number:020}"}}
    return {"userId": f"{number:036}", "email": f"person{number}@acme.example", **more, "customFields": {}}


def answering(number: int) -> dict[str, object]:
    """Somebody who picked 400 choices, as everybody did, and wrote a text; one in a hundred has it in another shape."""
    picked = {
        f"Field {n}": {"choices": [{"choiceId": f"ch-{n}-{m}", "name": "A choice"} for m in range(40)]}
        for n in range(10)
    }
    odd: list[object] = [None, "A plain text", ["ch-1", {"choiceId": "ch-2"}], {"text": ""}, {"strange": 1}, []]
    badge = odd[number % 100] if number % 100 < len(odd) else {"text": f"B-{number}"}
    return {**user(number), "customFields": {**picked, "Badge": badge}}


def wordy(number: int) -> dict[str, object]:
    return {**user(number), "customFields": {"Badge": {"text": f"{number}{'x' * 90_000}"}}}


def group(number: int) -> dict[str, object]:
    return {"groupId": f"g-{number}", "name": f"Group {number}"}


def smart(number: int) -> dict[str, object]:
    return {"smartGroupId": f"s-{number}", "name": f"Smart {number}"}


def field(number: int) -> dict[str, object]:
    ids = {"id": f"f-{number}", "customFieldId": f"f-{number}"}
    return {**ids, "name": "Country", "type": "CHOICE", "choices": [{"choiceId": "ch-1", "name": "SE"}]}


def content(number: int) -> dict[str, object]:
    return {"courseId": f"c-{number}", "name": f"Content {number}", "contentType": "COURSE", "description": "x" * 500}


LISTINGS: Mapping[str, tuple[str, Callable[[int], dict[str, object]], str | None]] = {
    "/users": ("users", user, "matchCount"),
    "/groups": ("groups", group, None),
    "/smart-groups": ("smartGroups", smart, None),
    "/content/all": ("courses", content, "total"),
}
"""Path → what its list is called, a row of it, and the total beside it, if there is one."""
NORMAL: Mapping[str, Body] = {
    **{path: page(name, row, 3, total) for path, (name, row, total) in LISTINGS.items()},
    "/custom-fields": page("customFields", field, 1),
    **dict.fromkeys(
        ("/groups/g-1/members", "/groups/g-1/managers", "/groups/g-2/members", "/groups/g-2/managers"),
        lambda _: [b'{"userIds": []}'],
    ),
    "/content/targets": lambda _: [b'{"targets": []}'],
    "/smart-groups/s-1": lambda _: [
        b'{"conditions": [{"customFieldId": "f-0", "choiceIds": ["ch-1"]}], "managers": []}'
    ],
}


class Service(ThreadingHTTPServer):
    """A service that answers as it is told. Nothing of a body is kept."""

    daemon_threads = True

    def __init__(self, answers: Mapping[str, Body]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = answers


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        body = self.server.answers.get(parts.path)
        self.send_response(404 if body is None else 200)
        if getattr(body, "packed", False):
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for chunk in () if body is None else body(dict(parse_qsl(parts.query))):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


LAUNCHER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(child.returncode, usage.ru_maxrss)
"""
"""Runs a command and prints its exit code and peak. A child starts with the peak of its parent, so that is small."""
PLAN = ("plan", "--format", "json", "--output", "plan.json")


def ran(
    folder: Path,
    answers: Mapping[str, Body],
    *arguments: str,
    manifests: str = MANIFESTS,
    codes: Collection[int] = (0,),
    most: int | None = MOST,
) -> str:
    """What one command tells of a service with these answers among the normal ones, in a process of its own.

    codes: those that it may end with. most: the memory that it may take, in KiB; None for any.
    """
    (folder / "manifests").mkdir(exist_ok=True)
    (folder / "manifests" / "all.yaml").write_text(manifests)
    (folder / "lmsconf.yaml").write_text("timezone: UTC\n")
    env = {key: value for key, value in os.environ.items() if not key.startswith("LMSCONF_")}
    words = [sys.executable, "-m", "lmsconf", *(arguments or PLAN)]
    with Service({**NORMAL, **answers}) as service:
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        env |= {"LMSCONF_URL": f"http://127.0.0.1:{service.server_address[1]}", "LMSCONF_TOKEN": "a-token-of-the-tests"}
        launched = subprocess.run(
            [sys.executable, "-c", LAUNCHER, *words], cwd=folder, env=env, capture_output=True, timeout=300, check=True
        )
        service.shutdown()
    err = launched.stderr.decode(errors="replace")
    code, size = map(int, launched.stdout.split())
    assert code in codes, err[:2_000]
    kib = size // (1024 if sys.platform == "darwin" else 1)
    assert most is None or kib < most, f"{kib // 1024} MiB"
    return err


def packed(start: bytes, more: bytes, times: int) -> Body:
    """A small answer that is large once it is unpacked."""

    def answer(_: Query) -> Iterable[bytes]:
        packer = zlib.compressobj(wbits=31)
        yield from filter(None, chain([packer.compress(start)], map(packer.compress, repeat(more, times))))
        yield packer.flush()

    answer.packed = True  # type: ignore[attr-defined]  # read by the handler
    return answer


def endless(start: bytes, more: bytes) -> Body:
    """One answer that never ends."""
    return lambda _: chain([start], repeat(more))


def whole(start: bytes, more: bytes, times: int, end: bytes = b"") -> Body:
    """One answer with a part that comes again and again."""

    def answer(_: Query) -> Iterable[bytes]:
        some = more * 1_000
        yield start
        yield from repeat(some, times // 1_000)
        yield more * (times % 1_000) + end

    return answer


MB = 1024 * 1024
NEVER = 10**9
NASTY: Mapping[str, tuple[Mapping[str, Body], str]] = {
    "a billion people": ({"/users": page("users", user, NEVER, "matchCount")}, "it counts 1,000,000,000 of them"),
    "endless content": ({"/content/all": page("courses", content, NEVER, "total")}, "more courses than lmsconf reads"),
    "one page with endless groups": ({"/groups": endless(b'{"groups": [', b'{"groupId": "g"},' * 999)}, "longer than"),
    "a giant row": ({"/users": whole(b'{"users": [{"userId": "', b"x", 40 * MB, b'"}]}')}, "longer than"),
    "a deep answer": ({"/groups": whole(b'{"groups": ', b"[", 15 * MB)}, "more values than"),
    "a deep answer of objects": ({"/groups": whole(b'{"groups": ', b'{"a":', 200_000)}, "more values than"),
    "a somewhat deep answer": ({"/groups": whole(b'{"groups": ', b"[", 50_000)}, "nested too deeply"),
    "numbers": ({"/smart-groups": whole(b'{"smartGroups": [', b"1.5,", 3 * MB, b"1]}")}, "more values than"),
    "wide objects": ({"/content/all": whole(b'{"courses": [', b'{"a":1},', MB, b"1]}")}, "more values than"),
    "a giant text": (
        {"/users": whole(b'{"users": [{"userId": "1", "email": "', b"x", 15 * MB, b'"}]}')},
        "a text of more than",
    ),
    "a giant text of wide characters": (
        {"/groups": whole(b'{"groups": [{"groupId": "1", "name": "', "😀".encode(), 3 * MB, b'"}]}')},
        "a text of more than",
    ),
    "endless members": ({"/groups/g-1/members": endless(b'{"userIds": [', b'"u-1",' * 9_999)}, "longer than"),
    "many members": (
        {"/groups/g-1/members": whole(b'{"userIds": [', b'"u-1",', 2 * MB, b'"u-1"]}')},
        "more values than",
    ),
    "an endless body": ({"/custom-fields": endless(b"{", b" " * 65_536)}, "longer than"),
    "a packed bomb": ({"/users": packed(b'{"users": [', b"1," * 50_000, 1_000)}, "longer than"),
    "a bomb of bombs": ({"/groups": packed(b" ", b" " * 100_000, 3_000)}, "longer than"),
    "a size of a page in one row": (
        {"/users": lambda query: [json.dumps({"users": [user(int(query["skip"]))], "matchCount": NEVER}).encode()]},
        "it counts",
    ),
}

DAILY = ("a billion people", "numbers", "endless members", "a packed bomb")
"""The few that are tried every day: each is a process of its own."""


@pytest.mark.sampled(gate=3)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in DAILY else pytest.mark.slow) for name in NASTY]
)
def test_a_hostile_answer_costs_little_and_ends_with_a_sentence(name: str, tmp_path: Path) -> None:
    """Under 300 MB, and an error that says what was too much; nothing of it becomes a creation or a deletion."""
    answers, sentence = NASTY[name]
    err = ran(tmp_path, answers, codes=(1, 8))
    assert sentence in err, err[:2_000]
    assert len(err) < 20_000


@pytest.mark.slow
def test_long_answers_leave_the_effects_known(tmp_path: Path) -> None:
    """Under 300 MB, more than 64 MiB of answers are compared by their digests, and nothing is left unknown."""
    ran(tmp_path, {"/users": page("users", wordy, 900, "matchCount")})
    effects = json.loads((tmp_path / "plan.json").read_text())["effects"]
    assert (effects["basis"], effects["people"]["gain"]) == ("exact", 1)


@pytest.mark.slow
@pytest.mark.sampled(gate=2)
@pytest.mark.parametrize("paths", [["/users"], ["/users", "/groups", "/smart-groups", "/content/all"]], ids=str)
def test_pages_that_never_end_are_left(paths: list[str], tmp_path: Path) -> None:
    """Distinct rows for ever, with no total: the run ends where no workspace is that large."""

    def endless_pages(path: str) -> Body:
        name, row, _ = LISTINGS[path]
        return lambda query: [
            json.dumps({name: [row(int(query["skip"]) + number) for number in range(2_000)]}).encode()
        ]

    assert "than lmsconf reads" in ran(tmp_path, {path: endless_pages(path) for path in paths}, codes=(1,))


@pytest.mark.slow
def test_a_large_workspace_is_no_hostile_one(tmp_path: Path) -> None:
    """200,000 people, 5,000 groups, one with 100,000 members, 5,000 smart groups, 20,000 assignments of one content."""
    ids = json.dumps({"userIds": [f"{number:036}" for number in range(100_000)]}).encode()
    who = {"targetType": "USER", "mandatory": True, "addedBy": "somebody"}
    when = dict.fromkeys(("startTime", "finishTime", "addedTime"), "2026-01-05T10:00:00Z")
    targets = [
        {"targetId": f"{number:036}", "name": f"person{number}@acme.example", **who, **when} for number in range(20_000)
    ]
    large = {
        "/users": page("users", user, 200_000, "matchCount"),
        "/groups": page("groups", group, 5_000),
        "/smart-groups": page("smartGroups", smart, 5_000),
        "/groups/g-1/members": lambda _: [ids],
        "/content/targets": lambda _: [json.dumps({"targets": targets}).encode()],
    }
    ran(tmp_path, large, most=None)
    assert (tmp_path / "plan.json").stat().st_size > 1_000


PEOPLE = 1_500
MANY_ANSWERS: Mapping[str, Body] = {
    "/users": page("users", answering, PEOPLE, "matchCount"),
    "/users/extended-info": page("users", lambda number: {"userId": f"{number:036}"}, PEOPLE, "matchCount"),
}


@pytest.mark.sampled(daily=False)
def test_a_plan_keeps_each_different_answer_once(tmp_path: Path) -> None:
    """Where fields are declared and everybody answers at length, a plan takes little memory and is not refused."""
    people = ", ".join(f"person{number}@acme.example" for number in range(1_000, 1_050))
    manifests = MANIFESTS.replace("person1@acme.example", people)
    # How many pages are in memory at a time depends on how many are asked for at a time.
    ran(tmp_path, MANY_ANSWERS, *PLAN, "--parallelism", "1", manifests=manifests, most=MOST * 2 // 3)


@pytest.mark.sampled(daily=False)
def test_a_snapshot_keeps_each_different_answer_once(tmp_path: Path) -> None:
    """It says of everybody what was answered, in whatever shape, and takes little memory."""
    empty = {
        "/groups": page("groups", group, 0),
        "/smart-groups": page("smartGroups", smart, 0),
        "/content/all": page("courses", content, 0, "total"),
    }
    ran(tmp_path, {**MANY_ANSWERS, **empty}, "snapshot", "--parallelism", "1", "saved.json", most=MOST * 2 // 3)
    people = json.loads((tmp_path / "saved.json").read_text())["user"]
    picked = [{"field": f"Field {n}", "choices": sorted(f"ch-{n}-{m}" for m in range(40))} for n in range(10)]
    badges: Mapping[int, list[dict[str, object]]] = {
        0: [],
        1: [{"field": "Badge", "choices": [], "text": "A plain text"}],
        2: [{"field": "Badge", "choices": ["ch-1", "ch-2"]}],
        3: [],  # an empty answer is none
        5: [],
    }
    assert len(people) == PEOPLE
    for number, person in enumerate(people):
        badge = badges.get(number % 100, [{"field": "Badge", "choices": [], "text": f"B-{number}"}])
        assert person.get("answers") == (None if number % 100 == 4 else [*badge, *picked]), number


def test_an_ordinary_workspace_is_planned(tmp_path: Path) -> None:
    """What the hostile answers are put into is a workspace that plans."""
    ran(tmp_path, {})
