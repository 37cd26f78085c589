"""A token and a pre-signed link that the service repeats wherever it can show in nothing that lmsconf writes."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
from waiting import nobody_waits

from lmsconf.api.client import Client
from lmsconf.api.retry import RetryPolicy
from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.sandbox.serve import Server
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

TOKEN = "canary-" + "tok/en+4711=="
LINK = "https://files.example/report.pdf?X-Amz-Algorithm=AWS4&X-Amz-Signature=canarysignature4711&X-Amz-Expires=60"
CANARIES = ("canary-tok", "en+4711", "en%2B4711", "canarysignature4711")
SEED = """
people: [{email: anna@acme.example, admin: true}]
groups: [{name: Coaches, id: g-1, members: [anna@acme.example]}, {name: Other, id: g-2}]
content: [{name: GDPR basics}]
"""


class Echo(Sandbox):
    """A service that says in each refusal what it was sent, and puts a pre-signed link into every row it lists.

    fails: path → the status with which it is refused.
    """

    fails: Mapping[str, int] = {}

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        found = next((status for start, status in self.fails.items() if f"{method} {path}".startswith(start)), None)
        if found is None:
            found_answer = super().answer(method, path, query, headers, body)
            if found_answer.status < 400:
                return self._linked(found_answer)
            found = found_answer.status
        sent = headers.get("authorization", "")
        return json_response(found, {"error": "no", "message": f"you sent {sent} for {LINK}", "headers": dict(headers)})

    @staticmethod
    def _linked(answer: SandboxResponse) -> SandboxResponse:
        value = json.loads(answer.body) if answer.body else None
        if not isinstance(value, dict | list):
            return answer
        return json_response(answer.status, _with_link(value))


def _with_link(value: object) -> object:
    if isinstance(value, dict):
        return {"downloadUrl": LINK, **{key: item if key in _OPEN else _with_link(item) for key, item in value.items()}}
    return [_with_link(item) for item in value] if isinstance(value, list) else value


_OPEN = ("customFields", "metadata")
"""Mappings of any names to texts: what stands there was put there by people, and is what a snapshot is for."""


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Echo]:
    """The service, behind a port."""
    (tmp_path / "seed.yaml").write_text(SEED)
    service = Echo(token=TOKEN, seed=tmp_path / "seed.yaml")
    with Server(service):
        yield service
    service.close_workspace()


@pytest.fixture
def project(tmp_path: Path, service: Echo, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that wants changes of that workspace."""
    root = tmp_path / "project"
    (root / "manifests").mkdir(parents=True)
    (root / "lmsconf.yaml").write_text(
        "workspaces: {here: {url: 'sandbox:'}}\nguards: {deletes: off, removals: off}\nsettle: 0s\n"
    )
    (root / "manifests" / "a.yaml").write_text(
        "groups: [{name: Mentors, previously: [Coaches], members: []}, {name: New}]\nabsent: {groups: [Other]}\n"
        "content_targets: [{content: GDPR basics, assign_to: [everyone]}]\n"
    )
    nobody_waits(monkeypatch)
    server = Server(service).start()
    monkeypatch.setenv("LMSCONF_URL", server.url)
    monkeypatch.setenv("LMSCONF_TOKEN", TOKEN)
    yield root
    server.stop()


def written(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of one command, and every byte that it wrote: to stdout, stderr and the project."""
    code = run_command_line(app, ["-C", str(root), *arguments])
    told = capsys.readouterr()
    files = "".join(path.read_bytes().decode("utf-8", "replace") for path in root.rglob("*") if path.is_file())
    return code, told.out + told.err + files


def leaks(text: str) -> list[str]:
    return [canary for canary in CANARIES if canary in text]


FORMATS = ["text", "json"]


@pytest.mark.parametrize("format", FORMATS)
def test_what_succeeds(format: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plans, snapshots, reports, journals and what is shown of them hold neither, where all goes well."""
    plan, state, report = (str(project / name) for name in ("plan.json", "snapshot.json", "report.json"))
    for arguments in (
        ["plan", "--out", plan, "--format", format],
        ["show", plan, "--format", format],
        ["snapshot", state],
        ["show", state, "--format", format],
        ["doctor", "--format", format],
        ["apply", plan, "--format", "json", "--output", report],
        ["show", report, "--format", format],
        ["plan", "--format", format],
    ):
        code, text = written(project, capsys, *arguments)
        assert code == 0, (arguments, text)
        assert leaks(text) == [], arguments


REFUSED = {
    "reading, 401": {"GET ": 401},
    "reading, 403": {"GET ": 403},
    "reading, 404": {"GET ": 404},
    "reading, 500": {"GET ": 500},
    "creating, 400": {"POST /groups": 400},
    "creating, 409": {"POST /groups": 409},
    "creating, 500": {"POST /groups": 500},
    "deleting, 403": {"DELETE ": 403},
    "renaming, 422": {"PUT ": 422},
    "assigning, 400": {"POST /content": 400},
}


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("refused", REFUSED)
def test_what_is_refused(
    refused: str, format: str, project: Path, service: Echo, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service that repeats credential and link in its refusals does not get them into any output or file."""
    service.fails = REFUSED[refused]
    for arguments in (
        ["plan", "--format", format],
        ["apply", "--auto-approve", "--format", format],
        ["snapshot", str(project / "snapshot.json")],
        ["doctor", "--format", format],
        # What `api` is answered where it is not refused is what it was asked to print, links too.
        *([["api", "GET", "/groups"]] if "reading" in refused else []),
        *([["api", "POST", "/groups", "--body", '{"name": "a"}']] if "creating" in refused else []),
    ):
        _, text = written(project, capsys, *arguments)
        assert leaks(text) == [], arguments


@pytest.mark.parametrize("wrong", ["canary-tok/en+4711", "canary-" + "tok/en+4711==" + "x"])
def test_a_wrong_token(
    wrong: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A credential that is refused is not shown either."""
    monkeypatch.setenv("LMSCONF_TOKEN", wrong)
    code, text = written(project, capsys, "plan")
    assert code == 7
    assert leaks(text) == []


class Broken(httpx.BaseTransport):
    """A network that fails as nobody foresaw."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        raise RuntimeError("a bug")


def test_tracebacks() -> None:
    """An error that nobody foresaw leaves a traceback without the token, and no object on the way shows it."""
    client = Client("https://lms.example", TOKEN, transport=Broken(), retry=RetryPolicy(sleep=lambda _: None))
    with pytest.raises(RuntimeError) as raised:
        client.call("manual-groups.list")
    text = "".join(traceback.format_exception(raised.value))
    assert "a bug" in text
    assert leaks(text) == []
    assert leaks(f"{client!r} {client._transport!r} {vars(client)!r}") == []
