"""Content Catalog and Content Targeting: contents, who sees them, assignments with mandatory flag and visibility.

API specification, Content Catalog and Content Targeting.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.sandbox.request_context import (
    Entry,
    Handler,
    Json,
    Request,
    RequestContext,
    bad_request,
    conflict,
    format_time,
    not_found,
    parse_time,
)
from lmsconf.sandbox.store import Repository, Value, encode_ids

LARGEST_PAGE: Final = 100
MEETUP: Final = "MEETUP"
OCCASIONS: Final = "occasions"
_COLUMNS: Final = "id, type, name, description, price, updated_at, details"
_OF_A_MEETUP: Final = (*("contentId", "name", "lastUpdatedAt", "partOfPrograms", "categories", "link", OCCASIONS),)
_BARE: Final[Mapping[str, Json]] = {"partOfPrograms": [], "categories": [], "metadata": {}}
# Groups and everyone see what is assigned to them; an assignment to one person makes content visible to no group.
_VISIBLE_TO: Final = (
    "id IN (SELECT content FROM targets WHERE kind != 'USER' AND audience IN (SELECT value FROM json_each(?)))"
)


def list_contents(context: RequestContext, request: Request) -> Entry:
    """A page of the catalog, of what the given groups see or of all, with the total."""
    page = context.requested_page(request, LARGEST_PAGE)
    rules, values = ["price > 0"] if request.query_flag("onlySellable") else [], []
    if (groups := request.query.get("groupIds[]")) is not None:
        rules.append(_VISIBLE_TO)
        values.append(encode_ids(cast("list[str]", groups)))
    where = f"FROM contents WHERE {' AND '.join(rules) or 'TRUE'}"
    total = context.repository.number(f"SELECT count(*) {where}", *values)
    rows = context.repository.rows(
        f"SELECT {_COLUMNS} {where} ORDER BY seq LIMIT ? OFFSET ?", *values, page.limit, page.skip
    )
    return {"courses": _entries(context, rows), "skip": page.skip, "limit": page.limit, "total": total}


def get_content(context: RequestContext, request: Request) -> Json:
    """One item of the catalog."""
    id = request.path["contentId"]
    rows = context.repository.rows(f"SELECT {_COLUMNS} FROM contents WHERE id = ?", id)  # noqa: S608  the names are ours
    if not rows:
        raise not_found("content", id)
    return _entries(context, rows)[0]


def list_meetups(context: RequestContext, request: Request) -> Entry:
    """The first hundred meetups that the given groups see, by default everyone, the last updated first."""
    groups = cast("Iterable[str]", request.query.get("groupIds[]", [context.behaviour("content-targets.everyone")]))
    rows = context.repository.rows(
        f"SELECT {_COLUMNS} FROM contents WHERE type = ? AND {_VISIBLE_TO} ORDER BY seq LIMIT ?",  # noqa: S608  ours
        *(MEETUP, encode_ids(groups), LARGEST_PAGE),
    )
    rows.sort(key=lambda row: cast(int, row[5]), reverse=True)
    return {"meetups": [_meetup(row) for row in rows]}


def _meetup(row: tuple[Value, ...]) -> Entry:
    """A meetup as the API shows it, with its occasions and their attendance."""
    shown = {"contentId": row[0], "name": row[2], "lastUpdatedAt": row[5]} | _details(row)
    return {OCCASIONS: []} | {key: value for key, value in shown.items() if key in _OF_A_MEETUP}


def _details(row: tuple[Value, ...]) -> Entry:
    """The further fields of a content: programs, categories, metadata, links; of a meetup its occasions too."""
    details: Entry = json.loads(cast(str, row[6]))
    return dict(_BARE) | details


def _entries(context: RequestContext, rows: list[tuple[Value, ...]]) -> list[Entry]:
    audiences: dict[Value, list[Json]] = {}
    for content, audience in context.repository.rows(
        "SELECT content, audience FROM targets "
        "WHERE kind != 'USER' AND content IN (SELECT value FROM json_each(?)) ORDER BY seq",
        encode_ids(str(row[0]) for row in rows),
    ):
        audiences.setdefault(content, []).append(audience)
    return [_entry(row, audiences.get(row[0], [])) for row in rows]


def _entry(row: tuple[Value, ...], visible_for: list[Json]) -> Entry:
    """An item as the API shows it."""
    id, type, name, description, price, updated_at, _ = row
    entry = _details(row) | {
        "courseId": id,
        "contentType": type,
        "name": name,
        "description": description,
        "lastUpdatedAt": updated_at,
        "visibleForGroups": visible_for,
        "price": price,
    }
    entry.pop(OCCASIONS, None)
    return entry


USER: Final = "USER"
EVERYONE: Final = "EVERYONE"
_BY: Final = "api"
_DELETE: Final = "DELETE FROM targets WHERE content = ? AND coalesce(type, kind) = ? AND audience = ?"
_INSERT: Final = """
    INSERT OR IGNORE INTO targets
        (content, kind, audience, mandatory, start, finish, created_at, updated_at, type)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, (SELECT type FROM targets WHERE kind = ? AND type IS NOT NULL LIMIT 1))
"""
"""A new target has the type of those of its kind that a snapshot had."""
_WITH_NAMES: Final = """
    SELECT t.audience, coalesce(t.type, t.kind), c.type, t.mandatory, t.start, t.finish, t.created_at, t.updated_at,
        coalesce(g.name, nullif(trim(p.first_name || ' ' || p.last_name), ''), p.email, 'Everyone')
    FROM targets t JOIN contents c ON c.id = t.content
        LEFT JOIN groups g ON g.id = t.audience AND t.kind = g.kind
        LEFT JOIN people p ON p.id = t.audience AND t.kind = 'USER'
    WHERE t.content = ? ORDER BY t.seq
"""


def list_targets(context: RequestContext, request: Request) -> Entry:
    """Every target of one content."""
    content = str(request.query["contentId"])
    context.require_content(content)
    return {"targets": [_target(context, content, row) for row in context.repository.rows(_WITH_NAMES, content)]}


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
    renewed = repository.execute(
        "UPDATE targets SET mandatory = ?, start = ?, finish = ?, updated_at = ? "
        "WHERE content = ? AND kind = ? AND audience = ? AND ?",
        *value,
        now,
        content,
        *audience,
        replace,
    )
    if renewed:
        return
    if not repository.execute(_INSERT, content, *audience, *value, now, now, audience[0]):
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


def _target(context: RequestContext, content: str, row: tuple[Value, ...]) -> Entry:
    """A target as the API shows it. An open side of the window is omitted."""
    audience, kind, content_type, mandatory, start, finish, created_at, updated_at, name = row
    format, now = context.behaviour("content-targets.time-format"), context.repository.now()
    times = {"startTime": start, "finishTime": finish, "createdAt": created_at, "updatedAt": updated_at}
    entry: Entry = {
        "targetId": audience,
        "targetType": kind,
        "contentId": content,
        "contentType": content_type,
        "mandatory": bool(mandatory),
        "name": name,
        "scheduleTriggerIsActive": start is not None or finish is not None,
        "visibilityIsActive": (start is None or cast(int, start) <= now)
        and (finish is None or now < cast(int, finish)),
        "updatedBy": _BY,
    }
    return entry | {key: format_time(cast(int, time), format) for key, time in times.items() if time is not None}


HANDLERS: Final[Mapping[str, Handler]] = {
    "content.list": list_contents,
    "content.get": get_content,
    "content.meetups": list_meetups,
    "content-targets.list": list_targets,
    "content-targets.create": create_target,
    "content-targets.delete": delete_target,
}
