"""A project with some workspaces in files of the embedded sandbox, and the command line on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line

BASE = """\
custom_fields:
  - {name: Department, type: CHOICE, choices: [Sales, Support]}
groups:
  - {name: "Team $(region)", members: []}
"""
TABLE = """\
name,url,labels
alpha,sandbox:alpha.db,"ring=canary, region=eu"
beta,sandbox:beta.db,"ring=main, region=eu"
gamma,sandbox:gamma.db,"ring=main, region=us"
"""
PROJECT = "workspaces: {file: workspaces.csv}\n"


class Fleet:
    """A project folder."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys
        self.write("lmsconf.yaml", PROJECT)
        self.write("workspaces.csv", TABLE)
        self.write("manifests/a.yaml", BASE)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its exit code and what it wrote to stdout and stderr."""
        code = run_command_line(app, ["-C", str(self.root), *arguments])
        out, err = self._capsys.readouterr()
        return code, out, err

    def index(self, folder: str = "out", name: str = "index.json") -> dict[str, Any]:
        """Return an index that a command has written."""
        document: dict[str, Any] = json.loads((self.root / folder / name).read_text())
        return document

    def plan(self, *arguments: str) -> Mapping[str, Any]:
        """Save the plans of the fleet; return their index."""
        code, _, err = self.run("fleet", "plan", "--out", str(self.root / "out"), "--processes", "1", *arguments)
        assert code == 0, err
        return self.index()


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fleet:
    return Fleet(tmp_path, capsys)
