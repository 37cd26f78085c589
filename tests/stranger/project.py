"""Somebody who runs lmsconf in a project against a stranger's service, and the first manifest of that project."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from waiting import nobody_waits

from lmsconf.cli import main

from .server import TOKEN, IndependentServer, serving
from .state import Choices

FIRST = """
custom_fields:
  - name: Office
    type: CHOICE
    choices: [Oslo, Malmö]
    description: Where the desk stands
  - name: Shirt
    choices: [S, M, L]
groups:
  - name: Coaches
    members: [bo@acme.example, cy@acme.example]
    managers: [anna@acme.example]
  - name: Welcome committee
    members: [ed@acme.example, fay@acme.example]
    managers: [anna@acme.example, gus@acme.example]
  - {name: Leaders, members: {include: [anna@acme.example]}}
smart_groups:
  - name: Sales people
    conditions: [{field: Department, choices: [Sales]}]
    managers: [anna@acme.example]
  - name: Oslo desks
    conditions:
      - {field: Office, choices: [Oslo]}
      - {field: Department, choices: [Sales, HR]}
    managers: [kim@acme.example]
content_targets:
  - content: GDPR basics
    mandatory: true
    assign_to:
      - {group: Coaches, visible_from: 2026-01-05, visible_until: 2026-12-31}
      - {smart_group: Oslo desks, visible_from: 2026-02-01T08:00}
      - {everyone: true, mandatory: false}
      - {user: jon@acme.example}
  - {content: First aid, assign_to: [{group: Welcome committee, visible_until: 2026-06-30}]}
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A service, and what the project has to say of it."""

    choices: Choices
    dialect: Mapping[str, str | int]


@dataclass(slots=True)
class ServerProject:
    """Somebody who runs lmsconf in a project against one service."""

    folder: Path
    stranger: IndependentServer
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    def write(self, manifest: str, dialect: Mapping[str, str | int], more: str = "") -> None:
        """Puts one manifest and the project file there. more: what else the project file says."""
        (self.folder / "manifests").mkdir(exist_ok=True)
        (self.folder / "manifests" / "all.yaml").write_text(manifest, encoding="utf-8")
        project = f"timezone: Europe/Stockholm\ndialect: {json.dumps(dict(dialect))}\n{more}"
        (self.folder / "lmsconf.yaml").write_text(project, encoding="utf-8")

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code and stdout of one command."""
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["-C", str(self.folder), *arguments])
        out, self.err = self.capsys.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return int(code), out

    def plans(self, code: int) -> str:
        """Plans without a single writing request, and ends with that code."""
        before = len(self.stranger.writes())
        got, out = self.run("plan", "--detailed-exitcode")
        assert got == code, out + self.err
        assert len(self.stranger.writes()) == before
        return out

    def applies(self, *options: str) -> None:
        """Applies, all the way; nothing is left to do then, and doing it again asks nothing of the service."""
        got, out = self.run("apply", "--auto-approve", *options)
        assert got == 0, out + self.err
        assert "No changes." in self.plans(0)
        before = len(self.stranger.writes())
        assert self.run("apply", "--auto-approve")[0] == 0
        assert len(self.stranger.writes()) == before


Open = Callable[[Case, str], ServerProject]


def opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Open]:
    """Opens a project against a service with the choices of a case; only the environment names the service."""
    nobody_waits(monkeypatch)
    with ExitStack() as served:

        def open(case: Case, manifest: str) -> ServerProject:
            stranger = served.enter_context(serving(case.choices))
            monkeypatch.setenv("LMSCONF_URL", stranger.url)
            monkeypatch.setenv("LMSCONF_TOKEN", TOKEN)
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
            monkeypatch.delenv("LMSCONF_WORKSPACE", raising=False)
            desk = ServerProject(tmp_path, stranger, capsys)
            desk.write(manifest, case.dialect)
            return desk

        yield open
