"""`plan --base`: which repository is read, and that nothing which it holds can say what is run."""

import os
import subprocess
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf

SEED = "people: [{email: anna@x.example}]\n"
BASE = "groups: [{name: Coaches, members: []}]\n"
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
CHANGE = "groups: [{name: Coaches, members: []}, {name: Mentors, members: []}]\n"


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "commit.gpgsign=false")
    allowed = ("-c", "protocol.file.allow=always")
    done = subprocess.run(["git", *who, *allowed, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project at the top of a repository whose branch main has the base."""
    made = Project(tmp_path / "work", SEED)
    made.write(BASE)
    git(made.root, "init", "-q", "-b", "main")
    git(made.root, "add", ".")
    git(made.root, "commit", "-q", "-m", "base")
    made.write(CHANGE)
    return made


def compared(ran: Ran) -> dict[str, str]:
    assert ran.code == 0, ran.err
    changes = ran.document["changes"]
    assert isinstance(changes, list)
    return {change["address"]: change["origin"] for change in changes}


RIGHT = {"group/Coaches": "already pending", "group/Mentors": "from this change"}


def plan(root: Path, base: str = "main", **env: str) -> Ran:
    return lmsconf(root, "plan", "--base", base, "--format", "json", env=env)


def test_a_repository_that_runs_programs_runs_none(project: Project, tmp_path: Path) -> None:
    """Whatever its configuration names, and a lazy fetch of what is missing among it, no program is started."""
    marker = tmp_path / "ran"
    tool = tmp_path / "tool"
    tool.write_text(f"#!/bin/sh\necho $0 >> '{marker}'\n")
    tool.chmod(0o755)
    config = project.root / ".git" / "config"
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "diff.external",
                "credential.helper", "filter.x.smudge", "filter.x.process", "diff.x.textconv", "gpg.program",
                "core.alternateRefsCommand", "remote.origin.uploadpack", "core.gitProxy"):  # fmt: skip
        git(project.root, "config", key, str(tool))
    git(project.root, "config", "core.hooksPath", str(tmp_path))
    git(project.root, "config", "remote.origin.url", f"ext::{tool} %S")
    git(project.root, "config", "remote.origin.promisor", "true")
    git(project.root, "config", "protocol.ext.allow", "always")
    git(project.root, "config", "extensions.partialClone", "origin")
    git(project.root, "config", "core.repositoryformatversion", "1")
    included = tmp_path / "included"
    included.write_text(f"[core]\n\tfsmonitor = {tool}\n")
    git(project.root, "config", "include.path", str(included))
    assert compared(plan(project.root)) == RIGHT
    blob = git(project.root, "rev-parse", "main:manifests/all.yaml").strip()
    (project.root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    ran = plan(project.root)
    assert (ran.code, "the repository lacks manifests/all.yaml of the base" in ran.err) == (1, True)
    assert config.is_file()
    assert not marker.exists()


def test_a_bare_repository_among_the_files_is_not_read(project: Project, tmp_path: Path) -> None:
    """In the project's own folder, where git would find it first: history is that of the `.git` above."""
    marker = tmp_path / "ran"
    below = Project(project.root / "lms", SEED)
    below.write(BASE)
    git(project.root, "add", "lms")
    git(project.root, "commit", "-q", "-m", "below")
    below.write(CHANGE)
    git(below.root, "init", "-q", "--bare", "-b", "main", ".")
    for key in ("core.fsmonitor", "core.sshCommand"):
        git(below.root, "config", "--file", "config", key, f"touch '{marker}'; false")
    for key, value in (("core.bare", "false"), ("core.worktree", ".."), ("remote.origin.url", "ssh://x.invalid/x"),
                       ("remote.origin.promisor", "true"), ("extensions.partialClone", "origin"),
                       ("core.repositoryformatversion", "1")):  # fmt: skip
        git(below.root, "config", "--file", "config", key, value)
    (below.root / "refs" / "heads" / "main").write_text("1" * 40 + "\n")
    assert compared(plan(below.root)) == RIGHT
    assert not marker.exists()


def test_linked_work_trees_and_submodules_are_repositories(project: Project, tmp_path: Path) -> None:
    """Their `.git` is a file; it is followed where what it leads to names the work tree."""
    linked = tmp_path / "linked"
    git(project.root, "worktree", "add", "-q", "-b", "other", str(linked))
    (linked / "manifests" / "all.yaml").write_text(CHANGE)
    assert compared(plan(linked)) == RIGHT
    over = tmp_path / "over"
    over.mkdir()
    git(over, "init", "-q")
    git(over, "submodule", "add", "-q", str(project.root), "lms")
    git(over, "commit", "-q", "-m", "over")
    (over / "lms" / "manifests" / "all.yaml").write_text(CHANGE)
    assert compared(plan(over / "lms", "HEAD")) == RIGHT


@pytest.mark.sampled
@pytest.mark.parametrize("had", ["a folder", "another submodule"])
def test_a_branch_that_makes_the_project_a_submodule_chooses_no_base(
    had: str, project: Project, tmp_path: Path
) -> None:
    """A ref is one of the repository around it, and means the project that this records: no ref of the submodule."""
    branch = Project(tmp_path / "branch", SEED)
    branch.write(BASE)
    file = branch.root / "lmsconf.yaml"
    file.write_text(file.read_text().replace("workspace.db", "other.db"))
    git(branch.root, "init", "-q", "-b", "main")
    git(branch.root, "add", ".")
    git(branch.root, "commit", "-q", "-m", "base")
    over = tmp_path / "over"
    over.mkdir()
    git(over, "init", "-q", "-b", "main")
    if had == "a folder":
        Project(over / "lms", SEED).write(BASE)
    else:
        git(over, "submodule", "add", "-q", str(project.root), "lms")
    git(over, "add", ".")
    git(over, "commit", "-q", "-m", "base")
    git(over, "checkout", "-q", "-b", "change")
    git(over, "rm", "-q", "-r", "lms")
    git(over, "submodule", "add", "-q", "--force", "--name", "new", str(branch.root), "lms")
    git(over, "commit", "-q", "-m", "change")
    git(over / "lms", "fetch", "-q", str(project.root), "main")
    ran = plan(over / "lms")
    assert ran.code == 1
    assert "the url is sandbox:other.db, and in main sandbox:workspace.db" in ran.err
    (over / "origin").mkdir()
    assert "write ./origin" in lmsconf(over, "-C", "lms", "plan", "--base", "origin", code=64).err


def test_a_git_file_that_leads_elsewhere_is_refused(project: Project, tmp_path: Path) -> None:
    """A `.git` file that names the repository of another work tree would compare with that."""
    other = Project(tmp_path / "other", SEED)
    other.write(CHANGE)
    (other.root / ".git").write_text(f"gitdir: {project.root}/.git\n")
    ran = plan(other.root)
    assert (ran.code, "does not belong to a repository with its work tree here" in ran.err) == (1, True)
    (other.root / ".git").write_text("gitdir: /etc/passwd\n")
    assert plan(other.root).code == 1


def test_the_environment_names_no_other_repository(project: Project, tmp_path: Path) -> None:
    """GIT_DIR and its like, a configuration in the environment, grafts and replaced commits: none of them counts."""
    git(project.root, "commit", "-q", "--allow-empty", "-m", "other")
    head = git(project.root, "rev-parse", "HEAD").strip()
    empty = git(project.root, "commit-tree", "-m", "empty", EMPTY_TREE).strip()
    git(project.root, "replace", head, empty)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    names = ("GIT_DIR", "GIT_WORK_TREE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_INDEX_FILE")
    environ = {name: str(elsewhere / ".git") for name in names}
    environ |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": "false"}
    environ |= {"GIT_TRACE": str(tmp_path / "trace"), "GIT_REPLACE_REF_BASE": "refs/replace/"}
    assert compared(plan(project.root, **environ)) == RIGHT
    assert not (tmp_path / "trace").exists()


def test_no_folder_takes_the_place_of_a_ref(project: Project) -> None:
    """A branch may add a folder that is called as a ref is: it is one only where it is written as a path."""
    for name in ("main", "origin/main"):
        (project.root / name).mkdir(parents=True)
        (project.root / name / "all.yaml").write_text(CHANGE)
    assert compared(plan(project.root)) == RIGHT
    ran = plan(project.root, "origin/main")
    assert (ran.code, "write ./origin/main" in ran.err) == (64, True)
    written = lmsconf(project.root, "plan", "--base", "./main", "--trust-project", "url", "--format", "json")
    assert set(compared(written).values()) == {"already pending"}


def test_a_tag_and_a_branch_of_one_name_are_told(project: Project) -> None:
    """git would take the tag, which somebody may have pushed; here it is named which of the two is meant."""
    git(project.root, "tag", "main")
    ran = plan(project.root)
    assert (ran.code, "refs/heads/main and refs/tags/main" in ran.err) == (64, True)
    assert compared(plan(project.root, "refs/heads/main")) == RIGHT


def test_a_repository_of_sha256_is_read(tmp_path: Path) -> None:
    """How objects are stored is all that is taken over from a repository's configuration."""
    made = Project(tmp_path / "work", SEED)
    made.write(BASE)
    git(made.root, "init", "-q", "-b", "main", "--object-format=sha256")
    git(made.root, "add", ".")
    git(made.root, "commit", "-q", "-m", "base")
    made.write(CHANGE)
    assert compared(plan(made.root)) == RIGHT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_a_repository_of_another_user_needs_safe_directory(project: Project, tmp_path: Path) -> None:
    """As git has it: unless the project is that user's too, as in a container, or the user's settings name it."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").touch()
    os.chown(project.root / ".git", 4711, 4711)
    ran = plan(project.root, HOME=str(home))
    assert (ran.code, "belongs to another user" in ran.err) == (1, True)
    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {project.root}\n")
    assert compared(plan(project.root, HOME=str(home))) == RIGHT
    (home / ".gitconfig").touch()
    os.chown(project.root, 4711, 4711)
    named = lmsconf(project.root, "-C", ".", "plan", "--base", "main", "--format", "json", env={"HOME": str(tmp_path)})
    assert compared(named) == RIGHT
