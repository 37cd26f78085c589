"""What commands save: whole or not there, for its owner only, and never through a link."""

from __future__ import annotations

import json
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from . import active_content

SEED = "people: [{email: anna@acme.example}]\ngroups: [{name: Coaches, members: [anna@acme.example]}]\n"
COMMANDS = {
    "plan": ["plan", "--out"],
    "plan document": ["plan", "--format", "json", "--output"],
    "plan text": ["plan", "--output"],
    "snapshot": ["snapshot"],
    "report": ["apply", "--auto-approve", "--format", "json", "--output"],
    "doctor": ["doctor", "--output"],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.yaml").write_text("groups: [{name: Coaches, members: []}]\n")
    (tmp_path / "workspace.yaml").write_text(SEED)
    (tmp_path / "lmsconf.yaml").write_text(
        "workspaces: {s: {url: 'sandbox:', seed: workspace.yaml}}\nguards: {removals: off}\n"
    )
    return tmp_path


def ran(folder: Path, *arguments: str, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """One command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-B", "-m", "lmsconf", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limit,
    )  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("command", COMMANDS)
def test_saved_for_its_owner(command: str, project: Path) -> None:
    """A saved file is 0600, in the place of one that others could read, and of a link, whose target stays."""
    other, link = project / "other", project / "out"
    other.write_text("precious")
    other.chmod(0o644)
    link.symlink_to(other)
    done = ran(project, *COMMANDS[command], "out")
    assert done.returncode == 0, done.stderr
    assert (other.read_text(), stat.S_IMODE(other.stat().st_mode)) == ("precious", 0o644)
    assert not link.is_symlink()
    link.chmod(0o644)
    assert ran(project, *COMMANDS[command], "out").returncode == 0
    assert stat.S_IMODE(link.stat().st_mode) == 0o600
    assert not list(project.glob(".out*"))


@pytest.mark.parametrize("command", ["plan", "snapshot"])
def test_no_room(command: str, project: Path) -> None:
    """Where there is no room, the old file stays whole, nothing is left beside it, and the reason is said."""
    (project / "out").write_text("old")

    def little() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    done = ran(project, *COMMANDS[command], "out", limit=little)
    assert done.returncode == 1
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert (project / "out").read_text() == "old"
    assert not list(project.glob(".out*"))


def test_the_time_of_an_edited_snapshot_acts_nowhere(project: Path) -> None:
    """Whatever a snapshot file says of its time, `show` writes it on one line, without controls."""
    assert ran(project, "snapshot", "out").returncode == 0
    edited = {**json.loads((project / "out").read_text()), "taken_at": "\x1b[2J\n::error::x"}
    (project / "out").write_text(json.dumps(edited))
    done = ran(project, "show", "out")
    assert (done.returncode, active_content.text(done.stdout)) == (0, [])
