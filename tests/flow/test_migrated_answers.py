"""Which answers a migration copies where people's answers and e-mails are not all as one would wish."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from lmsconf.documents.plan_file import dumps, loads
from lmsconf.model.plan import Plan

from .altered_listing import planned
from .project import Project

SEED = """
custom_fields:
  - {name: Team, type: CHOICE, choices: [Sales, Tech]}
  - {name: Unit, type: TEXT}
  - {name: Note, type: TEXT}
people:
  - {email: ann@x.se, answers: {Team: Sales}}
  - {email: bo@x.se, answers: {Team: Tech}}
  - {email: cy@x.se}
"""
FIELD = "custom_fields: [{name: Unit, type: TEXT, migrate: {from: Team}}]\n"
SALES = {"choices": [{"choiceId": "ch-1", "name": "Sales"}]}
GONE = {"choices": [{"choiceId": "ch-9", "name": "Gone"}]}
ODD = {"shape": 1}
ONE = "it is not known who answered it: the answers of 1 person have an unknown format"


def told(plan: Plan, code: str) -> list[str]:
    """What the plan says of the old field, after its address."""
    return [one.message.partition(", because ")[2] for one in plan.all_problems if one.code == code]


@pytest.mark.parametrize(
    ("rows", "refused", "kept", "copied"),
    [
        ({"ann@x.se": {"customFields": {"Team": ODD}}}, [ONE], [], {"bo@x.se": "u-2"}),
        ({"ann@x.se": {"customFields": {"Team": SALES, "Unit": ODD}}}, [ONE], [], {"bo@x.se": "u-2"}),
        ({"ann@x.se": {"customFields": {"Team": SALES, "Note": ODD}}}, [ONE], [], {"bo@x.se": "u-2"}),
        ({"ann@x.se": {"customFields": {"Unit": ODD}}}, [], [], {"bo@x.se": "u-2"}),
        (
            {"ann@x.se": {"customFields": {"Team": ODD}}, "bo@x.se": {"customFields": "elsewhere"}},
            [ONE.replace("1 person", "2 people")],
            [],
            {},
        ),
        (
            {"ann@x.se": {"customFields": {"Team": GONE}}},
            [],
            ["1 answer to it is not copied: it is not a choice of Unit (user/ann@x.se)"],
            {"bo@x.se": "u-2"},
        ),
        (
            {"ann@x.se": {"email": ""}},
            [],
            ["1 answer to it is not copied: no e-mail names the person alone (user id u-1)"],
            {"bo@x.se": "u-2"},
        ),
        (
            {"ann@x.se": {"email": "bo@x.se"}},
            [],
            ["2 answers to it are not copied: no e-mail names the person alone (user/bo@x.se, user/bo@x.se)"],
            {},
        ),
        (
            {"ann@x.se": {"email": "bo@x.se", "archivedAt": 1}},
            [],
            ["1 answer to it is not copied: no e-mail names the person alone (user/bo@x.se)"],
            {"bo@x.se": "u-2"},
        ),
    ],
    ids=["odd", "odd in the new field", "odd elsewhere", "odd without an old one", "two odd", "no choice",
         "no e-mail", "twins", "archived twin"],
)  # fmt: skip
def test_what_cannot_be_told_of_a_person_is_not_copied(
    tmp_path: Path,
    rows: Mapping[str, Mapping[str, object]],
    refused: list[str],
    kept: list[str],
    copied: Mapping[str, str],
) -> None:
    """Answers in an unknown format refuse the deletion; an unknown choice, or no e-mail of one's own, prevents it."""
    it = Project(tmp_path, SEED)
    it.write(FIELD)

    def edit(people: list[dict[str, object]]) -> None:
        for row in people:
            row |= rows.get(str(row["email"]), {})

    plan = planned(it, edit)
    assert told(plan, "refusal/answers-unknown") == refused
    assert told(plan, "migrate/not-copied") == kept
    assert {one.address.name: one.id for one in plan.changes if one.address.kind == "user"} == copied


def test_a_migration_is_refused_where_nobodys_answers_are_in_the_response(tmp_path: Path) -> None:
    """People without `customFields` may have answered all the same."""
    it = Project(tmp_path, SEED)
    it.write(FIELD)

    def edit(people: list[dict[str, object]]) -> None:
        for row in people:
            del row["customFields"]

    why = "it is not known who answered it: no person has customFields in the response"
    assert told(planned(it, edit), "refusal/answers-unknown") == [why]


@pytest.mark.parametrize(
    ("pace", "time"),
    [(0.0004, "about 167 minutes at 0.0004 requests a second"), (4.0, "about 1 minute at 4 requests a second")],
)
def test_a_migration_tells_how_long_it_takes(tmp_path: Path, pace: float, time: str) -> None:
    """Each of two answers is a call and a read, at the pace that was asked for."""
    plan = Project(tmp_path, SEED).plan(FIELD, pace=pace)
    [note] = [one.message for one in plan.all_problems if one.code == "migrate/copies"]
    assert note.endswith(f"2 calls and as many reads to verify them, {time}")


@pytest.mark.parametrize(
    ("options", "excluded"),
    [("", ()), ("leave_alone: [user/bo@x.se]\n", ()), ("", ("custom_field/Team",))],
    ids=["deleted", "kept", "left out"],
)
def test_a_field_is_not_the_one_whose_answers_move_to_it(
    tmp_path: Path, options: str, excluded: tuple[str, ...]
) -> None:
    """A new field with the choices of the old one, which stays or goes, is not taken for a rename of it."""
    it = Project(tmp_path, SEED, options)
    field = "custom_fields: [{name: Area, type: CHOICE, choices: [Sales, Tech], migrate: {from: Team}}]\n"
    plan = loads(dumps(it.plan(field, excluded=excluded)))
    assert {one.code.partition("/")[0] for one in plan.all_problems} == {"migrate"}
    assert [guard.name for guard in plan.guards if guard.tripped] == []
    assert it.apply(plan=plan).converged


def test_a_migration_that_is_done_deletes_nothing(tmp_path: Path) -> None:
    """Owned fields that no manifest declares are deleted beside it, and none for its answers."""
    it = Project(tmp_path, SEED, "ownership: {custom_fields: all}\n")
    plan = it.plan("custom_fields: [{name: Unit, type: TEXT, migrate: {from: Gone}}]\n")
    assert {str(one.address): one.reason for one in plan.changes} == dict.fromkeys(
        ("custom_field/Note", "custom_field/Team"), "it is owned, and no manifest declares it"
    )
    assert it.plan(FIELD, additive=True).changes == ()
