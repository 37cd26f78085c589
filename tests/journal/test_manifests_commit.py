"""The commit of the manifests in the header of a journal, and whether the files are as in it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from flow.project import Project as Folder
from flow.shell import lmsconf as command

from lmsconf.errors import ExitCode
from lmsconf.journal.journal_reader import find_run
from lmsconf.model.recorded_run import ManifestsCommit


def git(folder: Path, *arguments: str) -> str:
    words = ["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(params=[".", "below/project"])
def folder(tmp_path: Path, request: pytest.FixtureRequest) -> Folder:
    """A committed project, at the top of its repository or below it."""
    made = Folder(tmp_path / request.param, "groups: [{name: Coaches}]")
    made.write("groups: [{name: A}]\n")
    made.write("groups: [{name: B}]\n", "more.yaml")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    return made


def recorded(folder: Folder) -> ManifestsCommit:
    assert command(folder.root, "apply", "--auto-approve").code == ExitCode.OK
    header = find_run(folder.root, "latest").opening
    assert header is not None
    assert header.commit is not None
    return header.commit


def test_clean_manifests_have_their_commit(folder: Folder) -> None:
    """Files beside the manifests do not matter."""
    (folder.root / "notes.txt").write_text("not committed")
    assert recorded(folder) == ManifestsCommit(commit=git(folder.root, "rev-parse", "HEAD"), clean=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: folder.write("groups: [{name: A}, {name: C}]\n"),
        lambda folder: folder.write("groups: [{name: C}]\n", "new.yaml"),
        lambda folder: (folder.root / "manifests" / "more.yaml").unlink(),
        lambda folder: folder.write_options("settle: 1s\n"),
    ],
    ids=["changed", "new", "deleted", "project file"],
)
def test_uncommitted_changes_are_recorded(folder: Folder, change: Callable[[Folder], None]) -> None:
    """A manifest that was changed, is new, or was deleted, and a changed project file."""
    change(folder)
    assert recorded(folder) == ManifestsCommit(commit=git(folder.root, "rev-parse", "HEAD"), clean=False)


def test_manifests_of_another_plan_have_no_commit(folder: Folder) -> None:
    """A plan file from elsewhere: the commit here says nothing about it."""
    assert command(folder.root, "plan", "--out", "plan.json").code == ExitCode.OK
    folder.write("groups: [{name: A}, {name: C}]\n")
    assert command(folder.root, "apply", "plan.json").code == ExitCode.OK
    header = find_run(folder.root, "latest").opening
    assert header is not None
    reason = "the plan was made from other manifests than those in this folder"
    assert header.commit == ManifestsCommit(reason=reason)


def test_a_repository_without_a_commit_does_not_stop_a_run(tmp_path: Path) -> None:
    """The reason is recorded."""
    made = Folder(tmp_path / "project", "groups: [{name: Coaches}]")
    made.write("groups: [{name: A}]\n")
    git(made.root, "init", "-q")
    assert recorded(made) == ManifestsCommit(reason="the repository has no commit yet")
