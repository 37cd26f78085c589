"""`plan --base`: settings that a change alters stand first, and cannot let a plan pass that the base's would stop."""

from pathlib import Path
from typing import Any

import pytest
from basis.repository import beside, commit, git, init
from flow.project import Project
from flow.shell import lmsconf
from texts import text_of

from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled(day=8, daily=False)

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
    init(tmp_path)
    return made


def document(project: Project, *arguments: str) -> dict[str, Any]:
    return beside(project.root, *arguments, code=ExitCode.OK).document


def bare(project: Project) -> dict[str, Any]:
    """The plan without a base."""
    return lmsconf(project.root, "plan", "--format", "json").document


def stops(made: dict[str, Any]) -> list[tuple[str, str]]:
    return [(stop["type"], stop["name"]) for stop in made["summary"]["blocked"]]


def test_each_setting_that_differs_is_told(project: Project) -> None:
    """By its path, with both values, and whether less is stopped, kept or asked for than before."""
    project.write_options(CHANGED)
    found = {one["path"]: one for one in document(project)["settings_changed"]}
    stronger = {
        *("default_workspace", "fleet_guards.mandatory", "fleet_guards.answers", "guards.updates", "leave_alone"),
        "timezone",
    }
    weaker = {
        *("allow", "fleet_guards.deletes", "fleet_guards.people", "guards.min_admins", "guards.protect"),
        *("guards.removals", "ignore", "lock", "max_failures", "ownership.groups", "people.create"),
        *("plans.valid_for", "runs.keep", "settle", "waves"),
    }
    assert {path: one["weaker"] for path, one in found.items()} == {
        **dict.fromkeys(stronger, False),
        **dict.fromkeys(weaker, True),
    }
    assert (found["guards.removals"]["base"], found["guards.removals"]["now"]) == ({"count": 50, "share": 0.1}, "off")
    assert (found["ownership.groups"]["base"], found["ownership.groups"]["now"]) == (None, ["B *"])


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_changed_settings_stand_above_deletions(project: Project, format: str) -> None:
    """A reviewer reads what a change relaxes before what it deletes."""
    project.write_options(CHANGED)
    project.write("absent: {groups: [A]}")
    seen = beside(project.root, "--format", format, code=0).out.replace("\\", "")
    assert "guards.removals: off (main: 50 or 10%), which is weaker" in seen
    assert seen.index("Settings changed") < seen.index("eleted")


@pytest.mark.sampled(day=1)
@pytest.mark.parametrize("options", ["guards: off\n", "guards: {removals: {count: 900, share: off}}\n"])
def test_guards_are_judged_under_the_base_too(project: Project, options: str) -> None:
    """A change cannot lift the limit that would stop it; it is said which settings do, and which limit holds."""
    project.write_options(options)
    assert {one["name"]: one["limit"] for one in document(project)["guards"]}["removals"] == {"count": 50, "share": 0.1}
    project.write(EMPTIED)
    assert document(project)["summary"]["blocked"] == [
        {
            "type": "guard",
            "name": "removals",
            "message": "20 of 20 in group/A members, and the limit is 10% under the settings of main",
            "allow": "removals=20",
        }
    ]
    assert bare(project)["summary"]["blocked"] == []


def test_a_test_that_the_change_removes_is_told(project: Project) -> None:
    """It would have stopped the plan; tests that stay, are added, or are for other workspaces are not listed."""
    project.write(
        """tests:
  - {name: Filled, audience: {group: A}, size: {min: 1}}
  - {audience: everyone, size: {min: 2}}
  - {audience: {group: Kept}, size: {max: 5}, only_in: [env]}
""",
        "tests.yaml",
    )
    commit(project.root)
    project.write(EMPTIED)
    made = document(project)
    assert ([kind for kind, _ in stops(made)], made["settings_changed"]) == (["test", "guard"], [])
    project.write("tests: [{audience: everyone, size: {min: 2}}, {audience: everyone, size: {max: 99}}]", "tests.yaml")
    made = document(project)
    assert [kind for kind, _ in stops(made)] == ["guard"]
    assert made["settings_changed"] == [
        {"path": "tests", "base": "the size of group/A is at least 1", "now": None, "weaker": True}
    ]
    line = "tests: (none) (main: the size of group/A is at least 1), which is weaker"
    for format in ("text", "markdown", "html"):
        assert line in beside(project.root, "--format", format).out.replace("\\", "")


def test_a_consent_of_the_change_counts_and_is_told(project: Project) -> None:
    """It names the exact number, and stands among the changed settings."""
    project.write_options("allow: [{removals: 20, reason: Leavers, until: 2999-01-01}]\n")
    project.write(EMPTIED)
    made = document(project)
    assert made["summary"]["blocked"] == []
    assert "allow" in [one["path"] for one in made["settings_changed"]]
    assert "Allowed by Leavers" in beside(project.root, "--format", "text").out


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
    assert stops(made) == [(kind, name)]
    assert made["summary"]["blocked"][0]["message"].endswith("under the settings of main")
    assert (bare(project)["summary"]["blocked"], bare(project)["digest"]) == ([], made["digest"])
    assert lmsconf(project.root, "apply", "plan.json").code == ExitCode.BLOCKED


def test_the_merged_branch_has_the_digest_of_the_pull_request(project: Project) -> None:
    """The policy at hand is in it, and the base's is not; another policy makes another digest."""
    before = document(project)["digest"]
    project.write_options(CHANGED)
    project.write("groups: [{name: B}]")
    reviewed = document(project)["digest"]
    git(project.root, "commit", "-qam", "merged")
    assert document(project)["digest"] == bare(project)["digest"] == reviewed != before
    project.write_options(CHANGED.replace("count: 20", "count: 21"))
    assert bare(project)["digest"] != reviewed


def test_saved_measures_are_judged_under_the_stricter_limits(project: Project) -> None:
    """Those of the file, or those at hand: loosening the project file afterwards lifts nothing."""
    project.write(EMPTIED)
    for saved, now, code in (
        ("", "guards: off\n", ExitCode.BLOCKED),
        ("guards: off\n", "guards: {removals: {count: 3}}\n", ExitCode.BLOCKED),
        ("guards: off\n", "guards: off\n", ExitCode.OK),
    ):
        project.write_options(saved)
        assert lmsconf(project.root, "plan", "--out", "plan.json").code == ExitCode.OK
        project.write_options(now)
        ran = lmsconf(project.root, "apply", "plan.json", code=code)
        assert ("the limit is 10% under the limits that the plan was saved with" in ran.err) is (not saved)


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
    init(tmp_path)
    made.write("absent: {groups: [A], smart_groups: [S], custom_fields: [F]}")
    found, alone = document(made), bare(made)
    assert (found["digest"], found["guards"]) == (alone["digest"], alone["guards"])
    assert [one["total"] for one in found["guards"] if one["name"] == "answers"] == [1]
