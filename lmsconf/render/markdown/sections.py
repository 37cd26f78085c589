"""Components of a Markdown comment: resources, problems, and sections of them that fit a size limit.

Names are escaped by `markdown_code`, `escape_markdown`, `markdown_fence` or, inside HTML, by `escape_html` within
<code>, where services create no links.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.plan import Action, Change, NoLongerDeclared
from lmsconf.render.change_summary import KeyChange, key_changes
from lmsconf.render.escape import escape_html, escape_markdown, markdown_code, markdown_fence
from lmsconf.render.plan_wording import (
    ACTION_SIGNS,
    ACTION_WORDS,
    annotation_lines,
    describe_undo_limit,
    problem_message,
)
from lmsconf.render.resource_wording import MAX_SHOWN_ITEMS, NO_VALUE, count_noun, kind_nouns, resource_title
from lmsconf.render.size_limit import TextVariant, byte_size, choose_variants

NAME_SIZE = 240
"""Maximum bytes of one name in a line; the details have the full name."""


_BLANKS = re.compile(r"\n{3,}")  # code blocks are not affected: each of their lines starts with a sign


class SectionEntry(Struct, frozen=True):
    """One item of a section. nouns: how it is counted if omitted. variants: its texts, shortest first."""

    nouns: tuple[str, str]
    variants: Sequence[TextVariant]


class MarkdownSection(Struct, frozen=True):
    """Entries under a heading; folded: in a collapsed `<details>`. Without entries the heading is a sentence."""

    heading: str
    entries: Sequence[SectionEntry]
    folded: bool = False


def fit_sections(sections: Sequence[MarkdownSection], max_bytes: int | None) -> tuple[str, bool]:
    """Render sections within `room` bytes (None: unlimited), earlier entries first; return (text, whether complete)."""
    if max_bytes is not None:
        max_bytes -= sum(byte_size(_framed(section, "-", _nouns(section.entries))) for section in sections)
    chosen, whole = choose_variants([entry.variants for section in sections for entry in section.entries], max_bytes)
    texts = iter(chosen)
    body = "".join(_section(section, [next(texts) for _ in section.entries]) for section in sections)
    return _BLANKS.sub("\n\n", body), whole


def _section(section: MarkdownSection, texts: Sequence[str | None]) -> str:
    hidden = _nouns(entry for entry, text in zip(section.entries, texts, strict=True) if text is None)
    return _framed(section, "".join(text for text in texts if text is not None), hidden)


def _nouns(entries: Iterable[SectionEntry]) -> Counter[tuple[str, str]]:
    return Counter(entry.nouns for entry in entries)


def _framed(section: MarkdownSection, body: str, hidden: Counter[tuple[str, str]]) -> str:
    """Render one section, with counts of the entries that are omitted."""
    if hidden and body:
        counted = ", ".join(count_noun(number, *nouns) for nouns, number in hidden.items())
        body += f"\n… and {escape_markdown(counted)} not listed here.\n"
    elif hidden:
        body = "Not listed here.\n"
    if not body:
        return f"\n{escape_markdown(section.heading)}\n"
    if section.folded:
        return details_block(f"<b>{escape_html(section.heading)}</b>", body)
    return f"\n#### {escape_markdown(section.heading)}\n\n{body}"


def details_block(heading: str, body: str) -> str:
    """Return a collapsed `<details>` block; the heading is HTML already."""
    return f"\n<details><summary>{heading}</summary>\n\n{body}\n</details>\n"


def truncate(text: str, escape: Callable[[str], str], max_bytes: int = NAME_SIZE) -> str:
    """Return the escaped text, truncated so that the result has at most `most` bytes."""
    escaped = escape(text)
    while byte_size(escaped) > max_bytes:
        text = text[: min(len(text) - 1, len(text) * max_bytes // byte_size(escaped))]
        escaped = escape(f"{text}…")
    return escaped


def change_entry(change: Change, *, folds: bool) -> SectionEntry:
    """Return the entry of a change: as a row, with the first items of its lists, in full."""
    details = partial(_change, change, folds=folds)
    return SectionEntry(
        kind_nouns(change.address.kind),
        (lambda: _row(change), lambda: details(most=MAX_SHOWN_ITEMS), lambda: details(most=None)),
    )


def _row(change: Change) -> str:
    """`- group/Sales will be changed, members: 1 removed · groups.yaml:3:5`."""
    origin = "" if change.origin is None else f" ({change.origin.value})"
    return summary_row(_headline(change) + origin, _news(change), change.source)


def summary_row(headline: str, keys: Iterable[KeyChange], source: SourceLocation | None) -> str:
    """`- headline · what changes · where`."""
    facts = ", ".join(f"{key.path}: {key.note}" if key.note else key.path for key in keys)
    changes = truncate(facts, escape_markdown) if facts else ""
    return f"- {' · '.join(filter(None, (headline, changes, source_location(source))))}\n"


def _news(change: Change) -> Iterable[KeyChange]:
    return key_changes(change) if change.action in (Action.UPDATE, Action.REPLACE) else ()


def _headline(change: Change) -> str:
    return f"{truncate(resource_title(change.address), markdown_code)} {ACTION_WORDS[change.action].partition(':')[0]}"


def source_location(source: SourceLocation | None) -> str:
    return "" if source is None else truncate(str(source), markdown_code)


def _change(change: Change, *, folds: bool, most: int | None) -> str:
    body = "\n\n".join(filter(None, _body(change, most)))
    if not folds:
        return f"\n{_headline(change)}\n\n{body}\n"
    return details_block(details_summary(ACTION_SIGNS[change.action], change.address, _news(change)), f"{body}\n")


def details_summary(sign: str, address: Address, keys: Iterable[KeyChange]) -> str:
    """Return the HTML summary line of a collapsed resource."""
    counts = "".join(f" <b>{sign}{number:,}</b>" for sign, number in _items(keys) if number)
    return f"<code>{sign}</code> <code>{truncate(resource_title(address), escape_html)}</code>{counts}"


def _items(keys: Iterable[KeyChange]) -> Iterator[tuple[str, int]]:
    """Yield (sign, count) of items added and removed."""
    news = [key for key in keys if key.note]
    yield "+", sum(len(key.added) for key in news)
    yield "−", sum(len(key.removed) for key in news)  # noqa: RUF001  # a minus as wide as the plus


def _body(change: Change, most: int | None) -> Iterator[str]:
    origin = "" if change.origin is None else change.origin.value
    yield " · ".join(filter(None, (ACTION_WORDS[change.action].capitalize(), origin, source_location(change.source))))
    yield "" if change.reason is None else escape_markdown(change.reason or NO_VALUE)
    yield "".join(f"- about {escape_markdown(line)}\n" for line in annotation_lines(change))
    yield escape_markdown(describe_undo_limit(change) or "")
    yield "".join(problem_text(problem, block_address=change.address) for problem in change.problems)
    yield diff_block(key_changes(change), most)


def diff_block(keys: Iterable[KeyChange], max_items: int | None) -> str:
    """Return a diff block of removed and added values; most: items shown per list, None: all."""
    lines = [line for key in keys for line in _diff_lines(key, max_items)]
    return markdown_fence("\n".join(lines), "diff") if lines else ""


def _diff_lines(key: KeyChange, most: int | None) -> Iterator[str]:
    """Yield the diff lines of one key."""
    single = not key.note and len(key.removed) <= 1 and len(key.added) <= 1
    if single:
        yield from (f"- {_line(key.path)}: {_line(item)}" for item in key.removed)
        yield from (f"+ {_line(key.path)}: {_line(item)}" for item in key.added)
    else:
        sign = " " if key.removed and key.added else "-" if key.removed else "+"
        yield f"{sign} {_line(key.path)}:{f' {key.note}' if key.note else ''}"
        yield from _listed("-", key.removed, most)
        yield from _listed("+", key.added, most)


def _listed(sign: str, items: Sequence[str], most: int | None) -> Iterator[str]:
    yield from (f"{sign}   {_line(item)}" for item in items[:most])
    if most is not None and len(items) > most:
        yield f"{sign}   … and {len(items) - most:,} more"


def _line(text: str) -> str:
    """Escape newlines in a name, which would end its diff line; `markdown_fence` escapes the rest."""
    return text.replace("\n", "\\n")


def problem_entry(problem: Problem) -> SectionEntry:
    """Return the entry of a problem: truncated in one row, and in full with its hint."""
    return SectionEntry(
        (problem.severity.value, f"{problem.severity.value}s"),
        (lambda: problem_text(problem, short=True), lambda: problem_text(problem)),
    )


_MARKS = {"error": "⛔ error", "warning": "⚠️ warning", "note": "note"}


def problem_text(problem: Problem, *, block_address: Address | None = None, short: bool = False) -> str:
    """`- **error** message [code] · groups.yaml:3:5`, followed by the hint unless `short`."""
    message = problem_message(problem, block_address=block_address)
    escaped = truncate(message, escape_markdown, 2 * NAME_SIZE) if short else escape_markdown(message)
    kind = truncate(problem.code, markdown_code)
    place = f" · {truncate(str(problem.source), markdown_code)}" if problem.source else ""
    line = f"- **{_MARKS[problem.severity.value]}** {escaped} {kind}{place}"
    hint = [] if short else [escape_markdown(line) for line in (problem.hint or "").split("\n") if line.strip()]
    return "\n  ".join([line, *hint]) + "\n"


def abandoned_entry(abandoned: NoLongerDeclared) -> SectionEntry:
    """Return the entry of a resource that only the base declares, with the manifest line that would delete it."""
    nouns, title = (
        kind_nouns(abandoned.address.kind),
        truncate(resource_title(abandoned.address), markdown_code),
    )
    return SectionEntry(nouns, (lambda: f"- {title}\n", lambda: f"- {title}\n  {markdown_code(abandoned.absent)}\n"))


def address_entry(address: Address) -> SectionEntry:
    """Return an entry with the title of a resource."""
    return SectionEntry(
        kind_nouns(address.kind),
        (lambda: f"- {truncate(resource_title(address), markdown_code)}\n",),
    )
