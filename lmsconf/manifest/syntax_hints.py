"""Messages and hints for YAML syntax errors, with the corrected line where it can be derived."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple, TypeAlias

from lmsconf.errors import SHOWN

_LEAD = re.compile(r"(\s*(?:- +)*(?:[^\s:#'\"{\[][^:#]*: +)?)(.*)\Z", re.DOTALL)
_GLUED = re.compile(r"(\s*(?:- +)*)([A-Za-z_]+:)(?!//)([^\s:,}\]].*)")
_QUOTE = "Put the name in quotes"
TEMPLATE_HINT = "Declare a variable under `vars` in lmsconf.yaml, and write $(NAME)."
_LONG = 300
"""Lines longer than this are not shown corrected; matching them could also take long."""


class ParserError(NamedTuple):
    """The parser's error: what it was reading and from where, what went wrong and where. Positions are 0-based."""

    context: str
    opened: tuple[int, int]
    problem: str
    at: tuple[int, int]


Advice: TypeAlias = "tuple[str, str | None, tuple[int, int]]"
"""A message, a hint, and the 0-based position that it is about."""


def advise_on_syntax_error(complaint: ParserError, text: str) -> Advice:
    """Return the first advice that fits; the parser's own message if none does."""
    rows = [*text.splitlines(), *[""] * (complaint.at[0] + 1)]
    lines = {row: rows[row] for row in (complaint.opened[0], complaint.at[0] - 1, complaint.at[0])}
    unsure = "Put texts in quotes, write lists and mappings as `- item` and `key: value`, and compare the indent."
    found = chain(
        _from_elsewhere(lines), _glued(complaint, lines), _in_block(complaint, lines), _in_brackets(complaint, lines)
    )
    return next(found, (f"this is not YAML: {complaint.problem}", unsure, complaint.at))


def quote_value_hint(line: str) -> str:
    """Return the hint for a text that YAML would read as something else: the line with its value quoted."""
    lead, value = _parts(line)
    if len(line) > _LONG or not 0 < len(value) <= SHOWN or value[0] in "\"'|>" or "{" in line or "[" in line:
        return f"{_QUOTE}."
    return f"{_QUOTE}: {lead.strip()} {json.dumps(value, ensure_ascii=False)}".replace(":  ", ": ")


def _from_elsewhere(lines: dict[int, str]) -> Iterator[Advice]:
    """Lines that git, a template language or a copy from a web page has put into the file."""
    for row, line in lines.items():
        if re.fullmatch(r"(<{7}|={7}|>{7})(?: .*)?", line):
            yield (
                "git has not merged this file: a conflict is open here",
                "Keep one of the two versions, and remove the lines with <<<<<<<, =======, and >>>>>>>.",
                (row, 0),
            )
        if re.search(r"\{\{|\{%", line):
            yield "templates are not supported", TEMPLATE_HINT, (row, 0)
        if blank := re.match(r" *([^\S \t])", line):
            yield (
                f"the character U+{ord(blank[1]):04X} cannot indent a line",
                "Delete what is before the text of this line, and type spaces.",
                (row, blank.start(1)),
            )


def _glued(complaint: ParserError, lines: dict[int, str]) -> Iterator[Advice]:
    """A key without a space after its colon.

    YAML reads key and value as one text, and reports an error at the end of it or on the next line.
    """
    row, column = complaint.at
    is_first = ": " not in lines[row][:column]
    for above, fits in (
        (complaint.opened[0], "expected ':'" in complaint.problem),
        (row - 1, "mapping values are not allowed" in complaint.problem and is_first),
    ):
        key = _GLUED.fullmatch(lines[above]) if fits and len(lines[above]) <= SHOWN else None
        if key is not None:
            yield "a space is missing after the colon", f"Write {key[2]} {key[3]}", (above, key.start(2))


def _in_block(complaint: ParserError, lines: dict[int, str]) -> Iterator[Advice]:
    """Quotes, colons, tabs and signs that YAML reads as something else than text."""
    context, start, problem, at = complaint
    line = lines[at[0]]
    char, first = line[at[1] : at[1] + 1], line[start[1] : start[1] + 1]
    is_unknown, is_colon = "cannot start any token" in problem, "mapping values are not allowed" in problem
    lead, value = _parts(line)
    is_in_value = len(lead.rstrip()) <= at[1] and ": " in f"{value} "
    if "quoted scalar" in context and "found unexpected" in problem:
        yield "the quote that opens here is not closed", _closed(lines[start[0]], start[1]), start
    if is_colon and is_in_value:
        yield '": " inside a text', quote_value_hint(line), at
    if is_colon:
        yield (
            "a key is not expected here",
            "Give keys of one entry the same indent, and quote texts that contain a colon.",
            at,
        )
    if (is_unknown and char == "\t") or "a tab character that violates indentation" in problem:
        yield "a tab cannot indent a line", "Indent with spaces.", at
    if is_unknown:
        yield f'a text cannot begin with "{char}"', quote_value_hint(line), at
    if "alphabetic or numeric" in problem:
        yield f'a text cannot begin with "{first}"', quote_value_hint(line), start


def _in_brackets(complaint: ParserError, lines: dict[int, str]) -> Iterator[Advice]:
    """Brackets, commas, and lines that do not fit what is around them."""
    context, start, problem, at = complaint
    char = lines[at[0]][at[1] : at[1] + 1]
    kind, end = ("list", "]") if "sequence" in context else ("mapping", "}")
    is_flow, is_block = "flow" in context, "block" in context
    rules = (
        (is_flow and char == ":" and start[0] == at[0], '": " inside a text', f"{_QUOTE}, or add a comma.", at),
        (
            "expected ':'" in problem,
            "this is not a key with a colon, a space and its value",
            "Write `key: value`, or quote a text of several lines.",
            start,
        ),
        (
            "did not find expected node content" in problem,
            "a value is missing here",
            "Remove the extra comma or bracket, or write the value.",
            at,
        ),
        (is_flow, f"the {kind} that opens at line {start[0] + 1} is not closed here", _close(end, char, complaint), at),
        (
            is_block and problem.startswith("did not find expected"),
            "this line does not fit the lines above it",
            "Check its indent, its dash and its quotes.",
            at,
        ),
        (
            "escape" in problem,
            "this backslash does not begin an escape of YAML",
            "In single quotes a backslash is only a backslash.",
            at,
        ),
    )
    return ((message, hint, where) for holds, message, hint, where in rules if holds)


def _close(end: str, char: str, complaint: ParserError) -> str:
    """Return the hint for a bracket that is not closed. end: the one that closes it. char: the one at the error."""
    if char in ("]", "}"):
        return f"Close it with {end} before the {char}, or remove the {char} if it closes nothing."
    # A quote that was left open swallows the lines between.
    is_far = complaint.at[0] - complaint.opened[0] > 1
    before = f"Check quotes, commas and brackets from line {complaint.opened[0] + 1} on. " if is_far else ""
    return f"{before}Close it with {end}, or put the missing comma."


def _closed(line: str, column: int) -> str:
    """Return the hint for a quote that is not closed: the line with the quote at its end."""
    quote = line[column : column + 1]
    whole = f": {line.strip().removeprefix('- ')}{quote}".replace(f"{quote}{quote}", quote)
    return f"Write {quote} where the text ends{whole if len(line) <= SHOWN else '.'}"


def _parts(line: str) -> tuple[str, str]:
    """Split a line into the part before its value, such as `  - name: `, and the value without a comment."""
    match = _LEAD.match(line[:_LONG])
    lead, value = match.groups() if match else ("", line)
    return lead, re.sub(r"\s+#.*\Z", "", value).strip()
