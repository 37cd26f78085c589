"""One escape function per output format: what is active there becomes visible text; and limits of size.

    escape_terminal  terminals and logs: one line, no control characters, no CI workflow command
    escape_markdown  Markdown inline or in a table cell: no link, mention, emphasis or HTML
    markdown_code    Markdown code span, from which a name can be copied
    markdown_fence   Markdown code block that its content cannot end
    escape_html      HTML or XML text, or a quoted attribute value; XML forbids some characters altogether
    csv_cell         CSV cell that no spreadsheet evaluates as a formula
    truncate         escaped text of at most so many bytes
    choose_variants  texts of entries that fit into a limit

All of them replace control characters, characters that reorder or hide text, and lone surrogates as
`escape_invisible` does.

The variants of an entry are its texts, shortest first. Each round raises every entry to its next one, in order,
while there is room, so all entries are named before one is shown in full. No text is truncated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from lmsconf.errors import refuse_if
from lmsconf.model.control_characters import escape_invisible

# CI runners execute `::` at the start of a line, and `##[`, `##vso[` and the like anywhere in it.
_COMMAND = re.compile(r"^(?P<blank>\s*):(?=:)|(?<=#)#(?=\w*\[)")

# What acts in Markdown, where it would: full stops and colons within words, which make links (that of a number such as
# 48.5 does not), and marks of lists and headings at the start. So sentences stay as they are.
_MARKDOWN = re.compile(
    r"[#$&*<>@\[-`{-~]|(?<!\w)%(?=[\w\"])|!(?=[\[\d])|:(?=[^\s\d])|(?<!\d):(?=\d)|(?<==)=|=(?==)"
    r"|\.(?=[^\s\d)]|\)\S)|(?i:(?<=www)\.)"
    r"|(?<![\s(]\d)(?<![\s(]\d\d)(?<![\s(]\d\d\d)\.(?=\d)|^[-+:=]|^\d+[.)](?=\s|$)|^ | $|(?<= ) "
)
_REFERENCES = frozenset("|<>&@`")
# Mentions and references: services link them after rendering, even if they are escaped in the Markdown source.
_MENTION = re.compile(r"[@#](?=\w)|!(?=\d)|(?<!\w)[&~%$](?=[\w\"])")

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "`": "&#96;"})
_FORMULA = re.compile(r"\s*[-=+@|%\uff0b\uff0d\uff1d\uff20]")
_QUOTED_IN_CSV = re.compile(r'[",;]|^\s|\s$')


def escape_terminal(text: str) -> str:
    r"""Escape text for one line on a terminal or in a log: an ESC reads `\x1b`.

    A leading `::`, and `##[` anywhere, are escaped too: CI runners execute them as workflow commands.
    """
    visible = escape_invisible(text)
    if "::" in visible or "##" in visible:
        return _COMMAND.sub(lambda match: _uncommanded(match, "\\x"), visible)
    return visible


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, inline or in a table cell.

    A zero-width space breaks e-mails, mentions and references; for text to copy, use `markdown_code`.
    """
    return _MARKDOWN.sub(_harmless, escape_invisible(text))


def markdown_code(text: str) -> str:
    """Return a Markdown code span, inline or in a table cell. A pipe, which ends a cell even there, becomes `¦`."""
    inside = escape_terminal(text).replace("|", "\u00a6") or " "
    marks = _longer_than_any(inside, 1)
    edge = " " if inside.strip(" ") and (inside[0] in "` " or inside[-1] in "` ") else ""
    return f"{marks}{edge}{inside}{edge}{marks}"


def markdown_fence(text: str, language: str = "") -> str:
    """Return a fenced Markdown code block with the lines of the text, each escaped by `escape_terminal`."""
    inside = "\n".join(map(escape_terminal, text.split("\n")))
    marks = _longer_than_any(inside, 3)
    return f"{marks}{language}\n{inside}\n{marks}"


def escape_html(text: str) -> str:
    """Escape text for HTML or XML: element content or a quoted attribute value."""
    return _COMMAND.sub(lambda match: _uncommanded(match, "&#x", ";"), escape_invisible(text).translate(_HTML))


def csv_cell(text: str) -> str:
    """Return one CSV cell, quoted if needed; a formula is prefixed with an apostrophe."""
    cell = escape_terminal(text)
    if _FORMULA.match(text) or text[:1] in ("\t", "\r", "\n", "\0"):
        cell = f"'{cell}"
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if _QUOTED_IN_CSV.search(cell) else cell


def _uncommanded(match: re.Match[str], opens: str, closes: str = "") -> str:
    """Return the character that starts a workflow command as a numeric escape."""
    return f"{match['blank'] or ''}{opens}{ord(match[0][-1]):x}{closes}"


def _harmless(match: re.Match[str]) -> str:
    """Return what acts in Markdown, escaped."""
    number, char = match[0][:-1], match[0][-1]
    if char == " ":
        return "&nbsp;"  # a plain space is dropped at the edge of a cell or next to another
    hidden = "&#8203;" if _MENTION.match(match.string, match.start()) else ""
    if char == "%":
        return char + hidden
    return number + (f"&#{ord(char)};" if char in _REFERENCES else f"\\{char}") + hidden


def _longer_than_any(text: str, least: int) -> str:
    """Return a run of at least `least` backticks, longer than any in the text."""
    return "`" * max([least, *(len(run) + 1 for run in re.findall("`+", text))])


TextVariant: TypeAlias = Callable[[], str]


class SizeLimit(Struct, frozen=True):
    """The maximum size of a comment in bytes, None: unlimited. folds: whether the service renders `<details>`."""

    size: int | None
    folds: bool = True


SERVICE_LIMITS = {
    "github": SizeLimit(65_536),
    "gitlab": SizeLimit(1_000_000),
    "azure": SizeLimit(150_000),
    "bitbucket": SizeLimit(32_767, folds=False),
    "summary": SizeLimit(1_048_576),
    "none": SizeLimit(None),
}
"""Service → limit. Services count characters differently, but none counts more of them than the text has bytes."""

UNLIMITED = SERVICE_LIMITS["none"]

MIN_LIMIT = 8_000
"""The smallest limit, in bytes: at most this much is needed for counts, guards and headings."""

NAME_SIZE = 240
"""Maximum bytes of one name in a line; the details have the full name."""

_PATIENCE = 50
"""After this many consecutive entries that do not fit, the rest of a round is skipped."""


def parse_size_limit(text: str) -> SizeLimit:
    """Parse `--limit`: a service or a number of bytes. Raises UsageError for anything else, or under MIN_LIMIT."""
    if text in SERVICE_LIMITS:
        return SERVICE_LIMITS[text]
    size = int(text) if re.fullmatch(r"[0-9]{1,18}", text) else None
    refuse_if(
        (
            size is None,
            f"--limit: {text!r} is neither a number of bytes nor one of {', '.join(SERVICE_LIMITS)}",
            "Name the place that shows the comment.",
        ),
        (
            size is not None and size < MIN_LIMIT,
            f"--limit: {text} bytes are too few for a summary",
            f"Pass {MIN_LIMIT:,} or more.",
        ),
    )
    return SizeLimit(size)


def truncate(text: str, escape: Callable[[str], str], max_bytes: int = NAME_SIZE) -> str:
    """Return the escaped text, truncated so that the result has at most `max_bytes` bytes."""
    escaped = escape(text)
    while byte_size(escaped) > max_bytes:
        text = text[: min(len(text) - 1, len(text) * max_bytes // byte_size(escaped))]
        escaped = escape(f"{text}…")
    return escaped


def byte_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def choose_variants(entries: Sequence[Sequence[TextVariant]], max_bytes: int | None) -> tuple[list[str | None], bool]:
    """Choose a text for each entry, or None for no room; also return whether all are in full.

    max_bytes: of all texts together; None: unlimited.
    """
    if max_bytes is None:
        return [variants[-1]() for variants in entries], True
    chosen: list[str | None] = [None] * len(entries)
    whole = True
    for height in range(max(map(len, entries), default=0)):
        missed = 0
        for position, variants in enumerate(entries):
            before = chosen[position]
            if height >= len(variants) or (height and before is None) or missed == _PATIENCE:
                continue
            text = variants[height]()
            more = byte_size(text) - byte_size(before or "")
            if more <= max_bytes:
                chosen[position], missed = text, 0
                max_bytes -= more
            else:
                missed, whole = missed + 1, False
    return chosen, whole
