"""Every sentence by which a plan, a run or a report says how workspace and manifests stand, with what it rests on."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode

# The line that allows what a guard stops leads on when it is pasted, and never in a circle.


PROJECT = """
workspaces: {production: {url: 'sandbox:production.db', seed: seed.yaml}}
guards: {removals: {count: 0}, deletes: {count: 0}}
"""
SEED = """
people: [{email: anna@acme.example, answers: {Country: SE}}]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, "NO"]}]
groups: [{name: A, members: [anna@acme.example]}, {name: B}]
smart_groups: [{name: Norwegians, conditions: [{field: Country, choices: ["NO"]}]}]
"""
MANIFEST = """
custom_fields: [{name: Country, choices: ["NO"]}]
groups: [{name: A, members: []}]
absent: {groups: [B]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "seed.yaml").write_text(SEED)
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFEST)
    return tmp_path


def offered(text: str) -> list[str]:
    """The line that is offered first, as a shell takes it apart, without the program."""
    line = next(one for one in text.splitlines() if " apply " in one and "--allow" in one)
    return shlex.split(line[line.index("lmsconf ") :])[1:]


@pytest.mark.parametrize("saved", [False, True], ids=["manifests", "plan-file"])
def test_pasting_the_line_leads_on(root: Path, capsys: pytest.CaptureFixture[str], saved: bool) -> None:
    """Whatever of it was allowed before, the line holds all that is needed: it is never stopped again."""
    command = ["-C", str(root), "apply", str(root / "plan.json") if saved else "--auto-approve"]
    run_command_line(app, ["-C", str(root), "plan", "--out", str(root / "plan.json")])
    capsys.readouterr()
    assert run_command_line(app, command) == ExitCode.BLOCKED
    whole = offered(capsys.readouterr().err)
    consents = whole[whole.index("--allow") :]
    assert consents[0::2] == ["--allow"] * 4
    for first in range(0, len(consents), 2):
        assert run_command_line(app, [*command, *consents[first : first + 2]]) == ExitCode.BLOCKED
        assert offered(capsys.readouterr().err) == whole
    assert run_command_line(app, [*whole, *([] if saved else ["--auto-approve"])]) not in (
        ExitCode.BLOCKED,
        ExitCode.USAGE,
    )


def test_what_the_project_allows_is_not_repeated(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A consent of the project file holds for every command, so no line carries it."""
    with (root / "lmsconf.yaml").open("a") as project:
        project.write("allow: [{deletes: 1, until: 2099-01-01, reason: B was a trial}]\n")
    assert run_command_line(app, ["-C", str(root), "apply", "--auto-approve"]) == ExitCode.BLOCKED
    whole = offered(capsys.readouterr().err)
    assert "deletes=1" not in whole
    assert run_command_line(app, [*whole, "--auto-approve"]) not in (ExitCode.BLOCKED, ExitCode.USAGE)
