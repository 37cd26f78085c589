"""Content Catalog: what can be assigned, and which groups see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.sandbox.desk import Desk, Entry, Handler, Json, Request
from lmsconf.sandbox.refusal import not_found
from lmsconf.sandbox.store import Value, ids_text

LARGEST_PAGE: Final = 100
_COLUMNS: Final = "id, type, name, description, price, updated_at"
# Groups and everyone see what is assigned to them; an assignment to one person opens the content to no group.
_SEEN_BY: Final = (
    "id IN (SELECT content FROM targets WHERE kind != 'USER' AND audience IN (SELECT value FROM json_each(?)))"
)


def listing(desk: Desk, request: Request) -> Entry:
    """A page of the catalog, of what the given groups see or of all, and how much there is of that."""
    page = desk.page(request, LARGEST_PAGE)
    rules, values = ["price > 0"] if request.asked("onlySellable") else [], []
    if (groups := request.query.get("groupIds[]")) is not None:
        rules.append(_SEEN_BY)
        values.append(ids_text(str(group) for group in groups) if isinstance(groups, list) else "[]")
    where = f"FROM contents WHERE {' AND '.join(rules) or 'TRUE'}"
    total = desk.ledger.number(f"SELECT count(*) {where}", *values)
    rows = desk.ledger.rows(f"SELECT {_COLUMNS} {where} ORDER BY seq LIMIT ? OFFSET ?", *values, page.limit, page.skip)
    return {"courses": _entries(desk, rows), "skip": page.skip, "limit": page.limit, "total": total}


def get(desk: Desk, request: Request) -> Json:
    """One item of the catalog."""
    id = request.path["contentId"]
    rows = desk.ledger.rows(f"SELECT {_COLUMNS} FROM contents WHERE id = ?", id)  # noqa: S608
    if not rows:
        raise not_found("content", id)
    return _entries(desk, rows)[0]


def _entries(desk: Desk, rows: list[tuple[Value, ...]]) -> list[Entry]:
    seen_by: dict[Value, list[Json]] = {}
    for content, audience in desk.ledger.rows(
        "SELECT content, audience FROM targets "
        "WHERE kind != 'USER' AND content IN (SELECT value FROM json_each(?)) ORDER BY seq",
        ids_text(str(row[0]) for row in rows),
    ):
        seen_by.setdefault(content, []).append(audience)
    return [_entry(row, seen_by.get(row[0], [])) for row in rows]


def _entry(row: tuple[Value, ...], visible_for: list[Json]) -> Entry:
    """An item as the API shows it."""
    id, type, name, description, price, updated_at = row
    return {
        "courseId": id,
        "contentType": type,
        "name": name,
        "description": description,
        "lastUpdatedAt": updated_at,
        "visibleForGroups": visible_for,
        "partOfPrograms": [],
        "categories": [],
        "price": price,
        "metadata": {},
    }


HANDLERS: Final[Mapping[str, Handler]] = {"content.list": listing, "content.get": get}
