"""A token and a pre-signed link that the service repeats wherever it can show in nothing that lmsconf writes."""

import json
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest
from cli.served import served
from flow.project import Project
from flow.shell import lmsconf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import listed_cases
from waiting import nobody_waits

from lmsconf.api.client import Client
from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.documents.reports import problems_json
from lmsconf.errors import ProblemsFound
from lmsconf.project.settings import load_settings
from lmsconf.render.text import problems_text
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response
from lmsconf.workspace.project_manifests import load_manifests

from . import active_content

TOKEN = "canary-" + "tok/en+4711=="
LINK = (
    "https://files.example/canaryfile4711.pdf?X-Amz-Algorithm=AWS4&X-Amz-Signature=canarysignature4711&X-Amz-Expires=60"
)
CANARIES = ("canary-tok", "en+4711", "en%2B4711", "canarysignature4711", "canaryfile4711")
SEED = """
people: [{email: anna@acme.example, admin: true}]
groups: [{name: Coaches, id: g-1, members: [anna@acme.example]}, {name: Other, id: g-2}]
content: [{name: GDPR basics}]
"""


class Echo(Sandbox):
    """A service that says in each refusal what it was sent, and puts a pre-signed link into every row it lists.

    fails: path → the status with which it is refused. env: the environment that leads to it.
    """

    fails: Mapping[str, int] = {}
    env: Mapping[str, str]

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        status = next((status for start, status in self.fails.items() if f"{method} {path}".startswith(start)), None)
        if status is None:
            answer = super().answer(method, path, query, headers, body)
            value = json.loads(answer.body) if answer.body else None
            if answer.status < 400:
                return json_response(answer.status, _with_link(value)) if isinstance(value, dict | list) else answer
            status = answer.status
        sent = headers.get("authorization", "")
        said = f"you sent {sent}, which is {sent.removeprefix('Bearer ')}, for {LINK}"
        return json_response(status, {"error": "no", "message": said, "headers": dict(headers)})


def _with_link(value: object) -> object:
    if isinstance(value, dict):
        return {"downloadUrl": LINK, **{key: item if key in _OPEN else _with_link(item) for key, item in value.items()}}
    return [_with_link(item) for item in value] if isinstance(value, list) else value


_OPEN = ("customFields", "metadata")
"""Mappings of any names to texts: what stands there was put there by people, and is what a snapshot is for."""


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Echo]:
    """The service behind a port, and a project that wants changes of it."""
    Project(tmp_path, SEED, "guards: {deletes: off, removals: off}\nsettle: 0s\n").write(
        "groups: [{name: Mentors, previously: [Coaches], members: []}, {name: New}]\nabsent: {groups: [Other]}\n"
        "content_targets: [{content: GDPR basics, assign_to: [everyone]}]\n"
    )
    nobody_waits(monkeypatch)
    with served(tmp_path, Echo, TOKEN) as (service, env):
        service.env = env
        yield service


def leaks(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


def leaking(root: Path, env: Mapping[str, str], *command: str, code: int | None = None) -> list[str]:
    """What leaks into anything that a command wrote: to stdout, stderr and the project. code: what it exits with."""
    ran = lmsconf(root, *command, env=env, code=code)
    files = "".join(path.read_bytes().decode("utf-8", "replace") for path in root.rglob("*") if path.is_file())
    return leaks(ran.out + ran.err + files)


FORMATS = ["text", "json"]


@pytest.mark.sampled(day=2)
@pytest.mark.parametrize("format", FORMATS)
def test_what_succeeds(format: str, service: Echo, tmp_path: Path) -> None:
    """Plans, snapshots, reports, journals and what is shown of them hold neither, where all goes well."""
    for command in (
        f"plan --out plan.json --format {format}",
        f"show plan.json --format {format}",
        "snapshot snapshot.json",
        f"show snapshot.json --format {format}",
        f"doctor --format {format}",
        "apply plan.json --format json --output report.json",
        f"show report.json --format {format}",
        f"plan --format {format}",
    ):
        assert leaking(tmp_path, service.env, *command.split(), code=0) == [], command


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("format", FORMATS)
@listed_cases("fails")
def test_what_is_refused(fails: Mapping[str, int], format: str, service: Echo, tmp_path: Path) -> None:
    """A service that repeats credential and link in its refusals does not get them into any output or file."""
    service.fails = fails
    for command in (
        ["plan", "--format", format],
        ["apply", "--auto-approve", "--format", format],
        ["snapshot", "snapshot.json"],
        ["doctor", "--format", format],
        # What `api` is answered where it is not refused is what it was asked to print, links too.
        *([["api", "GET", "/groups"]] if "GET " in fails else []),
        *([["api", "POST", "/groups", "--body", '{"name": "a"}']] if "POST /groups" in fails else []),
    ):
        assert leaking(tmp_path, service.env, *command) == [], command


def test_a_token_that_was_typed(service: Echo, tmp_path: Path) -> None:
    """It stands neither in an error that quotes it, nor in the log of requests, nor in the journal of a run."""
    asked = ("api", "GET", "/users/nobody", "--query", f"q={TOKEN}", "--verbose")
    for command in (("plan", "--only", TOKEN), asked, ("apply", "--auto-approve", "--meta", f"note={TOKEN}")):
        assert leaking(tmp_path, service.env, *command) == [], command


@pytest.mark.parametrize("wrong", ["canary-tok/en+4711", "canary-" + "tok/en+4711==" + "x"])
def test_a_wrong_token(wrong: str, service: Echo, tmp_path: Path) -> None:
    """A credential that is refused is not shown either."""
    assert leaking(tmp_path, {**service.env, "LMSCONF_TOKEN": wrong}, "plan", code=7) == []


def test_tracebacks() -> None:
    """An error that nobody foresaw leaves a traceback without the token, and no object on the way shows it."""

    def fail(request: httpx.Request) -> httpx.Response:
        raise RuntimeError("a bug")

    client = Client(
        "https://lms.example", TOKEN, transport=httpx.MockTransport(fail), retry=RetryPolicy(sleep=lambda _: None)
    )
    with pytest.raises(RuntimeError) as raised:
        client.call("manual-groups.list")
    text = "".join(traceback.format_exception(raised.value))
    assert "a bug" in text
    assert leaks(text) == []
    assert leaks(f"{client!r} {client._transport!r} {vars(client)!r}") == []


# Whatever bytes stand in the files of a project: problems with places come of it, or declarations, nothing else.


# ruff: noqa: E501  # the parts read best by family


PROJECT = b"workspaces: {s: {url: 'sandbox:'}}\nvars: {x: y}\n"
PARTS = [
    *["groups: ", "smart_groups: ", "custom_fields: ", "content_targets: ", "absent: ", "users: ", "x-a: ", "name: ", "id: ", "previously: "],
    *["members: ", "managers: ", "conditions: ", "field: ", "choices: ", "system_condition: ", "content: ", "assign_to: ", "type: CHOICE"],
    *["include: ", "exclude: ", "file: p.csv", "column: email", "where: ", "allow_empty: true", "only_in: ", "about: ", "until: ", "everyone"],
    *["visible_from: ", "visible_until: ", "mandatory: ", "2026-02-30", "2026-01-05T24:00", "9999-12-31", "0001-01-01", "description: "],
    *["workspaces: ", "url: ", "token: ", "env: ", "guards: ", "deletes: ", "ownership: ", "allow: ", "dialect: ", "timezone: ", "vars: "],
    *["[", "]", "{", "}", ",", ": ", "- ", "? ", "\n", "\n  ", "\n    ", "\n- ", "\n  - ", "#", "'", '"', "&a ", "*a", "!!str ", "!x ", "<<: ", "%YAML 1.1\n", "---\n", "...\n", "~", "null"],
    *["true", "no", "0x1f", "0o7", "1e999", ".inf", ".nan", "-", "+1", "1_000", "$(x)", "$(", "$$(", "$(y)", "a@b.example", "a", "\t", "\\", "@", "`", "%", ">-\n"],
    "|", "|\n", "a: b", "\r", "\r\n", "\ufeff", "\x85", "\u2028", "\0", "\x1b[31m", "\u202e", "e\u0301", "é", "\U0001f600",
    '"\\ud800"', '"\\x00"', '"\\U00110000"', "[[[[[", "9" * 400, "a" * 300,
]  # fmt: skip
texts = st.lists(st.sampled_from(PARTS), max_size=25).map(lambda parts: "".join(parts).encode())
files = texts | st.binary(max_size=200) | st.tuples(texts, st.binary(max_size=4), texts).map(b"".join)
tables = files | st.lists(
    st.sampled_from([b"email", b",", b";", b"\t", b"\n", b'"', b"a@b.c", b"\r", b"\xff", b" "])
).map(b"".join)
thorough = settings(suppress_health_check=[HealthCheck.too_slow])


@thorough
@given(manifest=files, people=tables)
def test_manifests(manifest: bytes, people: bytes) -> None:
    """Any manifest beside any list of people is read to the end, and what is wrong has a place."""
    assert all(problem.source for problem in _read(PROJECT, manifest, people).problems)


@thorough
@given(project=files)
def test_project_files(project: bytes) -> None:
    """Any project file is read, or everything that is wrong with it is told."""
    _read(project, b"groups: []\n", b"email\n")


@thorough
@given(entry=texts, section=st.sampled_from(["groups", "smart_groups", "custom_fields", "content_targets", "users"]))
def test_entries(entry: bytes, section: str) -> None:
    """Anything that YAML takes, in the place of an entry, is parsed or told about."""
    _read(PROJECT, f"{section}:\n  - {{name: a, ".encode() + entry + b"}\n", b"email\na@b.example\n")


def _read(project: bytes, manifest: bytes, people: bytes) -> ProblemsFound:
    """What is wrong with a project; any error but ours ends the test. Its words are safe in every format."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "manifests").mkdir()
        (root / "lmsconf.yaml").write_bytes(project)
        (root / "manifests" / "a.yaml").write_bytes(manifest)
        (root / "manifests" / "p.csv").write_bytes(people)
        try:
            told = ProblemsFound(load_manifests(load_settings(root, None, {})).problems)
        except ProblemsFound as found:
            told = found
    assert active_content.text(problems_text(told.problems)) == []
    assert active_content.in_json(problems_json(told.problems)) == []
    return told
