"""The chain of runs where the clock was set back, among journals of earlier versions, and where a run cannot go."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flow.project import Project as Folder
from flow.shell import lmsconf as command

from journal.journal_project import JournalProject
from lmsconf.apply.run import execute
from lmsconf.errors import ExitCode, LmsconfError, Severity
from lmsconf.journal.journal_folder import encode_line
from lmsconf.journal.journal_reader import find_run, read_headers
from lmsconf.journal.journal_writer import Journal
from lmsconf.journal.kept_runs import Retention, chain_heads, delete_run, kept_report_text, report_path
from lmsconf.model.recorded_run import ManifestsCommit


@pytest.fixture
def run_at(scene: JournalProject) -> Callable[..., Path]:
    """Begins a run at that hour, which sends no call, and returns its journal."""
    plan = scene.plan()

    def run(hour: int, keep: int = 9) -> Path:
        at, retention = datetime(2026, 6, 1, hour, tzinfo=UTC), Retention(keep=keep, settle=0.0)
        with Journal.begin(scene.root, plan, meta={}, retention=retention, clock=lambda: at) as journal:
            return journal.path

    return run


def without_link(journal: Path) -> None:
    """Make a journal one of an earlier version, which wrote no link to the run before it."""
    opening, *rest = journal.read_bytes().splitlines(keepends=True)
    old = {key: value for key, value in json.loads(opening).items() if key not in ("chain", "sum")}
    journal.write_bytes(encode_line(old) + b"".join(rest))


def previous(scene: JournalProject, journal: Path) -> str | None:
    """The run that the header of a journal names as the one before it."""
    link = dict(read_headers(scene.root))[journal].chain
    return None if link is None else link.previous


def test_a_clock_that_is_set_back_does_not_reorder_the_runs(scene: JournalProject, run_at: Callable[..., Path]) -> None:
    """The numbers of the chain order its runs: the last one is named, listed as the head, and deleted last."""
    old, first, second = (run_at(hour) for hour in (12, 10, 8))
    without_link(old)
    [head] = chain_heads(scene.root)
    assert head.run == second.stem
    third = run_at(14, keep=2)
    assert previous(scene, third) == second.stem
    assert not old.exists()
    assert not first.exists()


def test_the_newest_of_journals_without_links_is_the_head(scene: JournalProject, run_at: Callable[..., Path]) -> None:
    """Journals of earlier versions have no numbers, so their times order them."""
    journals = [run_at(hour) for hour in (8, 10, 12)]
    for journal in journals:
        without_link(journal)
    assert [head.run for head in chain_heads(scene.root)] == [journals[-1].stem]


def test_a_run_that_cannot_be_deleted_is_tried_again(scene: JournalProject, run_at: Callable[..., Path]) -> None:
    """Its journal goes last: while that is there, the run is listed, and the next run deletes the rest."""
    first = run_at(8)
    in_the_way = first.with_name(f"{first.stem}.zip")
    in_the_way.mkdir()
    with pytest.raises(OSError, match=in_the_way.name):
        delete_run(first)
    assert first.exists()
    in_the_way.rmdir()
    second = run_at(10, keep=1)
    assert [path for path, _ in read_headers(scene.root)] == [second]


def test_what_cannot_be_deleted_or_kept_is_a_warning(scene: JournalProject) -> None:
    """The run goes on, its report names both, and its journal is closed."""
    plan = scene.plan()
    descriptors = {one.name for one in Path("/dev/fd").iterdir()}
    with scene.begin(plan) as old:
        old.path.with_name(f"{old.path.stem}.zip").mkdir()
    retention = Retention(keep=1, settle=0.0)
    with Journal.begin(scene.root, plan, meta={}, retention=retention) as journal:
        report_path(journal.path).mkdir()
        report = execute(scene.workspace, plan, meta={}, journal=journal)
    assert {one.name for one in Path("/dev/fd").iterdir()} <= descriptors
    assert report.exit == ExitCode.OK
    assert [(one.code, one.severity, one.message, one.hint) for one in report.problems] == [
        (
            "journal/not-pruned",
            Severity.WARNING,
            f"the run {old.path.stem} is no longer kept, but cannot be deleted: Is a directory",
            f"Check the permissions of {old.path.parent}; the next apply tries again.",
        ),
        (
            "journal/report-not-kept",
            Severity.WARNING,
            "this report is not kept beside the journal: "
            f"{report_path(journal.path)} cannot be written: Is a directory",
            "Save it yourself, as the record of the run.",
        ),
    ]
    run = find_run(scene.root, journal.path.stem)
    assert run.ending is not None
    assert run.ending.report_sha256 is None
    report_path(journal.path).rmdir()
    with pytest.raises(LmsconfError, match="is not kept") as refused:
        kept_report_text(run)
    assert refused.value.hint == "It was not written when the run ended. Its journal lists every call: lmsconf runs RUN"


# The commit of the manifests in the header of a journal, and whether the files are as in it.


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
