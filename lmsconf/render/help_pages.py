"""Help: a page of the guide on a terminal, and the documentation of a manifest key as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from textwrap import wrap
from typing import Final, cast

import msgspec

from lmsconf.documents.json_documents import TOOL, render_json
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import KeyExplanation
from lmsconf.render.text import table_lines

_UNSHOWN: Final = re.compile(
    r"^(?:<!-- [^\n]* -->|!\[[^\n]*\]\([^\n]*\)|<picture>.*?^</picture>)$\n?", re.MULTILINE | re.DOTALL
)
"""Comments and pictures."""
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")

_LEAD: Final = r"[^\S\n]*(?:[-*]|\d+\.) +"
"""The beginning of an item of a list."""


def guide_page_text(page: str, width: int, *, bold: bool = False) -> str:
    """Render a page in lines of at most `width` characters, except code, which keeps its lines.

    bold: write headings in bold, as terminals do, and not with the marks of Markdown.
    """
    lines: list[str] = []
    for kind, block in _blocks(_UNSHOWN.sub("", page)):
        match kind:
            case "code":
                lines += [f"    {line}".rstrip() for line in block]
            case "table":
                lines += _table([_cells(line) for line in block], width)
            case "blank":
                lines += [""] if lines and lines[-1] else []
            case "heading":
                lines += [f"\x1b[1m{line.lstrip('#').strip()}\x1b[0m" for line in block] if bold else block
            case _:
                lines += _prose(block, width)
    return "\n".join(lines).strip("\n") + "\n"


def _blocks(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the blocks of a page with their kind: code, table, blank, heading or prose; fences are left out."""
    for number, part in enumerate(re.split(r"^```.*\n", page, flags=re.MULTILINE)):
        if number % 2:
            yield "code", part.splitlines()
        else:
            yield from ((kind, list(lines)) for kind, lines in groupby(part.splitlines(), _kind))


def _kind(line: str) -> str:
    return {"|": "table", "#": "heading"}.get(line[:1], "prose") if line.strip() else "blank"


def _prose(lines: Sequence[str], width: int) -> Iterator[str]:
    """Yield paragraphs and the items of lists, wrapped; an item hangs below its first word."""
    for piece in re.split(rf"\n(?={_LEAD})", "\n".join(lines)):
        lead = "".join(re.findall(rf"^{_LEAD}", piece))
        yield from _wrapped(_plain(re.sub(r"\s*\n\s*", " ", piece.removeprefix(lead))), width, lead)


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Return a table in columns as wide as they need, or as the terminal has; its second row is the rule."""
    head, *body = ([_plain(cell) for cell in row] for number, row in enumerate(rows) if number != 1)
    widths = _widths([head, *body], width)
    cells = (map(_wrapped, row, widths) for row in (head, ["-" * size for size in widths], *body))
    return table_lines([parts for row in cells for parts in zip_longest(*row, fillvalue="")], range(len(widths)))


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the widths of the columns: the widest give way until all fit, down to a word first, then within words."""
    columns = list(zip_longest(*rows, fillvalue=""))
    widths = [max(map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    room = width - 2 * (len(widths) - 1)
    while sum(widths) > room and (free := [one for one, size in enumerate(widths) if size > min(words[one], 8)]):
        widths[max(free, key=lambda one: (widths[one] > words[one], widths[one]))] -= 1
    return widths


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _plain(text: str) -> str:
    """Return prose without the marks of links and of bold text."""
    return _LINK.sub(_link, text).replace("**", "")


def _link(match: re.Match[str]) -> str:
    """A topic as the command that opens it, an address behind its text, and any other link as its text."""
    text, target = match[1], match[2]
    if topic := re.match(r"([\w-]+)\.md(?:#|$)", target):
        command = f"`lmsconf help {topic[1]}`"
        return command if text == topic[1] else f"{text} ({command})"
    return f"{text} ({target})" if "://" in target else text


def _wrapped(text: str, width: int, lead: str = "") -> list[str]:
    """Wrap at blanks: an option or an address is not cut, unless it is wider than the line."""
    return wrap(text, width, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False) or [lead]


def explain_json(explanation: KeyExplanation) -> str:
    """Return what `explain` explains as the document `lmsconf.explain/1`."""
    return render_json(
        {"format": "lmsconf.explain/1", "tool": TOOL, **cast("dict[str, Json]", msgspec.to_builtins(explanation))}
    )
