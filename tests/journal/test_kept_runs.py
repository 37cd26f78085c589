"""What is kept of a run beside its journal: the plan, the report, the link to the run before it; and for how long."""

import hashlib
import json
import os
import resource
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from basis.repository import git, init
from flow.project import Project as Folder
from flow.project import runs_of
from flow.shell import lmsconf as command
from journal.conftest import JournalProject
from msgspec.structs import replace

import lmsconf
from lmsconf.apply.run_plan import execute
from lmsconf.documents import reports
from lmsconf.documents.journal.journal_folder import encode_line
from lmsconf.documents.journal.journal_reader import (
    REPORT,
    chain_heads,
    delete_run,
    find_run,
    kept_before,
    kept_path,
    kept_plan,
    kept_report_text,
    read_headers,
    run_names,
)
from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import ExitCode, LmsconfError, ProblemsFound, Severity
from lmsconf.model.outcomes import ManifestsCommit

pytestmark = pytest.mark.sampled(day=8)

MORE = "default_workspace: sandbox\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "project", "groups: [{name: Coaches}]", MORE)


def apply_group(folder: Folder, name: str, workspace: str | None = None) -> str:
    """Apply a manifest with one more group from the library; return the name of the run."""
    folder.write(f"groups: [{{name: {name}}}]\n", f"{name}.yaml")
    project = lmsconf.open(folder.root, workspace=workspace, environ={})
    assert project.apply(project.plan(), approve=lambda plan: True).exit == ExitCode.OK
    return find_run(folder.root, "latest").name


def runs(folder: Folder) -> Path:
    return runs_of(folder.root)


def test_plan_and_report_are_kept_beside_the_journal(folder: Folder) -> None:
    """They are the plan and the report of the run, readable by their owner only, and the journal has their digests.

    A plan alone keeps nothing.
    """
    folder.write("groups: [{name: Mentors}]\n")
    command(folder.root, "plan", "--out", "plan.json", code=ExitCode.OK)
    assert not runs(folder).exists()
    shown = command(folder.root, "apply", "plan.json", "--format", "json", "--meta", "commit=4f1d2a", code=ExitCode.OK)
    run = find_run(folder.root, "latest")
    report = reports.load_apply_report(shown.out)
    assert reports.load_apply_report(kept_report_text(run)) == replace(report, undo_command=None)
    assert plan_digest(kept_plan(run)) == report.plan_digest
    files = {path.name.removeprefix(f"{run.name}."): path for path in runs(folder).iterdir()}
    assert set(files) == {"jsonl", "plan.json", "before.json", "report.json"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o600}
    assert files["plan.json"].read_bytes() == (folder.root / "plan.json").read_bytes()
    assert run.opening is not None
    assert run.ending is not None
    kept = (run.opening.plan_sha256, run.ending.report_sha256)
    assert kept == tuple(hashlib.sha256(files[f"{name}.json"].read_bytes()).hexdigest() for name in ("plan", "report"))


def test_a_run_whose_plan_cannot_be_kept_does_not_begin(scene: JournalProject) -> None:
    """Where the disk has no room for the plan, no journal is left that says that the run began."""
    plan = scene.plan()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limits[1]))
    try:
        with pytest.raises(LmsconfError, match=r"plan\.json cannot be written: File too large"):
            scene.begin(plan)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list((scene.root / ".lmsconf" / "runs").glob("*/*"))


def without_link(journal: Path) -> None:
    """Make a journal one of an earlier version, which wrote neither its plan's digest nor a link to the run before."""
    opening, *rest = journal.read_bytes().splitlines(keepends=True)
    old = {key: value for key, value in json.loads(opening).items() if key not in ("chain", "plan_sha256", "sum")}
    journal.write_bytes(encode_line(old) + b"".join(rest))


def test_each_run_names_the_one_before_it(folder: Folder) -> None:
    """By its name and the digest of its journal, in order; another workspace of the folder has a chain of its own.

    Names have seconds only: which is the latest follows from the first lines of the journals. A run keeps how many
    groups there were when it was planned, and when it was verified.
    """
    folder.write_options("  box: {url: 'sandbox:box.db'}\n" + MORE)
    workspaces = {"One": "sandbox", "Two": "sandbox", "Other": "box", "Three": "sandbox"}
    names = [apply_group(folder, name, workspace) for name, workspace in workspaces.items()]
    first, second, *_ = names
    assert run_names(folder.root) == names[::-1]
    kept = {name: find_run(folder.root, name) for name in names}
    links = [kept[name].opening.chain for name in names]
    assert [(link.number, link.previous) for link in links] == [(1, None), (2, first), (1, None), (3, second)]
    assert links[3].oldest == first
    for link in (links[1], links[3]):
        content = (runs(folder) / f"{link.previous}.jsonl").read_bytes()
        assert link.previous_sha256 == hashlib.sha256(content).hexdigest()
    read = [part for name in (first, second) for part in (kept[name].opening.before, kept[name].ending.after)]
    assert [one.rows["group"] for one in read] == [1, 2, 2, 3]


def test_a_run_keeps_only_the_people_in_its_changes(tmp_path: Path) -> None:
    """Of the workspace before it: who was in the group that it deletes, and nobody else."""
    seed = """
people: [{email: anna@acme.example}, {email: bo@acme.example}, {email: cy@acme.example}]
groups: [{name: Coaches, members: [anna@acme.example]}, {name: Others, members: [bo@acme.example]}]
"""
    folder = Folder(tmp_path, seed, "guards: off\n")
    folder.write("absent: {groups: [Coaches]}")
    assert command(folder.root, "apply", "--auto-approve").code == ExitCode.OK
    [kept] = runs(folder).glob("*.before.json")
    assert [person["email"] for person in json.loads(kept.read_text())["user"]] == ["anna@acme.example"]


def test_a_chain_begins_after_journals_without_one(folder: Folder) -> None:
    """Journals of earlier versions are no part of it, and are still listed; later runs go on with the chain."""
    first = apply_group(folder, "One")
    without_link(runs(folder) / f"{first}.jsonl")
    link = find_run(folder.root, apply_group(folder, "Two")).opening.chain
    assert (link.number, link.previous, link.oldest) == (1, None, first)
    second = find_run(folder.root, "latest").name
    link = find_run(folder.root, apply_group(folder, "Three")).opening.chain
    assert (link.number, link.previous, link.oldest) == (2, second, first)
    with pytest.raises(LmsconfError, match="does not record which plan") as refused:
        kept_plan(find_run(folder.root, first))
    assert str(refused.value.hint).endswith(", which made this run, kept less than later versions.")


def test_a_journal_says_which_of_its_lines_is_missing(folder: Folder) -> None:
    """Its first line says what plan and earlier state were, its last one what the report is."""
    name = apply_group(folder, "One")
    journal = runs(folder) / f"{name}.jsonl"
    _, *calls, _ = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([b"garbage\n", *calls]))
    for read, hint in (
        (kept_plan, "The first line of its journal cannot be read."),
        (kept_before, "The first line of its journal cannot be read."),
        (kept_report_text, "Its journal has no readable end, as that of a run that was cut short. "),
    ):
        with pytest.raises(LmsconfError, match="does not record which") as refused:
            read(find_run(folder.root, name))
        assert str(refused.value.hint).startswith(hint)


def test_the_oldest_whole_runs_are_deleted(folder: Folder) -> None:
    """`runs: {keep: 2}` keeps two of each workspace, with all their files, and the next header says which is oldest."""
    folder.write_options("  box: {url: 'sandbox:box.db'}\n" + MORE + "runs: {keep: 2}\n")
    other, *made = apply_group(folder, "Other", "box"), apply_group(folder, "Zero")
    (runs(folder) / f"{made[0]}.other.json").write_text("{}")
    made += [apply_group(folder, name) for name in ("One", "Two", "Three")]
    assert run_names(folder.root) == [*made[:1:-1], other]
    assert {path.name.partition(".")[0] for path in runs(folder).iterdir()} == {*made[2:]}
    assert find_run(folder.root, made[3]).opening.chain.oldest == made[2]
    assert find_run(folder.root, made[3]).opening.chain.number == 4
    with pytest.raises(LmsconfError, match="no run matches") as caught:
        find_run(folder.root, "20000101T000000Z")
    assert "sets how many are" in str(caught.value.hint)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("spoil", "message", "hint"),
    [
        (lambda path: path.unlink(), "is not kept", "Restore it"),
        (lambda path: path.write_text(path.read_text() + " "), "is not the", "Restore both"),
        (lambda path: (path.unlink(), os.mkfifo(path)), "is a pipe or a device", "not a file of lmsconf"),
    ],
)
@pytest.mark.parametrize("read", [kept_plan, kept_report_text])
def test_a_file_that_is_missing_or_changed_is_an_error(
    folder: Folder, spoil: Callable[[Path], object], message: str, hint: str, read: Callable[..., object]
) -> None:
    """It says what is wrong and what to do, and never returns something else."""
    run = find_run(folder.root, apply_group(folder, "Mentors"))
    spoil(runs(folder) / f"{run.name}.{'plan' if read is kept_plan else 'report'}.json")
    with pytest.raises(LmsconfError, match=message) as caught:
        read(run)
    assert hint in str(caught.value.hint)


def test_how_many_runs_are_kept_is_a_whole_number(folder: Folder) -> None:
    """Zero would delete the record of the run that is under way."""
    folder.write_options(MORE + "runs: {keep: 0}\n")
    with pytest.raises(ProblemsFound):
        lmsconf.open(folder.root, environ={})


# The chain of runs where the clock was set back, among journals of earlier versions, and where a run cannot go.


@pytest.fixture
def run_at(scene: JournalProject) -> Callable[..., Path]:
    """Begins a run at that hour, which sends no call, and returns its journal."""
    plan = scene.plan()

    def run(hour: int, keep: int = 9, seconds: float = 0.0) -> Path:
        at, retention = datetime(2026, 6, 1, hour, tzinfo=UTC), {"keep": keep, "keep_seconds": seconds}
        with Journal.begin(scene.root, plan, meta={}, **retention, clock=lambda: at) as journal:
            return journal.path

    return run


def test_a_run_whose_calls_may_still_arrive_is_kept(run_at: Callable[..., Path]) -> None:
    """A run of a workspace over HTTP is deleted only once its last line is older than `settle`."""
    first, second = (run_at(hour, keep=1, seconds=30) for hour in (8, 9))
    assert first.exists()
    os.utime(first, (first.stat().st_mtime - 31,) * 2)
    run_at(10, keep=1, seconds=30)
    assert (first.exists(), second.exists()) == (False, True)


def test_a_clock_that_is_set_back_does_not_reorder_the_runs(scene: JournalProject, run_at: Callable[..., Path]) -> None:
    """The numbers of the chain order its runs: the last one is named, listed as the head, and deleted last."""
    old, first, second = (run_at(hour) for hour in (12, 10, 8))
    without_link(old)
    [(_, head, _)] = chain_heads(scene.root)
    assert head == second.stem
    third = run_at(14, keep=2)
    link = dict(read_headers(scene.root))[third].chain
    assert link is not None
    assert link.previous == second.stem
    assert not old.exists()
    assert not first.exists()


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
    with Journal.begin(scene.root, plan, meta={}, keep=1, keep_seconds=0.0) as journal:
        kept_path(journal.path, REPORT).mkdir()
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
            f"{kept_path(journal.path, REPORT)} cannot be written: Is a directory",
            "Save it yourself, as the record of the run.",
        ),
    ]
    run = find_run(scene.root, journal.path.stem)
    assert run.ending is not None
    assert run.ending.report_sha256 is None
    kept_path(journal.path, REPORT).rmdir()
    with pytest.raises(LmsconfError, match="is not kept") as refused:
        kept_report_text(run)
    assert refused.value.hint == "It was not written when the run ended. Its journal lists every call: lmsconf runs RUN"


# The commit of the manifests in the header of a journal, and whether the files are as in it.


@pytest.fixture(params=[".", "below/project"])
def committed(tmp_path: Path, request: pytest.FixtureRequest) -> Folder:
    """A committed project, at the top of its repository or below it."""
    made = uncommitted(tmp_path / request.param)
    init(tmp_path)
    return made


def uncommitted(root: Path) -> Folder:
    made = Folder(root, "groups: [{name: Coaches}]")
    made.write("groups: [{name: A}]\n")
    made.write("groups: [{name: B}]\n", "more.yaml")
    return made


def recorded(project: Folder, *plan: str) -> ManifestsCommit:
    assert command(project.root, "apply", *(plan or ["--auto-approve"])).code == ExitCode.OK
    header = find_run(project.root, "latest").opening
    assert header is not None
    assert header.commit is not None
    return header.commit


@pytest.mark.parametrize(
    ("change", "clean"),
    [
        (lambda committed: (committed.root / "notes.txt").write_text("not committed"), True),
        (lambda committed: committed.write("groups: [{name: A}, {name: C}]\n"), False),
        (lambda committed: committed.write("groups: [{name: C}]\n", "new.yaml"), False),
        (lambda committed: (committed.root / "manifests" / "more.yaml").unlink(), False),
        (lambda committed: committed.write_options("settle: 1s\n"), False),
    ],
    ids=["a file beside them", "changed", "new", "deleted", "project file"],
)
def test_uncommitted_changes_are_recorded(committed: Folder, change: Callable[[Folder], None], clean: bool) -> None:
    """A manifest that was changed, is new, or was deleted, and a changed project file; other files do not matter."""
    change(committed)
    assert recorded(committed) == ManifestsCommit(commit=git(committed.root, "rev-parse", "HEAD"), clean=clean)


@pytest.mark.parametrize(
    ("repository", "more", "reason"),
    [
        (init, ", {name: C}", "the plan was made from other manifests than those in this folder"),
        (lambda root: git(root, "init", "-q"), "", "the repository has no commit yet"),
        (lambda root: None, ", {name: C}", "the project is in no git repository"),
    ],
    ids=["committed", "empty", "none"],
)
def test_manifests_of_another_plan_have_no_commit(
    tmp_path: Path, repository: Callable[[Path], object], more: str, reason: str
) -> None:
    """A plan file from elsewhere: the commit here says nothing about it. That there is no repository is told first."""
    made = uncommitted(tmp_path)
    repository(tmp_path)
    assert command(made.root, "plan", "--out", "plan.json").code == ExitCode.OK
    made.write(f"groups: [{{name: A}}{more}]\n")
    assert recorded(made, "plan.json") == ManifestsCommit(reason=reason)
