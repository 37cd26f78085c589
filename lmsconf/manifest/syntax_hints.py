"""Messages and hints for YAML syntax errors, with the corrected line where it can be derived."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias, cast

from lmsconf.errors import SHOWN

_LEAD = re.compile(r"(\s*(?:- +)*(?:[^\s:#'\"{\[][^:#]*: +)?)(.*)\Z", re.DOTALL)
_GLUED = re.compile(r"(\s*(?:- +)*)([A-Za-z_]+:)(?!//)([^\s:,}\]].*)")
_QUOTE = "Put the name in quotes"
TEMPLATE_HINT = "Declare a variable under `vars` in lmsconf.yaml, and write $(NAME)."
_LONG = 300
"""Lines longer than this are not shown corrected; matching them could also take long."""


Place: TypeAlias = "tuple[int, int]"
"""A line and a column, both from 0."""
ParserError: TypeAlias = "tuple[str, Place, str, Place]"
"""The parser's error: what it was reading and from where, what went wrong and where."""
Advice: TypeAlias = "tuple[str, str | None, Place]"
"""A message, a hint, and the position that it is about."""
Rule: TypeAlias = "tuple[bool, str, str | None, Place]"
"""Whether an advice fits, and the advice."""


def advise_on_syntax_error(complaint: ParserError, text: str) -> Advice:
    """Return the first advice that fits; the parser's own message if none does."""
    _, (start, _), problem, at = complaint
    lines = [*text.splitlines(), *[""] * (at[0] + 1)]
    line, opened, before = (lines[row] for row in (at[0], start, at[0] - 1))
    hint = "Put texts in quotes, write lists and mappings as `- item` and `key: value`, and compare the indent."
    rules: Iterator[Rule] = chain(
        *(_from_elsewhere(lines[row], row) for row in (start, at[0] - 1, at[0])),
        _glued(complaint, line, opened, before),
        _in_block(complaint, line, opened),
        _in_brackets(complaint, line, opened),
        [(True, f"this is not YAML: {problem}", hint, at)],
    )
    return next((message, hint, place) for holds, message, hint, place in rules if holds)


def quote_value_hint(line: str) -> str:
    """Return the hint for a text that YAML would read as something else: the line with its value quoted."""
    lead, value = _parts(line)
    if len(line) > _LONG or not 0 < len(value) <= SHOWN or value[0] in "\"'|>" or "{" in line or "[" in line:
        return f"{_QUOTE}."
    return f"{_QUOTE}: {lead.strip()} {json.dumps(value, ensure_ascii=False)}".replace(":  ", ": ")


def _in_block(complaint: ParserError, line: str, opened: str) -> Sequence[Rule]:
    """Quotes, colons, tabs and signs that YAML reads as something else than text."""
    context, start, problem, at = complaint
    char, first = line[at[1] : at[1] + 1], line[start[1] : start[1] + 1]
    lead, value = _parts(line)
    is_value = "mapping values are not allowed" in problem
    is_colon = len(lead.rstrip()) <= at[1] and ": " in f"{value} "
    unknown = "cannot start any token" in problem
    is_tab = (unknown and char == "\t") or "a tab character that violates indentation" in problem
    return (
        (
            "quoted scalar" in context and "found unexpected" in problem,
            "the quote that opens here is not closed",
            _closed(opened, start[1]),
            start,
        ),
        (is_value and is_colon, '": " inside a text', quote_value_hint(line), at),
        (
            is_value,
            "a key is not expected here",
            "Give keys of one entry the same indent, and quote texts that contain a colon.",
            at,
        ),
        (is_tab, "a tab cannot indent a line", "Indent with spaces.", at),
        (unknown, f'a text cannot begin with "{char}"', quote_value_hint(line), at),
        (
            "escape" in problem,
            "this backslash does not begin an escape of YAML",
            "In single quotes a backslash is only a backslash.",
            at,
        ),
        ("alphabetic or numeric" in problem, f'a text cannot begin with "{first}"', quote_value_hint(line), start),
    )


def _from_elsewhere(written: str, row: int) -> Sequence[Rule]:
    """What git, a template language or a copy from a web page has put into a line."""
    conflict = re.fullmatch(r"(<{7}|={7}|>{7})(?: .*)?", written)
    blank = re.match(r" *([^\S \t])", written)
    char, column = (ord(blank[1]), blank.start(1)) if blank else (0, 0)
    return (
        (
            conflict is not None,
            "git has not merged this file: a conflict is open here",
            "Keep one of the two versions, and remove the lines with <<<<<<<, =======, and >>>>>>>.",
            (row, 0),
        ),
        ("{{" in written or "{%" in written, "templates are not supported", TEMPLATE_HINT, (row, 0)),
        (
            blank is not None,
            f"the character U+{char:04X} cannot indent a line",
            "Delete what is before the text of this line, and type spaces.",
            (row, column),
        ),
    )


def _glued(complaint: ParserError, line: str, opened: str, before: str) -> Iterator[Rule]:
    """A key without a space after its colon.

    YAML reads key and value as one text, and reports an error at the end of it or on the next line.
    """
    _, (start, _), problem, (at, column) = complaint
    for written, row, fits in (
        (opened, start, "expected ':'" in problem),
        (before, at - 1, "mapping values are not allowed" in problem and ": " not in line[:column]),
    ):
        key = _GLUED.fullmatch(written[: SHOWN + 1])
        if key is not None and len(written) <= SHOWN:
            yield (fits, "a space is missing after the colon", f"Write {key[2]} {key[3]}", (row, key.start(2)))


def _in_brackets(complaint: ParserError, line: str, opened: str) -> Sequence[Rule]:
    """Brackets, commas, and lines that do not fit what is around them."""
    context, start, problem, at = complaint
    is_flow, is_key = "flow" in context, "expected ':'" in problem
    is_stray = "block" in context and problem.startswith("did not find expected")
    char, kind = line[at[1] : at[1] + 1], "list" if "sequence" in context else "mapping"
    # It may be a key: after a missing comma, or without its colon.
    found = re.search(r"[\s;]([a-z_]+)\s*\Z", line[: at[1]][-_LONG:])
    word = found[1] if found else ""
    comma = f"Put a comma before {word} if it is the next key, or else the text in quotes." if found else f"{_QUOTE}."
    is_keyed = is_flow and kind == "mapping" and found is not None and char in ("[", "{")
    not_closed = f"the {kind} that opens at line {start[0] + 1} is not closed here"
    return (
        (is_flow and char == ":" and start[0] == at[0], '": " inside a text', comma, at),
        *((is_key, *advice) for advice in _glued_in_flow(opened[start[1] :], start)),
        (is_key, "this line has no colon", "Write `key: value`, or quote a text of several lines.", start),
        (
            "did not find expected node content" in problem,
            "a value is missing here",
            "Remove the extra comma or bracket, or write the value.",
            at,
        ),
        (is_keyed, f"a colon is missing after {word}", f"Put a colon and a space after {word}", at),
        (is_flow, not_closed, _close("]" if kind == "list" else "}", char, start[0], at[0]), at),
        (is_stray, "this line does not fit the lines above it", "Check its indent, its dash and its quotes.", at),
    )


def _close(end: str, char: str, first: int, last: int) -> str:
    """Return the hint for a bracket that opens in the line `first`, and is not closed where the error is, in `last`.

    end: the one that closes it. char: the one at the error.
    """
    if char in ("]", "}"):
        return f"Close it with {end} before the {char}, or remove the {char} if it closes nothing."
    hint = f"Close it with {end}, or put the missing comma."
    if last - first > 1:  # a quote that was left open swallowed the lines between
        return f"Check quotes, commas and brackets from line {first + 1} on. {hint}"
    return hint


def _glued_in_flow(rest: str, at: Place) -> Iterator[Advice]:
    """A key between brackets without a space after its colon, which YAML does not read as a key."""
    key = re.match(r"([A-Za-z_][\w-]*):(?!//)(.*)", rest[:_LONG])
    if key is not None and key[2][:1] in ("", ",", "}", "]"):
        yield (f"{key[1]} has no value", f"Write {key[1]}: and its value, or remove the key.", at)
    elif key is not None:
        yield ("a space is missing after the colon", f"Put a space after {key[1]}:", at)


def _closed(line: str, column: int) -> str:
    """Return the hint for a quote that is not closed: the line with the quote at its end."""
    quote = line[column : column + 1]
    whole = f"{line.strip().removeprefix('- ')}{quote}".replace(f"{quote}{quote}", quote)
    return f"Write {quote} where the text ends{'.' if len(line) > SHOWN else f': {whole}'}"


def _parts(line: str) -> tuple[str, str]:
    """Split a line into the part before its value, such as `  - name: `, and the value without a comment."""
    lead, value = cast("re.Match[str]", _LEAD.match(line[:_LONG])).groups()
    return lead, re.sub(r"\s+#.*\Z", "", value).strip()
