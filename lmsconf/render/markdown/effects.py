"""Effects on people in a Markdown comment: a paragraph for its head, and tables as sections that fit its size.

Names are escaped by `escape_markdown` and `markdown_code`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Final

from lmsconf.model.effects import Basis
from lmsconf.model.plan import Plan
from lmsconf.render.effects_sentences import (
    MOST_CAUSES,
    MOST_SENTENCES,
    CausePlaces,
    CodeText,
    ContentName,
    EffectSentence,
    Phrase,
    cause_places,
    effect_sentences,
    more_contents,
)
from lmsconf.render.effects_tables import EffectsRow, EffectsTable, content_table, group_table
from lmsconf.render.effects_wording import EFFECTS_HEADING, effects_caveats, effects_headline
from lmsconf.render.escape import escape_markdown, markdown_code
from lmsconf.render.markdown.sections import NAME_SIZE, MarkdownSection, SectionEntry, truncate
from lmsconf.render.resource_wording import count_noun
from lmsconf.render.size_limit import SizeLimit, byte_size

_PART: Final = 8
"""The paragraph takes at most this part of the size of a comment: guards and deletions need theirs."""
_ROWS: Final = (10, 50, 250)
"""Rows of a table where there is no room for all."""


def effects_paragraphs(plan: Plan, limit: SizeLimit) -> tuple[str, str]:
    """Return what the plan does to people: the sums in one sentence, and a sentence for each of the first contents.

    Both are empty for a plan without changes, unless effects were not computed.
    """
    if not plan.changes and plan.effects.basis is not Basis.OFF:
        return "", ""
    room = _Room(None if limit.size is None else limit.size // _PART)
    headline = f"**{EFFECTS_HEADING}:** {escape_markdown(effects_headline(plan))}"
    room.take(headline)
    caveats = [
        text
        for caveat in effects_caveats(plan.effects)
        if (text := truncate(caveat, escape_markdown, 4 * NAME_SIZE)) and room.take(text)
    ]
    places = cause_places(plan)
    sentences = islice(effect_sentences(plan, places), MOST_SENTENCES)
    items = [item for sentence in sentences if (item := _item(sentence, room)) is not None]
    more = more_contents(plan, len(items))
    rest = [f"- … {more}, in the table below"] if more is not None else []
    return headline, "\n\n".join(filter(None, ("\n".join([*items, *rest]), *caveats)))


class _Room:
    """The bytes that are left; None: unlimited."""

    def __init__(self, size: int | None) -> None:
        self._left = size

    def take(self, text: str) -> bool:
        """Return whether a text fits, and if so take its bytes."""
        if self._left is None:
            return True
        if byte_size(text) > self._left:
            return False
        self._left -= byte_size(text)
        return True


def _item(sentence: EffectSentence, room: _Room) -> str | None:
    """Return a sentence with its causes, without them, or None if there is no room."""
    effect, causes = _phrase(sentence.effect), _phrase(sentence.causes)
    variants = (f"- {effect} {causes}".rstrip(), f"- {effect}")
    return next((text for text in variants if room.take(text)), None)


def _phrase(phrase: Phrase) -> str:
    return "".join(map(_part, phrase))


def _part(part: str) -> str:
    if isinstance(part, ContentName):
        return f"*{truncate(part, escape_markdown)}*"
    if isinstance(part, CodeText):
        return truncate(part, markdown_code)
    # Spaces at the edges are those of the sentence, which `escape_markdown` would make visible.
    inner = part.strip(" ")
    before, after = part[: len(part) - len(part.lstrip(" "))], part[len(part.rstrip(" ")) :]
    return f"{before}{escape_markdown(inner)}{after}" if inner else " " * bool(part)


def effects_sections(plan: Plan, limit: SizeLimit) -> Iterator[MarkdownSection]:
    """Yield the tables, folded: a row for each content, and for each group whose members change."""
    places = cause_places(plan)
    contents, groups = content_table(plan.effects), group_table(plan.effects)
    if contents.rows:
        yield _section(f"Access changes: {count_noun(len(contents.rows), *contents.nouns)}", contents, places, limit)
    if groups.rows:
        yield _section(f"Members change: {count_noun(len(groups.rows), *groups.nouns)}", groups, places, limit)


def _section(heading: str, table: EffectsTable, places: CausePlaces, limit: SizeLimit) -> MarkdownSection:
    sizes = [most for most in _ROWS if most < len(table.rows)]
    variants: list[Callable[[], str]] = [partial(_table, table, places, most) for most in (*sizes, len(table.rows))]
    return MarkdownSection(heading, (SectionEntry(("table", "tables"), variants),), folded=limit.folds)


def _table(table: EffectsTable, places: CausePlaces, most: int) -> str:
    has_notes = any(row.note is not None for row in table.rows)
    texts = ["who lose it"] * has_notes + ["causes" if table.nouns[0] == "content" else "declared"]
    head = f"| {table.nouns[0]} | {' | '.join((*table.headings, *texts))} |"
    rule = f"|:--|{'--:|' * len(table.headings)}{':--|' * len(texts)}"
    rows = [_row(row, places, has_notes=has_notes) for row in table.rows[:most]]
    hidden = len(table.rows) - most
    rest = f"\n… and {hidden:,} more {table.nouns[hidden != 1]} not listed here.\n" if hidden > 0 else ""
    return "\n".join([head, rule, *rows]) + "\n" + rest


def _row(row: EffectsRow, places: CausePlaces, *, has_notes: bool) -> str:
    title = truncate(row.title, escape_markdown if row.address is None else markdown_code)
    cells: Sequence[str] = row.cells if row.unknown is None else (row.unknown, *("",) * (len(row.cells) - 1))
    note = escape_markdown((row.note or "").partition(": ")[2].rstrip("."))
    estimate = " (estimate)" if row.is_estimate else ""
    return f"| {' | '.join((f'{title}{estimate}', *cells, *([note] if has_notes else []), _causes(row, places)))} |"


def _causes(row: EffectsRow, places: CausePlaces) -> str:
    if row.address is not None:
        return _phrase(places.get(row.address, ())).removeprefix(", ")
    listed = [
        f"{truncate(cause.title, markdown_code)}{_phrase(places.get(cause.address, ()))}"
        f"{cause.counted and f': {cause.counted}'}"
        for cause in row.causes[:MOST_CAUSES]
    ]
    more = row.cause_count - MOST_CAUSES
    return "; ".join([*listed, *([f"and {more:,} more"] if more > 0 else [])])
