"""`lmsconf api` sends one call, prints the answer, and exits as the table of exit codes says."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from waiting import nobody_waits

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox

PROJECT = (
    "workspaces: {sandbox: {url: 'sandbox:w.db', seed: seed.yaml}}\ndialect: {manual-groups.rename.name: newName}\n"
)
SEED = "people: [{email: anna.berg@acme.example}, {email: bo.ek@acme.example}]\ngroups: [{name: Säljare}]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a workspace that lasts from call to call."""
    for name in ("LMSCONF_URL", "LMSCONF_TOKEN", "LMSCONF_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "lmsconf.yaml").write_text(PROJECT, encoding="utf-8")
    (tmp_path / "seed.yaml").write_text(SEED, encoding="utf-8")
    return tmp_path


def call(project: Path, *arguments: str) -> int:
    """The exit code of one call."""
    return run_command_line(app, ["-C", str(project), "api", *arguments])


def test_the_answer_is_printed_as_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the service answers goes to stdout, whole and readable, and nothing else does."""
    assert call(project, "GET", "/groups") == ExitCode.OK
    out = capsys.readouterr().out
    assert json.loads(out) == {"groups": [{"groupId": "g-1", "name": "Säljare"}]}
    assert "Säljare" in out


def test_no_answer_is_printed_where_people_are_masked(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer would name people as it is, so with --mask-people no request is sent."""
    assert call(project, "--mask-people", "GET", "/users") == ExitCode.USAGE
    monkeypatch.setenv("LMSCONF_MASK_PEOPLE", "1")
    assert call(project, "POST", "/groups", "--body", '{"name": "New"}') == ExitCode.USAGE
    assert capsys.readouterr().out == ""
    monkeypatch.setenv("LMSCONF_MASK_PEOPLE", "0")
    assert call(project, "GET", "/groups") == ExitCode.OK
    assert "New" not in capsys.readouterr().out


def test_queries_are_given_by_name(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each --query is one parameter; a name that is a duplicate is sent twice."""
    assert call(project, "get", "/users", "--query", "filter=bo.ek", "--query", "limit=5") == ExitCode.OK
    assert [user["email"] for user in json.loads(capsys.readouterr().out)["users"]] == ["bo.ek@acme.example"]
    assert (
        call(project, "GET", "/content/all", "--query", "groupIds[]=g-1", "--query", "groupIds[]=EVERYONE")
        == ExitCode.OK
    )


def test_a_body_is_sent_as_it_is_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names in the body go out unchanged, whatever the dialect says; an answer without a body prints nothing."""
    assert call(project, "POST", "/groups/g-1/rename", "--body", '{"newName": "Sales"}') == ExitCode.OK
    assert capsys.readouterr().out == ""
    assert call(project, "POST", "/groups/g-1/rename", "--body", '{"name": "Sales"}') == ExitCode.ERROR
    assert "newName" in capsys.readouterr().err


def test_a_body_may_come_from_stdin(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--body -` reads the JSON from stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"name": "Piped"}')))
    assert call(project, "POST", "/groups", "--body", "-") == ExitCode.OK
    assert json.loads(capsys.readouterr().out) == {"groupId": "g-2"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("GET", "groups"),
        ("GET", "/users/../groups"),
        ("GET", "/users?limit=5"),
        ("GET", "/users", "--query", "limit"),
        ("POST", "/groups", "--body", "{name: x}"),
        ("POST", "/groups", "--body", '{"name": 1, "name": 2}'),
        ("BREW", "/coffee"),
        ("GET",),
    ],
)
def test_a_wrong_command_line_sends_nothing(
    project: Path, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """A path that leads elsewhere, a query without a value and a body that is no JSON are a wrong command line."""
    assert call(project, *arguments) == ExitCode.USAGE
    assert capsys.readouterr().out == ""


def test_a_refusal_is_an_error(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the service refuses ends with exit 1, its reason on stderr."""
    assert call(project, "GET", "/users/nobody") == ExitCode.ERROR
    assert "404" in capsys.readouterr().err


def test_a_wrong_credential_has_its_code(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A credential that is refused is exit 7."""
    sandbox = Sandbox(token="right")
    with serve(sandbox) as server:
        monkeypatch.setenv("LMSCONF_URL", server.url)
        monkeypatch.setenv("LMSCONF_TOKEN", "wrong")
        assert call(project, "GET", "/groups") == ExitCode.UNAUTHORIZED
    sandbox.close_workspace()


def test_a_silent_service_has_its_code(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A service that cannot be reached is exit 8."""
    nobody_waits(monkeypatch)
    monkeypatch.setenv("LMSCONF_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("LMSCONF_TOKEN", "t")
    assert call(project, "POST", "/groups", "--body", '{"name": "x"}') == ExitCode.UNREACHABLE
    assert "127.0.0.1:1" in capsys.readouterr().err
