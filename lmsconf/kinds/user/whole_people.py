"""Rows of GET /users with all that manifests can declare of people, in compact form, for a snapshot of everything.

Many people pick from few choices: an answer that many gave is one object for all of them, and is parsed once. Whole
rows of 200,000 people with ten fields would take more than a gigabyte (API specification, User list entry).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.errors import InvalidResponse
from lmsconf.kinds.custom_field.lost_answers import parse_answers_row
from lmsconf.kinds.shared.answer_rows import AnswerRow, parse_answer, try_parse_answers
from lmsconf.kinds.user.types import AnswersRow
from lmsconf.model.canonical_json import Json
from lmsconf.planner.reading import ReadContext, ReadState, keep_keys

Row = dict[str, Json]
_ANSWERS: Final = "answers"
"""The key, none of the service's, under which a compact row has its answers: objects of one field and its value."""
_MOST: Final = 10_000
"""How many different answers are shared at most: texts differ for each person, and gain nothing."""
_kept = keep_keys("userId", "email", "archivedAt", "firstName", "lastName", "metadata", "customArchiveDate")


class WholePeople(ReadState):
    """The answers that the rows of one reading share."""

    def __init__(self, reading: ReadContext) -> None:
        super().__init__(reading)
        self._shared: dict[tuple[str, str], dict[str, Json]] = {}
        self._parsed: dict[int, AnswerRow | InvalidResponse | None] = {}

    def keep(self, row: Row) -> Row:
        """Return the compact form of a row; `customFields` stay as they are where they are no object."""
        held, small = row.get("customFields"), _kept(row)
        if isinstance(held, dict):
            small[_ANSWERS] = [self._share(name, held[name]) for name in sorted(held)]
        elif "customFields" in row:
            small["customFields"] = held
        return small

    def _share(self, name: str, value: Json) -> dict[str, Json]:
        """Return an object of a field and its value: the one of an earlier row if that is equal."""
        if isinstance(value, str):
            return {name: value}
        key = (name, repr(value))
        shared = self._shared.get(key)
        if shared is not None:
            return shared
        part: dict[str, Json] = {name: value}
        if len(self._shared) < _MOST:
            self._shared[key] = part
            self._parsed[id(part)] = _parse(name, value)
        return part

    def answers(self, row: Mapping[str, Json]) -> tuple[AnswerRow, ...] | None:
        """Parse the answers of a compact row, as `try_parse_answers` those of a whole one."""
        parts = row.get(_ANSWERS)
        if not isinstance(parts, list):
            return try_parse_answers(row)
        parsed = [self._answer(part) for part in parts if isinstance(part, dict)]
        readable = [answer for answer in parsed if not isinstance(answer, InvalidResponse)]
        if len(readable) < len(parsed):
            return None
        return tuple(answer for answer in readable if answer is not None and answer.picked)

    def answers_row(self, row: Mapping[str, Json]) -> AnswersRow:
        """Parse the answers of a compact row, as `parse_answers_row` those of a whole one."""
        parts = row.get(_ANSWERS)
        if not isinstance(parts, list):
            return parse_answers_row(row)
        whole = {name: value for part in parts if isinstance(part, dict) for name, value in part.items()}
        return parse_answers_row({"userId": row["userId"], "customFields": whole})

    def _answer(self, part: dict[str, Json]) -> AnswerRow | InvalidResponse | None:
        if id(part) in self._parsed:
            return self._parsed[id(part)]
        [(name, value)] = part.items()
        return _parse(name, value)


def _parse(name: str, value: Json) -> AnswerRow | InvalidResponse | None:
    """Parse an answer; return the error where its shape is not recognized."""
    try:
        return parse_answer(name, value)
    except InvalidResponse as error:
        return error.with_traceback(None)
