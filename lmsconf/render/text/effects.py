"""Effects on people as text: sentences first, then a table per content and per group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from lmsconf.model.effects import Basis
from lmsconf.model.plan import Plan
from lmsconf.render.effects_tables import EffectsRow, EffectsTable, content_table, group_table
from lmsconf.render.effects_wording import (
    EFFECTS_HEADING,
    MOST_SENTENCES,
    CausePlaces,
    ContentName,
    Phrase,
    cause_places,
    effect_sentences,
    effects_caveats,
    effects_headline,
    more_contents,
)
from lmsconf.render.escape import escape_terminal

_MOST_CAUSES: Final = 10
"""Maximum number of causes listed under a row: people whose answers change are a cause each."""


def effects_lines(plan: Plan) -> Iterator[Iterator[str]]:
    """Yield the blocks about people: the sentences, a table per content, a table per group.

    Nothing for a plan that is empty, unless its effects were not computed.
    """
    if not plan.changes and plan.effects.basis is not Basis.OFF:
        return
    places = cause_places(plan)
    yield _sentences(plan, places)
    contents, groups = content_table(plan.effects), group_table(plan.effects)
    if contents.rows:
        yield _table(contents, places)
    if groups.rows:
        yield _table(groups, places)


def effects_reminder(plan: Plan) -> Iterator[str]:
    """Yield the first sentence again, for the end of a plan: on a terminal, its beginning is out of sight by then."""
    if len(plan.changes) > 1 and (plan.effects.people.any and plan.effects.basis is not Basis.OFF):
        yield _headline(plan)


def _headline(plan: Plan) -> str:
    return f"{EFFECTS_HEADING}: {effects_headline(plan)}"


def _sentences(plan: Plan, places: CausePlaces) -> Iterator[str]:
    yield _headline(plan)
    listed = 0
    for sentence in islice(effect_sentences(plan, places), MOST_SENTENCES):
        listed += 1
        yield f"  {_phrase(sentence.effect)}"
        if sentence.causes:
            yield f"      {_phrase(sentence.causes)}"
    more = more_contents(plan, listed)
    if more is not None:
        yield f"  … {more}; the table below lists all of them."
    yield from (escape_terminal(f"  {caveat}") for caveat in effects_caveats(plan.effects))


def _phrase(phrase: Phrase) -> str:
    """Return a sentence with the names of contents in quotes."""
    return escape_terminal("".join(f'"{part}"' if isinstance(part, ContentName) else part for part in phrase))


def _table(table: EffectsTable, places: CausePlaces) -> Iterator[str]:
    """Yield a table whose last column are the names, which are never truncated."""
    words = [heading.rpartition(" ") for heading in table.headings]
    widths = [
        max(len(first), len(last), *(len(row.cells[column]) for row in table.rows if row.unknown is None), 0)
        for column, (first, _, last) in enumerate(words)
    ]
    if any(first for first, _, _ in words):
        yield f"  {_columns([first for first, _, _ in words], widths)}".rstrip()
    yield f"  {_columns([last for _, _, last in words], widths)}  {table.nouns[0]}"
    for row in table.rows:
        yield from _row(row, widths, places)


def _columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def _row(row: EffectsRow, widths: Sequence[int], places: CausePlaces) -> Iterator[str]:
    width = sum(widths) + 2 * (len(widths) - 1)
    numbers = _columns(row.cells, widths) if row.unknown is None else row.unknown.ljust(width)
    place = "" if row.address is None else "".join(places.get(row.address, ()))
    yield escape_terminal(f"  {numbers}  {row.title}{' (estimate)' if row.is_estimate else ''}{place}")
    if row.note is not None:
        yield escape_terminal(f"      {row.note}")
    yield from (escape_terminal(f"      {line}") for line in _cause_lines(row, places))


def _cause_lines(row: EffectsRow, places: CausePlaces) -> Iterator[str]:
    for cause in row.causes[:_MOST_CAUSES]:
        place = "".join(places.get(cause.address, ()))
        yield f"{cause.title}{place}{cause.counted and f': {cause.counted}'}"
    if row.cause_count > _MOST_CAUSES:
        yield f"… and {row.cause_count - _MOST_CAUSES:,} more causes"
