"""What a plan that migrates a field says of answers that it cannot copy, and does to smart groups that are declared."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lmsconf.errors import ExitCode, Severity
from lmsconf.model.blockers import blockers
from lmsconf.model.plan import Action
from lmsconf.workspace.project_manifests import load_manifests

from .edited_snapshot import apply_under
from .project import Project

SEED = """
custom_fields:
  - {name: Team, type: CHOICE, choices: [Sales, Tech]}
people:
  - {email: anna@acme.example, answers: {Team: Sales}}
  - {email: bo@acme.example, answers: {Team: Tech}}
smart_groups:
  - {name: Sellers, conditions: [{field: Team, choices: [Sales]}]}
  - {name: Coders, conditions: [{field: Team, choices: [Tech]}]}
"""
REPLACED = "its conditions name custom_field/Team, whose answers move to custom_field/Unit"
TEXT = "custom_fields: [{name: Unit, type: TEXT, migrate: {from: Team}}]\n"
FIELD = """
custom_fields:
  - name: Unit
    type: CHOICE
    choices: [Sales, Code]
    migrate: {from: Team, choices: {Tech: Code}}
"""


@pytest.mark.parametrize(
    ("manifests", "code"),
    [
        (FIELD.replace("from: Team", "from: Unit"), "migrate/same-field"),
        (FIELD.replace("from: Team", "from: Team, to: Team"), "migrate/to"),
        (FIELD + "  - {name: Team, type: TEXT}\n", "migrate/declared"),
        (FIELD + "  - {name: B, type: TEXT, migrate: {from: Team}}\n", "migrate/twice"),
        (FIELD.replace("type: CHOICE", "type: CHOICE\n    previously: [Team]"), "migrate/renamed"),
        (FIELD.replace("Tech: Code", "Tech: Cod"), "reference/unknown-choice"),
    ],
)
def test_a_migration_that_cannot_be_meant_is_refused(tmp_path: Path, manifests: str, code: str) -> None:
    """`validate` names what is wrong without any workspace, and nothing else."""
    it = Project(tmp_path, SEED)
    it.write(manifests)
    assert [problem.code for problem in load_manifests(it.settings).problems] == [code]


@pytest.mark.parametrize(
    ("people", "counted"),
    [
        (["anna@acme.example"], "1 answer to it is not copied"),
        (["anna@acme.example", "bo@acme.example"], "2 answers to it are not copied"),
    ],
)
def test_a_field_is_kept_for_answers_that_cannot_be_copied(tmp_path: Path, people: list[str], counted: str) -> None:
    """The warning counts the people whose declared answer to the new field is another one, and names them."""
    users = ", ".join(f"{{email: {one}, answers: {{Unit: Other}}}}" for one in people)
    plan = Project(tmp_path, SEED).plan(f"{TEXT}users: [{users}]\n")
    [warning] = [one for one in plan.all_problems if one.code == "migrate/not-copied"]
    names = ", ".join(f"user/{one}" for one in people)
    assert warning.message == (
        f"custom_field/Team: it is kept, because {counted}: the person has another answer to Unit ({names})"
    )


def test_only_conditions_that_no_manifest_declares_are_replaced(tmp_path: Path) -> None:
    """With `conditions: all`, a smart group declared without conditions gets the new field; others are as declared."""
    it = Project(tmp_path, SEED, "guards: off\n")
    plan = it.plan(
        "custom_fields:\n"
        "  - {name: Unit, type: CHOICE, choices: [Sales, Tech], migrate: {from: Team, conditions: all}}\n"
        "smart_groups:\n"
        "  - {name: Sellers, managers: [bo@acme.example]}\n"
        "  - {name: Coders, conditions: [{field: Unit, choices: [Sales, Tech]}]}\n"
    )
    conditions = {
        str(change.address): change.after["conditions"]
        for change in plan.changes
        if isinstance(change.after, dict) and "conditions" in change.after
    }
    assert conditions == {
        "smart_group/Sellers": [{"field": "Unit", "choices": ["Sales"]}],
        "smart_group/Coders": [{"field": "Unit", "choices": ["Sales", "Tech"]}],
    }


@pytest.mark.parametrize(
    ("only", "action", "reason"),
    [
        ((), Action.DELETE, "it is owned, and no manifest declares it"),
        (("custom_field/Unit",), Action.UPDATE, REPLACED),
    ],
)
def test_conditions_of_an_owned_smart_group_are_replaced_where_the_plan_does_not_delete_it(
    tmp_path: Path, only: tuple[str, ...], action: Action, reason: str
) -> None:
    """A plan of everything deletes it, since no manifest declares it; a plan of the field alone says why it changes."""
    it = Project(tmp_path, SEED, "ownership: {smart_groups: all}\n")
    plan = it.plan(
        "custom_fields:\n"
        "  - {name: Unit, type: CHOICE, choices: [Sales, Tech], migrate: {from: Team, conditions: all}}\n",
        only=only,
    )
    groups = {str(one.address): (one.action, one.reason) for one in plan.changes if one.address.kind == "smart_group"}
    assert groups == {"smart_group/Sellers": (action, reason), "smart_group/Coders": (action, reason)}


@pytest.mark.parametrize(("type", "lists"), [("CHOICE, choices: [Sales, Tech]", 2), ("TEXT", 4)])
def test_a_copied_choice_is_verified_by_reading_the_person_alone(tmp_path: Path, type: str, lists: int) -> None:
    """A person shows choices with their ids; to verify a copied text, the fields are listed too, for each person."""
    it = Project(tmp_path, SEED[: SEED.index("smart_groups:")], "guards: off\n")
    report = apply_under(it, f"custom_fields: [{{name: Unit, type: {type}, migrate: {{from: Team}}}}]\n")
    assert report.exit == ExitCode.OK, report
    operations = Counter(call.operation for call in it.calls)
    assert (operations["users.get"], operations["custom-fields.list"]) == (2, lists)


def test_a_field_without_a_successor_is_deleted_beside_one_that_is_migrated(tmp_path: Path) -> None:
    """The answers of the one are copied; of the other, which stands under `absent`, nothing is."""
    seed = SEED.replace("people:", "  - {name: Badge, type: TEXT}\npeople:", 1)
    plan = Project(tmp_path, seed).plan(f"{TEXT}absent: {{custom_fields: [Badge]}}\n")
    reasons = {str(one.address): one.reason for one in plan.changes if one.action is Action.DELETE}
    assert reasons == {
        "custom_field/Badge": None,
        "custom_field/Team": "its answers are copied to custom_field/Unit",
    }


@pytest.mark.parametrize(
    ("excluded", "copied"),
    [((), ["anna@acme.example", "bo@acme.example"]), (("bo@acme.example",), ["anna@acme.example"])],
)
def test_a_selected_field_takes_the_people_along_whose_answers_it_copies(
    tmp_path: Path, excluded: tuple[str, ...], copied: list[str]
) -> None:
    """`--only` with the new field alone plans their answers too, and nothing else of them that manifests declare.

    People that `--except` names are left out.
    """
    manifests = f"{TEXT}users: [{{email: anna@acme.example, first_name: Anna}}]\n"
    plan = Project(tmp_path, SEED).plan(manifests, only=("custom_field/Unit",), excluded=excluded)
    changed = {str(one.address): [part.path for part in one.fields] for one in plan.changes}
    people = {address: paths for address, paths in changed.items() if address.startswith("user/")}
    assert people == {f"user/{one}": ["answers.Unit"] for one in copied}


def test_conditions_that_keep_a_field_from_being_deleted_are_told_with_a_way_to_replace_them(tmp_path: Path) -> None:
    """The hint says what to declare, or what to write under `migrate`."""
    it = Project(tmp_path, SEED)
    [blocker] = blockers(
        it.plan("custom_fields: [{name: Unit, type: CHOICE, choices: [Sales, Tech], migrate: {from: Team}}]\n")
    )
    assert blocker.message == (
        "custom_field/Team: it cannot be deleted, because it is still named by the conditions of "
        "smart_group/Coders, smart_group/Sellers"
    )
    assert blocker.hint == (
        "Declare `conditions` on custom_field/Unit for them, or write `conditions: all` under `migrate`, which "
        "replaces the conditions of smart groups that no manifest declares."
    )


def test_a_field_is_deleted_with_the_answers_that_cannot_be_copied(tmp_path: Path) -> None:
    """With `not_copied: delete`, also though the plan that is made right before the deletion notes them again."""
    it = Project(tmp_path, SEED[: SEED.index("smart_groups:")], "guards: off\n")
    report = it.apply(
        "custom_fields: [{name: Unit, type: TEXT, migrate: {from: Team, not_copied: delete}}]\n"
        "users: [{email: anna@acme.example, answers: {Unit: Other}}]\n"
    )
    assert report.exit == ExitCode.OK, report
    [lost] = [one for one in it.last.all_problems if one.code == "custom-field/answers-lost"]
    assert (lost.severity, lost.address) == (Severity.NOTE, "custom_field/Team")
    assert set(it.fields()) == {"Unit"}


@pytest.mark.parametrize(
    ("one", "other", "codes"),
    [
        ("", "", ["migrate/twice"]),
        (", only_in: [a]", "", ["migrate/twice"]),
        ("", ", only_in: [a]", ["migrate/twice"]),
        (", only_in: [a, b]", ", only_in: [b, c]", ["migrate/twice"]),
        (", only_in: [a]", ", only_in: [b]", []),
    ],
)
def test_a_field_may_move_to_another_field_in_each_workspace(
    tmp_path: Path, one: str, other: str, codes: list[str]
) -> None:
    """In none to two."""
    it = Project(tmp_path, SEED)
    workspaces = "".join(f"  {name}: {{url: 'sandbox:{name}.db'}}\n" for name in "abc")
    (tmp_path / "lmsconf.yaml").write_text(f"workspaces:\n{workspaces}default_workspace: a\n")
    it.write(
        f"custom_fields:\n  - {{name: A, type: TEXT, migrate: {{from: Team}}{one}}}\n"
        f"  - {{name: B, type: TEXT, migrate: {{from: Team}}{other}}}\n"
    )
    assert [problem.code for problem in load_manifests(it.settings).problems] == codes
