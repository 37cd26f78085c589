"""Text for a terminal: its colours, and prose wrapped to its width; what may be copied keeps its lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final
from unicodedata import combining, east_asian_width

_RED, _GREEN, _YELLOW, _BOLD, _OFF = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"

_LINE = re.compile(
    r"^(?P<indent>[ ]+)(?P<sign>-/\+|[+~-])(?= )"
    r"|^(?P<bold>(?:Plan:|No changes\.|Drift:|No drift\.|Apply |Workspace |Effects on people:).*)$"
    r"|^(?P<place>.*?)(?P<severity>error|warning)(?=: .*\[[\w/-]+\]$)",
    re.MULTILINE,
)
_SIGNS = {"+": _GREEN, "-": _RED, "~": _YELLOW, "-/+": _RED}
_SEVERITIES = {"error": _RED, "warning": _YELLOW}


def colorize(text: str) -> str:
    """Colour signs, severities and summary lines. Text from `escape_terminal` has no escape sequences of its own."""
    return _LINE.sub(_painted, text)


def _painted(match: re.Match[str]) -> str:
    if match["bold"] is not None:
        return f"{_BOLD}{match['bold']}{_OFF}"
    if match["sign"] is not None:
        return f"{match['indent']}{_SIGNS[match['sign']]}{match['sign']}{_OFF}"
    return f"{match['place']}{_SEVERITIES[match['severity']]}{match['severity']}{_OFF}"


_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")
_COLORED: Final = re.compile(r"(?P<on>\x1b\[[0-9;]+m)(?P<text>[^\x1b]*)(?P<off>\x1b\[0m)")
_KEPT: Final = re.compile(r"\s*(?:(?:-/\+|[+~-]|lmsconf|git|cd) .*|.*\S {2,}\S.*|.*\S *\|.*)")
"""A changed resource or item, a command, a row of a table."""
_WORD: Final = re.compile(r"(?<=: )lmsconf .+$|`[^`]*`\S*|'[^']*'\S*|\S+")
"""A word; also a command after a colon, and what stands in quotes, so that it can be copied."""
_COMMAND: Final = "lmsconf "
_HANG: Final = 2


def wrap_prose(text: str, columns: int) -> str:
    """Wrap the lines of prose that are wider than the terminal; a following line is indented by two more.

    Colours are kept.
    """
    return "\n".join(_wrapped(line, columns) for line in text.split("\n"))


def rows_on_terminal(text: str, columns: int) -> int:
    """Return how many rows of a terminal a text takes, whose longest lines the terminal breaks."""
    widths = (_width(line) for line in text.removesuffix("\n").split("\n"))
    return sum(max(-(-width // columns), 1) for width in widths)


def _wrapped(line: str, columns: int) -> str:
    plain = _ESCAPE.sub("", line)
    if _width(plain) <= columns or _KEPT.fullmatch(plain):
        return line
    if whole := _COLORED.fullmatch(line):  # in each line: a pager takes colours to end with it
        lines = _wrapped(whole["text"], columns).split("\n")
        return "\n".join(f"{whole['on']}{one}{whole['off']}" for one in lines)
    indent = line[: len(line) - len(line.lstrip())]
    tail = line[len(line.rstrip()) :]
    return "\n".join(_lines(_words(line, columns), columns, indent)) + tail


def _words(line: str, columns: int) -> Iterator[str]:
    """Yield what a line is not broken within; a quotation that is wider than the terminal is its words."""
    for word in _WORD.findall(line):
        if _width(word) > columns and not word.startswith(_COMMAND):
            yield from word.split()
        else:
            yield word


def _lines(words: Iterable[str], columns: int, indent: str) -> Iterator[str]:
    """Yield lines of words. A word that is wider than the terminal has a line of its own."""
    line = indent
    for word in words:
        if line.strip() and _width(line) + 1 + _width(word) > columns:
            yield line
            line = f"{indent}{'':{_HANG}}"
        line += f" {word}" if line.strip() else word
    yield line


def _width(text: str) -> int:
    """Return the columns that a text takes: East Asian characters take two, combining ones and escapes none."""
    text = _ESCAPE.sub("", text) if "\x1b" in text else text
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)
