"""`lmsconf validate` tells everything at once, and needs no workspace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import ExitCode

PROJECT = 'workspaces: {production: {url: "https://lms.invalid", token: {env: LMSCONF_NOT_SET}}}\n'


def project(root: Path, manifest: str) -> list[str]:
    (root / "manifests").mkdir()
    (root / "lmsconf.yaml").write_text(PROJECT)
    (root / "manifests" / "a.yaml").write_text(manifest)
    return ["-C", str(root), "validate"]


def test_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sound manifests exit 0 with a count, without a token and without a network."""
    assert (
        run_command_line(app, project(tmp_path, "groups: [{name: A}, {name: B, only_in: [production]}]\n"))
        == ExitCode.OK
    )
    out, err = capsys.readouterr()
    assert (out, err) == ("2 resources in 1 file: no errors.\n", "")


def test_problems(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Problems exit 1 and are told on stderr, each at its place."""
    assert run_command_line(app, project(tmp_path, "groups: [{nam: A}, {name: B, members: bo}]\n")) == ExitCode.ERROR
    out, err = capsys.readouterr()
    assert out == ""
    for place in ("manifests/a.yaml:1:10", "manifests/a.yaml:1:11", "manifests/a.yaml:1:39"):
        assert place in err


def test_problems_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With `--format json` stdout holds the problems as one document."""
    arguments = [*project(tmp_path, "grups: []\n"), "--format", "json"]
    assert run_command_line(app, arguments) == ExitCode.ERROR
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "lmsconf.problems/1"
    assert [problem["code"] for problem in document["problems"]] == ["manifest/unknown-key"]
