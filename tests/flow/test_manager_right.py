"""Where the service lets only people with a right manage groups: what is foretold, and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import ExitCode
from lmsconf.model.plan import Plan

from .project import Project
from .shell import lmsconf

SEED = """
custom_fields: [{name: Dept, type: CHOICE, choices: [Sales]}]
people:
  - {email: root@acme.example, id: u-root, admin: true}
  - {email: vera@acme.example, id: u-vera, admin: true}
  - {email: mo@acme.example, id: u-mo, manager: true}
  - {email: anna@acme.example, id: u-anna, manager: true}
  - {email: bo@acme.example, id: u-bo}
groups: [{name: Coaches, id: g-1, managers: [mo@acme.example]}]
smart_groups: [{name: Sales, id: sg-1, conditions: [{field: Dept, choices: [Sales]}]}]
"""
OPTIONS = "people: {create: true}\ndialect: {manual-groups.who-can-manage: with-right}\n"
NEW = "{email: nia@acme.example, first_name: Nia, last_name: Ny, language: en"


def project(tmp_path: Path, options: str = OPTIONS) -> Project:
    return Project(tmp_path, SEED, options)


def told(plan: Plan) -> list[tuple[str, str]]:
    """The refusals that the plan foretells: the resource, and who it is about."""
    problems = [one for one in plan.all_problems if one.code == "refusal/manager-right"]
    assert all(one.is_error and one.source and "manager: true" in str(one.hint) for one in problems)
    return [(str(one.address), one.message.partition(": ")[2].split(" ")[0]) for one in problems]


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        ("groups: [{name: Coaches, managers: [bo@acme.example]}]", [("group/Coaches", "bo@acme.example")]),
        ("groups: [{name: New, managers: [bo@acme.example]}]", [("group/New", "bo@acme.example")]),
        ("groups: [{name: Coaches, managers: {include: [bo@acme.example]}}]", [("group/Coaches", "bo@acme.example")]),
        ("smart_groups: [{name: Sales, managers: [bo@acme.example]}]", [("smart_group/Sales", "bo@acme.example")]),
        (
            "smart_groups: [{name: New, conditions: [{field: Dept, choices: [Sales]}], managers: [bo@acme.example]}]",
            [("smart_group/New", "bo@acme.example")],
        ),
        (f"groups: [{{name: Coaches, managers: [nia@acme.example]}}]\nusers: [{NEW}}}]",
         [("group/Coaches", "nia@acme.example")]),
        ("groups: [{name: Coaches, managers: [anna@acme.example]}]\n"
         "users: [{email: anna@acme.example, manager: false}]", [("group/Coaches", "anna@acme.example")]),
        ("groups: [{name: Coaches, members: [bo@acme.example]}]", []),
        ("groups: [{name: Coaches, managers: {exclude: [bo@acme.example]}}]", []),
    ],
)  # fmt: skip
def test_who_lacks_the_right_is_foretold(tmp_path: Path, manifest: str, expected: list[tuple[str, str]]) -> None:
    """Each person who would be refused is an error at their place, with what can be done."""
    assert told(project(tmp_path).plan(manifest)) == expected


@pytest.mark.parametrize(
    "manifest",
    [
        "groups: [{name: Coaches, managers: [mo@acme.example, anna@acme.example, root@acme.example]}]",
        "smart_groups: [{name: Sales, managers: [anna@acme.example]}]",
        "groups: [{name: Coaches, managers: [bo@acme.example]}]\nusers: [{email: bo@acme.example, manager: true}]",
        "groups: [{name: Coaches, managers: [bo@acme.example]}]\nusers: [{email: bo@acme.example, admin: true}]",
        f"groups: [{{name: Coaches, managers: [nia@acme.example]}}]\nusers: [{NEW}, manager: true}}]",
        "groups: [{name: Coaches, managers: [bo.ek@acme.example]}]\n"
        "users: [{email: bo.ek@acme.example, previously: [bo@acme.example], manager: true}]",
    ],
)
def test_who_has_the_right_or_is_given_it_can_manage(tmp_path: Path, manifest: str) -> None:
    """A right that the same plan gives is given before it is needed."""
    report = project(tmp_path).apply(manifest)
    assert (report.exit, report.converged) == (ExitCode.OK, True)


@pytest.mark.parametrize("option", [("--additive",), ("--except", "user/bo@acme.example")])
def test_a_right_that_is_not_planned_is_not_counted(tmp_path: Path, option: tuple[str, ...]) -> None:
    """Where --additive or --except leaves a right out of the plan, the person is refused as without it."""
    it = project(tmp_path)
    it.write(
        "groups: [{name: Coaches, managers: {include: [bo@acme.example]}}]\n"
        "users: [{email: bo@acme.example, manager: true}]\n"
    )
    ran = lmsconf(it.root, "plan", *option)
    assert "bo@acme.example cannot be made manager, because the service requires the manager right" in ran.out
    assert "bo@acme.example cannot be made manager" not in lmsconf(it.root, "plan").out


def test_who_manages_already_is_no_matter(tmp_path: Path) -> None:
    """Somebody who lost the right and manages still is neither told nor touched."""
    it = project(tmp_path)
    it.send("user-access.make-manager", {"userId": "u-mo", "endow": "false"})
    plan = it.plan("groups: [{name: Coaches, managers: [mo@acme.example]}]")
    assert (plan.changes, told(plan)) == ((), [])


def test_rights_are_read_only_where_they_matter(tmp_path: Path) -> None:
    """Without the key, or without a manager in the manifests, no right of anybody is asked for."""
    smart = "smart_groups: [{name: Sales, managers: [bo@acme.example]}]"
    for options, manifest in (("", smart), (OPTIONS, "smart_groups: [{name: Sales}]"), (OPTIONS, smart)):
        it = project(tmp_path, options)
        it.plan(manifest)
        asked = "users.extended-info" in [call.operation for call in it.calls]
        assert asked is ((options, manifest) == (OPTIONS, smart))
