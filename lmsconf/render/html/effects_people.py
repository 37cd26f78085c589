"""The people of the HTML page, with a search: only for a plan that was made with `--people`, which names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lmsconf.model.effects import AccessChange, PersonEffect
from lmsconf.model.plan import Plan
from lmsconf.render.html.document import Child, Markup, tag
from lmsconf.render.resource_wording import count_noun

MOST_PEOPLE: Final = 5_000
"""Rows in a page. With more it has none: a search that finds only some would be mistaken for the answer."""
_CHANGES: Final = {
    AccessChange.GAIN: "gains",
    AccessChange.LOSE: "loses",
    AccessChange.TO_MANDATORY: "becomes mandatory",
    AccessChange.TO_OPTIONAL: "becomes optional",
    AccessChange.WINDOW: "window changes",
}


def people_search(plan: Plan) -> Child:
    """Render a row for each person and content whose access changes; None for a plan that names nobody."""
    rows = plan.effects.rows
    if rows is None:
        return None
    if len(rows) > MOST_PEOPLE:
        return tag(
            "p", f"{len(rows):,} changes of access are too many for a page. The file of --people lists all of them."
        )
    tools = tag(
        "div",
        tag("input", type="search", id="people-search", placeholder="Search people, contents, causes …",
            aria_label="Search people"),
        tag("output", id="people-count", role="status"),
        class_="finder",
        role="search",
        aria_label="People",
        hidden=True,
    )  # fmt: skip
    headings = [tag("th", one, scope="col") for one in ("person", "content", "change", "before", "after", "causes")]
    body = tag("tbody", [_row(row) for row in rows], id="people-rows")
    table = tag("table", tag("thead", tag("tr", headings)), body, class_="counts people")
    heading = count_noun(len(rows), "change of access", "changes of access")
    return [
        tag("p", heading),
        tools,
        tag("div", table, class_="wide", role="region", tabindex="0", aria_label="People"),
    ]


def people_warning(plan: Plan) -> Child:
    """Render the note that a page names people; None where it names nobody because of its effects."""
    if not plan.effects.rows or len(plan.effects.rows) > MOST_PEOPLE:
        return None
    text = "This page contains e-mails of people, because of --people. Do not share it."
    return tag("div", tag("p", tag("span", "Personal data", class_="kind"), " · ", text), class_="note warning")


def _row(row: PersonEffect) -> Markup:
    change = _CHANGES[row.change] + (", cut short" if row.shortened else "")
    before, after = (
        _access(*side)
        for side in ((row.before, row.from_before, row.until_before), (row.after, row.from_after, row.until_after))
    )
    cells = (row.content, change, before, after, "; ".join(row.causes))
    return tag("tr", tag("th", row.email, scope="row"), [tag("td", cell) for cell in cells])


def _access(word: str, start: str | None, finish: str | None) -> str:
    """`mandatory, until 2026-12-31T22:59:59Z`."""
    return ", ".join([word, *_bounds(start, finish)])


def _bounds(start: str | None, finish: str | None) -> Iterator[str]:
    if start is not None:
        yield f"from {start}"
    if finish is not None:
        yield f"until {finish}"
