"""What scripts take from a plan file: `lmsconf show --format digest` and `--format gitlab`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from document_samples import PLANS

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.documents import plan_file
from lmsconf.errors import ExitCode
from lmsconf.model.plan import Plan


def shown(plan: Plan, format: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints of a saved plan."""
    path = folder / "plan.json"
    path.write_text(plan_file.dumps(plan), encoding="utf-8")
    assert run_command_line(app, ["show", str(path), "--format", format]) == ExitCode.OK
    return capsys.readouterr().out


@pytest.mark.parametrize("name", PLANS)
def test_the_digest_stands_alone(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`digest` prints what the plan file has under that key, and a line break."""
    text = shown(PLANS[name], "digest", tmp_path, capsys)
    assert text == json.loads(plan_file.dumps(PLANS[name]))["digest"] + "\n"


@pytest.mark.parametrize("name", PLANS)
def test_gitlab_counts_three_things(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GitLab knows create, update and delete: a replacement is one of the first and one of the last."""
    counts = PLANS[name].summary
    assert json.loads(shown(PLANS[name], "gitlab", tmp_path, capsys)) == {
        "create": counts.create + counts.replace,
        "update": counts.update,
        "delete": counts.delete + counts.replace,
    }


@pytest.mark.parametrize("format", ["digest", "gitlab"])
def test_other_documents_have_neither(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Asked of a snapshot, it is a wrong command line that says what there is instead."""
    assert run_command_line(app, ["init", str(tmp_path)]) == ExitCode.OK
    path = str(tmp_path / "snapshot.json")
    assert run_command_line(app, ["-C", str(tmp_path), "snapshot", path]) == ExitCode.OK
    assert run_command_line(app, ["show", path, "--format", format]) == ExitCode.USAGE
    assert "Choose one of text, markdown, html" in capsys.readouterr().err
