"""Where a service deletes fields in use, what it takes out of smart groups is announced, counted and taken along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmsconf.errors import ExitCode
from lmsconf.model.plan import Change, Plan

from .project import Project
from .shell import lmsconf

SEED = """
custom_fields:
  - {name: D, type: CHOICE, choices: [X, Y]}
  - {name: E, type: CHOICE, choices: [P, Q]}
smart_groups:
  - {name: Both, conditions: [{field: D, choices: [X, Y]}, {field: E, choices: [P]}]}
  - {name: Other, conditions: [{field: E, choices: [Q]}]}
"""
ALONE = "  - {name: Alone, conditions: [{field: D, choices: [X]}]}\n"
NEVER = "dialect: {custom-fields.in-use: never}\n"
DELETED = "absent: {custom_fields: [D]}"


def project(root: Path, more: str = "", options: str = "") -> Project:
    return Project(root, SEED + more, NEVER + options)


def effects(plan: Plan) -> dict[str, Change]:
    return {str(one.address): one for one in plan.changes if one.is_effect}


def errors(plan: Plan) -> list[str]:
    return [problem.code for problem in plan.all_problems if problem.is_error]


def live(it: Project) -> dict[str, int]:
    """How many conditions each smart group has."""
    groups = json.loads(json.dumps(it.ask("smart-groups.list")))
    rows = next(rows for rows in groups.values() if isinstance(rows, list))
    found = {}
    for row in rows:
        one = json.loads(json.dumps(it.ask("smart-groups.get", {"smartGroupId": row["smartGroupId"]})))
        found[row["name"]] = len(one["conditions"])
    return found


def test_a_rewritten_smart_group_is_a_change(tmp_path: Path) -> None:
    """With the field go the conditions that name it: shown, counted, without a call, and so it comes about."""
    it = project(tmp_path)
    plan = it.plan(DELETED)
    (change,) = effects(plan).values()
    assert (str(change.address), change.source, str(change.goes_with)) == ("smart_group/Both", None, "custom_field/D")
    assert [(one.path, one.added, one.removed) for one in change.fields] == [
        ("conditions", (), ({"field": "D", "choices": ["X", "Y"]},))
    ]
    assert change.undo.level == "partial"
    assert change.reason is not None
    assert change.reason.startswith("no manifest")
    assert [str(call.address) for call in plan.calls] == ["custom_field/D"]
    counted = {guard.name: guard.total for guard in plan.guards if guard.total}
    assert counted == {"deletes": 1, "removals": 1, "updates": 1}
    for format in ("text", "markdown", "html", "json"):
        assert "Both" in lmsconf(tmp_path, "plan", "--format", format).out
    assert lmsconf(tmp_path, "plan", "--out", str(tmp_path / "plan.json")).code == ExitCode.OK
    assert lmsconf(tmp_path, "apply", str(tmp_path / "plan.json")).code == ExitCode.OK
    assert live(it) == {"Both": 1, "Other": 1}


def test_a_choice_that_goes_leaves_the_others(tmp_path: Path) -> None:
    """The condition stays with the choices that are left."""
    it = project(tmp_path)
    plan = it.plan("custom_fields: [{name: D, choices: [X]}]")
    (change,) = effects(plan).values()
    assert [(one.added, one.removed) for one in change.fields] == [
        (({"field": "D", "choices": ["X"]},), ({"field": "D", "choices": ["X", "Y"]},))
    ]
    assert it.settled("custom_fields: [{name: D, choices: [X]}]") == ["custom-fields.replace"]


@pytest.mark.parametrize("manifests", [DELETED, "custom_fields: [{name: D, choices: [Y]}]"], ids=["field", "choice"])
def test_a_smart_group_left_with_nothing_is_refused(tmp_path: Path, manifests: str) -> None:
    """Without conditions, or with one that says nothing, nobody can tell who would be in it: apply exits 4."""
    it = project(tmp_path, ALONE)
    plan = it.plan(manifests)
    assert errors(plan) == ["refusal/no-conditions"]
    assert "smart_group/Alone" in effects(plan)
    ran = lmsconf(tmp_path, "apply", "--auto-approve")
    assert ran.code == ExitCode.BLOCKED
    assert "smart_group/Alone would be left" in ran.err
    assert "D" in it.fields()


@pytest.mark.parametrize(
    "declared",
    [
        "smart_groups: [{name: Both, conditions: [{field: E, choices: [P]}]}]\n",
        "smart_groups: [{name: Both, conditions: [{field: E, choices: [P]}]}, "
        "{name: Alone, conditions: [{field: E, choices: [Q]}]}]\n",
    ],
)
def test_declared_conditions_are_no_effect(tmp_path: Path, declared: str) -> None:
    """What is declared is changed by its own call, before the field goes, and no error tells to declare it."""
    it = project(tmp_path, ALONE if "Alone" in declared else "")
    plan = it.plan(declared + DELETED)
    assert (effects(plan), errors(plan)) == ({}, [])
    assert it.settled(declared + DELETED)[-1] == "custom-fields.delete"


def test_a_declared_group_that_changes_must_say_what_its_conditions_will_be(tmp_path: Path) -> None:
    """A call changes its managers and the service its conditions: the plan is refused, and so is its file."""
    it = project(tmp_path, "people: [{email: a@x.example}]\n")
    it.write("smart_groups: [{name: Both, managers: [a@x.example]}]\n" + DELETED)
    plan = it.plan()
    assert errors(plan) == ["refusal/changed-along"]
    (message,) = [problem.message for problem in plan.all_problems if problem.is_error]
    assert message.endswith("smart_group/Both, whose conditions the service would change too")
    saved = str(tmp_path / "plan.json")
    assert lmsconf(tmp_path, "plan", "--out", saved).code == ExitCode.OK
    assert lmsconf(tmp_path, "apply", saved).code == ExitCode.BLOCKED


def test_a_declared_group_that_says_no_conditions_is_told_too(tmp_path: Path) -> None:
    """What a manifest leaves out of an entry is as unmanaged as the rest: its change is announced."""
    it = project(tmp_path)
    assert set(effects(it.plan("smart_groups: [{name: Both}]\n" + DELETED))) == {"smart_group/Both"}


def test_what_is_protected_keeps_its_conditions(tmp_path: Path) -> None:
    """Also those that would go with a field."""
    it = project(tmp_path, options="guards: {protect: [smart_group/Both]}\n")
    assert errors(it.plan(DELETED)) == ["refusal/protected"]


def test_it_is_announced_whatever_is_selected(tmp_path: Path) -> None:
    """`--only` the field shows the smart group too, and `--except` cannot leave it out alone."""
    it = project(tmp_path)
    assert set(effects(it.plan(DELETED, only=("custom_field/D",)))) == {"smart_group/Both"}
    it.write(DELETED)
    ran = lmsconf(tmp_path, "plan", "--except", "smart_group/Both")
    assert (ran.code, "select/goes-along" in ran.err) == (1, True)


def test_drift_knows_no_effects(tmp_path: Path) -> None:
    """What would come of a deletion is no difference between manifests and workspace."""
    it = project(tmp_path, options="ownership: {custom_fields: all}\n")
    it.write("custom_fields: [{name: E}]")
    found = lmsconf(tmp_path, "drift", "--format", "json").document["findings"]
    assert isinstance(found, list)
    assert [one["address"] for one in found] == ["custom_field/D"]


def test_a_condition_made_meanwhile_makes_the_plan_stale(tmp_path: Path) -> None:
    """One more smart group that names the field was reviewed by nobody."""
    it = project(tmp_path)
    it.write(DELETED)
    assert lmsconf(tmp_path, "plan", "--out", str(tmp_path / "plan.json")).code == ExitCode.OK
    it.apply("smart_groups: [{name: New, conditions: [{field: D, choices: [X]}, {field: E, choices: [P]}]}]")
    assert lmsconf(tmp_path, "apply", str(tmp_path / "plan.json")).code == ExitCode.STALE
