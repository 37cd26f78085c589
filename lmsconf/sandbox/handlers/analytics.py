"""Analytics: participation results, statistics, and event logs (API specification, Analytics).

An enrolment follows from assignments; it is mandatory if one of them is. Participation in content that is not assigned
counts too, as not enrolled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias, cast

from msgspec import Struct

from lmsconf.sandbox.handlers.content import EVERYONE, USER
from lmsconf.sandbox.handlers.groups import compute_members
from lmsconf.sandbox.request_context import (
    SMART_GROUP,
    Entry,
    Handler,
    Json,
    Request,
    RequestContext,
    bad_request,
    format_time,
    parse_time,
)
from lmsconf.sandbox.store import Repository, Value, encode_ids

APPROVED, IN_PROGRESS, NOT_STARTED = "APPROVED", "IN_PROGRESS", "NOT_STARTED"
EXPIRED, FAILED = "EXPIRED", "FAILED"
STATES: Final = (APPROVED, IN_PROGRESS, NOT_STARTED, EXPIRED, FAILED)
MANDATORY, OPTIONAL, NOT_ENROLLED = "MANDATORY", "OPTIONAL", "NOT_ENROLLED"
_ANSWERING: Final = "SELECT person FROM answers WHERE field = ? AND choice IN (SELECT value FROM json_each(?))"


class Enrolment(NamedTuple):
    """An enrolment: since the first assignment, and mandatory if one of them is."""

    since: int
    mandatory: bool


Enrolments: TypeAlias = "dict[str, Enrolment]"
"""Person → enrolment in one content."""


class Participation(NamedTuple):
    """A participation in a content."""

    state: str
    percentage: int
    revision: int
    enrolled_at: int
    updated_at: int


class CertificateDates(NamedTuple):
    """The dates of a certificate."""

    issued: int
    expires_at: int | None


class EnrollmentStatus(Struct, frozen=True):
    """One person and one content."""

    content: str
    person: str
    enrolment: Enrolment | None
    participation: Participation | None
    certificate: CertificateDates | None
    expired: bool

    @property
    def state(self) -> str:
        """The progress state: EXPIRED if the certificate has expired, whatever the participation's state."""
        if self.expired:
            return EXPIRED
        return self.participation.state if self.participation else NOT_STARTED

    @property
    def enrollment(self) -> str:
        """The enrolment type, in the specification's terms."""
        if self.enrolment is None:
            return NOT_ENROLLED
        return MANDATORY if self.enrolment.mandatory else OPTIONAL

    @property
    def enrolled_at(self) -> int | None:
        """When it began: with the participation, else with the assignment."""
        return (
            self.participation.enrolled_at if self.participation else self.enrolment.since if self.enrolment else None
        )

    @property
    def last_event_at(self) -> int | None:
        """When the last event occurred."""
        return self.participation.updated_at if self.participation else self.enrolled_at


def list_enrollment_statuses(
    context: RequestContext, contents: Iterable[str], people: Mapping[str, object]
) -> Iterator[EnrollmentStatus]:
    """Everyone of `people` who is enrolled in a content, or has a participation or certificate, in their order."""
    now, audiences = context.repository.now(), _TargetAudiences(context, people)
    for content in contents:
        enrolled = audiences.of(content)
        done = dict(_participations(context.repository, content))
        certified = dict(_certificates(context.repository, content))
        for person in people:
            if person in enrolled or person in done or person in certified:
                certificate = certified.get(person)
                expired = certificate is not None and has_expired(certificate.expires_at, now)
                yield EnrollmentStatus(content, person, enrolled.get(person), done.get(person), certificate, expired)


def find_enrolment(context: RequestContext, content: str, person: str) -> Enrolment | None:
    """One person's enrolment in one content."""
    return _TargetAudiences(context, {person: None}).of(content).get(person)


def has_expired(expires_at: int | None, now: int) -> bool:
    """Whether a certificate with that expiry has expired."""
    return expires_at is not None and expires_at <= now


def find_people_in_groups(context: RequestContext, groups: Iterable[str]) -> set[str] | None:
    """The ids of the people in any of these groups; None for everyone. An unknown group has no members."""
    people: set[str] = set()
    for group in groups:
        if group == context.behaviour("content-targets.everyone"):
            return None
        for kind in context.repository.column("SELECT kind FROM groups WHERE id = ?", group):
            people.update(_members(context, kind, group))
    return people


def _members(context: RequestContext, kind: str, group: str) -> list[str]:
    if kind == SMART_GROUP:
        return compute_members(context, group)
    return context.repository.column("SELECT person FROM members WHERE grp = ?", group)


class _TargetAudiences:
    """Enrolments of the given people. Members of a group are read once."""

    def __init__(self, context: RequestContext, people: Mapping[str, object]) -> None:
        self._context = context
        self._all = people
        self._known: dict[tuple[str, str], list[str]] = {}

    def of(self, content: str) -> Enrolments:
        """The enrolments of these people in a content."""
        enrolments: Enrolments = {}
        for kind, audience, mandatory, since in self._context.repository.rows(
            "SELECT kind, audience, mandatory, created_at FROM targets WHERE content = ? ORDER BY seq", content
        ):
            for person in self._people(str(kind), str(audience)):
                before = enrolments.get(person, Enrolment(int(since or 0), False))
                enrolments[person] = Enrolment(min(before.since, int(since or 0)), before.mandatory or bool(mandatory))
        return enrolments

    def _people(self, kind: str, audience: str) -> Iterable[str]:
        if kind == EVERYONE:
            return self._all
        if kind == USER:
            return [audience] if audience in self._all else []
        if (kind, audience) not in self._known:
            self._known[kind, audience] = [one for one in _members(self._context, kind, audience) if one in self._all]
        return self._known[kind, audience]


def _participations(repository: Repository, content: str) -> Iterator[tuple[str, Participation]]:
    for person, state, *numbers in repository.rows(
        "SELECT person, state, percentage, revision, enrolled_at, updated_at FROM participations WHERE content = ?",
        content,
    ):
        yield str(person), Participation(str(state), *(int(number or 0) for number in numbers))


def _certificates(repository: Repository, content: str) -> Iterator[tuple[str, CertificateDates]]:
    for person, issued, expires_at in repository.rows(
        "SELECT person, issued, expires_at FROM certificates WHERE content = ?", content
    ):
        yield str(person), CertificateDates(int(issued or 0), None if expires_at is None else int(expires_at))


_COUNTS: Final = {
    "notStartedCount": NOT_STARTED,
    "inProgressCount": IN_PROGRESS,
    "approvedCount": APPROVED,
    "failedCount": FAILED,
    "expiredCount": EXPIRED,
}
_ORDER: Final = "updatedAt"
"""`orderBy` of a request without one: the time of the last event, which an item calls `occuredAt`."""


_ACTIVE: Final = "SELECT id, email, trim(first_name || ' ' || last_name) FROM people WHERE archived_at IS NULL"
_PEOPLE: Final = f"{_ACTIVE} ORDER BY seq"
_SOME_PEOPLE: Final = f"{_ACTIVE} AND id IN (SELECT value FROM json_each(?)) ORDER BY seq"  # noqa: S608  the text stands above


class _Result(NamedTuple):
    """An enrollment status, and the rows of its person and content."""

    status: EnrollmentStatus
    person: tuple[Value, ...]
    content: tuple[Value, ...]


_VALUES: Final[Mapping[str, Callable[[_Result], Value]]] = {
    "contentId": lambda one: one.status.content,
    "contentType": lambda one: one.content[1],
    "contentName": lambda one: one.content[2],
    "userId": lambda one: one.status.person,
    "userName": lambda one: one.person[2],
    "userDisplayName": lambda one: one.person[2] or one.person[1],
    "userEmail": lambda one: one.person[1],
    "state": lambda one: one.status.state,
    "contentRevision": lambda one: one.status.participation.revision if one.status.participation else 1,
    "percentageProgress": lambda one: one.status.participation.percentage if one.status.participation else 0,
    "mandatory": lambda one: one.status.enrolment is not None and one.status.enrolment.mandatory,
    "occuredAt": lambda one: one.status.last_event_at,
    "enrolledAt": lambda one: one.status.enrolled_at,
    "certificateIssuedAt": lambda one: one.status.certificate.issued if one.status.certificate else None,
    "certificateExpiresAt": lambda one: one.status.certificate.expires_at if one.status.certificate else None,
}
"""Key of a result as the API shows it → its value; None: an unknown date, which is omitted."""


def list_results(context: RequestContext, request: Request) -> Entry:
    """A page of the participation results that pass all filters; by default the last changed first."""
    options = cast("Mapping[str, Json]", request.body.get("options", {}))
    page = context.capped_page(cast(int, options.get("skip", 0)), cast(int, options.get("limit", 100)))
    arrange = _order(str(options.get("orderBy", _ORDER)), str(options.get("order", "DESC")))
    found = arrange(list(_select(context, request)))
    return {"list": [_item(one) for one in found[page.skip : page.skip + page.limit]]}


def count_by_state(context: RequestContext, request: Request) -> Entry:
    """The number of participations in each state, of those that pass all filters."""
    counts = Counter(one.status.state for one in _select(context, request))
    return {"statistics": {key: counts[state] for key, state in _COUNTS.items()}}


def list_event_logs(context: RequestContext, request: Request) -> Json:
    """The events of one person and content, the latest first."""
    content, person = request.path["contentId"], context.require_path_person(request)
    context.require_content(content)
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


def _select(context: RequestContext, request: Request) -> Iterator[_Result]:
    """What passes all filters of the request."""
    people = _people(context, request)
    contents = _contents(context, request)
    passes = _filters(request)
    return (
        _Result(one, people[one.person], contents[one.content])
        for one in list_enrollment_statuses(context, contents, people)
        if passes(one)
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
        field, choices = cast(str, attribute["customFieldId"]), cast("list[str]", attribute["choices"])
        wanted.append(set(context.repository.column(_ANSWERING, field, encode_ids(choices))))
    rows = (
        context.repository.rows(_SOME_PEOPLE, encode_ids(set.intersection(*wanted)))
        if wanted
        else context.repository.rows(_PEOPLE)
    )
    return {str(row[0]): row for row in rows}


def _filters(request: Request) -> Callable[[EnrollmentStatus], bool]:
    """Return a test whether an enrollment status passes all filters: state, enrolment, and the two date ranges."""
    states = set(request.body_texts("progress")) if "progress" in request.body else None
    enrollments = set(request.body_texts("enrollment")) if "enrollment" in request.body else None
    expiring, updated = _range(request, "expiryDateRange"), _range(request, "updatedAtDateRange")
    return lambda status: (
        (states is None or status.state in states)
        and (enrollments is None or status.enrollment in enrollments)
        and expiring(status.certificate.expires_at if status.certificate else None)
        and updated(status.last_event_at)
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


def _order(by: str, direction: str) -> Callable[[list[_Result]], list[_Result]]:
    """Return a function that sorts results; those without the value are last."""
    value = _VALUES["occuredAt" if by == _ORDER else by]

    def arrange(found: list[_Result]) -> list[_Result]:
        valued = [(value(one), one) for one in found]
        known = [(said, one) for said, one in valued if said is not None]
        known.sort(key=lambda both: cast(str, both[0]), reverse=direction == "DESC")
        return [*(one for _, one in known), *(one for said, one in valued if said is None)]

    return arrange


def _item(result: _Result) -> Entry:
    """A result as the API shows it."""
    return {key: said for key, value in _VALUES.items() if (said := value(result)) is not None}


HANDLERS: Final[Mapping[str, Handler]] = {
    "analytics.results": list_results,
    "analytics.statistics": count_by_state,
    "analytics.event-logs": list_event_logs,
}
