"""Effects on people in the HTML page: sentences for its head, and a section with bars, tables and a matrix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from lmsconf.model.address import Address
from lmsconf.model.effects import Basis, ContentEffects
from lmsconf.model.plan import Plan
from lmsconf.render.effects_sentences import (
    MOST_SENTENCES,
    CausePlaces,
    CodeText,
    ContentName,
    Phrase,
    cause_places,
    effect_sentences,
    more_contents,
    sort_contents,
)
from lmsconf.render.effects_tables import CauseCell, EffectsRow, EffectsTable, content_table, group_table
from lmsconf.render.effects_wording import EFFECTS_HEADING, effects_caveats, effects_headline
from lmsconf.render.html.document import Child, Markup, tag
from lmsconf.render.html.effects_matrix import effects_matrix
from lmsconf.render.resource_wording import count_noun

Anchors = Mapping[str, str]

_OPEN_ROWS: Final = 100
"""Rows of a table that are shown at once; the others are folded."""
_MOST_ROWS: Final = 2_000
"""Rows of a table in a page; the others stand in the plan's JSON."""


def effects_summary(plan: Plan) -> Child:
    """Render the sentences about people. None for a plan without changes, unless its effects were not computed."""
    if not plan.changes and plan.effects.basis is not Basis.OFF:
        return None
    places = cause_places(plan)
    sentences = list(islice(effect_sentences(plan, places), MOST_SENTENCES))
    items: list[Child] = [
        tag("li", _phrase(sentence.effect), " ", tag("span", _phrase(sentence.causes), class_="soft"))
        for sentence in sentences
    ]
    more = more_contents(plan, len(sentences))
    if more is not None:
        items.append(tag("li", "… ", tag("a", more, href="#people")))
    return tag(
        "div",
        tag("p", tag("b", f"{EFFECTS_HEADING}: "), effects_headline(plan), class_="headline"),
        tag("ul", items) if items else None,
        [tag("p", caveat, class_="scope") for caveat in effects_caveats(plan.effects)],
        class_="effects",
    )


def _phrase(phrase: Phrase) -> list[Child]:
    return [_part(part) for part in phrase]


def _part(part: str) -> Child:
    if isinstance(part, ContentName):
        return tag("em", str(part))
    return tag("code", str(part)) if isinstance(part, CodeText) else part


def effects_tables(plan: Plan, anchors: Anchors) -> Child:
    """Render the contents whose access changes, the matrix, and the groups whose members change; None without any."""
    places = cause_places(plan)
    contents, groups = content_table(plan.effects), group_table(plan.effects)
    if not contents.rows and not groups.rows:
        return None
    bars = _bars(sort_contents(plan.effects.contents))
    return [
        [_key(), _tables(contents, "Access to content", places, anchors, bars)] if contents.rows else None,
        effects_matrix(plan.effects),
        _tables(groups, "Members of groups", places, anchors, {}) if groups.rows else None,
    ]


def _key() -> Markup:
    """Render what the colours of the bars mean."""
    words = (("lose", "lose it"), ("keep", "still have it"), ("gain", "gain it"))
    return tag(
        "p", [tag("span", text, class_=f"key {name}") for name, text in words], class_="bar-key", aria_hidden="true"
    )


def _tables(
    table: EffectsTable, heading: str, places: CausePlaces, anchors: Anchors, bars: Mapping[int, Child]
) -> list[Child]:
    """Render a table; where it is long, its end is folded."""
    rows = [_row(row, table, places, anchors, bars.get(number)) for number, row in enumerate(table.rows[:_MOST_ROWS])]
    rest, hidden = rows[_OPEN_ROWS:], len(table.rows) - len(rows)
    more = f"{count_noun(len(rest), f'more {table.nouns[0]}', f'more {table.nouns[1]}')}"
    return [
        tag("h3", f"{heading}: {count_noun(len(table.rows), *table.nouns)}"),
        _table(table, heading, rows[:_OPEN_ROWS]),
        tag("details", tag("summary", more), _table(table, heading, rest), class_="fold") if rest else None,
        tag("p", f"{hidden:,} more are not listed here; `lmsconf show PLAN --format json` has all.")
        if hidden
        else None,
    ]


def _table(table: EffectsTable, label: str, rows: Sequence[Child]) -> Markup:
    headings = [tag("th", table.nouns[0], scope="col"), *(tag("th", one, scope="col") for one in table.headings)]
    content = tag("table", tag("thead", tag("tr", headings)), tag("tbody", rows), class_="counts")
    return tag("div", content, class_="wide", role="region", tabindex="0", aria_label=label)


def _row(row: EffectsRow, table: EffectsTable, places: CausePlaces, anchors: Anchors, bar: Child) -> Markup:
    title: Child = row.title if row.address is None else _linked(row.address, row.title, anchors)
    place = None if row.address is None else [tag("small", _phrase(places.get(row.address, ())[-1:]), class_="soft")]
    head = tag(
        "th",
        tag("span", title, class_="name"),
        " (estimate)" if row.is_estimate else None,
        place,
        bar,
        _details(row, places, anchors),
        scope="row",
    )
    return tag("tr", head, _cells(row, table.headings))


_COLOURS: Final = {"lose": "less", "leave": "less", "shortened": "less", "gain": "more", "join": "more"}


def _cells(row: EffectsRow, headings: Sequence[str]) -> Iterator[Markup]:
    if row.unknown is not None:
        yield tag("td", row.unknown, colspan=len(row.cells), class_="unknown")
        return
    for heading, cell in zip(headings, row.cells, strict=True):
        yield tag("td", cell, class_="zero" if cell == "0" else _COLOURS.get(heading))


def _details(row: EffectsRow, places: CausePlaces, anchors: Anchors) -> Child:
    """Render how far those are who lose a content, and the causes, folded."""
    if row.address is not None or not row.causes:
        return tag("p", row.note) if row.note else None
    causes = [_cause(cause, places, anchors) for cause in row.causes]
    hidden = row.cause_count - len(causes)
    more = tag("li", f"and {hidden:,} more") if hidden else None
    return tag(
        "details",
        tag("summary", count_noun(row.cause_count, "cause")),
        tag("p", row.note) if row.note else None,
        tag("ul", causes, more),
        class_="fold",
    )


def _cause(cause: CauseCell, places: CausePlaces, anchors: Anchors) -> Markup:
    counted = f": {cause.counted}" if cause.counted else None
    return tag("li", _linked(cause.address, cause.title, anchors), _phrase(places.get(cause.address, ())), counted)


def _linked(address: Address, title: str, anchors: Anchors) -> Markup:
    """Render the title of a changed resource as a link to its change."""
    anchor = anchors.get(str(address))
    return tag("code", title) if anchor is None else tag("a", tag("code", title), href=f"#{anchor}")


def _bars(contents: Sequence[ContentEffects]) -> dict[int, Child]:
    """Return position → bar of each content: who loses, still has and gains it, as parts of the largest content."""
    known = {
        number: one for number, one in enumerate(contents) if one.before is not None and one.counts.gain is not None
    }
    longest = max((_people_of(one) for one in known.values()), default=0)
    return {number: _bar(one, longest) for number, one in known.items()} if longest else {}


def _people_of(content: ContentEffects) -> int:
    return (content.before or 0) + (content.counts.gain or 0)


def _bar(content: ContentEffects, longest: int) -> Markup:
    """Render a bar as SVG, whose widths are attributes: inline styles are not allowed by the page's policy."""
    lose, gain = content.counts.lose or 0, content.counts.gain or 0
    left, parts = 0.0, []
    for name, number in (("lose", lose), ("keep", (content.before or 0) - lose), ("gain", gain)):
        width = max(number, 0) * 100 / longest
        if width:
            parts.append(tag("rect", x=f"{left:.2f}", y="0", width=f"{width:.2f}", height="1", class_=name))
        left += width
    return tag("svg", parts, class_="bar", viewBox="0 0 100 1", preserveAspectRatio="none", aria_hidden="true")
