"""What the jobs of one reading share of people: the extended listing, and all with their answers.

The listing of people is read once for a plan: what it says about answers is kept page by page, in compact form, with
shared parts, one row for each person (API specification, User list entry).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from sys import intern
from typing import Final, TypeAlias

from msgspec import Struct, field

from lmsconf.api.spec.operations import USERS
from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.kinds.shared.responses import (
    AnswerRow,
    comparable,
    optional_text,
    parse_answer,
    require_object,
    require_text,
)
from lmsconf.kinds.user.types import RIGHTS, AnswersRow
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import Api
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import normalize_name

Row: TypeAlias = dict[str, Json]


def read_shown_people(api: Api, ids: Iterable[str]) -> dict[str, Row]:
    """Return the row of each person that the service does not refuse to show."""
    people: dict[str, Row] = {}
    for id in ids:
        with suppress(Rejected):
            people[id] = dict(require_object(api.get("users.get", path={"userId": id}), "a user"))
    return people


class ExtendedInfoListing(Struct):
    """The extended listing, shared by the jobs of one reading (API specification, Users).

    Of the groups of a person, only manual ones are kept: most are smart groups, of which one person can be in hundreds.

    members, managers: id of a manual group → ids of people. names: the names by which it was listed.
    is_clear: False if a person was listed without groups, or a group without its id. read: how many rows were read;
    more than there are people if the listing was read twice.
    """

    members: defaultdict[str, set[RemoteId]] = field(default_factory=lambda: defaultdict(set))
    managers: defaultdict[str, set[RemoteId]] = field(default_factory=lambda: defaultdict(set))
    names: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    is_clear: bool = True
    read: int = 0

    def collect(self, manual: frozenset[str], person: Row) -> Row:
        """Keep the groups of a person; return the id and the rights. manual: the ids of the manual groups."""
        id = RemoteId(str(person["userId"]))
        self.read += 1
        for key, held in (("memberOfGroups", self.members), ("managerOfGroups", self.managers)):
            groups = person.get(key)
            for group in groups if isinstance(groups, list) else [None]:
                if not isinstance(group, dict) or group.get("groupId") is None:
                    self.is_clear = False
                elif (group_id := str(group["groupId"])) in manual:
                    held[group_id].add(id)
                    self.names[group_id].add(str(group.get("name") or ""))
        return {"userId": person["userId"], **{key: person.get(key) for key in RIGHTS}}


Answer: TypeAlias = tuple[str, AnswerRow | None]
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


class PeopleWithAnswers(Struct):
    """Collects the rows of the listing of people while one reading reads it.

    keeps_texts: whether long texts are kept as they are, and not only in the form in which they are compared, since
    answers are copied or deleted. index: all people, once the listing is read to its end. people: those whose rows were
    collected.
    """

    keeps_texts: bool = False
    index: AnswerIndex | None = None
    people: dict[RemoteId, AnswersRow] = field(default_factory=dict)
    # Few people pick from few choices in many different ways: equal parts are kept once.
    _shared: dict[tuple[str, str, bool], Answer | None] = field(default_factory=dict)
    _rows: dict[tuple[Answer, ...], tuple[Answer, ...]] = field(default_factory=dict)
    _has_answers: bool = False

    def collect(self, keep: Callable[[Row], Row], row: Row) -> Row:
        """Keep what the effects of a plan need of one row, and return what `keep` does."""
        id = RemoteId(intern(require_text(row, "userId")))
        held = row.get("customFields")
        self._has_answers = self._has_answers or held is not None
        answers: tuple[Answer, ...] | None = None
        # An empty list means no answers: some services write an empty object like that. Any other shape is not known.
        if held in (None, []) or isinstance(held, dict):
            pairs = tuple(filter(None, (self._answer(name, value) for name, value in sorted(members(held).items()))))
            answers = self._rows.setdefault(pairs, pairs)
        self.people[id] = AnswersRow(
            id, answers, "customFields" in row, optional_text(row, "email"), bool(row.get("archivedAt"))
        )
        return keep(row)

    def _answer(self, name: str, value: Json) -> Answer | None:
        """Return a field and its answer, None for no answer; equal ones are one object, parsed once."""
        text = value if isinstance(value, str) else repr(value)
        key = (name, text if self.keeps_texts else comparable(text), isinstance(value, str))
        if key in self._shared:
            return self._shared[key]
        answer: Answer | None = None
        try:
            row = parse_answer(name, value)
            if row is not None and row.picked:
                answer = normalize_name(name), row if self.keeps_texts else row.comparable()
        except InvalidResponse:
            answer = normalize_name(name), None
        if len(self._shared) < _MOST:
            self._shared[key] = answer
        return answer

    def finish(self, incomplete: str | None) -> AnswerIndex:
        """Return the index of all rows, the listing having been read to its end or not."""
        self.index = AnswerIndex(tuple(self.people[id] for id in sorted(self.people)), self._has_answers, incomplete)
        return self.index

    def read(self, api: Api) -> AnswerIndex:
        """Return all people with their answers: as collected by the reading, or read now."""
        if self.index is not None:
            return self.index
        keep = partial(self.collect, lambda row: {"userId": row["userId"]})
        return self.finish(api.rows(USERS, keep=keep).incomplete)
