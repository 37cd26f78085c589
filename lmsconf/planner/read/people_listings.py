"""What the jobs of one reading share of people: their number, few of them by id, and the extended listing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Final, TypeAlias

from lmsconf.api.spec.operations import EXTENDED_INFO, USERS
from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.kinds.shared.kind_names import GROUP
from lmsconf.kinds.shared.responses import require_object
from lmsconf.kinds.user.types import RIGHTS
from lmsconf.model.api_protocol import ListedRows
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email
from lmsconf.planner.read.needed_listings import ReadContext

MEMBER_OF: Final = "memberOfGroups"
MANAGER_OF: Final = "managerOfGroups"


class ExtendedInfoListing:
    """The extended listing, shared by the jobs of one reading (API specification, Users).

    Of the groups of a person, only manual ones are kept: most are smart groups, of which one person can be in hundreds.
    """

    def __init__(self, reading: ReadContext) -> None:
        self.reading = reading
        self._lock = threading.Lock()
        self._rows: ListedRows | None = None
        self._groups: dict[tuple[str, str], Json] = {}

    def rows(self) -> ListedRows:
        """Return the whole listing. Raises ApiError if the service refuses or cannot be reached."""
        with self._lock:
            if self._rows is None:
                self._rows = self.reading.api.rows(EXTENDED_INFO, keep=self._kept)
            return self._rows

    def _kept(self, person: dict[str, Json]) -> dict[str, Json]:
        lists = {key: person.get(key) for key in (MEMBER_OF, MANAGER_OF)}
        return {
            "userId": person["userId"],
            **{key: person.get(key) for key in RIGHTS},
            **{key: self._manual_only(groups) if isinstance(groups, list) else groups for key, groups in lists.items()},
        }

    @cached_property
    def _manual(self) -> frozenset[str]:
        """The ids of the manual groups, waiting for their listing; empty if it is not read."""
        rows = self.reading.wait_for_listing(GROUP).rows if self.reading.is_needed(GROUP) else ()
        return frozenset(row.id for row in rows)

    def _manual_only(self, groups: list[Json]) -> list[Json]:
        """Return the manual groups, one shared object each to save memory, and items without an id, unchanged."""
        manual = self._manual
        return [
            self._shared(group)
            for group in groups
            if not isinstance(group, dict) or (id := group.get("groupId")) is None or str(id) in manual
        ]

    def _shared(self, group: Json) -> Json:
        """Return one object for all equal groups, with id and name alone; what has no id as it is."""
        if not isinstance(group, dict) or group.get("groupId") is None:
            return group
        key = (str(group["groupId"]), str(group.get("name") or ""))
        return self._groups.get(key) or self._groups.setdefault(key, {"groupId": key[0], "name": key[1]})


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
