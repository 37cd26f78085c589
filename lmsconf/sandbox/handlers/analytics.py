"""Analytics: participation results, statistics, and event logs (API specification, Analytics).

An enrolment follows from assignments: it begins with the first, and is mandatory if one of them is. Participation in
content that is not assigned counts too, as not enrolled.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, cast

from lmsconf.sandbox.handlers.groups import compute_members
from lmsconf.sandbox.request_context import (
    SMART_GROUP,
    Entry,
    Handler,
    Request,
    RequestContext,
    bad_request,
    format_time,
    parse_time,
)
from lmsconf.sandbox.store import Json, Value, encode_ids, json_flag

APPROVED, IN_PROGRESS, NOT_STARTED = "APPROVED", "IN_PROGRESS", "NOT_STARTED"
EXPIRED, FAILED = "EXPIRED", "FAILED"
STATES: Final = (APPROVED, IN_PROGRESS, NOT_STARTED, EXPIRED, FAILED)
_COUNTS: Final = {
    "notStartedCount": NOT_STARTED,
    "inProgressCount": IN_PROGRESS,
    "approvedCount": APPROVED,
    "failedCount": FAILED,
    "expiredCount": EXPIRED,
}
_ORDER: Final = "updatedAt"
"""`orderBy` of a request without one: the time of the last event, which an item calls `occuredAt`."""
_ENROLLED: Final = """
    who AS (SELECT seq, id, email, trim(first_name || ' ' || last_name) AS name FROM people
        WHERE archived_at IS NULL AND id IN (SELECT value FROM json_each(?))),
    what AS (SELECT wanted.key AS place, c.id, c.type, c.name FROM json_each(?) wanted
        JOIN contents c ON c.id = wanted.value),
    reached AS (
        SELECT t.content, who.id AS person, t.created_at, t.mandatory
            FROM what JOIN targets t ON t.content = what.id AND t.kind = 'EVERYONE' CROSS JOIN who
        UNION ALL SELECT t.content, who.id, t.created_at, t.mandatory
            FROM what JOIN targets t ON t.content = what.id AND t.kind = 'USER' JOIN who ON who.id = t.audience
        UNION ALL SELECT t.content, who.id, t.created_at, t.mandatory
            FROM what JOIN targets t ON t.content = what.id AND t.kind IN ('GROUP', 'SMART_GROUP')
            JOIN json_each(?) listed ON listed.key = t.audience
            CROSS JOIN json_each(listed.value) member JOIN who ON who.id = member.value
    ),
    enrolled AS (SELECT content, person, min(created_at) AS since, max(mandatory) AS mandatory
        FROM reached GROUP BY content, person)
"""
"""The people and contents of a request, and who is enrolled. Takes the ids of both, and of the members by group."""
_VALUES: Final[Mapping[str, str]] = {
    "contentId": "what.id",
    "contentType": "what.type",
    "contentName": "what.name",
    "userId": "who.id",
    "userName": "who.name",
    "userDisplayName": "coalesce(nullif(who.name, ''), who.email)",
    "userEmail": "who.email",
    "state": "iif(c.expires_at <= ?, 'EXPIRED', coalesce(p.state, 'NOT_STARTED'))",
    "contentRevision": "coalesce(p.revision, 1)",
    "percentageProgress": "coalesce(p.percentage, 0)",
    "mandatory": "coalesce(e.mandatory, 0)",
    "occuredAt": "coalesce(p.updated_at, e.since)",
    "enrolledAt": "coalesce(p.enrolled_at, e.since)",
    "certificateIssuedAt": "c.issued",
    "certificateExpiresAt": "c.expires_at",
}
"""Key of a result as the API shows it → its value; NULL: an unknown date, which is omitted."""
_RESULTS: Final = f"""
    WITH {_ENROLLED}, pairs AS (
        SELECT content, person FROM enrolled UNION SELECT content, person FROM participations
        UNION SELECT content, person FROM certificates
    ), results AS (
        SELECT {", ".join(f"{value} AS {key}" for key, value in _VALUES.items())}, what.place, who.seq,
            CASE e.mandatory WHEN 1 THEN 'MANDATORY' WHEN 0 THEN 'OPTIONAL' ELSE 'NOT_ENROLLED' END AS enrollment
        FROM pairs JOIN what ON what.id = pairs.content JOIN who ON who.id = pairs.person
            LEFT JOIN enrolled e ON e.content = what.id AND e.person = who.id
            LEFT JOIN participations p ON p.content = what.id AND p.person = who.id
            LEFT JOIN certificates c ON c.content = what.id AND c.person = who.id
    )
"""  # noqa: S608  names of ours
_SHOWN: Final = {key: key for key in _VALUES} | {"mandatory": json_flag("mandatory")}
_ITEM: Final = "json_object(" + ", ".join(f"'{key}', {value}" for key, value in _SHOWN.items()) + ")"
_ANSWERING: Final = "SELECT person FROM answers WHERE field = ? AND choice IN (SELECT value FROM json_each(?))"


def find_enrolment(context: RequestContext, content: str, person: str) -> tuple[int, bool] | None:
    """Since when an active person is enrolled in a content, and whether it is mandatory; None if not at all."""
    query = f"WITH {_ENROLLED} SELECT since, mandatory FROM enrolled"  # noqa: S608  names of ours
    for since, mandatory in context.repository.rows(query, *_scope(context, [person], [content])):
        return int(since or 0), bool(mandatory)
    return None


def list_results(context: RequestContext, request: Request) -> Entry:
    """A page of the participation results that pass all filters; by default the last changed first."""
    options = cast("Mapping[str, Json]", request.body.get("options", {}))
    page = context.page(options)
    by, direction = options.get("orderBy", _ORDER), options.get("order", "DESC")
    key = "occuredAt" if by == _ORDER else by
    order = f"ORDER BY {key} IS NULL, {key} {direction}, place, seq LIMIT ? OFFSET ?"
    sql, values = _select(context, request, _ITEM, order)
    return {"list": context.repository.objects(sql, *values, page.limit, page.skip)}


def count_by_state(context: RequestContext, request: Request) -> Entry:
    """The number of participations in each state, of those that pass all filters."""
    sql, values = _select(context, request, "state, count(*)", "GROUP BY state")
    counts = cast("dict[str, int]", dict(context.repository.pairs(sql, *values)))
    return {"statistics": {key: counts.get(state, 0) for key, state in _COUNTS.items()}}


def list_event_logs(context: RequestContext, request: Request) -> Json:
    """The events of one person and content, the latest first."""
    person, content = context.require_path_person(request), context.require_content(request.path["contentId"])
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


def _select(context: RequestContext, request: Request, shown: str, end: str) -> tuple[str, list[Value]]:
    """A query of the results that pass all filters of the request, and its values.

    shown: columns. end: how the results are ordered or grouped.
    """
    scope = _scope(context, _people(context, request), _contents(context, request))
    filters = [*_filters(request)]
    rules = " AND ".join(rule for rule, _ in filters) or "TRUE"
    values = [*scope, context.repository.now(), *(value for _, value in filters)]
    return f"{_RESULTS} SELECT {shown} FROM results WHERE {rules} {end}", values  # noqa: S608  names of ours, values apart


def _scope(context: RequestContext, people: Iterable[str], contents: list[str]) -> tuple[str, str, str]:
    """The values of `_ENROLLED`."""
    rows = context.repository.rows(
        "SELECT DISTINCT kind, audience FROM targets WHERE kind IN ('GROUP', 'SMART_GROUP') "
        "AND content IN (SELECT value FROM json_each(?))",
        encode_ids(contents),
    )
    members = {str(group): _members(context, str(kind), str(group)) for kind, group in rows}
    return encode_ids(people), encode_ids(contents), json.dumps(members)


def _contents(context: RequestContext, request: Request) -> list[str]:
    """The ids of the requested contents; all if the request names none."""
    name = cast(str, request.body.get("contentName", ""))
    known = context.repository.column(
        "SELECT id FROM contents WHERE instr(casefold(name), casefold(?)) ORDER BY seq", name
    )
    return known if "contentIds" not in request.body else [id for id in request.body_texts("contentIds") if id in known]


def _people(context: RequestContext, request: Request) -> set[str]:
    """The ids of the requested people."""
    wanted = {*context.repository.column("SELECT id FROM people WHERE archived_at IS NULL")}
    if "userIds" in request.body:
        wanted.intersection_update(request.body_texts("userIds"))
    groups = request.body_texts("groupIds")
    if "groupIds" in request.body and context.behaviour("content-targets.everyone") not in groups:
        kinds = context.repository.rows(
            "SELECT kind, id FROM groups WHERE id IN (SELECT value FROM json_each(?))", encode_ids(groups)
        )
        wanted.intersection_update(one for kind, id in kinds for one in _members(context, str(kind), str(id)))
    for attribute in request.body_objects("attributes"):
        field, choices = cast(str, attribute["customFieldId"]), cast("list[str]", attribute["choices"])
        wanted.intersection_update(context.repository.column(_ANSWERING, field, encode_ids(choices)))
    return wanted


def _members(context: RequestContext, kind: str, group: str) -> list[str]:
    if kind == SMART_GROUP:
        return compute_members(context, group)
    return context.repository.column("SELECT person FROM members WHERE grp = ?", group)


def _filters(request: Request) -> Iterator[tuple[str, Value]]:
    """SQL conditions for state, enrolment and the two date ranges, each with its value."""
    for key, rule in (("progress", "state"), ("enrollment", "enrollment")):
        if key in request.body:
            yield f"{rule} IN (SELECT value FROM json_each(?))", encode_ids(request.body_texts(key))  # noqa: S608  ours
    for key, column in (("expiryDateRange", "certificateExpiresAt"), ("updatedAtDateRange", "occuredAt")):
        for end, instant in cast("Mapping[str, str]", request.body.get(key, {})).items():
            try:
                yield f"{column} {'>=' if end == 'start' else '<='} ?", parse_time(instant, "iso")
            except (ValueError, OverflowError) as error:
                raise bad_request(f"{key}: {error}") from error


HANDLERS: Final[Mapping[str, Handler]] = {
    "analytics.results": list_results,
    "analytics.statistics": count_by_state,
    "analytics.event-logs": list_event_logs,
}
