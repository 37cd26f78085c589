"""Rows come back from JSON as they were, and nothing else does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date
from typing import Any, cast

import pytest
from msgspec import Struct

from lmsconf.api.spec import ApiSpec
from lmsconf.documents import snapshot_file
from lmsconf.errors import InvalidResponse, LmsconfError
from lmsconf.kinds import all_kinds
from lmsconf.kinds.content_target.target_requests import EditRow, last_edits, parse_edit_rows
from lmsconf.kinds.content_target.types import TargetRow, parse_target_row
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.kinds.shared.responses import AnswerRow, parse_answer
from lmsconf.kinds.smart_group.types import ConditionRow, SmartGroupRow
from lmsconf.kinds.user.answer_index import PeopleWithAnswers
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import LastEdit
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Listing, Snapshot, SnapshotRow
from lmsconf.planner.context import PlanContext
from lmsconf.planner.reading import ReadContext
from lmsconf.planner.redaction import RedactionContext, RestoreContext, UnnamedRow
from lmsconf.planner.snapshot_redaction import redact_snapshot

PERSON = PersonRow(
    RemoteId("u-1"),
    "anna@acme.example",
    applications=frozenset({"learn", "create"}),
    metadata=(("cost", "200"), ("area", "")),
    answers=(AnswerRow("f-1", frozenset({"c-1"}), None), AnswerRow("f-2", frozenset(), "text")),
    archive_date=1_700_000_000_000,
)
SMART = SmartGroupRow(RemoteId("s-1"), "S", (ConditionRow(RemoteId("f-1"), frozenset(), "IS_ANY"),))
Edit = Callable[[dict[str, Any]], object]


def saved(row: PersonRow | SmartGroupRow) -> str:
    """A snapshot file with one row."""
    listings = {row.listing: Listing(rows=(row,))}
    return snapshot_file.dumps(Snapshot(workspace="w", url="u", taken_at="t", people=1, listings=listings))


@pytest.mark.parametrize("row", [PERSON, SMART, SmartGroupRow(RemoteId("s-2"), "T")], ids=lambda row: row.id)
def test_a_row_comes_back_as_it_was(row: PersonRow | SmartGroupRow) -> None:
    """By way of a file: what is None is left out, and is None again."""
    text = saved(row)
    assert snapshot_file.loads(text).of(row.listing).rows == (row,)
    assert None not in json.loads(text)[row.listing][0].values()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda row: row.update(id=5), r"user\[0\]\.id: Expected `str`, got `int`"),
        (lambda row: row.update(archived=1), "Expected `bool`, got `int`"),
        (lambda row: row.update(archive_date=True), r"user\[0\]\.archive_date: Expected `int.*`, got `bool`"),
        (lambda row: row.update(language=None), "a value is null"),
        (lambda row: row.update(applications="learn"), "Expected `array.*`, got `str`"),
        (lambda row: row.update(metadata=[["only"]]), "Expected `array` of length 2, got 1"),
        (lambda row: row.update(metadata=[["a", "b", "c"]]), "Expected `array` of length 2, got 3"),
        (lambda row: row["answers"][0].pop("field"), r"answers\[0\]: Object missing required field `field`"),
        (lambda row: row["answers"].append("x"), r"answers\[2\]: Expected `object`, got `str`"),
        (lambda row: row.update(nickname="Ann"), "unknown field `nickname`"),
        (lambda row: row.pop("id"), "missing required field `id`"),
    ],
)
def test_anything_else_is_no_row(edit: Edit, said: str) -> None:
    """Wrong types, keys too many and too few: none of them is guessed at, and the error names the place."""
    document = json.loads(saved(PERSON))
    edit(document["user"][0])
    with pytest.raises(LmsconfError, match=said):
        snapshot_file.loads(json.dumps(document))


@pytest.mark.parametrize(
    ("by", "at", "edit"),
    [
        ("u-1", "2026-01-05T08:00:00Z", LastEdit("anna@acme.example", "2026-01-05T08:00:00+00:00")),
        ({"name": "Bo", "id": "u-2"}, "1767600000000", LastEdit("u-2", "2026-01-05T08:00:00+00:00")),
        ({"userId": None, "email": "c@x.example"}, "lately", LastEdit("c@x.example", "lately")),
        (None, "2026-01-05", LastEdit(None, "2026-01-05T00:00:00+00:00")),
        ("u-1", "", LastEdit("anna@acme.example", None)),
        ({}, None, None),
        ("", "", None),
    ],
)
def test_who_edited_an_assignment_and_when_is_told(by: Json, at: Json, edit: LastEdit | None) -> None:
    """By e-mail where the person is known, at a time as plans show it; nothing where the service says neither."""
    target: dict[str, Json] = {"targetId": "g-1", "targetType": "GROUP", "updatedBy": by, "updatedAt": at}
    rows = tuple(parse_edit_rows(RemoteId("c-1"), {"targets": [target]}))
    people = Listing(rows=(PersonRow(RemoteId("u-1"), "anna@acme.example"),))
    listings = {"user": people, EditRow.listing: Listing(rows=rows)}
    snapshot = Snapshot(workspace="w", url="u", taken_at="t", people=None, listings=listings)
    assert last_edits(snapshot, None) == ({} if edit is None else {"c-1/GROUP/g-1": edit})


def test_an_assignment_without_a_window_has_no_limits() -> None:
    """Whether the service leaves its times out, or writes null or an empty text."""
    target: dict[str, Json] = {"targetId": "g-1", "targetType": "GROUP", "mandatory": True}
    plain = parse_target_row(RemoteId("c-1"), target)
    assert (plain.start, plain.finish, plain.mandatory, plain.label) == (None, None, True, "")
    for empty in (None, ""):
        assert parse_target_row(RemoteId("c-1"), {**target, "startTime": empty, "finishTime": empty}) == plain
    assert parse_target_row(RemoteId("c-1"), {**target, "startTime": 5}).start == "5"


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (None, None),
        ("yes", (frozenset(), "yes")),
        (["c-1", 2], (frozenset({"c-1", "2"}), None)),
        ([{"choiceId": "c-1", "name": "A"}, {"name": "C"}], (frozenset({"c-1", "C"}), None)),
        ([{"choiceId": None, "name": "B"}], (frozenset({"B"}), None)),
        ({"choiceId": "c-1", "label": "x"}, (frozenset({"c-1"}), None)),
        ({"choices": [], "value": "yes"}, (frozenset(), "yes")),
        ({"values": ["c-1"], "text": "yes"}, (frozenset({"c-1"}), None)),
        ({"text": "", "label": "Badge"}, (frozenset(), None)),
        ({"choices": None}, (frozenset(), None)),
        ({"label": ""}, (frozenset(), None)),
        (5, (frozenset(), "5")),
        ({"value": 7}, (frozenset(), "7")),
        ({"choiceId": 7}, (frozenset({"7"}), None)),
        ({"choiceIds": ["c-1", "c-2"]}, (frozenset({"c-1", "c-2"}), None)),
        ({"choice": {"id": "c-1", "name": "Sales"}}, (frozenset({"c-1"}), None)),
        ({"id": "c-1", "name": "Sales"}, (frozenset({"c-1"}), None)),
        ({"name": "Sales"}, (frozenset({"Sales"}), None)),
        ({"type": "CHOICE", "id": "c-1", "name": "Sales"}, (frozenset({"c-1"}), None)),
        ({"selected": ["c-1"], "choices": [{"choiceId": "c-1"}, {"choiceId": "c-2"}]}, (frozenset({"c-1"}), None)),
        ({"type": "CHOICE", "value": {"choiceId": "c-1", "name": "Sales"}}, (frozenset({"c-1"}), None)),
        ({"type": "TEXT", "value": {"text": "7"}}, (frozenset(), "7")),
        ({"name": "Dept", "type": "CHOICE", "value": [{"id": "c-1", "name": "A"}]}, (frozenset({"c-1"}), None)),
        ([{"id": "c-1"}, {"value": "C"}, {"choice": {"name": "D"}}], (frozenset({"c-1", "C", "D"}), None)),
        ([{"text": "7"}], (frozenset({"7"}), None)),
        ({"name": "Dept", "type": "CHOICE", "value": None}, (frozenset(), None)),
        ({"name": "Dept", "type": "CHOICE"}, (frozenset(), None)),
        ({"customFieldId": "f-1", "id": "f-1", "type": "TEXT", "isHidden": True}, (frozenset(), None)),
        ({"type": "CHOICE", "value": {"choiceId": None, "name": None}}, (frozenset(), None)),
        ({"value": {}}, (frozenset(), None)),
        ([], (frozenset(), None)),
        ({}, (frozenset(), None)),
    ],
)
def test_an_answer_is_read_in_every_shape(value: Json, answer: tuple[frozenset[str], str | None] | None) -> None:
    """Choices as objects, ids or names, one choice or a text; an object that says nothing is no answer."""
    assert parse_answer("Dept", value) == (None if answer is None else AnswerRow("Dept", *answer))


@pytest.mark.parametrize(
    "value",
    [
        {"label": "Badge"},
        {"value": {"deep": 1}},
        True,
        {"value": True},
        [True],
        [None],
        [["c-1"]],
        [{"choices": ["c-1", "c-2"]}],
        {"id": "f-1", "name": "Dept"},
        {"type": "CHOICE", "id": "f-1"},
        {"type": "CHOICE", "picked": "c-1"},
        {"value": {"value": {"value": {"value": {"value": "c-1"}}}}},
    ],
)
def test_an_answer_of_another_shape_is_not_guessed(value: Json) -> None:
    """It may be anything, the field's own id among it, so it is an error that names the field."""
    with pytest.raises(InvalidResponse, match="to Dept h"):
        parse_answer("Dept", value)


@pytest.mark.parametrize(("value", "is_known"), [("text", True), (["c-1"], True), (True, False)])
def test_one_answer_that_cannot_be_read_leaves_none_of_them(value: Json, is_known: bool) -> None:
    """Of a person in a snapshot of everything: the others beside it would read as all that there are."""
    people = PeopleWithAnswers(cast("ReadContext", None))  # what jobs share while reading, of which this needs nothing
    people.add({"userId": "u-1", "email": "anna@acme.example", "customFields": {"A": "one", "B": value}})
    answers = people.answers_of(RemoteId("u-1")).all_answers
    assert (answers is not None) is is_known
    assert answers is None or [answer.field for answer in answers] == ["A", "B"]


@pytest.mark.parametrize(
    ("held", "answers"),
    [({}, ()), ({"customFields": None}, ()), ({"customFields": []}, ()), ({"customFields": "Dept"}, None)],
)
def test_a_person_without_answers_has_none(held: dict[str, Json], answers: tuple[AnswerRow, ...] | None) -> None:
    """Where the row has no answers, null or an empty list; where it has something else they are not known."""
    people = PeopleWithAnswers(cast("ReadContext", None))
    people.add({"userId": "u-1", "email": "anna@acme.example", **held})
    assert people.answers_of(RemoteId("u-1")).all_answers == answers


# What a kind without people in its rows gets by default: no text of a row keeps an undeclared person's e-mail.


TEXT = "ask ada@acme.example or Bob@acme.example"


class Part(SnapshotRow, frozen=True):
    id: str
    note: str | None


class ToyRow(Struct, frozen=True):
    listing = "toy"

    id: RemoteId
    name: str
    size: int = 3
    parts: tuple[Part, ...] = ()
    tags: frozenset[str] = frozenset()
    more: Any = None


def planning(snapshot: Snapshot) -> PlanContext:
    policy = Policy(workspace="w", today=date(2030, 1, 1))
    return PlanContext(snapshot, policy, SpecCallTemplates(ApiSpec.default()), lambda _: True)


def context() -> RedactionContext:
    snapshot = Snapshot(workspace="w", url="", taken_at="", people=None)
    ada, bob = RemoteId("ada"), RemoteId("bob")
    emails = [frozenset({f"{name}@acme.example"}) for name in (ada, bob)]
    return RedactionContext(
        planning(snapshot), {ada: True, bob: True}, frozenset({ada}), named=emails[0], hidden=emails[1]
    )


def test_every_text_of_a_row_but_its_ids_is_redacted() -> None:
    """In settings, parts and sets, at any depth; what the manifests name stays, so that it still compares."""
    row = ToyRow(RemoteId(TEXT), TEXT, parts=(Part(TEXT, TEXT), Part("2", None)), tags=frozenset({TEXT}))
    red = context().redact_row(row)
    assert (red.id, red.parts[0].id, red.size, red.parts[1]) == (TEXT, TEXT, 3, Part("2", None))
    for text in (red.name, red.parts[0].note, *red.tags):
        assert re.fullmatch("ask ada@acme.example or person-[0-9a-f]{16}", str(text))


def test_a_value_of_unknown_shape_is_refused() -> None:
    """It could hold an e-mail anywhere."""
    with pytest.raises(TypeError, match="dict"):
        context().redact_row(ToyRow(RemoteId("1"), "x", more={"note": TEXT}))


def test_people_who_are_not_shown_are_counted() -> None:
    """By whether lists with them are compared; who is in no list of people is unknown."""
    redaction = context()
    ids = frozenset(map(RemoteId, ("ada", "bob", "eve")))
    assert redaction.redact_people("toy", RemoteId("1"), "crew", ids) == {"ada"}
    assert redaction.redact_people("toy", RemoteId("2"), "crew", None) is None
    assert [(row.id, row.active, row.archived, row.unknown) for row in redaction.counted_rows()] == [
        ("toy/1/crew", 1, 0, 1)
    ]


def test_people_who_are_only_counted_come_back_as_that_many() -> None:
    """Each becomes an unnamed person of one list only; nothing is known of people that no listing contains."""
    rows = (
        UnnamedRow("toy", RemoteId("1"), "crew", active=2, archived=1, unknown=2),
        UnnamedRow("toy", RemoteId("2"), "crew", active=1, archived=0, unknown=0),
        UnnamedRow("game", RemoteId("1"), "crew", active=0, archived=0, unknown=1),
    )
    snapshot = Snapshot(
        workspace="w", url="", taken_at="", people=None, listings={UnnamedRow.listing: Listing(rows=rows)}
    )
    restoring = RestoreContext(snapshot, {})
    ada = RemoteId("ada")
    assert restoring.restore_people("toy", "1", "crew", None) is None
    assert restoring.restore_people("toy", "3", "crew", frozenset({ada})) == {ada}
    assert sorted(restoring.restore_people("toy", "1", "crew", frozenset({ada})) or ()) == [
        "ada",
        "unnamed 4",
        "unnamed 5",
        "unnamed person 1",
        "unnamed person 2",
        "unnamed person 3",
    ]
    assert [one.archived for one in restoring.stand_ins] == [False, False, True]
    assert restoring.restore_people("toy", "2", "crew", frozenset()) == {"unnamed person 6"}
    assert restoring.counted_lists("toy") == [("1", "crew"), ("2", "crew")]


def test_an_assignment_keeps_a_label_that_is_the_name_of_its_group() -> None:
    """Another label may be the name of a person, and is left out."""
    targets = [TargetRow(RemoteId(f"c-{label}"), "g-1", "GROUP", label=label) for label in ("Coaches", "Bob Ek")]
    listings = {
        "group": Listing(rows=(GroupRow(RemoteId("g-1"), "Coaches"),)),
        "content_target": Listing(rows=tuple(targets)),
    }
    snapshot = Snapshot(workspace="w", url="", taken_at="", people=1, listings=listings)
    red = redact_snapshot(planning(snapshot), Manifests(), all_kinds())
    assert [row.label for row in red.rows(TargetRow)] == ["Coaches", ""]
