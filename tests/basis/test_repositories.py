"""`plan --base`: which repository is read, and that nothing which it holds can say what is run."""

import os
from pathlib import Path

import pytest
from basis.repository import beside, commit, git, init, origins
from flow.project import Project
from flow.shell import Ran

SEED = "people: [{email: anna@x.example}]\n"
BASE = "groups: [{name: Coaches, members: []}]\n"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
CHANGE = "groups: [{name: Coaches, members: []}, {name: Mentors, members: []}]\n"
RIGHT = {"group/Coaches": "already pending", "group/Mentors": "from this change"}


def committed(root: Path, *options: str) -> Project:
    """A project at the top of a repository whose branch main has the base."""
    made = Project(root, SEED)
    made.write(BASE)
    init(root, *options)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """One with a change."""
    made = committed(tmp_path / "work")
    made.write(CHANGE)
    return made


def assert_refused(ran: Ran, code: int, said: str) -> None:
    assert (ran.code, said in ran.err + ran.out) == (code, True), ran


def configure(folder: Path, *pairs: tuple[str, str]) -> None:
    """Write into the configuration of the repository that a folder is, or has."""
    file = "config" if (folder / "HEAD").exists() else ".git/config"
    for key, value in pairs:
        git(folder, "config", "--file", file, key, value)


LAZY = (
    ("remote.origin.promisor", "true"),
    ("extensions.partialClone", "origin"),
    ("core.repositoryformatversion", "1"),
)


def test_a_repository_that_runs_programs_runs_none(project: Project, tmp_path: Path) -> None:
    """Whatever its configuration names, and a lazy fetch of what is missing among it, no program is started."""
    marker, tool, included = (tmp_path / name for name in ("ran", "tool", "included"))
    tool.write_text(f"#!/bin/sh\necho $0 >> '{marker}'\n")
    tool.chmod(0o755)
    included.write_text(f"[core]\n\tfsmonitor = {tool}\n")
    run = ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "diff.external",
           "credential.helper", "filter.x.smudge", "filter.x.process", "diff.x.textconv", "gpg.program",
           "core.alternateRefsCommand", "remote.origin.uploadpack", "core.gitProxy")  # fmt: skip
    configure(project.root, *((key, str(tool)) for key in run), ("core.hooksPath", str(tmp_path)))
    configure(project.root, ("remote.origin.url", f"ext::{tool} %S"), ("protocol.ext.allow", "always"), *LAZY)
    configure(project.root, ("include.path", str(included)))
    assert origins(beside(project.root)) == RIGHT
    blob = git(project.root, "rev-parse", "main:manifests/all.yaml")
    (project.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    assert_refused(beside(project.root), 1, "the repository lacks manifests/all.yaml of the base")
    assert not marker.exists()


def test_a_bare_repository_among_the_files_is_not_read(project: Project, tmp_path: Path) -> None:
    """In the project's own folder, where git would find it first: history is that of the `.git` above."""
    marker = tmp_path / "ran"
    below = Project(project.root / "lms", SEED)
    below.write(BASE)
    commit(project.root)
    below.write(CHANGE)
    git(below.root, "init", "-q", "--bare", "-b", "main", ".")
    configure(below.root, *((f"core.{key}", f"touch '{marker}'; false") for key in ("fsmonitor", "sshCommand")))
    configure(below.root, ("core.bare", "false"), ("core.worktree", ".."), ("remote.origin.url", "ssh://x.invalid/x"))
    configure(below.root, *LAZY)
    (below.root / "refs" / "heads" / "main").write_text("1" * 40 + "\n")
    assert origins(beside(below.root)) == RIGHT
    assert not marker.exists()


def test_linked_work_trees_and_submodules_are_repositories(project: Project, tmp_path: Path) -> None:
    """Their `.git` is a file; it is followed where what it leads to names the work tree."""
    linked, over = tmp_path / "linked", tmp_path / "over"
    git(project.root, "worktree", "add", "-q", "-b", "other", str(linked))
    over.mkdir()
    git(over, "init", "-q")
    git(over, "submodule", "add", "-q", str(project.root), "lms")
    commit(over)
    for root, base in ((linked, "main"), (over / "lms", "HEAD")):
        (root / "manifests" / "all.yaml").write_text(CHANGE)
        assert origins(beside(root, base=base)) == RIGHT


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("had", ["a folder", "another submodule"])
def test_a_branch_that_makes_the_project_a_submodule_chooses_no_base(
    had: str, project: Project, tmp_path: Path
) -> None:
    """A ref is one of the repository around it, and means the project that this records: no ref of the submodule."""
    branch = committed(tmp_path / "branch")
    file = branch.root / "lmsconf.yaml"
    file.write_text(file.read_text().replace("workspace.db", "other.db"))
    commit(branch.root)
    over = tmp_path / "over"
    over.mkdir()
    git(over, "init", "-q", "-b", "main")
    if had == "a folder":
        Project(over / "lms", SEED).write(BASE)
    else:
        git(over, "submodule", "add", "-q", str(project.root), "lms")
    commit(over)
    git(over, "checkout", "-q", "-b", "change")
    git(over, "rm", "-q", "-r", "lms")
    git(over, "submodule", "add", "-q", "--force", "--name", "new", str(branch.root), "lms")
    git(over, "commit", "-q", "-m", "change")
    git(over / "lms", "fetch", "-q", str(project.root), "main")
    assert_refused(beside(over / "lms"), 1, "the url is sandbox:other.db, and in main sandbox:workspace.db")
    (over / "origin").mkdir()
    assert_refused(beside(over, "-C", "lms", base="origin"), 64, "write ./origin")


def test_a_git_file_that_leads_elsewhere_is_refused(project: Project, tmp_path: Path) -> None:
    """A `.git` file that names the repository of another work tree would compare with that."""
    other = Project(tmp_path / "other", SEED)
    other.write(CHANGE)
    said = "does not belong to a repository with its work tree here"
    for target in (f"{project.root}/.git", "/etc/passwd"):
        (other.root / ".git").write_text(f"gitdir: {target}\n")
        assert_refused(beside(other.root), 1, said if target != "/etc/passwd" else "")


def test_the_environment_names_no_other_repository(project: Project, tmp_path: Path) -> None:
    """GIT_DIR and its like, a configuration in the environment, grafts and replaced commits: none of them counts."""
    head = git(project.root, "rev-parse", "HEAD")
    git(project.root, "replace", head, git(project.root, "commit-tree", "-m", "empty", EMPTY_TREE))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    names = ("GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_INDEX_FILE")
    environ = {name: str(elsewhere / ".git") for name in names}
    environ |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false"}
    environ |= {"GIT_TRACE": str(tmp_path / "trace"), "GIT_REPLACE_REF_BASE": "refs/replace/"}
    assert origins(beside(project.root, **environ)) == RIGHT
    assert not (tmp_path / "trace").exists()


def test_no_folder_takes_the_place_of_a_ref(project: Project) -> None:
    """A branch may add a folder that is called as a ref is: it is one only where it is written as a path."""
    for name in ("main", "origin/main"):
        (project.root / name).mkdir(parents=True)
        (project.root / name / "all.yaml").write_text(CHANGE)
    assert origins(beside(project.root)) == RIGHT
    assert_refused(beside(project.root, base="origin/main"), 64, "write ./origin/main")
    assert set(origins(beside(project.root, "--trust-project", "url", base="./main")).values()) == {"already pending"}


def test_a_tag_and_a_branch_of_one_name_are_told(project: Project) -> None:
    """git would take the tag, which somebody may have pushed; here it is named which of the two is meant."""
    git(project.root, "tag", "main")
    assert_refused(beside(project.root), 64, "refs/heads/main and refs/tags/main")
    assert origins(beside(project.root, base="refs/heads/main")) == RIGHT


def test_a_repository_of_sha256_is_read(tmp_path: Path) -> None:
    """How objects are stored is all that is taken over from a repository's configuration."""
    committed(tmp_path, "--object-format=sha256").write(CHANGE)
    assert origins(beside(tmp_path)) == RIGHT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_repository_of_another_user_needs_safe_directory(project: Project, tmp_path: Path) -> None:
    """As git has it: unless the project is that user's too, as in a container, or the user's settings name it."""
    settings = tmp_path / "home" / ".gitconfig"
    settings.parent.mkdir()
    settings.touch()
    os.chown(project.root / ".git", 4711, 4711)
    assert_refused(beside(project.root, HOME=str(settings.parent)), 1, "belongs to another user")
    settings.write_text(f"[safe]\n\tdirectory = {project.root}\n")
    assert origins(beside(project.root, HOME=str(settings.parent))) == RIGHT
    os.chown(project.root, 4711, 4711)
    assert origins(beside(project.root, "-C", ".", HOME=str(tmp_path))) == RIGHT
