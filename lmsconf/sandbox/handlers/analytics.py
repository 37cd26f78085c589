"""Analytics: participation results, statistics, and event logs (API specification, Analytics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from lmsconf.sandbox.api_refusal import bad_request, not_found
from lmsconf.sandbox.handlers.enrollment import (
    APPROVED,
    EXPIRED,
    FAILED,
    IN_PROGRESS,
    NOT_STARTED,
    EnrollmentStatus,
    answering,
    enrollment_statuses,
    in_groups,
)
from lmsconf.sandbox.handlers.times import read_time, show_time
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Value, ids_text

_COUNTS: Final = {
    "notStartedCount": NOT_STARTED,
    "inProgressCount": IN_PROGRESS,
    "approvedCount": APPROVED,
    "failedCount": FAILED,
    "expiredCount": EXPIRED,
}
_ORDERS: Final = {
    "updatedAt": "occuredAt",
    **{
        key: key
        for key in (
            *("occuredAt", "enrolledAt", "certificateExpiresAt", "certificateIssuedAt", "percentageProgress"),
            *("contentId", "contentName", "userId", "userName", "userDisplayName", "userEmail", "state"),
        )
    },
}
"""`orderBy` of a request → key of a result item."""


_ACTIVE: Final = "SELECT id, email, trim(first_name || ' ' || last_name) FROM people WHERE archived_at IS NULL"
_PEOPLE: Final = f"{_ACTIVE} ORDER BY seq"
_SOME_PEOPLE: Final = f"{_ACTIVE} AND id IN (SELECT value FROM json_each(?)) ORDER BY seq"  # noqa: S608  the text stands above


class _Selection(NamedTuple):
    """The filtered enrollment_statuses, and the rows of their people and contents."""

    enrollment_statuses: Iterator[EnrollmentStatus]
    people: dict[str, tuple[Value, ...]]
    contents: dict[str, tuple[Value, ...]]


def results(desk: RequestContext, request: Request) -> Entry:
    """A page of the participation results that pass all filters; by default the last changed first."""
    options = cast("Mapping[str, Json]", request.body.get("options", {}))
    page = desk.cut(cast(int, options.get("skip", 0)), cast(int, options.get("limit", 100)))
    arrange = _order(str(options.get("orderBy", "updatedAt")), str(options.get("order", "DESC")))
    selection = _select(desk, request)
    items = [
        _item(one, selection.people[one.person], selection.contents[one.content])
        for one in selection.enrollment_statuses
    ]
    return {"list": arrange(items)[page.skip : page.skip + page.limit]}


def statistics(desk: RequestContext, request: Request) -> Entry:
    """The number of participations in each state, of those that pass all filters."""
    counts = Counter(one.state for one in _select(desk, request).enrollment_statuses)
    return {"statistics": {key: counts[state] for key, state in _COUNTS.items()}}


def event_logs(desk: RequestContext, request: Request) -> Json:
    """The events of one person and content, the latest first."""
    content, person = request.path["contentId"], desk.person(request)
    if not desk.ledger.number("SELECT count(*) FROM contents WHERE id = ?", content):
        raise not_found("content", content)
    rows = desk.ledger.rows(
        "SELECT e.id, e.participation, e.status, e.revision, e.at, e.mandatory, e.manually FROM events e "
        "JOIN participations p ON p.id = e.participation WHERE p.person = ? AND p.content = ? "
        "ORDER BY e.at DESC, e.seq DESC",
        *(person, content),
    )
    return [
        {"id": id, "contentId": content, "userId": person, "participationId": participation, "status": status}
        | {"revisionNumber": revision, "timestamp": show_time(cast(int, at), "iso")}
        | {"mandatory": bool(mandatory), "manually": bool(manually)}
        for id, participation, status, revision, at, mandatory, manually in rows
    ]


def _select(desk: RequestContext, request: Request) -> _Selection:
    """The enrollment_statuses that pass all filters of the request."""
    people = _people(desk, request)
    contents = _contents(desk, request)
    passes = _Filters(request)
    return _Selection((one for one in enrollment_statuses(desk, contents, people) if passes(one)), people, contents)


def _contents(desk: RequestContext, request: Request) -> dict[str, tuple[Value, ...]]:
    """The requested contents by id; all if the request names none."""
    name = str(request.body.get("contentName", "")).casefold()
    rows = desk.ledger.rows("SELECT id, type, name FROM contents ORDER BY seq")
    by_id = {str(row[0]): row for row in rows if name in str(row[2]).casefold()}
    if "contentIds" not in request.body:
        return by_id
    return {id: by_id[id] for id in request.texts("contentIds") if id in by_id}


def _people(desk: RequestContext, request: Request) -> dict[str, tuple[Value, ...]]:
    """The requested active people by id, in creation order."""
    wanted: list[set[str]] = []
    if "userIds" in request.body:
        wanted.append(set(request.texts("userIds")))
    if "groupIds" in request.body and (grouped := in_groups(desk, request.texts("groupIds"))) is not None:
        wanted.append(grouped)
    for attribute in request.entries("attributes"):
        wanted.append(answering(desk, cast(str, attribute["customFieldId"]), cast("list[str]", attribute["choices"])))
    rows = desk.ledger.rows(_SOME_PEOPLE, ids_text(set.intersection(*wanted))) if wanted else desk.ledger.rows(_PEOPLE)
    return {str(row[0]): row for row in rows}


class _Filters:
    """The filters on a standing: state, enrolment, and the two date ranges."""

    def __init__(self, request: Request) -> None:
        self._states = set(request.texts("progress")) if "progress" in request.body else None
        self._enrollments = set(request.texts("enrollment")) if "enrollment" in request.body else None
        self._expiring = _range(request, "expiryDateRange")
        self._updated = _range(request, "updatedAtDateRange")

    def __call__(self, standing: EnrollmentStatus) -> bool:
        """Whether it passes all of them."""
        return (
            (self._states is None or standing.state in self._states)
            and (self._enrollments is None or standing.enrollment in self._enrollments)
            and self._expiring(standing.certified.expires_at if standing.certified else None)
            and self._updated(standing.occurred_at)
        )


def _range(request: Request, key: str) -> Callable[[int | None], bool]:
    """Return a test whether an instant is in a range of the body, inclusive; without a range it always is."""
    bounds = cast("Mapping[str, str]", request.body.get(key, {}))
    if not bounds:
        return lambda instant: True
    try:
        start, end = (read_time(bounds[end], "iso") if end in bounds else None for end in ("start", "end"))
    except (ValueError, OverflowError) as error:
        raise bad_request(f"{key}: {error}") from error
    return lambda instant: (
        instant is not None and (start is None or start <= instant) and (end is None or instant <= end)
    )


def _order(by: str, direction: str) -> Callable[[list[Entry]], list[Entry]]:
    """Return a function that sorts items; those without the value are last."""
    key = _ORDERS[by]

    def arrange(items: list[Entry]) -> list[Entry]:
        known = [item for item in items if key in item]
        known.sort(key=lambda item: cast(str, item[key]), reverse=direction == "DESC")
        return [*known, *(item for item in items if key not in item)]

    return arrange


def _item(standing: EnrollmentStatus, person: tuple[Value, ...], content: tuple[Value, ...]) -> Entry:
    """A result as the API shows it. An unknown date is omitted."""
    email, name = person[1:]
    dates: Entry = {"occuredAt": standing.occurred_at, "enrolledAt": standing.enrolled_at}
    if standing.certified:
        dates |= {
            "certificateIssuedAt": standing.certified.issued,
            "certificateExpiresAt": standing.certified.expires_at,
        }
    return {
        "contentId": standing.content,
        "contentType": content[1],
        "contentName": content[2],
        "userId": standing.person,
        "userName": name,
        "userDisplayName": name or email,
        "userEmail": email,
        "state": standing.state,
        "contentRevision": standing.done.revision if standing.done else 1,
        "percentageProgress": standing.done.percentage if standing.done else 0,
        "mandatory": standing.enrolled is not None and standing.enrolled.mandatory,
    } | {key: date for key, date in dates.items() if date is not None}


HANDLERS: Final[Mapping[str, Handler]] = {
    "analytics.results": results,
    "analytics.statistics": statistics,
    "analytics.event-logs": event_logs,
}
