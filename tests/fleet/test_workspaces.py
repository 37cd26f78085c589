"""Workspaces of a table, their labels, and folders of manifests on top of each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleet.fleet_project import BASE, Fleet


def explained(fleet: Fleet, workspace: str) -> dict[str, object]:
    """What a plan of a workspace creates: address → form."""
    code, out, err = fleet.run("--workspace", workspace, "plan", "--format", "json")
    assert code == 0, err
    return {change["address"]: change["after"] for change in json.loads(out)["changes"]}


def test_a_row_is_a_workspace_and_its_labels_are_variables(fleet: Fleet) -> None:
    """`$(region)` is the region of the workspace's row; `--workspace` takes the name of a row."""
    assert explained(fleet, "gamma").keys() == {"custom_field/Department", "group/Team us"}


def test_variables_of_a_row_stand_over_its_labels(fleet: Fleet) -> None:
    """The column `vars` sets variables, and one of them hides a label of its name."""
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


def test_a_problem_of_an_overlay_has_its_own_place(fleet: Fleet) -> None:
    """An error in a key of the overlay is at the overlay's line, one of the base at the base's."""
    fleet.write("lmsconf.yaml", 'workspaces: {x: {url: "sandbox:", manifests: [a, b]}}\n')
    fleet.write("a/a.yaml", "custom_fields:\n  - name: Department\n    type: CHOICE\n    choices: [Sales]\n")
    fleet.write("b/b.yaml", "custom_fields:\n  - name: Department\n    choices: [Sales, 5]\n    hiden: true\n")
    code, _, err = fleet.run("validate")
    assert code == 1
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
    code, _, err = fleet.run("validate")
    assert code == 1
    assert "custom_field/F: declared twice" in err


@pytest.mark.parametrize(
    ("project", "table", "message"),
    [
        (None, "name,url,token\nx,sandbox:,abc\n", "workspaces.csv:1:10: error: a token must not stand in this file"),
        (None, "name,url\n../x,sandbox:\n", 'workspaces.csv:2:1: error: "../x" cannot be the name of a workspace'),
        (None, "name,url\nx,sandbox:\nx,sandbox:\n", 'workspaces.csv:3:1: error: the workspace "x" is declared twice'),
        (None, "name,url,labels\nx,sandbox:,ring\n", "workspaces.csv:2:12: error: ring is not a list of pairs"),
        (None, "name,url\nx,ftp://x\n", "workspaces.csv:2:3: error: workspaces.x:"),
        (None, "name,adress\nx,sandbox:\n", 'workspaces.csv:1:6: error: unknown column "adress"'),
        (None, "name,url\n", "error: this table has no workspace"),
        ("workspaces: {file: none.csv}\n", "", "there is no file none.csv"),
        ("workspaces: {file: ../x.csv}\n", "", "../x.csv is outside the project"),
        ("workspaces: {token: {env: A}, x: {url: 'sandbox:'}}\n", "", "token"),
        ("workspaces: {x: {url: 'sandbox:'}}\nmanifests: [a, a/b]\n", "", "a/b is inside a, so its files would"),
        ("workspaces: {x: {url: 'sandbox:'}}\nmanifests: 'a/$(ring)'\n", "", "a variable that is not a label"),
    ],
)  # fmt: skip
def test_mistakes_have_their_place(fleet: Fleet, project: str | None, table: str, message: str) -> None:
    """A table or a list of folders that cannot be used is an error at its cell or line."""
    if project is not None:
        fleet.write("lmsconf.yaml", project)
    fleet.write("workspaces.csv", table)
    code, _, err = fleet.run("validate", "--workspace", "x")
    assert code == 1
    assert message in err


def test_a_token_pattern_names_a_variable_for_each_workspace(fleet: Fleet) -> None:
    """`$(workspace)` in the token's pattern is the name of the row."""
    fleet.write("lmsconf.yaml", 'workspaces: {file: workspaces.csv, token: {env: "LMSCONF_$(region)_$(workspace)"}}\n')
    fleet.write("workspaces.csv", "name,url,labels\nx,https://lms.invalid,region=eu\n")
    code, _, err = fleet.run("plan")
    assert code == 1
    assert "LMSCONF_eu_x is not set" in err


def test_a_label_of_a_branch_does_not_choose_another_token(fleet: Fleet, tmp_path: Path) -> None:
    """With --base, a changed label that leads to another variable is a changed token: no request is sent."""
    project = 'workspaces: {x: {url: "https://lms.invalid", token: {env: "LMSCONF_$(ring)"}, labels: {ring: one}}}\n'
    base = tmp_path / "base"
    (base / "manifests").mkdir(parents=True)
    (base / "lmsconf.yaml").write_text(project)
    (base / "manifests" / "a.yaml").write_text("groups: [{name: A}]\n")
    fleet.write("lmsconf.yaml", project.replace("ring: one", "ring: two"))
    fleet.write("manifests/a.yaml", "groups: [{name: A}]\n")
    code, _, err = fleet.run("plan", "--base", str(base))
    assert code == 1
    assert "trust/token" in err
    assert "LMSCONF_two" in err


@pytest.mark.parametrize(
    ("project", "message"),
    [
        (
            "fleet_guards: {peple: 1}",
            'error: unknown key "peple" in fleet_guards [project/unknown-key]\n  Did you mean',
        ),
        ("fleet_guards: {x: 1}", "[project/unknown-key]\n  Known here: deletes, removals, recreates, "),
        ("labels: {ring one: a}", 'labels cannot be "ring one" [project/value]\n  Write letters, digits, ., _ and -'),
        ("labels: {ring: a b}", 'labels.ring cannot be "a b" [project/value]\n  Write letters, digits, ., _ and -'),
    ],
)
def test_a_wrong_guard_or_label_is_named(fleet: Fleet, project: str, message: str) -> None:
    """An unknown guard of the fleet is an unknown key; the hint about a label lists its characters."""
    labels = project if project.startswith("labels") else "vars: {}"
    rest = "" if project == labels else f"{project}\n"
    fleet.write("lmsconf.yaml", f'workspaces: {{x: {{url: "sandbox:", {labels}}}}}\n{rest}')
    code, _, err = fleet.run("fleet", "plan")
    assert (code, message in err) == (1, True), err
