"""`plan --base`: settings that a change alters stand first, and cannot let a plan pass that the base's would stop."""

import json
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf
from texts import text_of

from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled(day=8)

CROWD = [f"p{n:02}@x.example" for n in range(20)]
SEED = (
    "people: [{email: root@x.example, admin: true}, {email: vera@x.example, admin: true}, "
    + ", ".join(f"{{email: {one}}}" for one in CROWD)
    + f"]\ngroups: [{{name: A, members: [{', '.join(CROWD)}]}}, {{name: Kept}}]\n"
)
EMPTIED = "groups: [{name: A, members: []}]\n"
BASE = text_of(__file__, "settings_base.yaml")
CHANGED = text_of(__file__, "settings_changed.yaml")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose commit has BASE as its settings."""
    made = Project(tmp_path, SEED, BASE)
    made.write("groups: [{name: A}]\n")
    for words in (("init", "-q", "-b", "main"), ("add", "manifests", "lmsconf.yaml"), ("commit", "-q", "-m", "x")):
        git(made, *words)
    return made


def git(project: Project, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=project.root, check=True, capture_output=True)


def beside(project: Project, *arguments: str) -> Ran:
    return lmsconf(project.root, "plan", "--base", "main", *arguments, code=ExitCode.OK)


def document(project: Project, *arguments: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(beside(project, "--format", "json", *arguments).out))


def test_each_setting_that_differs_is_told(project: Project) -> None:
    """By its path, with both values, and whether less is stopped, kept or asked for than before."""
    project.write_options(CHANGED)
    found = {one["path"]: one for one in document(project)["settings_changed"]}
    assert {path: one["weaker"] for path, one in found.items()} == {
        "allow": True,
        "default_workspace": False,
        "fleet_guards.deletes": True,
        "fleet_guards.mandatory": False,
        "fleet_guards.people": True,
        "fleet_guards.answers": False,
        "guards.min_admins": True,
        "guards.protect": True,
        "guards.removals": True,
        "guards.updates": False,
        "ignore": True,
        "leave_alone": False,
        "lock": True,
        "max_failures": True,
        "ownership.groups": True,
        "people.create": True,
        "plans.valid_for": True,
        "runs.keep": True,
        "settle": True,
        "timezone": False,
        "waves": True,
    }
    assert (found["guards.removals"]["base"], found["guards.removals"]["now"]) == ({"count": 50, "share": 0.1}, "off")
    assert (found["ownership.groups"]["base"], found["ownership.groups"]["now"]) == (None, ["B *"])


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_changed_settings_stand_above_deletions(project: Project, format: str) -> None:
    """A reviewer reads what a change relaxes before what it deletes."""
    project.write_options(CHANGED)
    project.write("absent: {groups: [A]}")
    seen = beside(project, "--format", format).out.replace("\\", "")
    assert "guards.removals: off (main: 50 or 10%), which is weaker" in seen
    assert seen.index("Settings changed") < seen.index("eleted")


@pytest.mark.parametrize("options", ["guards: off\n", "guards: {removals: {count: 900, share: off}}\n"])
def test_guards_are_judged_under_the_base_too(project: Project, options: str) -> None:
    """A change cannot lift the limit that would stop it; it is said which settings do."""
    project.write_options(options)
    project.write(EMPTIED)
    made = document(project)
    (stop,) = made["summary"]["blocked"]
    assert stop == {
        "type": "guard",
        "name": "removals",
        "message": "20 of 20 in group/A members, and the limit is 10% under the settings of main",
        "allow": "removals=20",
    }
    assert json.loads(lmsconf(project.root, "plan", "--format", "json").out)["summary"]["blocked"] == []


def test_a_test_that_the_change_removes_is_told(project: Project) -> None:
    """It would have stopped the plan; tests that stay, are added, or are for other workspaces are not listed."""
    tests = (
        "tests:\n  - {name: Filled, audience: {group: A}, size: {min: 1}}\n  - {audience: everyone, size: {min: 2}}\n"
    )
    elsewhere = "  - {audience: {group: Kept}, size: {max: 5}, only_in: [env]}\n"
    project.write(tests + elsewhere, "tests.yaml")
    git(project, "add", "manifests")
    git(project, "commit", "-q", "-m", "tests")
    project.write(EMPTIED)
    assert [stop["type"] for stop in document(project)["summary"]["blocked"]] == ["test", "guard"]
    assert document(project)["settings_changed"] == []
    project.write("tests: [{audience: everyone, size: {min: 2}}, {audience: everyone, size: {max: 99}}]", "tests.yaml")
    made = document(project)
    assert [stop["type"] for stop in made["summary"]["blocked"]] == ["guard"]
    assert made["settings_changed"] == [
        {"path": "tests", "base": "the size of group/A is at least 1", "now": None, "weaker": True}
    ]
    line = "tests: (none) (main: the size of group/A is at least 1), which is weaker"
    for format in ("text", "markdown", "html"):
        assert line in beside(project, "--format", format).out.replace("\\", "")


def test_a_consent_of_the_change_counts_and_is_told(project: Project) -> None:
    """It names the exact number, and stands among the changed settings."""
    project.write_options("allow: [{removals: 20, reason: Leavers, until: 2999-01-01}]\n")
    project.write(EMPTIED)
    made = document(project)
    assert made["summary"]["blocked"] == []
    assert "allow" in [one["path"] for one in made["settings_changed"]]
    assert "Allowed by Leavers" in beside(project).out


@pytest.mark.parametrize(
    ("manifests", "name", "kind"),
    [
        ("absent: {groups: [Kept]}", "refusal/protected", "refusal"),
        ("users: [{email: vera@x.example, admin: false}]", "refusal/lock-out", "lockout"),
    ],
)
def test_what_the_base_refuses_is_refused(project: Project, manifests: str, name: str, kind: str) -> None:
    """Protection and enough admins cannot be taken out by the change that they are in the way of."""
    project.write_options("guards: {min_admins: 1}\n")
    project.write(manifests)
    made = document(project, "--out", "plan.json")
    assert [(one["type"], one["name"]) for one in made["summary"]["blocked"]] == [(kind, name)]
    assert made["summary"]["blocked"][0]["message"].endswith("under the settings of main")
    bare = json.loads(lmsconf(project.root, "plan", "--format", "json").out)
    assert bare["summary"]["blocked"] == []
    assert bare["digest"] == made["digest"]
    assert lmsconf(project.root, "apply", "plan.json").code == ExitCode.BLOCKED


def test_the_merged_branch_has_the_digest_of_the_pull_request(project: Project) -> None:
    """The policy at hand is in it, and the base's is not; another policy makes another digest."""
    before = document(project)["digest"]
    project.write_options(CHANGED)
    project.write("groups: [{name: B}]")
    reviewed = document(project)["digest"]
    git(project, "commit", "-qam", "merged")
    assert document(project)["digest"] == reviewed
    assert json.loads(lmsconf(project.root, "plan", "--format", "json").out)["digest"] == reviewed
    project.write_options(CHANGED.replace("count: 20", "count: 21"))
    assert json.loads(lmsconf(project.root, "plan", "--format", "json").out)["digest"] != reviewed
    assert before != reviewed


def test_saved_measures_are_judged_under_the_stricter_limits(project: Project) -> None:
    """Those of the file, or those at hand: loosening the project file afterwards lifts nothing."""
    project.write_options("")
    project.write(EMPTIED)
    assert lmsconf(project.root, "plan", "--out", "plan.json").code == ExitCode.OK
    project.write_options("guards: off\n")
    ran = lmsconf(project.root, "apply", "plan.json", code=ExitCode.BLOCKED)
    assert "the limit is 10% under the limits that the plan was saved with" in ran.err
    assert lmsconf(project.root, "plan", "--out", "plan.json").code == ExitCode.OK
    project.write_options("guards: {removals: {count: 3}}\n")
    assert lmsconf(project.root, "apply", "plan.json").code == ExitCode.BLOCKED
    project.write_options("guards: off\n")
    assert lmsconf(project.root, "apply", "plan.json").code == ExitCode.OK


DECLARED = """
groups: [{name: A}]
custom_fields: [{name: F, type: CHOICE, choices: [X, Y]}]
smart_groups: [{name: S, managers: []}]
"""


def test_what_the_base_declares_can_be_deleted(tmp_path: Path) -> None:
    """All that the deletion shows and counts is read, though the base manages less of it or wants to keep it."""
    seed = SEED.replace("{email: root@x.example, admin: true}", "{email: r@x.example, answers: {F: X, G: X}}")
    seed += "custom_fields: [{name: F, type: CHOICE, choices: [X, Y]}, {name: G, type: CHOICE, choices: [X]}]\n"
    seed += "smart_groups: [{name: S, conditions: [{field: F, choices: [X]}]}]\n"
    made = Project(tmp_path, seed)
    made.write(DECLARED)
    for words in (("init", "-q", "-b", "main"), ("add", "manifests", "lmsconf.yaml"), ("commit", "-q", "-m", "x")):
        git(made, *words)
    made.write("absent: {groups: [A], smart_groups: [S], custom_fields: [F]}")
    bare = json.loads(lmsconf(tmp_path, "plan", "--format", "json").out)
    found = document(made)
    assert found["digest"] == bare["digest"]
    assert found["guards"] == bare["guards"]
    assert [one["total"] for one in found["guards"] if one["name"] == "answers"] == [1]


def test_the_limit_that_is_shown_is_the_stricter_one(project: Project) -> None:
    """Of a guard that stops nothing, too: a reviewer reads which limit holds."""
    project.write_options("guards: {removals: {count: 900, share: off}}\n")
    limits = {one["name"]: one["limit"] for one in document(project)["guards"]}
    assert limits["removals"] == {"count": 50, "share": 0.1}
