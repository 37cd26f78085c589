"""Workspaces of a table, their labels, and folders of manifests on top of each other."""

import json

import pytest
from ci.actions import commit, git
from fleet.fleet_project import BASE, PROJECT, TABLE, Fleet
from texts import listed_cases


def explained(fleet: Fleet, workspace: str) -> dict[str, object]:
    """What a plan of a workspace creates: address → form."""
    out = fleet.run("--workspace", workspace, "plan", "--format", "json", code=0).out
    return {change["address"]: change["after"] for change in json.loads(out)["changes"]}


def test_a_row_is_a_workspace_and_its_labels_are_variables(fleet: Fleet) -> None:
    """`--workspace` takes the name of a row, `$(region)` is its region; a variable of its own hides a label."""
    assert explained(fleet, "gamma").keys() == {"custom_field/Department", "group/Team us"}
    fleet.write("workspaces.csv", 'name,url,labels,vars\nx,sandbox:,region=eu,"region=north; size=5"\n')
    fleet.write("manifests/a.yaml", 'groups: [{name: "Team $(region) $(size)"}]\n')
    assert explained(fleet, "x").keys() == {"group/Team north 5"}


def test_an_overlay_changes_the_keys_that_it_names(fleet: Fleet) -> None:
    """Other keys of the entry stay; an entry with another name is added; an assignment replaces its own."""
    fleet.write(
        "lmsconf.yaml", 'workspaces: {x: {url: "sandbox:", labels: {region: eu}}}\nmanifests: [a, "b/$(region)"]\n'
    )
    fleet.write("a/a.yaml", BASE)
    fleet.write(
        "b/eu/b.yaml", "custom_fields: [{name: Department, choices: [Sales, Nordics]}]\ngroups: [{name: More}]\n"
    )
    forms = explained(fleet, "x")
    assert forms.keys() == {"custom_field/Department", "group/Team eu", "group/More"}
    assert forms["custom_field/Department"] == {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Nordics"]}


def test_an_overlay_changes_an_alternative_and_leaves_the_others(fleet: Fleet) -> None:
    """An entry for one workspace takes the place of the one for that workspace; beside one for all it is a second."""
    fleet.write("lmsconf.yaml", 'workspaces: {x: {url: "sandbox:"}, y: {url: "sandbox:"}}\nmanifests: [a, b]\n')
    fleet.write("a/a.yaml", "custom_fields: [{name: F, type: TEXT, only_in: [y]}, {name: F, type: TEXT, only_in: [x]}]")
    fleet.write("b/b.yaml", "custom_fields: [{name: F, type: MULTI_SELECT, choices: [A], only_in: [x]}]")
    assert explained(fleet, "x") == {"custom_field/F": {"name": "F", "type": "MULTI_SELECT", "choices": ["A"]}}
    assert explained(fleet, "y") == {"custom_field/F": {"name": "F", "type": "TEXT"}}
    fleet.write("a/a.yaml", "custom_fields: [{name: F, type: TEXT}]")
    assert "custom_field/F: declared twice" in fleet.run("--workspace", "x", "validate", code=1).err


def test_a_problem_of_an_overlay_has_its_own_place(fleet: Fleet) -> None:
    """An error in a key of the overlay is at the overlay's line, one of the base at the base's."""
    fleet.write("lmsconf.yaml", 'workspaces: {x: {url: "sandbox:", manifests: [a, b]}}\n')
    fleet.write("a/a.yaml", "custom_fields:\n  - name: Department\n    type: CHOICE\n    choices: [Sales]\n")
    fleet.write("b/b.yaml", "custom_fields:\n  - name: Department\n    choices: [Sales, 5]\n    hiden: true\n")
    err = fleet.run("validate", code=1).err
    assert "b/b.yaml:3:22" in err
    assert "b/b.yaml:4:5" in err
    assert "a/a.yaml" not in err


def test_the_last_overlay_holds_and_each_set_may_be_replaced(fleet: Fleet) -> None:
    """Of three folders the last one decides; a set of people declared again is the later one; in one folder it is an
    error.
    """
    fleet.write("lmsconf.yaml", 'workspaces: {x: {url: "sandbox:"}}\nmanifests: [a, b, c]\n')
    for folder, hidden in (("a", "true"), ("b", "false"), ("c", "true")):
        fleet.write(
            f"{folder}/f.yaml",
            f"custom_fields: [{{name: F, type: TEXT, hidden: {hidden}}}]\n"
            "windows: {W: {visible_from: 2026-01-01}}\n",
        )
    assert explained(fleet, "x") == {"custom_field/F": {"name": "F", "type": "TEXT", "hidden": True}}
    fleet.write("c/g.yaml", "custom_fields: [{name: F, type: TEXT}]\n")
    assert "custom_field/F: declared twice" in fleet.run("validate", code=1).err


@listed_cases("project", "table", "message")
def test_mistakes_have_their_place(fleet: Fleet, project: str | None, table: str, message: str) -> None:
    """A table or a list of folders that cannot be used is an error at its cell or line."""
    if project is not None:
        fleet.write("lmsconf.yaml", project)
    fleet.write("workspaces.csv", table)
    assert message in fleet.run("validate", "--workspace", "x", code=1).err


def test_a_token_pattern_names_a_variable_for_each_workspace(fleet: Fleet) -> None:
    """`$(workspace)` in the token's pattern is the name of the row."""
    fleet.write("lmsconf.yaml", 'workspaces: {file: workspaces.csv, token: {env: "LMSCONF_$(region)_$(workspace)"}}\n')
    fleet.write("workspaces.csv", "name,url,labels\nx,https://lms.invalid,region=eu\n")
    assert "LMSCONF_eu_x is not set" in fleet.run("plan", code=1).err


def test_a_label_of_a_branch_does_not_choose_another_token(fleet: Fleet) -> None:
    """With --base, a changed label that leads to another variable is a changed token: no request is sent."""
    project = 'workspaces: {x: {url: "https://lms.invalid", token: {env: "LMSCONF_$(ring)"}, labels: {ring: one}}}\n'
    fleet.write("manifests/a.yaml", "groups: [{name: A}]\n")
    fleet.write("base/lmsconf.yaml", project)
    fleet.write("base/manifests/a.yaml", "groups: [{name: A}]\n")
    fleet.write("lmsconf.yaml", project.replace("ring: one", "ring: two"))
    err = fleet.run("plan", "--base", fleet.root / "base", code=1).err
    assert "trust/token" in err
    assert "LMSCONF_two" in err


@listed_cases("project", "message")
def test_a_wrong_guard_or_label_is_named(fleet: Fleet, project: str, message: str) -> None:
    """An unknown guard of the fleet is an unknown key; the hint about a label lists its characters."""
    labels = project if project.startswith("labels") else "vars: {}"
    rest = "" if project == labels else f"{project}\n"
    fleet.write("lmsconf.yaml", f'workspaces: {{x: {{url: "sandbox:", {labels}}}}}\n{rest}')
    assert message in fleet.command("plan", code=1).err


# `lmsconf fleet plan --base`: what a branch may not change before somebody has reviewed it.


@pytest.fixture
def branch(fleet: Fleet) -> Fleet:
    """The project in a repository, with one commit."""
    fleet.write(".gitignore", "*.db\nout/\n.lmsconf/\n")
    git(fleet.root, "init", "--quiet")
    commit(fleet.root)
    return fleet


@pytest.mark.sampled(daily=False)
def test_a_workspace_with_another_url_gets_no_request(branch: Fleet) -> None:
    """Nor does a new one. The others are planned; the workspace is planned once --trust-project names its url."""
    branch.write("workspaces.csv", TABLE.replace("sandbox:beta.db", "sandbox:other.db"))
    out = branch.command("plan", "--base", "HEAD", code=1).out
    assert "3 workspaces: 2 with changes, 0 without, 1 failed.\n\nWorkspace beta (sandbox:other.db): failed" in out
    assert "workspaces.beta: the url is sandbox:other.db, and in HEAD sandbox:beta.db [trust/url]" in out
    assert not (branch.root / "other.db").exists()
    branch.write("workspaces.csv", f"{TABLE}delta,sandbox:delta.db,region=eu\n")
    out = branch.command("plan", "--base", "HEAD", "--select", "workspace=delta", code=1).out
    assert "workspaces.delta: the url is sandbox:delta.db, and in HEAD not set [trust/url]" in out
    branch.write("workspaces.csv", TABLE.replace("sandbox:beta.db", "sandbox:other.db"))
    out = branch.command("plan", "--base", "HEAD", "--trust-project", "url", code=0).out
    assert out.startswith("3 workspaces: 3 with changes, 0 without.\n")


@pytest.mark.sampled(daily=False)
def test_plans_are_those_of_plan_with_a_base(branch: Fleet) -> None:
    """Each change says whether the branch makes it, and weaker guards are judged by those of the base as well."""
    branch.write("manifests/a.yaml", f"{BASE}  - {{name: Mentors, members: []}}\n")
    branch.write("lmsconf.yaml", f"{PROJECT}guards: off\n")
    index = branch.plan("--base", "HEAD", "--select", "workspace=alpha")
    out = branch.run("--workspace", "alpha", "plan", "--base", "HEAD", "--format", "json", code=0).out
    assert index["workspaces"][0]["digest"] == json.loads(out)["digest"]
    shown = branch.run("show", branch.out / "alpha.plan.json").out
    for words in ("from this change", "already pending", "Settings changed"):
        assert words in shown


@pytest.mark.sampled(daily=False)
def test_a_base_that_does_not_exist_is_an_error_of_every_workspace(fleet: Fleet) -> None:
    """It is told once, and no workspace counts as unchanged."""
    out = fleet.command("plan", "--base", "nowhere", code=64).out
    assert "3 workspaces: failed with errors\n  alpha, beta, gamma\n  error: --base nowhere: there is no such" in out
