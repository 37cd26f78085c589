"""`lmsconf fleet plan --base`: what a branch may not change before somebody has reviewed it."""

from __future__ import annotations

import json
import subprocess

import pytest

from fleet.fleet_project import BASE, PROJECT, TABLE, Fleet

pytestmark = pytest.mark.sampled


@pytest.fixture
def branch(fleet: Fleet) -> Fleet:
    """The project in a repository, with one commit."""
    fleet.write(".gitignore", "*.db\nout/\n.lmsconf/\n")
    for command in (
        ("init", "--quiet"),
        ("add", "--all"),
        ("-c", "user.name=Anna", "-c", "user.email=anna@x.example", "commit", "--quiet", "--message", "First"),
    ):
        subprocess.run(["git", "-C", fleet.root, *command], check=True)
    return fleet


def test_a_workspace_with_another_url_gets_no_request(branch: Fleet) -> None:
    """The others are planned; the workspace is planned once --trust-project names its url."""
    branch.write("workspaces.csv", TABLE.replace("sandbox:beta.db", "sandbox:other.db"))
    code, out, _ = branch.run("fleet", "plan", "--base", "HEAD", "--processes", "1")
    assert code == 1
    assert "3 workspaces: 2 with changes, 0 without, 1 failed.\n\nWorkspace beta (sandbox:other.db): failed" in out
    assert "workspaces.beta: the url is sandbox:other.db, and in HEAD sandbox:beta.db [trust/url]" in out
    assert not (branch.root / "other.db").exists()
    code, out, _ = branch.run("fleet", "plan", "--base", "HEAD", "--trust-project", "url", "--processes", "1")
    assert code == 0
    assert out.startswith("3 workspaces: 3 with changes, 0 without.\n")


def test_a_new_workspace_is_a_difference(branch: Fleet) -> None:
    """A workspace that the base does not have gets no request either."""
    branch.write("workspaces.csv", f"{TABLE}delta,sandbox:delta.db,region=eu\n")
    code, out, _ = branch.run("fleet", "plan", "--base", "HEAD", "--select", "workspace=delta")
    assert code == 1
    assert "workspaces.delta: the url is sandbox:delta.db, and in HEAD not set [trust/url]" in out


def test_plans_are_those_of_plan_with_a_base(branch: Fleet) -> None:
    """Each change says whether the branch makes it, and weaker guards are judged by those of the base as well."""
    branch.write("manifests/a.yaml", f"{BASE}  - {{name: Mentors, members: []}}\n")
    branch.write("lmsconf.yaml", f"{PROJECT}guards: off\n")
    index = branch.plan("--base", "HEAD", "--select", "workspace=alpha")
    code, out, _ = branch.run("--workspace", "alpha", "plan", "--base", "HEAD", "--format", "json")
    assert code == 0
    assert index["workspaces"][0]["digest"] == json.loads(out)["digest"]
    _, shown, _ = branch.run("show", str(branch.root / "out" / "alpha.plan.json"))
    assert "from this change" in shown
    assert "already pending" in shown
    assert "Settings changed" in shown


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--trust-project", "url"), "--trust-project needs --base"),
        (("--base", "HEAD", "--trust-project", "all"), "--trust-project: there is no all"),
        (("--base", "HEAD", "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"), "--base needs the project's"),
    ],
)
def test_options_that_do_not_go_together(fleet: Fleet, options: tuple[str, ...], message: str) -> None:
    """They are refused before any workspace is read."""
    code, _, err = fleet.run("fleet", "plan", *options)
    assert code == 64
    assert message in err


def test_a_base_that_does_not_exist_is_an_error_of_every_workspace(fleet: Fleet) -> None:
    """It is told once, and no workspace counts as unchanged."""
    code, out, _ = fleet.run("fleet", "plan", "--base", "nowhere", "--processes", "1")
    assert code == 64
    assert "3 workspaces: failed with errors\n  alpha, beta, gamma\n  error: --base nowhere: there is no such" in out
