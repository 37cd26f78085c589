"""Files that cannot be written are errors before anything is read, and what a full disk leaves is repaired."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import lmsconf

from lmsconf.errors import ExitCode
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
MANIFEST = "groups: [{name: New}]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that wants a group, with an embedded workspace."""
    (tmp_path / "lmsconf.yaml").write_text("workspaces: {sandbox: {url: 'sandbox:workspace.db'}}\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFEST)
    (tmp_path / "people.csv").write_text("email\nanna@acme.example\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plan", "--out", "none/plan.json"), "--out none/plan.json cannot be written"),
        (("plan", "--people", "none/people.csv"), "--people none/people.csv cannot be written"),
        (("plan", "--output", "manifests"), "--output manifests cannot be written"),
        (("snapshot", "none/workspace.json"), "none/workspace.json cannot be written"),
        (
            ("plan", "--people", "people.csv"),
            "--people people.csv would overwrite a CSV file that lmsconf did not write",
        ),
        (("audience", "everyone", "--output", "people.csv"), "--output people.csv would overwrite a CSV file"),
        (("plan", "--out", "lmsconf.yaml"), "--out lmsconf.yaml would overwrite a YAML file"),
        (("plan", "--people", "manifests/all.yaml"), "--people manifests/all.yaml would overwrite a YAML file"),
        (("drift", "--output", "manifests/all.yaml"), "--output manifests/all.yaml would overwrite a YAML file"),
        (("snapshot", "manifests/../lmsconf.yaml"), "manifests/../lmsconf.yaml would overwrite a YAML file"),
    ],
)
def test_a_result_that_cannot_be_kept_is_not_read_for(project: Path, arguments: tuple[str, ...], message: str) -> None:
    """Exit 1 with the option's name, and not one request."""
    sandbox = Sandbox(":memory:")
    with serve(sandbox) as server:
        (project / "lmsconf.yaml").write_text(
            f"workspaces: {{w: {{url: '{server.url}', token: {{env: LMSCONF_KEY}}}}}}\n"
        )
        ran = lmsconf(project, *arguments, env={"LMSCONF_KEY": "sandbox"})
        assert not sandbox.log
    sandbox.close_workspace()
    assert (ran.code, ran.out) == (ExitCode.ERROR, "")
    assert f"error: {message}" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--people", "result.csv"),
        ("access", "anna.berg@acme.example", "--format", "csv", "--output", "result.csv"),
        ("audience", "everyone", "--format", "csv", "--output", "result.csv"),
        ("audience", "everyone", "--members", "--format", "csv", "--output", "result.csv"),
        ("audience", "everyone", "--by", "Country", "--format", "csv", "--output", "result.csv"),
    ],
)
def test_a_result_replaces_the_result_of_an_earlier_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A CSV of people is written again over an empty file and over one of lmsconf."""
    shutil.copytree(QUICKSTART, tmp_path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.db*", ".lmsconf"))
    result = tmp_path / "result.csv"
    result.touch()
    for _ in range(2):
        ran = lmsconf(tmp_path, *arguments)
        assert ran.code == ExitCode.OK, ran.err
        assert result.stat().st_size


def test_git_ignores_journals_also_after_a_full_disk(project: Path) -> None:
    """A `.gitignore` that a full disk left empty is written again; one with rules of the user stays."""
    (project / ".lmsconf").mkdir(mode=0o700)
    ignored = project / ".lmsconf" / ".gitignore"
    ignored.touch()
    assert lmsconf(project, "apply", "--auto-approve").code == ExitCode.OK
    assert ignored.read_text() == "*\n"
    ignored.write_text("runs/\n")
    assert lmsconf(project, "apply", "--auto-approve").code == ExitCode.OK
    assert ignored.read_text() == "runs/\n"


def test_an_embedded_workspace_that_cannot_be_written(project: Path) -> None:
    """The folder is the matter, so nothing suggests a reset; of a damaged file it does."""
    (project / "lmsconf.yaml").write_text("workspaces: {sandbox: {url: 'sandbox:none/workspace.db'}}\n")
    ran = lmsconf(project, "plan")
    assert ran.code == ExitCode.ERROR
    assert "Make the folder writable, or name a file elsewhere in `url:`" in ran.err
    assert "reset" not in ran.err
    (project / "none").mkdir()
    (project / "none" / "workspace.db").write_text("not a database, and long enough to be taken for one\n" * 50)
    assert "reset it with: lmsconf sandbox reset" in lmsconf(project, "plan").err


@pytest.mark.parametrize(
    "options",
    [
        ("--out", "x.json", "--people", "x.json"),
        ("--out", "x.json", "--format", "json", "--output", "./x.json"),
        ("--people", "x.json", "--format", "json", "--output", "x.json"),
        ("--snapshot", "x.json", "--out", "x.json"),
    ],
)
def test_no_result_of_a_plan_is_written_over_another(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Two options that name one file are a mistake of the command line: only --output gets the problem."""
    Project(tmp_path, "groups: [{name: A}]\n").write("groups: [{name: A}]\n")
    assert lmsconf(tmp_path, "snapshot", "x.json").code == ExitCode.OK
    before = (tmp_path / "x.json").read_bytes()
    ran = lmsconf(tmp_path, "plan", *options)
    assert (ran.code, "two options name the file x.json" in ran.err) == (ExitCode.USAGE, True)
    assert ((tmp_path / "x.json").read_bytes() == before) is ("--output" not in options)
