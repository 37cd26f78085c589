"""Rows come back from JSON as they were, and nothing else does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lmsconf.kinds.shared.answer_rows import AnswerRow
from lmsconf.kinds.smart_group.types import ConditionRow, SmartGroupRow
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import RemoteId
from lmsconf.model.rows import row_from_json, row_to_json

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


@pytest.mark.parametrize("row", [PERSON, SMART, SmartGroupRow(RemoteId("s-2"), "T")], ids=lambda row: row.id)
def test_a_row_comes_back_as_it_was(row: PersonRow | SmartGroupRow) -> None:
    """By way of a file: what is None is left out, and is None again."""
    kept = json.loads(json.dumps(row_to_json(row, in_order=True)))
    assert row_from_json(type(row), kept) == row
    assert None not in kept.values()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda row: row.update(id=5), "5 is not of the type str"),
        (lambda row: row.update(archived=1), "1 is not of the type bool"),
        (lambda row: row.update(archive_date=True), "True is not of the type int"),
        (lambda row: row.update(language=None), "None is not of the type str"),
        (lambda row: row.update(applications="learn"), "a list is missing"),
        (lambda row: row.update(metadata=[["only"]]), "shorter"),
        (lambda row: row.update(metadata=[["a", "b", "c"]]), "longer"),
        (lambda row: row["answers"][0].pop("field"), "a key is missing"),
        (lambda row: row["answers"].append("x"), "an object is missing"),
        (lambda row: row.update(nickname="Ann"), "there is no key nickname"),
        (lambda row: row.pop("id"), "a key is missing"),
    ],
)
def test_anything_else_is_no_row(edit: Edit, said: str) -> None:
    """Wrong types, keys too many and too few: none of them is guessed at."""
    row: Any = row_to_json(PERSON, in_order=True)
    edit(row)
    with pytest.raises(ValueError, match=said):
        row_from_json(PersonRow, row)
