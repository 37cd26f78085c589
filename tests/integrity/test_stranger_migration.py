"""A field is migrated on an independent server of the same API, in each form in which it may show answers."""

from __future__ import annotations

import pytest
from stranger.project import Case, Open, opening
from stranger.state import Choices

pytestmark = pytest.mark.sampled

open_desk = pytest.fixture(opening)

MIGRATED = """
custom_fields:
  - name: Unit
    type: CHOICE
    choices: [Sales and Marketing, Engineering, HR]
    migrate: {from: Department, choices: {Sales: Sales and Marketing}, conditions: all}
  - {name: Hobbies, type: MULTI_SELECT, choices: [Chess, Skiing], migrate: {from: Hobby, conditions: all}}
  - {name: Key card, type: TEXT, migrate: {from: Badge}}
"""


@pytest.mark.parametrize(
    ("answers", "ids"), [("choices", "text"), ("choice-ids", "shared"), ("values", "number"), ("lists", "uuid")]
)
def test_fields_are_migrated(open_desk: Open, answers: str, ids: str) -> None:
    """Answers of every type arrive, groups ask for the new fields, and the old ones are deleted."""
    desk = open_desk(Case(Choices(answers=answers, ids=ids, page_cap=7), {}), MIGRATED)
    held = desk.stranger.held
    desk.plans(2)
    desk.applies()
    assert {one["name"] for one in held.fields.values()} == {"Unit", "Hobbies", "Key card", "Shirt"}
    names = {one["choiceId"]: one["name"] for field in held.fields.values() for one in field["choices"]}
    given = {
        (person["email"].partition("@")[0], held.fields[field]["name"]): [names.get(one, one) for one in _listed(said)]
        for person in held.users.values()
        for field, said in person["answers"].items()
        if field in held.fields
    }
    assert given == {
        ("bo", "Unit"): ["Sales and Marketing"],
        ("cy", "Hobbies"): ["Skiing"],
        ("cy", "Key card"): ["17"],
    }
    named = {held.fields[one["field"]]["name"] for group in held.smart.values() for one in group["conditions"]}
    assert named == {"Unit", "Hobbies"}


def _listed(said: object) -> list[str]:
    return [str(one) for one in said] if isinstance(said, list) else [str(said)]


@pytest.mark.parametrize("answers", ["unlike", "missing"])
def test_unknown_answers_stop_the_migration(open_desk: Open, answers: str) -> None:
    """Where answers cannot be read, nothing is sent."""
    desk = open_desk(Case(Choices(answers=answers), {}), MIGRATED)
    code, _ = desk.run("apply", "--auto-approve")
    assert code == 4
    assert "it is not known who answered it" in desk.err
    assert desk.stranger.writes() == []


def test_a_refused_deletion_leaves_every_answer(open_desk: Open) -> None:
    """A service for which an answered field is in use refuses the deletion: the answers are in both fields."""
    desk = open_desk(Case(Choices(in_use="answered"), {}), MIGRATED)
    code, _ = desk.run("apply", "--auto-approve")
    assert code == 5
    held = desk.stranger.held
    assert {one["name"] for one in held.fields.values()} >= {"Unit", "Department"}
    bo = held.users[held.named(held.users, "bo@acme.example")]["answers"]
    assert len(bo) == 2
