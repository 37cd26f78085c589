"""A read-only HTML page about a served sandbox: the workspace's content, and the last calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from lmsconf.sandbox.service import SandboxService
from lmsconf.sandbox.store import Repository, Value

PAGE_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""No resource is loaded, no script runs, nothing is cached."""
MOST_ROWS: Final = 50
_SECTIONS: Final = (
    (
        "People",
        ("Id", "E-mail", "Name", "Rights", "State"),
        "SELECT id, email, trim(first_name || ' ' || last_name), trim(iif(admin, 'admin ', '') || "
        "iif(manager, 'manager', '')), iif(archived_at IS NULL, 'active', 'archived') FROM people",
    ),
    (
        "Custom fields",
        ("Id", "Name", "Type", "Choices"),
        "SELECT id, name, type, (SELECT group_concat(name, ', ') FROM "
        "(SELECT name FROM choices WHERE field = fields.id ORDER BY position)) FROM fields",
    ),
    (
        "Groups",
        ("Id", "Name", "Kind", "Managers"),
        "SELECT id, name, kind, (SELECT count(*) FROM managers WHERE grp = groups.id) FROM groups",
    ),
    (
        "Content",
        ("Id", "Name", "Type", "Assignments"),
        "SELECT id, name, type, (SELECT count(*) FROM targets WHERE content = contents.id) FROM contents",
    ),
)
"""Title, headings and query of each table; the query must end with the table's name."""


class _Table(NamedTuple):
    """The first rows of a table, and the number of all. is_bad: which rows are red, by their position."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Value]]
    total: int
    is_bad: Sequence[bool] = ()


def render_page(service: SandboxService) -> str:
    """Render the page. All text from the workspace and from calls is escaped; there is no script."""
    with service.store.read_transaction() as repository:
        tables = [_table(repository, *section) for section in _SECTIONS]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    return environment.get_template("page.html.j2").render(tables=[_calls(service), *tables])


def _table(repository: Repository, title: str, headings: Sequence[str], query: str) -> _Table:
    """One table of the workspace."""
    count = repository.number(f"SELECT count(*) FROM {query.rpartition(' ')[2]}")  # noqa: S608  the names stand above
    rows = repository.rows(f"{query} ORDER BY seq LIMIT {MOST_ROWS}")
    return _Table(title, headings, [tuple(row) for row in rows], count)


def _calls(service: SandboxService) -> _Table:
    """The last calls, the latest first; those that failed are red."""
    calls = service.log[-MOST_ROWS:][::-1]
    rows = [(call.method, call.path, call.operation, str(call.status or "lost")) for call in calls]
    is_bad = [not 200 <= call.status < 400 for call in calls]
    return _Table("Last calls", ("Method", "Path", "Operation", "Status"), rows, len(service.log), is_bad)
