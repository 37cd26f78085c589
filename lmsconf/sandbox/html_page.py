"""A read-only HTML page about a served sandbox: the workspace's content, and the last calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from lmsconf.sandbox.service import LoggedRequest, SandboxService
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
_STYLE: Final = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;"
    "background:light-dark(#fff,#111316);color:light-dark(#1b1f24,#e8eaed)}"
    "div{overflow-x:auto;margin:.5rem 0 1.5rem}table{border-collapse:collapse;width:100%}"
    "caption{text-align:left;font-weight:600}"
    "th,td{text-align:left;padding:.2rem .8rem .2rem 0;border-bottom:1px solid light-dark(#d8dee4,#2c3138);"
    "vertical-align:top;min-width:3.5rem;max-width:24rem;overflow-wrap:break-word}"
    ".bad{color:light-dark(#b42318,#ff938a)}"
)
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


def render_page(service: SandboxService) -> str:
    """Render the page. All text from the workspace and from calls is escaped; there is no script."""
    with service.store.read_transaction() as repository:
        sections = [_section(repository, *section) for section in _SECTIONS]
    calls = service.log[-MOST_ROWS:][::-1]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Sandbox workspace</title>'
        f"<style>{_STYLE}</style></head><body><main><h1>Sandbox workspace</h1>"
        f"{_calls(calls, len(service.log))}{''.join(sections)}</main></body></html>\n"
    )


def _section(repository: Repository, title: str, headings: Sequence[str], query: str) -> str:
    """One table of the workspace: its first rows, and the number of all."""
    count = repository.number(f"SELECT count(*) FROM {query.rpartition(' ')[2]}")  # noqa: S608  the names stand above
    rows = repository.rows(f"{query} ORDER BY seq LIMIT {MOST_ROWS}")
    return _table(f"{title}: {_shown_of_all(len(rows), count)}", headings, map(_row, rows))


def _calls(calls: Sequence[LoggedRequest], count: int) -> str:
    """The last calls, the latest first."""
    headings = ("Method", "Path", "Operation", "Status")
    return _table(f"Last calls: {_shown_of_all(len(calls), count)}", headings, map(_call, calls))


def _call(call: LoggedRequest) -> str:
    status = "lost" if call.status == 0 else str(call.status)
    row = _row((call.method, call.path, call.operation, status))
    return row if 200 <= call.status < 400 else row.replace("<tr>", '<tr class="bad">', 1)


def _shown_of_all(shown: int, count: int) -> str:
    return str(count) if shown == count else f"{shown} of {count}"


def _table(caption: str, headings: Iterable[str], rows: Iterable[str]) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    table = f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{''.join(rows)}</table>"
    return f'<div tabindex="0" role="region" aria-label="{escape(caption)}">{table}</div>'


def _row(cells: Iterable[Value]) -> str:
    shown = ("" if cell is None else escape(str(cell)) for cell in cells)
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in shown) + "</tr>"
