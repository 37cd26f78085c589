"""Answers of an independent server that no description foresees: each is a message, and nothing is sent."""

from __future__ import annotations

from typing import Any

import pytest
from stranger.choices import Choices
from stranger.project import FIRST, Case, Open, opening

open_desk = pytest.fixture(opening)

USUAL = Case(Choices(), {})
LONG_WAY = Case(Choices(extended="active"), {})

# Each: where, what the answer is made into, and what the message says.
UNFIT = {
    "a choice without its id": ("/custom-fields", {"customFields": [{"id": "1", "name": "Shirt", "type": "CHOICE",
                                "choices": [{"name": "S"}]}]}, "choiceId"),
    "choices that are a number": ("/custom-fields", {"customFields": [{"id": "1", "name": "Shirt", "type": "CHOICE",
                                  "choices": 7}]}, "where the list choices should be"),
    "a smart group without conditions": ("/smart-groups/sm-501", {"smartGroupId": "sm-501"}, "missing its conditions"),
    "a condition without its field": ("/smart-groups/sm-501", {"conditions": [{"choiceIds": []}]}, "customFieldId"),
    "targets that are no list": ("/content/targets", {"targets": True}, "missing its list of targets"),
    "targets that are missing": ("/content/targets", {}, "missing its list of targets"),
    "targets that are null": ("/content/targets", {"targets": None}, "missing its list of targets"),
    "a target for nobody": ("/content/targets", {"targets": [{"mandatory": True}]}, "targetId"),
    "a group whose name is not text": ("/groups", {"groups": [{"groupId": "1", "name": {}}]}, "name"),
    "members that are missing": ("/groups/gr-1/members", {}, "missing its list of userIds"),
    "a time that is none": ("/content/targets", {"targets": [{"targetId": "EVERYONE", "startTime": "soon"}]},
                            "content-targets.time-format"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "answer", "said"), UNFIT.values(), ids=UNFIT)
def test_an_answer_that_is_not_as_described_is_an_error(open_desk: Open, path: str, answer: object, said: str) -> None:
    """It is named, and nothing is sent on the word of it."""
    desk = open_desk(LONG_WAY, FIRST)
    desk.stranger.garble = lambda asked, value: answer if asked == path else value
    code, _ = desk.run("apply", "--auto-approve")
    assert code == 1
    assert said in desk.err
    assert not desk.stranger.writes()


def test_pages_that_are_too_large_for_the_service_name_the_dialect_key(open_desk: Open) -> None:
    """A service that refuses our page size says so in every message that follows from it; with the key it works."""
    case = Case(Choices(page_most=50), {})
    desk = open_desk(case, FIRST)
    assert desk.run("apply", "--auto-approve")[0] == 1
    assert "paging.limit" in desk.err
    assert "limit must not exceed 50" in desk.err
    desk.write(FIRST, {"paging.limit": 50})
    desk.applies()


def test_what_may_be_there_is_not_said_to_be_gone(open_desk: Open) -> None:
    """An entry under `absent` that an incomplete listing lacks is an error, not done work."""

    def cut(path: str, value: Any) -> object:
        return {"groups": value["groups"][:1] if value["skip"] == 0 else "?"} if path == "/groups" else value

    desk = open_desk(USUAL, "absent: {groups: [Summer interns]}")
    desk.stranger.garble = cut
    code, out = desk.run("plan")
    assert code == 1
    assert "it is not known whether it is deleted" in out + desk.err
    desk.stranger.garble = lambda _, value: value
    desk.applies()
    assert "Remove the entry under `absent`" in desk.run("plan")[1]


def test_a_field_in_use_by_answers_is_an_error_of_that_field(open_desk: Open) -> None:
    """A 403 that no condition foretold is told apart from a lack of permission, and nothing else is held up."""
    manifest = """
custom_fields: [{name: Shirt, choices: [S, {name: Medium, previously: [M]}, L]}]
groups: [{name: Leaders, members: [anna@acme.example]}]
"""
    desk = open_desk(Case(Choices(in_use="answered"), {}), manifest)
    code, out = desk.run("apply", "--auto-approve")
    assert code == 5
    assert "It may be in use" in out
    held = desk.stranger.held
    assert held.groups[held.named(held.groups, "Leaders")]["members"] == [held.named(held.users, "anna@acme.example")]


def test_a_condition_on_an_unknown_field_is_an_error(open_desk: Open) -> None:
    """The field or choice that nobody declares and that is not live is named with its place."""
    manifest = "smart_groups: [{name: X, conditions: [{field: Departmnt, choices: [Sales]}]}]"
    desk = open_desk(USUAL, manifest)
    assert desk.run("plan")[0] == 1
    assert "all.yaml:1:47: error: smart_group/X: custom_field/Departmnt is neither declared nor live" in desk.err
    assert 'Did you mean "Department"?' in desk.err
