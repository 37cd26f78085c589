"""Content Catalog and Content Targeting: contents, who sees them, assignments with mandatory flag and visibility.

API specification, Content Catalog and Content Targeting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.sandbox.request_context import (
    Entry,
    Handler,
    Request,
    RequestContext,
    bad_request,
    conflict,
    format_time,
    not_found,
    parse_time,
)
from lmsconf.sandbox.store import Json, Repository, encode_ids, json_flag

LARGEST_PAGE: Final = 100
MEETUP: Final = "MEETUP"
OCCASIONS: Final = "occasions"
_DETAILS: Final = """json_patch('{"partOfPrograms": [], "categories": [], "metadata": {}}', details)"""
_ITEM: Final = f"""
    json_patch(json_remove({_DETAILS}, '$.occasions'), json_object(
        'courseId', id, 'contentType', type, 'name', name, 'description', description, 'lastUpdatedAt', updated_at,
        'visibleForGroups', json((SELECT json_group_array(audience) FROM (
            SELECT audience FROM targets WHERE kind != 'USER' AND content = contents.id ORDER BY seq
        ))), 'price', price
    ))
"""  # noqa: S608  names of ours
"""An item of the catalog as the API shows it."""
_MEETUP: Final = f"""
    json_patch(json_remove(json_patch('{{"occasions": []}}', {_DETAILS}), '$.metadata', '$.backgroundImageUrl'),
        json_object('contentId', id, 'name', name, 'lastUpdatedAt', updated_at))
"""
# Groups and everyone see what is assigned to them; an assignment to one person makes content visible to no group.
_VISIBLE_TO: Final = (
    "id IN (SELECT content FROM targets WHERE kind != 'USER' AND audience IN (SELECT value FROM json_each(?)))"
)


def list_contents(context: RequestContext, request: Request) -> Entry:
    """A page of the catalog, of what the given groups see or of all, with the total."""
    page = context.page(request.query, LARGEST_PAGE)
    rules, values = ["price > 0"] if request.query_flag("onlySellable") else [], []
    if (groups := request.query.get("groupIds[]")) is not None:
        rules.append(_VISIBLE_TO)
        values.append(encode_ids(cast("list[str]", groups)))
    where = f"FROM contents WHERE {' AND '.join(rules) or 'TRUE'}"
    total = context.repository.number(f"SELECT count(*) {where}", *values)
    courses = context.repository.objects(
        f"SELECT {_ITEM} {where} ORDER BY seq LIMIT ? OFFSET ?", *values, page.limit, page.skip
    )
    return {"courses": courses, "skip": page.skip, "limit": page.limit, "total": total}


def get_content(context: RequestContext, request: Request) -> Json:
    """One item of the catalog."""
    id = context.require_content(request.path["contentId"])
    return context.repository.objects(f"SELECT {_ITEM} FROM contents WHERE id = ?", id)[0]  # noqa: S608  names of ours


def list_meetups(context: RequestContext, request: Request) -> Entry:
    """The first hundred meetups that the given groups see, by default everyone, the last updated first."""
    groups = cast("Iterable[str]", request.query.get("groupIds[]", [context.behaviour("content-targets.everyone")]))
    meetups = context.repository.objects(
        f"SELECT {_MEETUP} FROM (SELECT * FROM contents WHERE type = ? AND {_VISIBLE_TO} ORDER BY seq LIMIT ?) "  # noqa: S608  names of ours
        "ORDER BY updated_at DESC, seq",
        *(MEETUP, encode_ids(groups), LARGEST_PAGE),
    )
    return {"meetups": meetups}


USER: Final = "USER"
EVERYONE: Final = "EVERYONE"
_DELETE: Final = "DELETE FROM targets WHERE content = ? AND coalesce(type, kind) = ? AND audience = ?"
_ASSIGN: Final = """
    INSERT INTO targets (content, kind, audience, mandatory, start, finish, created_at, updated_at, type)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT type FROM targets WHERE kind = ? AND type IS NOT NULL LIMIT 1))
    ON CONFLICT (content, kind, audience) DO UPDATE SET mandatory = excluded.mandatory, start = excluded.start,
        finish = excluded.finish, updated_at = excluded.updated_at WHERE ?
"""
"""A new target has the type of those of its kind that a snapshot had."""
_TARGETS: Final = f"""
    SELECT json_object('targetId', t.audience, 'targetType', coalesce(t.type, t.kind), 'contentId', t.content,
        'contentType', c.type, 'mandatory', {json_flag("t.mandatory")}, 'name',
        coalesce(g.name, nullif(trim(p.first_name || ' ' || p.last_name), ''), p.email, 'Everyone'),
        'scheduleTriggerIsActive', {json_flag("coalesce(t.start, t.finish) IS NOT NULL")}, 'visibilityIsActive',
        {json_flag("(t.start IS NULL OR t.start <= now) AND (t.finish IS NULL OR now < t.finish)")}, 'updatedBy', 'api',
        'startTime', t.start, 'finishTime', t.finish, 'createdAt', t.created_at, 'updatedAt', t.updated_at)
    FROM (SELECT ? AS now) JOIN targets t JOIN contents c ON c.id = t.content
        LEFT JOIN groups g ON g.id = t.audience AND t.kind = g.kind
        LEFT JOIN people p ON p.id = t.audience AND t.kind = 'USER'
    WHERE t.content = ? ORDER BY t.seq
"""  # noqa: S608  names of ours
_TIMES: Final = ("startTime", "finishTime", "createdAt", "updatedAt")


def list_targets(context: RequestContext, request: Request) -> Entry:
    """Every target of one content."""
    content, format = str(request.query["contentId"]), context.behaviour("content-targets.time-format")
    targets = context.repository.objects(_TARGETS, context.repository.now(), context.require_content(content))
    return {"targets": [one | _times(one, format) for one in targets]}


def _times(target: Entry, format: str) -> Entry:
    return {key: format_time(cast(int, target[key]), format) for key in _TIMES if key in target}


def create_target(context: RequestContext, request: Request) -> None:
    """Assign content to one audience; a missing flag is false, a missing time is open.

    An existing assignment is replaced, or rejected with 409 if the dialect requires deleting it first.
    """
    content = request.body_text("contentId")
    if not context.repository.number("SELECT count(*) FROM contents WHERE id = ?", content):
        raise bad_request(f"there is no content {content!r}")
    kind, audience = _audience(context, request)
    value = (
        bool(request.body.get("mandatory")),
        _time(context, request, "startTime"),
        _time(context, request, "finishTime"),
    )
    assign_content(
        context.repository,
        content,
        (kind, audience),
        value,
        replace=context.behaviour("content-targets.on-existing") == "update",
    )


def delete_target(context: RequestContext, request: Request) -> None:
    """Delete an assignment."""
    key = (request.body_text("contentId"), request.body_text("targetType"), request.body_text("targetId"))
    if not context.repository.execute(_DELETE, *key):
        raise not_found("target", " ".join(key))


def assign_content(
    repository: Repository,
    content: str,
    audience: tuple[str, str],
    value: tuple[bool, int | None, int | None],
    *,
    replace: bool,
) -> None:
    """Store a whole assignment. Raises Refusal (409) if it exists and `replace` is false."""
    now = repository.now()
    if not repository.execute(_ASSIGN, content, *audience, *value, now, now, audience[0], replace):
        raise conflict("the content is assigned to this audience already: delete the target first")


def _audience(context: RequestContext, request: Request) -> tuple[str, str]:
    """Kind and id of the body's target: a user, a group of either kind, or everyone."""
    if "userId" in request.body:
        return USER, context.require_people([request.body_text("userId")])[0]
    id = request.body_text("targetId")
    if id == context.behaviour("content-targets.everyone"):
        return EVERYONE, id
    for kind in context.repository.column("SELECT kind FROM groups WHERE id = ?", id):
        return kind, id
    raise bad_request(f"there is no group {id!r}")


def _time(context: RequestContext, request: Request, key: str) -> int | None:
    """The instant under `key`; None: open, if the key is missing or has the value that the dialect uses to clear it."""
    value, opens = request.body.get(key), context.behaviour("content-targets.clear-time")
    if key not in request.body or (value is None and opens == "null") or (value == "" and opens == "empty"):
        return None
    try:
        instant = parse_time(value, context.behaviour("content-targets.time-format"))
        minute = context.behaviour("content-targets.time-precision") == "minute"
        return instant // 60_000 * 60_000 if minute else instant
    except (ValueError, OverflowError) as error:
        raise bad_request(f"{key}: {error}") from error


HANDLERS: Final[Mapping[str, Handler]] = {
    "content.list": list_contents,
    "content.get": get_content,
    "content.meetups": list_meetups,
    "content-targets.list": list_targets,
    "content-targets.create": create_target,
    "content-targets.delete": delete_target,
}
