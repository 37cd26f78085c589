"""Small pure functions of the model, at their limits."""

import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import date
from threading import Thread
from typing import Any

import pytest
from texts import listed_cases

from lmsconf.api.request_encoding import decode
from lmsconf.api.spec import ApiSpec
from lmsconf.documents import snapshot_file
from lmsconf.errors import InvalidResponse, LmsconfError
from lmsconf.kinds.custom_field.types import parse_field_row
from lmsconf.kinds.shared.responses import AnswerRow, parse_answer
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import ListedRows
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import LastEdit
from lmsconf.model.guards import Policy, diff_settings
from lmsconf.model.names import did_you_mean_email
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.model.time_formats import date_in_other_order, duration_in_words, with_offset
from lmsconf.planner.read.assignments import last_edits, parse_edit_rows
from lmsconf.planner.read.needed_listings import EditRow, ReadContext, ReadScope
from lmsconf.planner.snapshot_redaction import pseudonym


@listed_cases("text", "utc")
def test_a_time_without_an_offset_is_in_the_zone(text: str, utc: str) -> None:
    """Of an hour that a clock change repeats it is in the first; any other text stays as it is."""
    assert with_offset(text, "Europe/Stockholm") == utc


@pytest.mark.parametrize("half", [b"\\ud800", b"\\uD800", b"\\udc00", b"\\uDC00"])
def test_half_a_pair_of_surrogates_is_no_json(half: bytes) -> None:
    """It could not be written to a file or sent back; it may be spelt in small or in capital letters."""
    with pytest.raises(ValueError, match="surrogates not allowed"):
        decode(b'"' + half + b'"')


@listed_cases("path", "base", "now", "is_weaker")
def test_what_refuses_or_protects_less_is_a_weaker_setting(path: str, base: Json, now: Json, is_weaker: bool) -> None:
    """A pattern less, or an exclusion more; the other way round the setting is stronger.

    Of what counts as a field in use each value refuses less than the one before it, and none is the strictest. So is
    what only a base that was never valid can hold.
    """
    (change,) = diff_settings({path: base} if base else {}, {path: now} if now else {})
    assert change.weaker is is_weaker


@listed_cases("seconds", "words")
def test_a_duration_is_told_in_two_units_at_most(seconds: float, words: str) -> None:
    """Rounded to seconds, to ten seconds or to minutes, the longer it is; a unit without a number is left out."""
    assert duration_in_words(seconds) == words


def test_a_pseudonym_can_be_made_by_anybody_with_the_salt() -> None:
    """The first 16 digits of the HMAC-SHA256 of the e-mail in lower case, keyed with the salt."""
    digest = hmac.new(b"salt", b"anna@acme.example", hashlib.sha256).hexdigest()
    assert pseudonym("salt", " Anna@acme.example ") == f"person-{digest[:16]}"


@listed_cases("text", "meant")
def test_a_date_in_another_order_is_understood_where_it_can_mean_one_day(text: str, meant: str | None) -> None:
    """With points the day is first; with slashes it may be the month."""
    found = date_in_other_order(text)
    assert (found and found.isoformat()) == meant


@listed_cases("email", "near")
def test_an_e_mail_is_near_if_the_name_in_it_is(email: str, near: str | None) -> None:
    """A shared domain alone does not make somebody who is new a typing error."""
    known = ["bo.ek@acme.example", "bo@acme.example", "eeva.laine@acme.example"]
    assert did_you_mean_email(email, known) == (near and f'Did you mean "{near}"?')


# Rows come back from JSON as they were, and nothing else does.


PERSON = PersonRow(
    RemoteId("u-1"),
    "anna@acme.example",
    applications=frozenset({"learn", "create"}),
    metadata=(("cost", "200"), ("area", "")),
    answers=(AnswerRow("f-1", frozenset({"c-1"}), None), AnswerRow("f-2", frozenset(), "text")),
    archive_date=1_700_000_000_000,
)
Edit = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda row: row.update(id=5), r"user\[1\]\.id: Expected `str`, got `int`"),
        (lambda row: row.update(archived=1), "Expected `bool`, got `int`"),
        (lambda row: row.update(archive_date=True), r"user\[1\]\.archive_date: Expected `int.*`, got `bool`"),
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
    rows = (PersonRow(RemoteId("u-0"), "bo@acme.example"), PERSON)
    taken = Snapshot(workspace="w", url="u", taken_at="t", people=2, listings={"user": Listing(rows=rows)})
    text = snapshot_file.dumps(taken)
    assert snapshot_file.loads(text).rows(PersonRow) == rows
    document = json.loads(text)
    edit(document["user"][1])
    with pytest.raises(LmsconfError, match=said):
        snapshot_file.loads(json.dumps(document))


@listed_cases("by", "at", "edit")
def test_who_edited_an_assignment_and_when_is_told(by: Json, at: Json, edit: list[str | None] | None) -> None:
    """By e-mail where the person is known, at a time as plans show it; nothing where the service says neither."""
    target: dict[str, Json] = {"targetId": "g-1", "targetType": "GROUP", "updatedBy": by, "updatedAt": at}
    rows = tuple(parse_edit_rows(RemoteId("c-1"), {"targets": [target]}))
    people = Listing(rows=(PersonRow(RemoteId("u-1"), "anna@acme.example"),))
    listings = {"user": people, EditRow.listing: Listing(rows=rows)}
    snapshot = Snapshot(workspace="w", url="u", taken_at="t", people=None, listings=listings)
    assert last_edits(snapshot, None) == ({} if edit is None else {"c-1/GROUP/g-1": LastEdit(*edit)})


@pytest.mark.parametrize("flag", [[], {}, 1, "true"])
def test_a_flag_is_a_boolean(flag: Json) -> None:
    """A flag of a field that is no boolean is an error, never a value that a plan or a snapshot holds."""
    with pytest.raises(InvalidResponse, match="where isHidden should be"):
        parse_field_row({"id": "f-1", "name": "A", "type": "TEXT", "isHidden": flag})


@listed_cases("value", "choices", "text")
def test_an_answer_is_read_in_every_shape(value: Json, choices: list[str] | None, text: str | None) -> None:
    """Choices as objects, ids or names, one choice or a text; an object that says nothing is no answer."""
    assert parse_answer("Dept", value) == (None if choices is None else AnswerRow("Dept", frozenset(choices), text))


@listed_cases("value")
def test_an_answer_of_another_shape_is_not_guessed(value: Json) -> None:
    """It may be anything, the field's own id among it, so it is an error that names the field."""
    with pytest.raises(InvalidResponse, match="to Dept h"):
        parse_answer("Dept", value)


def test_jobs_that_ask_at_once_read_the_extended_listing_once() -> None:
    """Whoever asks first reads it, and the others, who ask before it is there, wait for it."""
    asked: list[str] = []
    others = [Thread(target=lambda: reading.extended_rows()) for _ in range(50)]

    class Service:
        def rows(self, operation: Any, **_: Any) -> ListedRows:
            asked.append(operation.name)
            for one in others if len(asked) == 1 else ():
                one.start()
            return ListedRows(rows=())

    wanted = ReadScope(Manifests(), Policy(workspace="w", today=date(2026, 1, 1)))
    reading = ReadContext(Service(), wanted, ApiSpec.default())  # type: ignore[arg-type]  # it lists, and no more
    reading.extended_rows()
    for one in others:
        one.join()
    assert asked == ["users.extended-info"]
