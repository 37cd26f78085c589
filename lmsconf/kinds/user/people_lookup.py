"""Look up the few people that a plan shows by id, instead of listing all: a request per person, not per page of people.

The ids come from the lists and assignments that the plan compares, and from a plan that was made before. Every
declared e-mail must belong to one of these people or to one on the first page; otherwise the listing is read to its
end, since only all of it shows who does not exist. The filter of the listing is not used: the API specification does
not show what it matches (Users).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from lmsconf.api.spec.operations import USERS
from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.kinds.shared.response_json import require_object
from lmsconf.kinds.user.extended_info import PeopleCount
from lmsconf.model.api import ListedRows
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email
from lmsconf.planner.reading import ReadContext

Row = dict[str, Json]
_EDITORS: Final = 5
"""How many last editors are looked up, a request each."""


def read_needed_people(
    reading: ReadContext, keep: Callable[[Row], Row], *, may_look_up: Callable[[], bool]
) -> ListedRows:
    """Return the rows of all people, or only of those that the plan shows, and set the PeopleCount.

    may_look_up: whether only ids and e-mails of the people in lists matter; called once the first page is read.
    """
    count = reading.shared_state(PeopleCount)
    first: dict[str, Row] = {}
    people: list[Row] | None = None

    def kept(row: Row) -> Row:
        small = keep(row)
        if not count.first_page.done():
            first[str(row["userId"])] = small
        return small

    def reads_on(total: int | None, rows: int) -> bool:
        nonlocal people
        count.set(total, rows)
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
    named = reading.named_emails()
    unknown = named - _emails(first.values())
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
