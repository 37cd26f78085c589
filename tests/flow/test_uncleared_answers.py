"""A service that never clears an answer: what the plan foretells, what the apply still does, what an undo leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import Rejected

from .project import Project
from .shell import lmsconf

ANSWERS = "users.update-custom-field-choice"
SEED = """
custom_fields:
  - {name: Dept, type: CHOICE, choices: [Sales, HR]}
  - {name: Skills, type: MULTI_SELECT, choices: [SQL, Go]}
  - {name: Badge, type: TEXT}
people:
  - {email: root@acme.example, id: u-root, admin: true}
  - {email: anna@acme.example, id: u-anna, answers: {Dept: Sales, Skills: [SQL], Badge: "7"}}
  - {email: bo@acme.example, id: u-bo}
"""
TYPES = {"choice": "Dept", "multi-select": "Skills", "text": "Badge"}


def project(tmp_path: Path, *types: str) -> Project:
    keys = ", ".join(f"{ANSWERS}.clear-{type}: refused" for type in types)
    return Project(tmp_path, SEED, f"guards: off\ndialect: {{{keys}}}\n")


@pytest.mark.parametrize("type", TYPES)
def test_clearing_is_foretold_for_the_type_alone(tmp_path: Path, type: str) -> None:
    """One error for the answer, at its place; those to fields of other types are cleared."""
    it = project(tmp_path, type)
    plan = it.plan("users: [{email: anna@acme.example, answers: {Dept: null, Skills: [], Badge: null}}]")
    told = [one for one in plan.all_problems if one.code == "refusal/answer-not-cleared"]
    assert [one.message for one in told] == [
        f'user/anna@acme.example: the answer to "{TYPES[type]}" cannot be cleared, because the service refuses it'
    ]
    assert all(one.is_error and one.source and f"{ANSWERS}.clear-{type}" in str(one.hint) for one in told)
    ran = lmsconf(it.root, "apply", "--auto-approve")
    assert ran.code == 4
    body = {next(field["customFieldId"] for name, field in it.fields().items() if name == TYPES[type]): ""}
    with pytest.raises(Rejected):
        it.send(ANSWERS, {"userId": "u-anna"}, body)


@pytest.mark.parametrize(
    "manifest",
    [
        "users: [{email: anna@acme.example, answers: {Dept: HR}}]",
        "users: [{email: bo@acme.example, answers: {Dept: null, Badge: '8'}}]",
    ],
)
def test_other_answers_are_given(tmp_path: Path, manifest: str) -> None:
    """Another answer, and none where there is none, are no clearing."""
    it = project(tmp_path, *TYPES)
    report = it.apply(manifest)
    assert (report.exit, report.converged) == (0, True)


def test_an_undo_leaves_the_answer_and_takes_back_the_rest(tmp_path: Path) -> None:
    """The plan says what cannot be undone; the undo leaves that alone, with the reason, and does the rest."""
    it = project(tmp_path, "choice")
    it.write("users: [{email: bo@acme.example, answers: {Dept: Sales, Badge: '8'}}]")
    ran = lmsconf(it.root, "apply", "--auto-approve")
    assert ran.code == 0, ran.err
    assert 'Can be undone in part: the service refuses to clear the answer to "Dept" again.' in ran.err
    ran = lmsconf(it.root, "plan", "--undo", "latest", "--out", "undo.json")
    assert ran.code == 0, ran.err
    assert 'the service refuses to clear the answer to "Dept"' in ran.out
    assert lmsconf(it.root, "apply", "undo.json").code == 0
    person = it.ask("users.get", {"userId": "u-bo"})
    assert isinstance(person, dict)
    assert list(person["customFields"]) == ["Dept"]


def test_an_undo_leaves_metadata_that_the_service_merges(tmp_path: Path) -> None:
    """A key that a run has added stays, with the reason, and the other one has its value of before."""
    it = Project(tmp_path, SEED, "guards: off\ndialect: {users.update-metadata.mode: merge}\n")
    it.send("users.update-metadata", {"userId": "u-bo"}, {"metadata": {"cost": "1"}})
    it.write("users: [{email: bo@acme.example, metadata: {cost: '2', unit: A}}]")
    assert lmsconf(it.root, "apply", "--auto-approve").code == 0
    ran = lmsconf(it.root, "plan", "--undo", "latest", "--out", "undo.json")
    assert ran.code == 0, ran.err
    assert 'the service merges metadata, so that "unit" cannot be removed' in ran.out
    ran = lmsconf(it.root, "apply", "undo.json")
    assert ran.code == 0, ran.err
    person = it.ask("users.get", {"userId": "u-bo"})
    assert isinstance(person, dict)
    assert person["metadata"] == {"cost": "1", "unit": "A"}
