"""Content Catalog: contents, and the groups that see them (API specification, Content Catalog)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.sandbox.api_refusal import not_found
from lmsconf.sandbox.request_context import Entry, Handler, Json, Request, RequestContext
from lmsconf.sandbox.store import Value, encode_ids

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


HANDLERS: Final[Mapping[str, Handler]] = {
    "content.list": list_contents,
    "content.get": get_content,
    "content.meetups": list_meetups,
}
