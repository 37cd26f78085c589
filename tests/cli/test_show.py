"""`lmsconf show` renders what was saved, and refuses what was changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.documents import plan_file, report_file
from lmsconf.documents.document import render_json
from lmsconf.errors import ExitCode
from lmsconf.model.outcomes import ApplyReport, VerifiedScope, VerifyMode
from lmsconf.model.plan import Plan
from lmsconf.render import apply_text, plan_text

PLAN = Plan(
    workspace="sandbox",
    url="sandbox:",
    people=3,
    created_at="2026-03-01T08:00:00Z",
    expires_at="2026-03-08T08:00:00Z",
    policy={},
    manifests_digest="ab",
    manifests_files=(),
    offline=False,
    timezone=None,
    changes=(),
    calls=(),
    guards=(),
    unmanaged=(),
    fingerprints={},
    problems=(),
)
REPORT = ApplyReport(
    plan_digest="ab" * 32,
    workspace="sandbox",
    url="sandbox:",
    people=None,
    started_at="2026-03-01T08:00:00Z",
    finished_at="2026-03-01T08:00:01Z",
    outcomes=(),
    verified=VerifiedScope(scope=VerifyMode.ALL),
    converged=True,
    residue=(),
    problems=(),
    meta={},
    exit=0,
)


@pytest.mark.parametrize(
    ("saved", "shown"),
    [(plan_file.dumps(PLAN), plan_text(PLAN)), (report_file.dumps(REPORT), apply_text(REPORT))],
    ids=["plan", "apply"],
)
def test_shows_what_was_saved(saved: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A saved document reads as it did when it was made; as JSON it is the file itself."""
    path = tmp_path / "document.json"
    path.write_bytes(saved.encode())
    assert run_command_line(app, ["show", str(path)]) == ExitCode.OK
    assert capsys.readouterr().out == shown
    assert run_command_line(app, ["show", str(path), "--format", "json"]) == ExitCode.OK
    assert capsys.readouterr().out == saved


@pytest.mark.parametrize("format", ["text", "json"])
def test_refuses_what_was_changed(format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A plan that was edited is stale in every format: exit 3."""
    path = tmp_path / "plan.json"
    path.write_bytes(render_json({**json.loads(plan_file.dumps(PLAN)), "people": 4}).encode())
    assert run_command_line(app, ["show", str(path), "--format", format]) == ExitCode.STALE
    assert "was changed after lmsconf wrote it" in capsys.readouterr().err


def test_names_the_formats_it_knows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another document is an error that says which can be shown."""
    path = tmp_path / "other.json"
    path.write_text('{"format": "lmsconf.other/1"}')
    assert run_command_line(app, ["show", str(path)]) == ExitCode.ERROR
    shown = capsys.readouterr().err
    assert "lmsconf.other/1" in shown
    assert "lmsconf.plan/1 or lmsconf.apply/1" in shown


@pytest.mark.parametrize(
    ("name", "text", "code", "message"),
    [
        ("plan.yaml", plan_file.dumps(PLAN), ExitCode.OK, ""),
        ("plan.yaml", "groups: []\n", ExitCode.USAGE, "plan.yaml is a manifest; show takes"),
        ("lmsconf.yaml", "workspaces: {}\n", ExitCode.USAGE, "lmsconf.yaml is the project file; show takes"),
        ("plan.json", "groups: []\n", ExitCode.STALE, "plan.json is not a JSON document of lmsconf; show takes"),
        ("plan.json", " \n", ExitCode.STALE, "plan.json is empty; show takes"),
    ],
)
def test_says_what_a_file_holds_instead(
    name: str, text: str, code: ExitCode, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is a manifest by its name and its text: a document is shown whatever its file is called."""
    path = tmp_path / name
    path.write_text(text)
    assert run_command_line(app, ["show", str(path)]) == code
    assert message in capsys.readouterr().err
