"""The text of one file, and the pending edits of its lists and mappings, block and flow style → edits of the text.

Values are formatted as YAML: short lists on one line, long ones by item, quotes only where needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Final, NamedTuple, cast

from msgspec import Struct

from lmsconf.manifest.edit.tree_builder import Node, part_span
from lmsconf.manifest.nodes import resolve_scalar
from lmsconf.model.canonical_json import Json
from lmsconf.model.control_characters import CONTROLS
from lmsconf.support.strict_json import map_texts

WIDTH: Final = 110
"""Maximum line length before a list or mapping is written over several lines."""

# Texts that are safe as plain scalars. Within brackets, commas and brackets end a plain scalar.
_PLAIN: Final = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|-(?=[^\s\-]))[^\r\n\t]*")
_BREAKS: Final = re.compile(rf"{CONTROLS.pattern}|: |:\Z| #|\s\Z")


def escape_for_comment(text: str) -> str:
    """Replace characters that a comment cannot contain by Unicode escapes."""
    return re.sub(f"{CONTROLS.pattern}|[\ud800-\udfff]", lambda match: f"\\u{ord(match[0]):04x}", text)


def _key(word: str) -> str:
    """Format a key, in which variables are not substituted."""
    return word if _is_plain(word, flow=True) and word != "<<" else double_quoted(word)


def double_quoted(word: str) -> str:
    """Return a text in double quotes, with escapes for what a manifest cannot hold otherwise."""
    return escape_for_comment(json.dumps(word, ensure_ascii=False))


def _is_plain(word: str, flow: bool) -> bool:
    ends = re.search(r"[,\[\]{}]|:(?=[,?\[\]{}]|\Z)", word) if flow else None
    return (
        bool(_PLAIN.fullmatch(word)) and not _BREAKS.search(word) and not ends and isinstance(resolve_scalar(word), str)
    )


def format_inline(value: Json, *, in_brackets: bool = True) -> str:
    """Format a value on one line, however long. in_brackets: within brackets."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_key(key)}: {format_inline(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(format_inline, value)) + "]"
        case str():
            return value if _is_plain(value, in_brackets) else double_quoted(value)
    return json.dumps(value)


def format_keys(values: Mapping[str, Json], indent: str) -> list[str]:
    """Return a line for each key of a mapping of scalars."""
    return [f"{indent}{key}: {format_inline(value, in_brackets=False)}" for key, value in values.items()]


def format_entry_lines(entry: Mapping[str, Json], indent: str) -> Iterator[str]:
    """Yield the lines of one entry of a list, in which `$(` stands for itself."""
    return _entry_lines(cast("Mapping[str, Json]", escape_variables(dict(entry))), indent)


def _entry_lines(entry: Mapping[str, Json], indent: str) -> Iterator[str]:
    """Yield the lines of one raw entry of a list: a dash, and one key below the other."""
    lead = f"{indent}- "
    for key, value in entry.items():
        yield from _member(key, value, lead)
        lead = f"{indent}  "


def _member(key: str, value: Json, lead: str) -> Iterator[str]:
    """Yield the lines of one key and its value: on one line if it fits and is easy to read, else below the key."""
    start, indent = f"{lead}{_key(key)}:", " " * (len(lead) + 2)
    is_table = isinstance(value, list) and _is_table(value)
    if not isinstance(value, list | dict) or not value or (_fits(f"{start} ", value) and not is_table):
        yield f"{start} {format_inline(value, in_brackets=False)}"
        return
    yield start
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _member(name, item, indent)
    else:
        for item in value:
            if isinstance(item, dict) and not _fits(f"{indent}- ", item):
                yield from _entry_lines(item, indent)
            else:
                yield f"{indent}- {format_inline(item, in_brackets=False)}"


def _is_table(items: Sequence[Json]) -> bool:
    """Whether to write one item per line: several items with a mapping among them, or a single long mapping."""
    return any(isinstance(item, dict) for item in items) and (len(items) > 1 or len(format_inline(items[0])) > 60)


def _fits(lead: str, value: Json) -> bool:
    return len(lead) + len(format_inline(value)) <= WIDTH


_BLANK_LINES: Final = re.compile(r"(?:[ \t\r\n]|(?<![^ \t\r\n])#[^\n]*)*+")
"""Blanks, line breaks and comments."""
_BLANKS: Final = re.compile(r"[ \t]*")
_EMPTY_LINES: Final = re.compile(r"(?:[^\S\n]*\n)*+")


class UnsafeEdit(Exception):
    """Raised if the pending edits of a node would affect other text too. Arguments: the node, and the reason.

    Whatever else an edit might do wrong, the edited text is parsed again, and must mean what was wanted.
    """


class TextEdit(NamedTuple):
    """Replace the text from `start` to `end` by `text`."""

    start: int
    end: int
    text: str = ""


class TextBuffer:
    """The text of one file. A missing line break at its end is added for editing, and removed from the result."""

    def __init__(self, text: str) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._is_ended = text.endswith("\n")
        self.text = text if self._is_ended else text + self.newline

    def line_start(self, at: int) -> int:
        """Return the start of the line that contains the offset."""
        return self.text.rfind("\n", 0, at) + 1

    def next_line(self, at: int) -> int:
        """Return the start of the next line; the end of the text if there is none."""
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end + 1

    def begins_line(self, at: int) -> bool:
        """Whether only spaces precede the offset in its line."""
        return not self.text[self.line_start(at) : at].strip(" ")

    def ends_line(self, at: int) -> bool:
        """Whether only spaces and a comment follow the offset in its line."""
        after = self.skip_blanks(at, lines=False)
        return self.text[after : after + 1] in ("", "\r", "\n", "#")

    def skip_blanks(self, at: int, *, lines: bool = True) -> int:
        """Return the next offset that is neither whitespace nor comment; in the same line, unless `lines`."""
        return cast("re.Match[str]", (_BLANK_LINES if lines else _BLANKS).match(self.text, at)).end()

    def comment_above(self, start: int, pattern: str) -> int:
        """Return the start of the lines right above a line that match a pattern; `start` if there are none."""
        while start:
            above = self.line_start(start - 1)
            if re.match(pattern, self.text[above:start]) is None:
                break
            start = above
        return start

    def after_comma(self, at: int) -> int:
        """Return the end of the comma after an offset; the offset itself if there is none."""
        after = self.skip_blanks(at)
        return after + 1 if self.text.startswith(",", after) else at

    def insert_lines(self, at: int, lines: Iterable[str]) -> TextEdit:
        """Insert lines at the start of a line."""
        return TextEdit(at, at, "".join(f"{line}{self.newline}" for line in lines))

    def apply_edits(self, splices: Iterable[TextEdit]) -> str:
        """Apply the edits and return the text. Overlapping removals are merged."""
        out, done = [], 0
        for start, end, new in sorted(splices):
            out += [self.text[done : max(done, start)], new]
            done = max(done, end)
        text = "".join([*out, self.text[done:]])
        return text if self._is_ended else text.removesuffix(self.newline)


def unescape_variables(raw: Json) -> Json:
    """Unescape `$$(` in raw manifest values."""
    return cast(Json, map_texts(raw, lambda text: text.replace("$$(", "$(")))


def escape_variables(value: Json) -> Json:
    """Escape `$(`, the start of a variable, in a value."""
    return cast(Json, map_texts(value, lambda text: text.replace("$(", "$$(")))


def replacement_edit(buffer: TextBuffer, node: Node, raw: Json) -> TextEdit:
    """Return the edit that replaces a node in its quoting style. Raises UnsafeEdit for a block list or mapping."""
    if node.kind != "scalar" and not node.flow:
        raise UnsafeEdit(node, "it spans several lines")
    text = format_inline(raw, in_brackets=node.parent is not None and node.parent.flow)
    if isinstance(raw, str) and node.style == "'" and raw.isprintable():
        text = "'" + raw.replace("'", "''") + "'"
    elif isinstance(raw, str) and node.style == '"':
        text = double_quoted(raw)
    is_nothing = node.start == node.end and buffer.text[node.start - 1 : node.start] not in ("", " ")
    return TextEdit(node.start, node.end, f" {text}" if is_nothing else text)


def part_spans(buffer: TextBuffer, node: Node) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part: of a key and its value, of an item, of an item with its dash."""
    at = node.start
    for start, end in map(part_span, node.parts):
        yield (buffer.skip_blanks(at) if node.kind == "list" and not node.flow else start), end
        at = end


class Part(Struct, frozen=True):
    """A part of a list or mapping. comment: in a block, where the comment lines right above it begin.

    start: its dash or its key, or the item in brackets. end: of its value; in a block, of its lines.
    """

    comment: int
    start: int
    end: int


def bracket_edits(buffer: TextBuffer, node: Node) -> list[TextEdit]:
    """Return the edits that remove parts within brackets and append new ones, in the layout of the others."""
    added = [format_inline({key: value})[1:-1] for key, value in node.added_keys.items()]
    added += map(format_inline, node.added)
    parts = [Part(start, start, end) for start, end in part_spans(buffer, node)]
    kept = [part for at, part in enumerate(parts) if at not in node.removed]
    if not kept and not (added and parts and _alone(buffer, parts[0])):
        return [TextEdit(node.start + 1, node.end - 1, ", ".join(added))]
    return [*_removals(buffer, parts, node.removed), *(_additions(buffer, parts, kept, added) if added else ())]


def _alone(buffer: TextBuffer, part: Part) -> bool:
    """Whether a part shares no line with another."""
    return buffer.begins_line(part.start) and buffer.ends_line(buffer.after_comma(part.end))


def _removals(buffer: TextBuffer, parts: Sequence[Part], removed: Set[int]) -> Iterator[TextEdit]:
    """Yield the edit that removes each part: with its line, the comma before it, or the one after it."""
    kept_end = 0
    for at, part in enumerate(parts):
        line_start = buffer.line_start(part.start)
        if at not in removed:
            kept_end = part.end
        elif _alone(buffer, part):
            yield TextEdit(line_start, buffer.next_line(buffer.after_comma(part.end)))
        elif kept_end > line_start:
            yield TextEdit(parts[at - 1].end, part.end)
        else:
            end = buffer.after_comma(part.end)
            yield TextEdit(part.start, end if buffer.ends_line(end) else buffer.skip_blanks(end, lines=False))


def _additions(buffer: TextBuffer, parts: Sequence[Part], kept: Sequence[Part], added: Sequence[str]) -> list[TextEdit]:
    """Append parts after the last that remains; in lines of their own, if that has its own line."""
    last = kept[-1] if kept else parts[0]
    if not _alone(buffer, last):
        return [TextEdit(last.end, last.end, "".join(f", {text}" for text in added))]
    indent = buffer.text[buffer.line_start(last.start) : last.start]
    end = "," if buffer.after_comma(parts[-1].end) > parts[-1].end else ""
    lines = f",{buffer.newline}".join(f"{indent}{text}" for text in added) + end
    comma_end = buffer.after_comma(last.end)
    comma = [TextEdit(last.end, last.end, ",")] if kept and comma_end == last.end else []
    return [*comma, buffer.insert_lines(buffer.next_line(comma_end), [lines])]


def block_edits(buffer: TextBuffer, node: Node) -> list[TextEdit]:
    """Return the edits that remove parts of a block, and add new ones below the last. Raises UnsafeEdit."""
    rows = []
    for begin, end in part_spans(buffer, node):
        start = buffer.line_start(begin)
        rows.append(Part(buffer.comment_above(start, rf" {{{begin - start}}}#"), begin, buffer.next_line(end)))
    kept = [row for at, row in enumerate(rows) if at not in node.removed]
    splices = [_removal(buffer, node, rows, at) for at in sorted(node.removed)]
    beside = (kept or rows)[-1]
    indent = " " * (beside.start - buffer.line_start(beside.start))
    if node.added_keys:
        # The lines of an entry, without the dash before the first.
        splices.append(
            buffer.insert_lines(rows[-1].end, (f"{indent}{line[2:]}" for line in _entry_lines(node.added_keys, "")))
        )
    elif node.added:
        splices.append(buffer.insert_lines(rows[-1].end, _new_items(buffer, node, beside, indent)))
    elif node.kind == "list" and not kept:
        # After the key, or the anchor of the list, stands `[]` then.
        key = next(key for key, value in cast(Node, node.parent).parts if value is node)
        begins = node.outer if node.outer < node.start else buffer.skip_blanks(key.end, lines=False)
        at = begins + len(buffer.text[begins:].split(None, 1)[0])
        splices.append(TextEdit(at, at, " []"))
    return splices


def _removal(buffer: TextBuffer, node: Node, rows: Sequence[Part], at: int) -> TextEdit:
    """Remove one part, with the comment about it. Raises UnsafeEdit."""
    row = rows[at]
    if not buffer.begins_line(row.start):
        # The part is on the line of a dash: the next one moves there.
        if at + 1 >= len(rows) or at + 1 in node.removed:
            raise UnsafeEdit(node.parts[at][0], "it is on the line of a dash")
        return TextEdit(row.start, rows[at + 1].start)
    start = row.comment if node.commented and _is_comment_about_part(buffer, rows, at) else buffer.line_start(row.start)
    # Of the blank lines around a removed part those above are kept; a block does not begin with one.
    is_below_blank = start > 0 and not buffer.text[buffer.line_start(start - 1) : start].strip()
    takes_blanks = is_below_blank or (at == 0 and len(node.removed) < len(rows))
    # New keys come in the place of the last one, above the blank lines that follow it.
    is_replaced = bool(node.added_keys) and at == len(rows) - 1
    blanks = cast("re.Match[str]", _EMPTY_LINES.match(buffer.text, row.end))
    return TextEdit(start, blanks.end() if takes_blanks and not is_replaced else row.end)


def _is_comment_about_part(buffer: TextBuffer, rows: Sequence[Part], at: int) -> bool:
    """Whether a comment above a part is about that part, and not about the whole list."""
    others_have_one = any(other.comment < buffer.line_start(other.start) for other in rows[1:])
    # A comment above the first item alone may be about the list, unless that has one in the line of its key.
    list_line = buffer.text[buffer.line_start(rows[0].comment - 1) : rows[0].comment]
    return at > 0 or len(rows) == 1 or others_have_one or re.match(r"\s*[^\s#].*\s#", list_line) is not None


def _new_items(buffer: TextBuffer, node: Node, beside: Part, indent: str) -> Iterator[str]:
    """Yield the lines of new items; mappings in block style if those of the list are, or the line is too long."""
    gap = buffer.text[beside.start + 1 : buffer.skip_blanks(beside.start + 1, lines=False)] or " "
    in_blocks = any(item.kind == "mapping" and not item.flow for item in node.items)
    for raw in node.added:
        line = f"{indent}-{gap}{format_inline(raw, in_brackets=False)}"
        if isinstance(raw, dict) and (in_blocks or len(line) > WIDTH):
            yield from _entry_lines(raw, indent)
        else:
            yield line
