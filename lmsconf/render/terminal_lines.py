"""Text for a terminal of some width: prose is wrapped at words; what may be copied keeps its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import combining, east_asian_width

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")
_KEPT: Final = re.compile(r"\s*(?:(?:-/\+|[+~-]|lmsconf|git|cd) .*|.*\S {2,}\S.*|.*\S *\|.*)")
"""A changed resource or item, a command, a row of a table."""
_WORD: Final = re.compile(r"(?<=: )lmsconf .+$|`[^`]*`\S*|'[^']*'\S*|\S+")
"""A word; also a command after a colon, and what stands in quotes, so that it can be copied."""
_HANG: Final = 2


def wrap_prose(text: str, columns: int) -> str:
    """Wrap the lines of prose that are wider than the terminal; a following line is indented by two more."""
    return "\n".join(_wrapped(line, columns) for line in text.split("\n"))


def rows_on_terminal(text: str, columns: int) -> int:
    """Return how many rows of a terminal a text takes, whose longest lines the terminal breaks."""
    widths = (_width(_ESCAPE.sub("", line)) for line in text.removesuffix("\n").split("\n"))
    return sum(max(-(-width // columns), 1) for width in widths)


def _wrapped(line: str, columns: int) -> str:
    if _width(line) <= columns or _KEPT.fullmatch(line):
        return line
    indent = line[: len(line) - len(line.lstrip())]
    tail = line[len(line.rstrip()) :]
    return "\n".join(_lines(_WORD.findall(line), columns, indent)) + tail


def _lines(words: list[str], columns: int, indent: str) -> Iterator[str]:
    """Yield lines of words. A word that is wider than the terminal has a line of its own."""
    line = indent
    for word in words:
        if line.strip() and _width(line) + 1 + _width(word) > columns:
            yield line
            line = f"{indent}{'':{_HANG}}"
        line += f" {word}" if line.strip() else word
    yield line


def _width(text: str) -> int:
    """Return the columns that a text takes: East Asian characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)
