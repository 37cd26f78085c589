"""Content Catalog and Content Targeting: contents, who sees them, assignments with mandatory flag and visibility.

API specification, Content Catalog and Content Targeting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.request_context import (
    PAGE_SIZE,
    Handler,
    RequestContext,
    Sql,
    bad_request,
    conflict,
    not_found,
    parse_time,
)
from lmsconf.sandbox.store import json_flag, json_known, json_list, json_time

_DETAILS: Final = """json_patch('{"partOfPrograms": [], "categories": [], "metadata": {}}', details)"""
_VISIBLE_FOR: Final = json_list(
    "SELECT audience FROM targets WHERE kind != 'USER' AND content = contents.id ORDER BY seq", "audience"
)
_ITEM: Final = f"""
    json_patch(json_remove({_DETAILS}, '$.occasions'), json_object(
        'courseId', id, 'contentType', type, 'name', name, 'description', description, 'lastUpdatedAt', updated_at,
        'visibleForGroups', {_VISIBLE_FOR}, 'price', price
    ))
"""
"""An item of the catalog as the API shows it."""
# Groups and everyone see what is assigned to them; an assignment to one person makes content visible to no group.
_VISIBLE_TO: Final = "id IN (SELECT content FROM targets WHERE kind != 'USER' AND audience IN ({groups}))"
_REQUESTED: Final = _VISIBLE_TO.format(groups="SELECT value FROM json_each(:groupIds)")
_WANTED: Final = f"FROM contents WHERE (:onlySellable IS NOT TRUE OR price > 0) AND (:groupIds IS NULL OR {_REQUESTED})"
_LIMIT: Final = f"min({PAGE_SIZE}, 100)"
_COURSES: Final = json_list(f"SELECT {_ITEM} AS item {_WANTED} ORDER BY seq LIMIT {_LIMIT} OFFSET coalesce(:skip, 0)")
_ASKING: Final = "SELECT value FROM json_each(coalesce(:groupIds, json_array($dialect(content-targets.everyone))))"
_MEETUPS: Final = f"""
    SELECT json_patch(
        json_remove(json_patch('{{"occasions": []}}', {_DETAILS}), '$.metadata', '$.backgroundImageUrl'),
        json_object('contentId', id, 'name', name, 'lastUpdatedAt', updated_at)
    ) AS item FROM (
        SELECT * FROM contents WHERE type = 'MEETUP' AND {_VISIBLE_TO.format(groups=_ASKING)} ORDER BY seq LIMIT 100
    ) ORDER BY updated_at DESC, seq
"""
"""The first hundred meetups that the given groups see, by default everyone, the last updated first."""

USER: Final = "USER"
EVERYONE: Final = "EVERYONE"
_SHOWN: Final = json_known(
    "'targetId', t.audience, 'targetType', coalesce(t.type, t.kind), 'contentId', t.content, 'contentType', c.type, "
    f"'mandatory', {json_flag('t.mandatory')}, 'name', "
    "coalesce(g.name, nullif(trim(p.first_name || ' ' || p.last_name), ''), p.email, 'Everyone'), "
    f"'scheduleTriggerIsActive', {json_flag('coalesce(t.start, t.finish) IS NOT NULL')}, 'visibilityIsActive', "
    + json_flag("(t.start IS NULL OR t.start <= :now) AND (t.finish IS NULL OR :now < t.finish)")
    + ", 'updatedBy', 'api', "
    + ", ".join(
        f"'{name}', {json_time(column, '$dialect(content-targets.time-format)', '$dialect(content-targets.time-zone)')}"
        for name, column in {
            "startTime": "t.start",
            "finishTime": "t.finish",
            "createdAt": "t.created_at",
            "updatedAt": "t.updated_at",
        }.items()
    )
)
_TARGETS: Final = f"""
    SELECT {_SHOWN} AS item FROM targets t JOIN contents c ON c.id = t.content
        LEFT JOIN groups g ON g.id = t.audience AND t.kind = g.kind
        LEFT JOIN people p ON p.id = t.audience AND t.kind = 'USER'
    WHERE t.content = :contentId ORDER BY t.seq
"""


def create_target(context: RequestContext) -> None:
    """Assign content to one audience; a missing flag is false, a missing time is open.

    An existing assignment is replaced, or rejected with 409 if the dialect requires deleting it first.
    """
    context.refuse(
        {
            "SELECT 'there is no content ' || quote(:contentId) "
            "WHERE :contentId NOT IN (SELECT id FROM contents)": bad_request,
            "SELECT 'there is no user ' || quote(:userId) "
            "WHERE :userId IS NOT NULL AND :userId NOT IN (SELECT id FROM people)": bad_request,
            "SELECT 'there is no group ' || quote(:targetId) "
            "WHERE :userId IS NULL AND :targetId <> $dialect(content-targets.everyone) "
            "AND :targetId NOT IN (SELECT id FROM groups)": bad_request,
        }
    )
    context.values.update({name: _time(context, name) for name in ("startTime", "finishTime")})
    assign_content(context, replaces=context.behaviour("content-targets.on-existing") == "update")


def assign_content(context: RequestContext, *, replaces: bool) -> None:
    """Store a whole assignment to `userId` or `targetId`. Raises Refusal (409) for a known one, if not `replaces`.

    A new target has the type of those of its kind that a snapshot had.
    """
    context.values["replaces"] = replaces
    changed = context.repository.execute("""
        INSERT INTO targets (content, kind, audience, mandatory, start, finish, created_at, updated_at, type)
        SELECT :contentId, kind, audience, coalesce(:mandatory, FALSE),
            coalesce(:startTime, CASE $dialect(content-targets.default-start) WHEN 'now' THEN :now END), :finishTime,
            :now, :now, (SELECT type FROM targets WHERE kind = assigned.kind AND type IS NOT NULL LIMIT 1)
        FROM (
            SELECT coalesce(:userId, :targetId) AS audience, CASE WHEN :userId IS NOT NULL THEN 'USER'
                WHEN :targetId = $dialect(content-targets.everyone) THEN 'EVERYONE'
                ELSE (SELECT kind FROM groups WHERE id = :targetId) END AS kind
        ) assigned WHERE TRUE
        ON CONFLICT (content, kind, audience) DO UPDATE SET mandatory = excluded.mandatory, start = :startTime,
            finish = excluded.finish, updated_at = excluded.updated_at WHERE :replaces
    """)
    if not changed:
        raise conflict("the content is assigned to this audience already: delete the target first")


def _time(context: RequestContext, key: str) -> int | None:
    """The instant under `key`; None: open, if the key is missing or has the value that the dialect uses to clear it."""
    value, opens = context.body.get(key), context.behaviour("content-targets.clear-time")
    if key not in context.body or (value is None and opens == "null") or (value == "" and opens == "empty"):
        return None
    try:
        form, zone = (context.behaviour(f"content-targets.time-{part}") for part in ("format", "zone"))
        unit = 60_000 if context.behaviour("content-targets.time-precision") == "minute" else 1
        return parse_time(value, form, zone) // unit * unit
    except (ValueError, OverflowError) as error:
        raise bad_request(f"{key}: {error}") from error


_NAMED: Final = "content = :contentId AND coalesce(type, kind) = :targetType AND audience = :targetId"
HANDLERS: Final[Mapping[str, Handler]] = {
    "content.list": Sql(
        answer=f"SELECT json_object('courses', {_COURSES}, 'skip', coalesce(:skip, 0), 'limit', {_LIMIT}, "
        f"'total', (SELECT count(*) {_WANTED}))"
    ),
    "content.get": Sql(answer=f"SELECT {_ITEM} FROM contents WHERE id = :contentId"),
    "content.meetups": Sql(answer=f"SELECT json_object('meetups', {json_list(_MEETUPS)})"),
    "content-targets.list": Sql(answer=f"SELECT json_object('targets', {json_list(_TARGETS)})"),
    "content-targets.create": create_target,
    "content-targets.delete": Sql(
        refusals={
            "SELECT 'there is no target ' || quote(:contentId || ' ' || :targetType || ' ' || :targetId) "
            f"WHERE NOT EXISTS (SELECT 1 FROM targets WHERE {_NAMED})": not_found
        },
        changes=[f"DELETE FROM targets WHERE {_NAMED}"],
    ),
}
