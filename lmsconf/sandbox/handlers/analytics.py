"""Analytics: participation results, statistics, and event logs (API specification, Analytics).

An enrolment follows from assignments: it begins with the first, and is mandatory if one of them is. Participation in
content that is not assigned counts too, as not enrolled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from lmsconf.sandbox.handlers.groups import compute_members
from lmsconf.sandbox.request_context import PAGE, Handler, RequestContext, Sql, bad_request, parse_time
from lmsconf.sandbox.store import Json, json_flag, json_known, json_list, json_time, json_value

_RANGES: Final = {"expiryDateRange": "certificateExpiresAt", "updatedAtDateRange": "occuredAt"}
_PAIRS: Final = """
    smart AS (SELECT listed.key AS grp, member.value AS person
        FROM json_each(:smartMembers) listed, json_each(listed.value) member),
    who AS (SELECT seq, id, email, trim(first_name || ' ' || last_name) AS name FROM people
        WHERE archived_at IS NULL AND (:userIds IS NULL OR id IN (SELECT value FROM json_each(:userIds)))
            AND (:groupIds IS NULL OR $dialect(content-targets.everyone) IN (SELECT value FROM json_each(:groupIds))
                OR id IN (SELECT person FROM json_each(:groupIds) JOIN members ON grp = value
                    UNION SELECT person FROM json_each(:groupIds) JOIN smart ON grp = value))
            AND NOT EXISTS (SELECT 1 FROM json_each(:attributes) wanted WHERE NOT EXISTS (
                SELECT 1 FROM json_each(wanted.value, '$.choices') picked JOIN answers a ON a.person = people.id
                    AND a.field = json_extract(wanted.value, '$.customFieldId') AND a.choice = picked.value))),
    what AS (SELECT coalesce((SELECT min(key) FROM json_each(:contentIds) WHERE value = c.id), c.seq) AS place,
            c.id, c.type, c.name FROM contents c
        WHERE instr(casefold(c.name), casefold(coalesce(:contentName, '')))
            AND (:contentIds IS NULL OR c.id IN (SELECT value FROM json_each(:contentIds)))),
    reached AS (
        SELECT t.content, who.id AS person, t.created_at, t.mandatory
            FROM what JOIN targets t ON t.content = what.id AND t.kind = 'EVERYONE' CROSS JOIN who
        UNION ALL SELECT t.content, who.id, t.created_at, t.mandatory
            FROM what JOIN targets t ON t.content = what.id AND t.kind = 'USER' JOIN who ON who.id = t.audience
        UNION ALL SELECT t.content, who.id, t.created_at, t.mandatory
            FROM what JOIN targets t ON t.content = what.id AND t.kind = 'GROUP'
            JOIN members ON members.grp = t.audience JOIN who ON who.id = members.person
        UNION ALL SELECT t.content, who.id, t.created_at, t.mandatory
            FROM what JOIN targets t ON t.content = what.id AND t.kind = 'SMART_GROUP'
            JOIN smart ON smart.grp = t.audience JOIN who ON who.id = smart.person
    ),
    pairs AS (SELECT content, person, min(created_at) AS since, max(mandatory) AS mandatory FROM (
        SELECT * FROM reached UNION ALL SELECT content, person, NULL, NULL FROM participations
            UNION ALL SELECT content, person, NULL, NULL FROM certificates
        ) GROUP BY content, person)
"""
"""The people and contents that pass the filters, and pairs of them; `since`: of the enrolment."""
_VALUES: Final[Mapping[str, str]] = {
    "contentId": "what.id",
    "contentType": "what.type",
    "contentName": "what.name",
    "userId": "who.id",
    "userName": "who.name",
    "userDisplayName": "coalesce(nullif(who.name, ''), who.email)",
    "userEmail": "who.email",
    "state": "CASE WHEN c.expires_at <= :now THEN 'EXPIRED' ELSE coalesce(p.state, 'NOT_STARTED') END",
    "contentRevision": "coalesce(p.revision, 1)",
    "percentageProgress": "coalesce(p.percentage, 0)",
    "mandatory": "coalesce(e.mandatory, 0)",
    "occuredAt": "coalesce(p.updated_at, e.since)",
    "enrolledAt": "coalesce(p.enrolled_at, e.since)",
    "certificateIssuedAt": "c.issued",
    "certificateExpiresAt": "c.expires_at",
}
"""Key of a result as the API shows it → its value; NULL: an unknown date, which is omitted."""
_FOUND: Final = " AND ".join(
    [
        *(
            f"(:{name} IS NULL OR {column} IN (SELECT value FROM json_each(:{name})))"
            for name, column in {"progress": "state", "enrollment": "enrollment"}.items()
        ),
        *(
            f"(:{name}_{end} IS NULL OR {column} {relation} :{name}_{end})"
            for name, column in _RANGES.items()
            for end, relation in {"start": ">=", "end": "<="}.items()
        ),
    ]
)
_RESULTS: Final = f"""
    WITH {_PAIRS}, results AS (
        SELECT {", ".join(f"{value} AS {key}" for key, value in _VALUES.items())}, what.place, who.seq,
            CASE e.mandatory WHEN 1 THEN 'MANDATORY' WHEN 0 THEN 'OPTIONAL' ELSE 'NOT_ENROLLED' END AS enrollment
        FROM pairs e JOIN what ON what.id = e.content JOIN who ON who.id = e.person
            LEFT JOIN participations p ON p.content = what.id AND p.person = who.id
            LEFT JOIN certificates c ON c.content = what.id AND c.person = who.id
    )
"""
_ITEM: Final = json_known(
    ", ".join(f"'{key}', {json_flag(key) if key == 'mandatory' else key}" for key in _VALUES),
)
_EVENTS: Final = f"""
    SELECT json_object('id', e.id, 'contentId', :contentId, 'userId', :userId, 'participationId', p.id,
        'status', e.status, 'revisionNumber', e.revision, 'timestamp', {json_time("e.at")},
        'mandatory', {json_flag("e.mandatory")}, 'manually', {json_flag("e.manually")}) AS item
    FROM events e JOIN participations p ON p.id = e.participation
    WHERE p.person = :userId AND p.content = :contentId ORDER BY e.at DESC, e.seq DESC
"""


def enrolment(column: str) -> str:
    """SQL for `since` or `mandatory` of the enrolment of an active person in a content, which `userIds` and
    `contentIds` name alone; NULL if there is none.
    """
    return f"(WITH {_PAIRS} SELECT {column} FROM pairs WHERE since IS NOT NULL)"


def list_results(context: RequestContext) -> Json:
    """A page of the participation results that pass all filters; by default the last changed first."""
    options = cast("Mapping[str, int | str]", context.body.get("options", {}))
    context.values.update(options)
    by, direction = options.get("orderBy", "updatedAt"), options.get("order", "DESC")
    key = "occuredAt" if by == "updatedAt" else by  # an item calls the time of its last event so
    page = f"ORDER BY {key} IS NULL, {key} {direction}, place, seq {PAGE}"
    found = json_list(f"SELECT * FROM results WHERE {_FOUND} {page}", _ITEM)
    return _answer(context, f"json_object('list', {found})")


def count_by_state(context: RequestContext) -> Json:
    """The number of participations in each state, of those that pass all filters."""
    counts = f"""
        SELECT json_object('notStartedCount', count(*) FILTER (WHERE state = 'NOT_STARTED'),
            'inProgressCount', count(*) FILTER (WHERE state = 'IN_PROGRESS'),
            'approvedCount', count(*) FILTER (WHERE state = 'APPROVED'),
            'failedCount', count(*) FILTER (WHERE state = 'FAILED'),
            'expiredCount', count(*) FILTER (WHERE state = 'EXPIRED')) FROM results WHERE {_FOUND}
    """
    return _answer(context, f"json_object('statistics', {json_value(counts)})")


def _answer(context: RequestContext, shown: str) -> Json:
    """Answer with JSON that is made of the results. Raises Refusal (400) for an end of a range that is not a time."""
    read_members(context)
    for name in _RANGES:
        for end, instant in cast("Mapping[str, str]", context.body.get(name, {})).items():
            try:
                context.values[f"{name}_{end}"] = parse_time(instant, "iso")
            except (ValueError, OverflowError) as error:
                raise bad_request(f"{name}: {error}") from error
    return context.repository.json(f"{_RESULTS} SELECT {shown}")


def read_members(context: RequestContext) -> None:
    """Compute the members of the smart groups that matter."""
    groups = context.repository.column("""
        SELECT audience FROM targets WHERE kind = 'SMART_GROUP'
            AND (:contentIds IS NULL OR content IN (SELECT value FROM json_each(:contentIds)))
        UNION SELECT id FROM groups WHERE kind = 'SMART_GROUP' AND id IN (SELECT value FROM json_each(:groupIds))
    """)
    context.values["smartMembers"] = json.dumps({group: compute_members(context, group) for group in groups})


HANDLERS: Final[Mapping[str, Handler]] = {
    "analytics.results": list_results,
    "analytics.statistics": count_by_state,
    "analytics.event-logs": Sql(answer=f"SELECT {json_list(_EVENTS)}"),
}
