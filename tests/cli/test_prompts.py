"""Questions are asked only where somebody sees them and can answer; only yes is taken for yes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flow.shell import lmsconf
from on_terminal import at_terminal

from lmsconf.errors import ExitCode

QUESTION = "Only 'yes' will be accepted: "
PROJECT = "workspaces: {sandbox: {url: 'sandbox:workspace.db'}}\n"
BLIND = [
    pytest.param(("stdin", "stdout"), id="stderr-elsewhere"),
    pytest.param(("stdout", "stderr"), id="stdin-elsewhere"),
    pytest.param((), id="no-terminal"),
]
"""Terminals on which a question would not be seen, or not be answered."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that would create a group."""
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "groups.yaml").write_text("groups: [{name: Mentors}]\n")
    return tmp_path


@pytest.mark.parametrize("answer", ["yes\n", " yes \n", "y\n", "YES\n", "\n", "no\n", "\x04"])
def test_only_yes_applies(project: Path, answer: str) -> None:
    """Any other answer, Enter and the end of input among them, exits with 1 and changes nothing."""
    agreed = answer == "yes\n"
    ran, shown = at_terminal(project, "apply", typed=answer)
    assert ran.code == (ExitCode.OK if agreed else ExitCode.ERROR)
    assert shown.count("\nWorkspace sandbox (sandbox:workspace.db), 0 people.\nApply this plan? " + QUESTION) == 1
    assert shown.index("group/Mentors") < shown.index(QUESTION)
    # Above the plan, and above the question; the report stands below both.
    assert shown.count("Workspace sandbox (sandbox:workspace.db)") == 2
    assert ("declined: nothing was changed" in shown) is not agreed
    left = lmsconf(project, "plan", "--detailed-exitcode")
    assert left.code == (ExitCode.OK if agreed else ExitCode.CHANGES)


@pytest.mark.parametrize("streams", BLIND)
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("apply",), "Pass --auto-approve"),
        (("doctor", "--probe"), "Pass --yes"),
        (("sandbox", "reset"), "Pass --yes"),
    ],
    ids=["apply", "doctor", "reset"],
)
def test_a_question_that_nobody_sees_is_not_asked(
    project: Path, words: tuple[str, ...], hint: str, streams: tuple[str, ...]
) -> None:
    """Where stdin or stderr is no terminal, the command exits with 64 and names the option to pass."""
    ran, shown = at_terminal(project, *words, typed="yes\n", streams=streams)
    assert ran.code == ExitCode.USAGE
    assert "there is no terminal to ask for approval" in ran.err + shown
    assert hint in ran.err + shown
    assert QUESTION not in ran.err + ran.out + shown


@pytest.mark.parametrize(("answer", "code"), [("yes\n", ExitCode.OK), ("\n", ExitCode.ERROR)])
def test_a_sandbox_is_reset_after_a_yes(project: Path, answer: str, code: ExitCode) -> None:
    """The question names the file; anything but yes leaves it."""
    lmsconf(project, "apply", "--auto-approve")
    ran, shown = at_terminal(project, "sandbox", "reset", typed=answer)
    assert ran.code == code
    assert f"Delete all data in workspace.db and reset it? {QUESTION}" in shown
    groups = json.loads(lmsconf(project, "api", "GET", "/groups").out)
    assert bool(json.dumps(groups).count("Mentors")) is (code != ExitCode.OK)


@pytest.fixture
def command_project(tmp_path: Path) -> Iterator[Path]:
    """A project whose token comes from a command, on a port where nobody listens."""
    command = json.dumps([sys.executable, "-c", "print('t' * 20)"])
    workspace = f"{{url: 'http://127.0.0.1:1', token: {{command: {command}}}}}"
    (tmp_path / "lmsconf.yaml").write_text(f"workspaces: {{live: {workspace}}}\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "none.yaml").write_text("groups: []\n")
    return tmp_path


@pytest.mark.parametrize("streams", BLIND)
def test_a_token_command_is_refused_where_nobody_sees_the_question(
    command_project: Path, streams: tuple[str, ...]
) -> None:
    """The command does not run, and the message names the variable that allows it."""
    env = {"XDG_STATE_HOME": str(command_project / "state")}
    ran, shown = at_terminal(command_project, "plan", typed="yes\n", streams=streams, env=env)
    assert ran.code == ExitCode.ERROR
    assert "LMSCONF_TOKEN_COMMANDS" in ran.err + shown
    assert QUESTION not in ran.err + shown


def test_a_token_command_is_asked_about_on_a_terminal(command_project: Path) -> None:
    """The command is shown with the question; a no ends the command."""
    env = {"XDG_STATE_HOME": str(command_project / "state")}
    ran, shown = at_terminal(command_project, "plan", typed="no\n", env=env)
    assert ran.code == ExitCode.ERROR
    asked = f"Run it, now and from now on? {QUESTION}"
    assert asked in shown
    assert "Reading" not in shown.partition(asked)[0].rpartition("\x1b[1A\x1b[2K")[2], "a progress bar draws over it"


@pytest.mark.parametrize("streams", [("stdin", "stdout"), ("stdout", "stderr"), ()])
def test_init_asks_nothing_where_nobody_sees_it(tmp_path: Path, streams: tuple[str, ...]) -> None:
    """A block of a page whose stderr is discarded does not hang: the defaults are taken."""
    ran, shown = at_terminal(tmp_path, "init", "lms", streams=streams)
    assert ran.code == ExitCode.OK
    assert "URL of the workspace's API" not in ran.err + shown
    assert (tmp_path / "lms" / "lmsconf.yaml").exists()


@pytest.mark.parametrize("repository", [True, False])
@pytest.mark.parametrize("folder", [".", "my lms"])
def test_the_next_commands_commit_the_project(tmp_path: Path, folder: str, repository: bool) -> None:
    """The last lines of `init` can be pasted: they plan, and stage all that was written and nothing else."""
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@acme.example")
    if repository:
        subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "mine.txt").write_text("not of the project")
    ran = lmsconf(tmp_path, "init", folder, "--schemas", "--ci", "github")
    *_, block = ran.err.partition("\nNext:\n")
    lines = [line.strip() for line in block.splitlines()]
    assert [line.split()[0] for line in lines] == ["lmsconf"] * 3 + ["git"] * (2 if repository else 3)
    assert lines[-1].endswith("commit -m 'Create the lmsconf project'")
    staging = "\n".join(line for line in lines if line.startswith("git") and "commit" not in line)
    subprocess.run(["sh", "-ec", staging], cwd=tmp_path, check=True, capture_output=True)
    where = tmp_path / folder
    command = ["git", "ls-files", "--others", "--exclude-standard", "."]
    left = subprocess.run(command, cwd=where, check=True, capture_output=True, text=True).stdout.split()
    assert left == (["mine.txt"] if folder == "." else [])
