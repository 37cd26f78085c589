"""The people of a workspace with their answers, in compact form: shared parts, one row for each person.

The listing of people is read once for a plan: what it says about answers is kept page by page (API specification,
User list entry).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Struct

from lmsconf.api.spec.operations import USERS
from lmsconf.errors import InvalidResponse
from lmsconf.kinds.shared.responses import AnswerRow, comparable, optional_text, parse_answer, require_text
from lmsconf.kinds.user.types import AnswersRow
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.planner.read.needed_listings import ReadContext, keep_keys

Answer: TypeAlias = tuple[str, AnswerRow | None]
Row: TypeAlias = dict[str, Json]
_MOST: Final = 10_000
"""How many different answers are shared at most: texts differ for each person, and gain nothing."""


class AnswerIndex(Struct, frozen=True, dict=True):
    """All people, sorted by id. incomplete: why some may be missing. has_answers: whether any row had answers."""

    people: tuple[AnswersRow, ...]
    has_answers: bool
    incomplete: str | None = None

    @cached_property
    def positions(self) -> Mapping[RemoteId, int]:
        """Id → position among all people."""
        return {person.id: position for position, person in enumerate(self.people)}


class PeopleWithAnswers:
    """Collects the rows of the listing of people while one reading reads it.

    keeps_texts: whether long texts are kept as they are, and not only in the form in which they are compared, since
    answers are copied or deleted.
    """

    def __init__(self, reading: ReadContext) -> None:
        # Few people pick from few choices in many different ways: equal parts are kept once.
        self._people: dict[RemoteId, AnswersRow] = {}
        self._shared: dict[tuple[str, str, bool], Answer | None] = {}
        self._rows: dict[tuple[Answer, ...], tuple[Answer, ...]] = {}
        self._has_answers = False
        self.keeps_texts = False
        self.index: AnswerIndex | None = None

    def collecting(self, keep: Callable[[Row], Row]) -> Callable[[Row], Row]:
        """Return a filter of rows that also adds each row."""

        def collect(row: Row) -> Row:
            self.add(row)
            return keep(row)

        return collect

    def add(self, row: Mapping[str, Json]) -> None:
        """Keep what the effects of a plan need of one row."""
        id = RemoteId(require_text(row, "userId"))
        held = row.get("customFields")
        self._has_answers = self._has_answers or held is not None
        # An empty list means no answers: some services write an empty object like that. Any other shape is not known.
        if held not in (None, []) and not isinstance(held, dict):
            answers = None
        else:
            answer = self._answer
            parsed = [answer(name, held[name]) for name in sorted(held)] if isinstance(held, dict) else []
            pairs = tuple([pair for pair in parsed if pair is not None])
            answers = self._rows.setdefault(pairs, pairs)
        email, archived = optional_text(row, "email"), bool(row.get("archivedAt"))
        self._people[id] = AnswersRow(id, answers, "customFields" in row, email, archived)

    def answers_of(self, id: RemoteId) -> AnswersRow:
        """Return the answers of a person whose row was added."""
        return self._people[id]

    def _answer(self, name: str, value: Json) -> Answer | None:
        """Return a field and its answer, None for no answer; equal ones are one object, parsed once."""
        text = value if isinstance(value, str) else repr(value)
        key = (name, text if self.keeps_texts else comparable(text), isinstance(value, str))
        if key in self._shared:
            return self._shared[key]
        answer = _parse(name, value, keeps_text=self.keeps_texts)
        if len(self._shared) < _MOST:
            self._shared[key] = answer
        return answer

    def finish(self, incomplete: str | None) -> AnswerIndex:
        """Return the index of all rows, the listing having been read to its end or not."""
        people = tuple(self._people[id] for id in sorted(self._people))
        self.index = AnswerIndex(people, self._has_answers, incomplete)
        return self.index


def _parse(name: str, value: Json, *, keeps_text: bool) -> Answer | None:
    """Return a field and its answer, None for no answer."""
    try:
        answer = parse_answer(name, value)
    except InvalidResponse:
        return normalize_name(name), None
    if answer is None or not answer.picked:
        return None
    return normalize_name(name), answer if keeps_text else answer.comparable()


def read_answer_index(reading: ReadContext) -> AnswerIndex:
    """Return all people with their answers: as collected by the reading, or read now."""
    people = reading.shared_state(PeopleWithAnswers)
    if people.index is not None:
        return people.index
    return people.finish(reading.api.rows(USERS, keep=people.collecting(keep_keys("userId"))).incomplete)
