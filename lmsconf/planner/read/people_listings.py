"""What the jobs of one reading share of people: few of them by id, the extended listing, and all with their answers.

The listing of people is read once for a plan: what it says about answers is kept page by page, in compact form, with
shared parts, one row for each person (API specification, User list entry).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Struct

from lmsconf.api.spec.operations import EXTENDED_INFO, USERS
from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.kinds.shared.kind_names import GROUP
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
from lmsconf.model.calls import ListedRows
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.planner.read.needed_listings import ReadContext, keep_keys


class ExtendedInfoListing:
    """The extended listing, shared by the jobs of one reading (API specification, Users).

    Of the groups of a person, only manual ones are kept: most are smart groups, of which one person can be in hundreds.

    members, managers: id of a manual group → ids of people. names: the names by which it was listed.
    is_clear: False if a person was listed twice or without groups, or a group without its id.
    """

    def __init__(self, reading: ReadContext) -> None:
        self.reading = reading
        self.members: defaultdict[str, set[RemoteId]] = defaultdict(set)
        self.managers: defaultdict[str, set[RemoteId]] = defaultdict(set)
        self.names: defaultdict[str, set[str]] = defaultdict(set)
        self.is_clear = True
        self._lock = threading.Lock()
        self._rows: ListedRows | None = None
        self._seen: set[RemoteId] = set()

    def rows(self) -> ListedRows:
        """Return the ids and rights of all people. Raises ApiError if the service refuses or cannot be reached."""
        with self._lock:
            if self._rows is None:
                self._rows = self.reading.api.rows(EXTENDED_INFO, keep=self._kept)
            return self._rows

    def _kept(self, person: dict[str, Json]) -> dict[str, Json]:
        id = RemoteId(str(person["userId"]))
        self.is_clear = self.is_clear and id not in self._seen
        self._seen.add(id)
        for key, held in (("memberOfGroups", self.members), ("managerOfGroups", self.managers)):
            groups = person.get(key)
            for group in groups if isinstance(groups, list) else [None]:
                if not isinstance(group, dict) or group.get("groupId") is None:
                    self.is_clear = False
                elif (group_id := str(group["groupId"])) in self._manual:
                    held[group_id].add(id)
                    self.names[group_id].add(str(group.get("name") or ""))
        return {"userId": person["userId"], **{key: person.get(key) for key in RIGHTS}}

    @cached_property
    def _manual(self) -> frozenset[str]:
        """The ids of the manual groups, waiting for their listing; empty if it is not read."""
        rows = self.reading.wait_for_listing(GROUP).rows if self.reading.is_needed(GROUP) else ()
        return frozenset(row.id for row in rows)


Row: TypeAlias = dict[str, Json]
_EDITORS: Final = 5
"""How many last editors are looked up, a request each."""


def read_needed_people(
    reading: ReadContext, keep: Callable[[Row], Row], *, may_look_up: Callable[[], bool]
) -> ListedRows:
    """Return the rows of all people, or only of those that the plan shows, and count them.

    may_look_up: whether only ids and e-mails of the people in lists matter; called once the first page is read.
    """
    first: dict[str, Row] = {}
    people: list[Row] | None = None

    def kept(row: Row) -> Row:
        small = keep(row)
        if not reading.first_page.done():
            first[str(row["userId"])] = small
        return small

    def reads_on(total: int | None, rows: int) -> bool:
        nonlocal people
        reading.count_people(total, rows)
        people = _looked_up(reading, first, total, keep) if may_look_up() else None
        return people is None

    rows = reading.api.rows(USERS, on_first=reads_on, keep=kept)
    return rows if people is None else ListedRows(rows=(*first.values(), *people), total=rows.total)


def _looked_up(
    reading: ReadContext, first: Mapping[str, Row], total: int | None, keep: Callable[[Row], Row]
) -> list[Row] | None:
    """Return the rows of the people in lists who are not on the first page; None if all people must be listed."""
    if total is None or not first:
        return None
    # Looking up may be in vain, so it is tried only where it takes half as many requests at most.
    most = (-(-total // len(first)) - 1) // 2
    unknown = reading.named_emails() - _emails(first.values())
    if most < 1 or len(unknown) > most:
        return None
    ids = reading.wait_for_reported_people()
    if ids is not None:
        ids |= reading.named_people
    if ids is None or len(others := sorted(ids - first.keys())) > most or len(unknown) > len(others):
        return None
    try:
        answers = reading.api.each("users.get", [({"userId": id}, {}) for id in others])
    except (Rejected, InvalidResponse):
        # The id is not a person's, or the response cannot be read: only the listing shows whose it is.
        return None
    people = [keep(dict(require_object(answer, "a user"))) for answer in answers]
    if [str(person.get("userId")) for person in people] != others or not unknown <= _emails(people):
        return None
    return [*people, *_editors(reading, {*first, *others}, keep)]


def _editors(reading: ReadContext, known: set[str], keep: Callable[[Row], Row]) -> Iterator[Row]:
    """Yield the rows of the first few last editors who are people of the workspace, so that drift can name them."""
    for id in sorted(reading.editors - known)[:_EDITORS]:
        # Of one who is no person of the workspace the id is shown.
        with suppress(Rejected):
            yield keep(dict(require_object(reading.api.get("users.get", path={"userId": id}), "a user")))


def _emails(people: Iterable[Row]) -> frozenset[str]:
    return frozenset(normalize_email(str(person.get("email") or "")) for person in people)


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
