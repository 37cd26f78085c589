"""What a known service does with the manager right and managing groups: what is foretold, and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import ExitCode
from lmsconf.model.plan import Plan, UndoLevel

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
GIVEN = OPTIONS.replace("with-right", "given")
LOSE = "dialect: {user-access.make-manager.managed-groups: lose}\n"
KEEP = LOSE.replace("lose", "keep")
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
    it = project(tmp_path, f"{OPTIONS.rstrip()[:-1]}, user-access.make-manager.managed-groups: keep}}\n")
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


def notes(plan: Plan) -> list[tuple[str, str, str]]:
    """What the plan says of rights beside its changes: the code, the resource, and what it says of it."""
    codes = ("person/given-right", "person/loses-groups", "refusal/changed-along")
    problems = [one for one in plan.all_problems if one.code in codes]
    assert all(one.source and one.is_error == one.code.startswith("refusal") for one in problems)
    return [(one.code, str(one.address), one.message.partition(": ")[2]) for one in problems]


@pytest.mark.parametrize(
    "manifest",
    [
        "groups: [{name: Coaches, managers: [bo@acme.example, mo@acme.example, root@acme.example]}]",
        "groups: [{name: Coaches, managers: {include: [bo@acme.example]}}]",
        "groups: [{name: New, managers: [bo@acme.example]}]",
        "smart_groups: [{name: Sales, managers: [bo@acme.example, anna@acme.example]}]",
        "groups: [{name: Coaches, managers: [bo@acme.example]}]\nusers: [{email: bo@acme.example, metadata: {a: b}}]",
    ],
)
def test_who_is_given_the_right_is_noted(tmp_path: Path, manifest: str) -> None:
    """Only of people without a right; the service does it, and the next plan is empty."""
    it = project(tmp_path, GIVEN)
    ((code, _, said),) = notes(it.plan(manifest))
    assert (code, said) == (
        "person/given-right",
        "bo@acme.example is given the manager right along, because the service gives it to managers",
    )
    report = it.apply(manifest)
    assert (report.exit, report.converged) == (ExitCode.OK, True)
    assert it.ask("users.get", {"userId": "u-bo"})["manager"] is True  # type: ignore[index,call-overload]  # JSON
    assert (it.plan().changes, notes(it.plan())) == ((), [])


@pytest.mark.parametrize(("key", "value"), [("manager", "false"), ("custom_archive_date", "2040-01-01T00:00Z")])
def test_an_entry_that_rules_the_right_out_is_an_error(tmp_path: Path, key: str, value: str) -> None:
    """The plan cannot do both; a right that the entry grants is no matter."""
    it = project(tmp_path, GIVEN)
    group = "groups: [{name: Coaches, managers: [bo@acme.example]}]"
    found = notes(it.plan(f"{group}\nusers: [{{email: bo@acme.example, {key}: {value}}}]"))
    said = f"bo@acme.example is given the manager right along, and the entry rules it out with `{key}`"
    assert found == [("refusal/changed-along", "group/Coaches", said)]
    assert notes(it.plan(f"{group}\nusers: [{{email: bo@acme.example, manager: true}}]")) == []


TAKEN = "users: [{email: mo@acme.example, manager: false}, {email: anna@acme.example, manager: false}]"


def test_groups_that_go_with_the_right_are_noted(tmp_path: Path) -> None:
    """Of each person who loses the right and manages groups: these people alone are read."""
    it = project(tmp_path, LOSE)
    said = "with the manager right, the person loses the groups that they manage: Coaches"
    plan = it.plan(TAKEN)
    assert notes(plan) == [("person/loses-groups", "user/mo@acme.example", said)]
    assert {str(one.address): one.undo.level for one in plan.changes} == {
        "user/mo@acme.example": UndoLevel.PARTIAL, "user/anna@acme.example": UndoLevel.FULL,
    }  # fmt: skip
    report = it.apply()
    assert (report.exit, report.converged) == (ExitCode.OK, True)
    assert it.ask("manual-groups.managers", {"groupId": "g-1"}) == {"userIds": []}
    for manifest, number in ((TAKEN, 2), (TAKEN.replace("false", "true"), 0)):
        keep, lose = (project(tmp_path / f"{word}{number}", options) for word, options in (("k", KEEP), ("l", LOSE)))
        assert notes(keep.plan(manifest)) == []
        assert (len(notes(lose.plan(manifest))) > 0) is (number > 0)
        assert len(lose.calls) == len(keep.calls) + number


def test_a_snapshot_and_an_undo_note_them_too(tmp_path: Path) -> None:
    """They are kept with the people of a snapshot; an undo that takes a right reads them as any plan."""
    it = project(tmp_path, LOSE)
    it.write(TAKEN)
    lost = "the person loses the groups that they manage: Coaches"
    for more in ([], ["--redact"]):
        assert lmsconf(it.root, "snapshot", *more, "live.json").code == 0
        ran = lmsconf(it.root, "plan", "--snapshot", "live.json")
        assert lost in ran.out, ran.out + ran.err
    it.write("users: [{email: bo@acme.example, manager: true}]")
    assert lmsconf(it.root, "apply", "--auto-approve").code == 0
    it.send("manual-groups.add-managers", {"groupId": "g-1"}, {"userIds": ["u-bo"]})
    ran = lmsconf(it.root, "plan", "--undo", "latest")
    assert lost in ran.out, ran.out + ran.err


@pytest.mark.parametrize("managers", ["[mo@acme.example]", "{include: [mo@acme.example]}"])
def test_a_declared_manager_cannot_lose_the_right(tmp_path: Path, managers: str) -> None:
    """Where the group goes with it; by hand, or in an apply before, it is no matter."""
    it = project(tmp_path, LOSE)
    found = notes(it.plan(f"groups: [{{name: Coaches, managers: {managers}}}]\n{TAKEN}"))
    said = "mo@acme.example loses the manager right in this plan, and with it the group"
    assert ("refusal/changed-along", "group/Coaches", said) in found
    keeps = project(tmp_path / "keeps", KEEP)
    assert notes(keeps.plan(f"groups: [{{name: Coaches, managers: {managers}}}]\n{TAKEN}")) == []
