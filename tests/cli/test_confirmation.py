"""Before an apply, a person is asked, and only yes is taken for yes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import ExitCode

PROJECT = "workspaces: {sandbox: {url: 'sandbox:workspace.db'}}\n"


class Terminal(io.StringIO):
    """What somebody types."""

    def isatty(self) -> bool:
        """Somebody sits there."""
        return True


@pytest.mark.parametrize("answer", ["yes\n", " yes \n", "y\n", "YES\n", "\n", "no\n", ""])
def test_only_yes_applies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str
) -> None:
    """Any other answer, Enter and the end of input among them, exits with 1 and changes nothing."""
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: Mentors}]\n")
    agreed = answer.strip() == "yes"
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    assert run_command_line(app, ["-C", str(tmp_path), "apply"]) == (ExitCode.OK if agreed else ExitCode.ERROR)
    assert ("declined: nothing was changed" in capsys.readouterr().err) is not agreed
    left = run_command_line(app, ["-C", str(tmp_path), "plan", "--detailed-exitcode"])
    assert left == (ExitCode.OK if agreed else ExitCode.CHANGES)
