"""`lmsconf self-check`: what a support request needs, and nothing that is secret."""

from __future__ import annotations

import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from flow.shell import lmsconf
from json_schemas import schema_validator

from lmsconf import __version__
from lmsconf.errors import ExitCode
from lmsconf.support.package_data import read_schema

SECRET = "canary"
PROJECT = f"""
workspaces:
  {SECRET}-one: {{url: 'https://{SECRET}.example/api', token: {{env: LMSCONF_{SECRET.upper()}}}}}
  two: {{url: 'sandbox:{SECRET}.db'}}
default_workspace: two
vars: {{name: {SECRET}}}
"""
MANIFEST = f"groups: [{{name: {SECRET}, members: [{SECRET}@{SECRET}.example]}}, {{name: B, members: []}}]\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project in which each value is a canary."""
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / f"{SECRET}.yaml").write_text(MANIFEST)
    return tmp_path


def document(folder: Path, *arguments: str, **env: str) -> dict[str, Any]:
    """The JSON of a self-check, which fits its schema and has the exit code of the command."""
    ran = lmsconf(folder, "self-check", "--format", "json", *arguments, env=env)
    found = dict(ran.document)
    schema_validator("self-check").validate(found)
    assert found["exit"] == ran.code
    return found


def test_it_has_versions_keys_and_counts(project: Path) -> None:
    """Versions of lmsconf, Python and each library; the project's keys; resources by kind; the tools around."""
    found = document(project, LMSCONF_X="1", PAGER="  ", LANG="sv_SE.UTF-8", LC_ALL="")
    assert (found["lmsconf"]["version"], found["python"]["version"]) == (__version__, sys.version.split()[0])
    assert {"click", "httpx", "pyyaml"} <= found["libraries"].keys()
    assert found["project"] == {
        "found": True,
        "writable": True,
        "valid": True,
        "keys": ["default_workspace", "vars", "workspaces"],
        "workspaces": 2,
        "embedded": 1,
    }
    assert found["manifests"] == {"read": True, "files": 1, "declared": {"group": 2}, "absent": 0}
    assert found["git"]["version"]
    assert (found["terminal"]["pager"], found["terminal"]["locale"]) == ("less", "sv_SE.UTF-8")
    assert found["variables"] == {"set": ["LMSCONF_X"]}
    assert (found["exit"], found["state"]) == (0, {".lmsconf": None, ".lmsconf/runs": None})


@pytest.mark.parametrize("format", ["text", "json"])
def test_it_shows_nothing_secret_and_sends_nothing(project: Path, format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No name, host, value of a variable or text of a problem, and no socket; with --hosts the host, nothing else."""
    (project / "manifests" / "bad.yaml").write_text(f"groups: [{{name: {SECRET}, {SECRET}: 3}}]\n")

    def refused(*_: object) -> None:
        raise AssertionError("self-check sends no request")

    monkeypatch.setattr(socket.socket, "connect", refused)
    env = {f"LMSCONF_{SECRET.upper()}": f"{SECRET}-token", "LMSCONF_TOKEN": SECRET}
    ran = lmsconf(project, "self-check", "--format", format, env=env)
    shown = ran.out + ran.err
    assert SECRET not in shown.replace(str(project), "")
    named = document(project, "--hosts", **env)
    assert named["project"]["hosts"] == [f"{SECRET}.example"]


def test_errors_of_the_project_are_counted_by_their_codes(project: Path) -> None:
    """Exit 1, how many errors of which code, and the command that shows them."""
    (project / "manifests" / "bad.yaml").write_text("groups: [{name: X, wrong: 3}, {name: X}]\n")
    found = document(project)
    assert found["exit"] == ExitCode.ERROR
    assert found["problems"]["errors"] == sum(found["problems"]["codes"].values()) > 0
    assert [check["hint"] for check in found["checks"] if check["check"] == "problems"] == ["Run: lmsconf validate"]
    (project / "lmsconf.yaml").write_text("workspace: 3\n")
    assert document(project)["project"] == {"found": True, "valid": False}


def test_without_a_project_it_describes_the_installation(tmp_path: Path) -> None:
    """Exit 0: a support request may be about the installation alone."""
    found = document(tmp_path)
    assert (found["exit"], found["project"], found["manifests"]) == (0, {"found": False}, {"read": False})
    assert "project" in [check["check"] for check in found["checks"]]


def test_folders_that_others_may_read_are_named(project: Path) -> None:
    """With the command that mends it; a link in place of the folder is an error, as it is for apply."""
    (project / ".lmsconf").mkdir(mode=0o700)
    (project / ".lmsconf").chmod(0o755)
    found = document(project)
    assert found["state"][".lmsconf"]["mode"] == "0755"
    assert "Run: chmod 700 .lmsconf" in [check["hint"] for check in found["checks"]]
    shutil.rmtree(project / ".lmsconf")
    (project / ".lmsconf").symlink_to(project)
    assert document(project)["exit"] == ExitCode.ERROR


def test_schemas_of_another_version_are_named(project: Path) -> None:
    """The copies that editors use are compared with those of this version."""
    (project / "schemas").mkdir()
    (project / "schemas" / "manifest.schema.json").write_text("{}")
    (project / "schemas" / "project.schema.json").write_text(read_schema("project.schema.json"))
    assert document(project)["schemas"] == {"manifest.schema.json": "outdated", "project.schema.json": "current"}


@pytest.mark.parametrize(("columns", "width"), [("40", 40), ("80", 80), ("200", 80)])
def test_its_text_fits_the_terminal_and_a_mail(project: Path, columns: str, width: int) -> None:
    """What was found is wrapped at the terminal's width, at most at 80 columns."""
    ran = lmsconf(project, "self-check", env={"COLUMNS": columns})
    found = ran.out.partition("\n\n")[0]
    assert width - 15 < max(map(len, found.splitlines())) <= width
    assert ran.out.startswith("lmsconf     version ")
    assert "Attach this to a support request." in ran.out


@pytest.mark.parametrize(
    ("pager", "shown"),
    [
        ("", "less"),
        ("/usr/bin/more -s", "more"),
        (f"TOKEN={SECRET} less", "set"),
        (f"TOKEN={SECRET}/less", "set"),
        (f"/opt/{SECRET} -x", "set"),
    ],
)
def test_only_a_known_pager_is_named(project: Path, pager: str, shown: str) -> None:
    """The first word of a shell command may be an assignment, whose value is nobody's business."""
    assert document(project, PAGER=pager)["terminal"]["pager"] == shown
