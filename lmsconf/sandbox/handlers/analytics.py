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
    find_people_by_answer,
    find_people_in_groups,
    list_enrollment_statuses,
)
from lmsconf.sandbox.handlers.time_format import format_time, parse_time
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Value, encode_ids

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
    """The filtered enrollment statuses, and the rows of their people and contents."""

    enrollment_statuses: Iterator[EnrollmentStatus]
    people: dict[str, tuple[Value, ...]]
    contents: dict[str, tuple[Value, ...]]


def list_results(context: RequestContext, request: Request) -> Entry:
    """A page of the participation results that pass all filters; by default the last changed first."""
    options = cast("Mapping[str, Json]", request.body.get("options", {}))
    page = context.capped_page(cast(int, options.get("skip", 0)), cast(int, options.get("limit", 100)))
    arrange = _order(str(options.get("orderBy", "updatedAt")), str(options.get("order", "DESC")))
    selection = _select(context, request)
    items = [
        _item(one, selection.people[one.person], selection.contents[one.content])
        for one in selection.enrollment_statuses
    ]
    return {"list": arrange(items)[page.skip : page.skip + page.limit]}


def count_by_state(context: RequestContext, request: Request) -> Entry:
    """The number of participations in each state, of those that pass all filters."""
    counts = Counter(one.state for one in _select(context, request).enrollment_statuses)
    return {"statistics": {key: counts[state] for key, state in _COUNTS.items()}}


def list_event_logs(context: RequestContext, request: Request) -> Json:
    """The events of one person and content, the latest first."""
    content, person = request.path["contentId"], context.require_path_person(request)
    if not context.repository.number("SELECT count(*) FROM contents WHERE id = ?", content):
        raise not_found("content", content)
    rows = context.repository.rows(
        "SELECT e.id, e.participation, e.status, e.revision, e.at, e.mandatory, e.manually FROM events e "
        "JOIN participations p ON p.id = e.participation WHERE p.person = ? AND p.content = ? "
        "ORDER BY e.at DESC, e.seq DESC",
        *(person, content),
    )
    return [
        {"id": id, "contentId": content, "userId": person, "participationId": participation, "status": status}
        | {"revisionNumber": revision, "timestamp": format_time(cast(int, at), "iso")}
        | {"mandatory": bool(mandatory), "manually": bool(manually)}
        for id, participation, status, revision, at, mandatory, manually in rows
    ]


def _select(context: RequestContext, request: Request) -> _Selection:
    """The enrollment statuses that pass all filters of the request."""
    people = _people(context, request)
    contents = _contents(context, request)
    passes = _Filters(request)
    return _Selection(
        (one for one in list_enrollment_statuses(context, contents, people) if passes(one)), people, contents
    )


def _contents(context: RequestContext, request: Request) -> dict[str, tuple[Value, ...]]:
    """The requested contents by id; all if the request names none."""
    name = str(request.body.get("contentName", "")).casefold()
    rows = context.repository.rows("SELECT id, type, name FROM contents ORDER BY seq")
    by_id = {str(row[0]): row for row in rows if name in str(row[2]).casefold()}
    if "contentIds" not in request.body:
        return by_id
    return {id: by_id[id] for id in request.body_texts("contentIds") if id in by_id}


def _people(context: RequestContext, request: Request) -> dict[str, tuple[Value, ...]]:
    """The requested active people by id, in creation order."""
    wanted: list[set[str]] = []
    if "userIds" in request.body:
        wanted.append(set(request.body_texts("userIds")))
    if (
        "groupIds" in request.body
        and (grouped := find_people_in_groups(context, request.body_texts("groupIds"))) is not None
    ):
        wanted.append(grouped)
    for attribute in request.body_objects("attributes"):
        wanted.append(
            find_people_by_answer(
                context, cast(str, attribute["customFieldId"]), cast("list[str]", attribute["choices"])
            )
        )
    rows = (
        context.repository.rows(_SOME_PEOPLE, encode_ids(set.intersection(*wanted)))
        if wanted
        else context.repository.rows(_PEOPLE)
    )
    return {str(row[0]): row for row in rows}


class _Filters:
    """The filters on an enrollment status: state, enrolment, and the two date ranges."""

    def __init__(self, request: Request) -> None:
        self._states = set(request.body_texts("progress")) if "progress" in request.body else None
        self._enrollments = set(request.body_texts("enrollment")) if "enrollment" in request.body else None
        self._expiring = _range(request, "expiryDateRange")
        self._updated = _range(request, "updatedAtDateRange")

    def __call__(self, status: EnrollmentStatus) -> bool:
        """Whether it passes all of them."""
        return (
            (self._states is None or status.state in self._states)
            and (self._enrollments is None or status.enrollment in self._enrollments)
            and self._expiring(status.certificate.expires_at if status.certificate else None)
            and self._updated(status.last_event_at)
        )


def _range(request: Request, key: str) -> Callable[[int | None], bool]:
    """Return a test whether an instant is in a range of the body, inclusive; without a range it always is."""
    bounds = cast("Mapping[str, str]", request.body.get(key, {}))
    if not bounds:
        return lambda instant: True
    try:
        start, end = (parse_time(bounds[end], "iso") if end in bounds else None for end in ("start", "end"))
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


def _item(status: EnrollmentStatus, person: tuple[Value, ...], content: tuple[Value, ...]) -> Entry:
    """A result as the API shows it. An unknown date is omitted."""
    email, name = person[1:]
    dates: Entry = {"occuredAt": status.last_event_at, "enrolledAt": status.enrolled_at}
    if status.certificate:
        dates |= {
            "certificateIssuedAt": status.certificate.issued,
            "certificateExpiresAt": status.certificate.expires_at,
        }
    return {
        "contentId": status.content,
        "contentType": content[1],
        "contentName": content[2],
        "userId": status.person,
        "userName": name,
        "userDisplayName": name or email,
        "userEmail": email,
        "state": status.state,
        "contentRevision": status.participation.revision if status.participation else 1,
        "percentageProgress": status.participation.percentage if status.participation else 0,
        "mandatory": status.enrolment is not None and status.enrolment.mandatory,
    } | {key: date for key, date in dates.items() if date is not None}


HANDLERS: Final[Mapping[str, Handler]] = {
    "analytics.results": list_results,
    "analytics.statistics": count_by_state,
    "analytics.event-logs": list_event_logs,
}
