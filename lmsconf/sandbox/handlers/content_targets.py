"""Content Targeting: assignments with mandatory flag and visibility (API specification, Content Targeting)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.sandbox.api_refusal import bad_request, conflict, not_found
from lmsconf.sandbox.handlers.time_format import format_time, parse_time
from lmsconf.sandbox.request_context import Entry, Handler, Request, RequestContext
from lmsconf.sandbox.store import Repository, Value

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
    _content(context, content)
    return {"targets": [_entry(context, content, row) for row in context.repository.rows(_WITH_NAMES, content)]}


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


def _content(context: RequestContext, id: str) -> None:
    if not context.repository.number("SELECT count(*) FROM contents WHERE id = ?", id):
        raise not_found("content", id)


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


def _entry(context: RequestContext, content: str, row: tuple[Value, ...]) -> Entry:
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
    "content-targets.list": list_targets,
    "content-targets.create": create_target,
    "content-targets.delete": delete_target,
}
