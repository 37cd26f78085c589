"""The text of one file, and the pending edits of its lists and mappings, block and flow style → edits of the text.

Values are formatted as YAML: short lists on one line, long ones by item, quotes only where needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from msgspec import Struct

from lmsconf.manifest.edit.tree_builder import Node, part_span
from lmsconf.manifest.nodes import map_texts, resolve_scalar
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import CONTROLS

WIDTH: Final = 110
"""Maximum line length before a list or mapping is written over several lines."""
_SHORT: Final = 60

# Texts that are safe as plain scalars. Within brackets, commas and brackets end a plain scalar.
_PLAIN: Final = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|-(?=[^\s\-]))[^\r\n\t]*")
_BREAKS: Final = re.compile(rf"{CONTROLS.pattern}|: |:\Z| #|\s\Z")
_BREAKS_FLOW: Final = re.compile(r"[,\[\]{}]|:(?=[,?\[\]{}]|\Z)")
_UNSEEN: Final = re.compile(f"{CONTROLS.pattern}|[\ud800-\udfff]")


def escape_for_comment(text: str) -> str:
    """Replace characters that a comment cannot contain by Unicode escapes."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def format_scalar(value: Json, *, in_brackets: bool) -> str:
    """Format a scalar. in_brackets: within brackets."""
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    word = str(value).replace("$(", "$$(")  # a doubled `$` escapes the start of a variable
    return word if _is_plain(word, in_brackets) else double_quoted(word)


def _key(word: str) -> str:
    """Format a key, in which variables are not substituted."""
    return word if _is_plain(word, flow=True) and word != "<<" else double_quoted(word)


def double_quoted(word: str) -> str:
    """Return a text in double quotes, with escapes for what a manifest cannot hold otherwise."""
    return escape_for_comment(json.dumps(word, ensure_ascii=False))


def _is_plain(word: str, flow: bool) -> bool:
    if not _PLAIN.fullmatch(word) or _BREAKS.search(word) or not isinstance(resolve_scalar(word), str):
        return False
    return not (flow and _BREAKS_FLOW.search(word))


def format_inline(value: Json, *, in_brackets: bool = True) -> str:
    """Format a value on one line, however long. in_brackets: within brackets."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {format_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(format_inline, value)) + "]"
    return format_scalar(value, in_brackets=in_brackets)


def format_entry_lines(entry: Mapping[str, Json], indent: str) -> Iterator[str]:
    """Yield the lines of one entry of a list: a dash, and one key below the other."""
    lead = f"{indent}- "
    for key, value in entry.items():
        yield from _member(key, value, lead)
        lead = f"{indent}  "


def _member(key: str, value: Json, lead: str) -> Iterator[str]:
    """Yield the lines of one key and its value: on one line if it fits and is easy to read, else below the key."""
    indent = " " * len(lead)
    if isinstance(value, list) and value and (_is_table(value) or not _fits(f"{lead}{_key(key)}: ", value)):
        yield f"{lead}{_key(key)}:"
        yield from _items(value, f"{indent}  ")
    elif isinstance(value, dict) and value and not _fits(f"{lead}{_key(key)}: ", value):
        yield f"{lead}{_key(key)}:"
        for name, item in value.items():
            yield from _member(name, item, f"{indent}  ")
    else:
        yield f"{lead}{_key(key)}: {format_inline(value, in_brackets=False)}"


def _items(items: Sequence[Json], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict) and not _fits(f"{indent}- ", item):
            yield from format_entry_lines(item, indent)
        else:
            yield f"{indent}- {format_inline(item, in_brackets=False)}"


def _is_table(items: Sequence[Json]) -> bool:
    """Whether to write one item per line: several items with a mapping among them, or a single long mapping."""
    mappings = any(isinstance(item, dict) for item in items)
    return mappings and (len(items) > 1 or len(format_inline(items[0])) > _SHORT)


def _fits(lead: str, value: Json) -> bool:
    return len(lead) + len(format_inline(value)) <= WIDTH


_BLANKS: Final = re.compile(r"[ \t]*")
_BLANK_LINES: Final = re.compile(r"(?:[ \t\r\n]|(?<![^ \t\r\n])#[^\n]*)*+")
"""Blanks, line breaks and comments."""
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

    def skip_blanks(self, at: int, *, lines: bool = True) -> int:
        """Return the next offset that is neither whitespace nor comment; in the same line, unless `lines`."""
        blanks = (_BLANK_LINES if lines else _BLANKS).match(self.text, at)
        return blanks.end() if blanks else at

    def comment_above(self, start: int, pattern: str) -> int:
        """Return the start of the lines right above a line that match a pattern; `start` if there are none."""
        while start:
            above = self.line_start(start - 1)
            if re.match(pattern, self.text[above:start]) is None:
                break
            start = above
        return start

    def insert_lines(self, at: int, lines: Iterable[str]) -> TextEdit:
        """Insert lines at the start of a line."""
        return TextEdit(at, at, "".join(f"{line}{self.newline}" for line in lines))

    def apply_edits(self, splices: Iterable[TextEdit]) -> str:
        """Apply the edits and return the text. Overlapping removals are merged."""
        out, done = [], 0
        for start, end, new in sorted(splices):
            out.append(self.text[done : max(done, start)])
            out.append(new)
            done = max(done, end)
        text = "".join([*out, self.text[done:]])
        return text if self._is_ended else text.removesuffix(self.newline)


def unescape_variables(raw: Json) -> Json:
    """Unescape `$$(` in raw manifest values, since the YAML writer escapes `$(` itself."""
    return map_texts(raw, lambda text: text.replace("$$(", "$("))


def escape_variables(value: Json) -> Json:
    """Escape `$(`, the start of a variable, in a value."""
    return map_texts(value, lambda text: text.replace("$(", "$$("))


def render_inline(raw: Json, *, in_brackets: bool) -> str:
    """Format a raw value on one line. in_brackets: within brackets."""
    return format_inline(unescape_variables(raw), in_brackets=in_brackets)


def replacement_edit(buffer: TextBuffer, node: Node, raw: Json) -> TextEdit:
    """Return the edit that replaces a node in its quoting style. Raises UnsafeEdit for a block list or mapping."""
    if node.kind != "scalar" and not node.flow:
        raise UnsafeEdit(node, "it spans several lines")
    text = render_inline(raw, in_brackets=node.inside)
    if isinstance(raw, str):
        if node.style == "'" and raw.isprintable():
            text = "'" + raw.replace("'", "''") + "'"
        elif node.style == '"':
            text = double_quoted(raw)
    is_nothing = node.start == node.end and buffer.text[node.start - 1 : node.start] not in ("", " ")
    return TextEdit(node.start, node.end, f" {text}" if is_nothing else text)


class BracketPart(Struct, frozen=True):
    """The span of one item, or of one key with its value. comma: the offset of the comma after it, if any."""

    start: int
    end: int
    comma: int | None


def part_edits(buffer: TextBuffer, node: Node) -> list[TextEdit]:
    """Return the edits that remove and add parts of a mapping or list. Raises UnsafeEdit."""
    if not node.is_changed:
        return []
    if node.flow:
        return _bracket_edits(buffer, node)
    return _block_list_edits(buffer, node) if node.kind == "list" else _block_mapping_edits(buffer, node)


def _bracket_edits(buffer: TextBuffer, node: Node) -> list[TextEdit]:
    """Return the edits that remove parts within brackets and append new ones, in the layout of the others."""
    added = [render_inline({key: value}, in_brackets=True)[1:-1] for key, value in node.added_keys.items()]
    added += [render_inline(item, in_brackets=True) for item in node.added]
    parts = []
    for start, end in map(part_span, node.parts):
        after = buffer.skip_blanks(end)
        parts.append(BracketPart(start, end, after if buffer.text[after : after + 1] == "," else None))
    kept = [part for at, part in enumerate(parts) if at not in node.removed]
    if not kept and not (added and parts and _alone(buffer, parts[0])):
        return [TextEdit(node.start + 1, node.end - 1, ", ".join(added))]
    splices = _removals(buffer, parts, node.removed)
    return splices + (_additions(buffer, parts, kept[-1] if kept else None, added) if added else [])


def _alone(buffer: TextBuffer, part: BracketPart) -> bool:
    """Whether a part shares no line with another."""
    after = buffer.skip_blanks((part.comma or part.end - 1) + 1, lines=False)
    return buffer.begins_line(part.start) and buffer.text[after : after + 1] in ("", "\r", "\n", "#")


def _removals(buffer: TextBuffer, parts: Sequence[BracketPart], removed: Collection[int]) -> list[TextEdit]:
    splices: list[TextEdit] = []
    last = max((at for at in range(len(parts)) if at not in removed), default=-1)
    tail = parts[last + 1 :]
    # At the end of a line the comma before is removed too: `[a, b]` becomes `[a]`.
    if last >= 0 and tail and "\n" not in buffer.text[parts[last].end : tail[-1].end]:
        end = tail[-1].end if tail[-1].comma is None else tail[-1].comma
        splices.append(TextEdit(parts[last].end, end))
        tail = []
    for at in sorted(removed):
        part = parts[at]
        if at > last and not tail:
            continue
        if _alone(buffer, part):
            splices.append(TextEdit(buffer.line_start(part.start), buffer.next_line(part.comma or part.end)))
        else:
            splices.append(_out_of_line(buffer, part))
    return splices


def _out_of_line(buffer: TextBuffer, part: BracketPart) -> TextEdit:
    """Remove a part from a line that has other parts."""
    end = part.end if part.comma is None else part.comma + 1
    after = buffer.skip_blanks(end, lines=False)
    if buffer.text[after : after + 1] in ("", "\r", "\n", "#"):
        start = len(buffer.text[: part.start].rstrip(" \t"))
        return TextEdit(start if not buffer.begins_line(part.start) else part.start, end)
    return TextEdit(part.start, after)


def _additions(
    buffer: TextBuffer, parts: Sequence[BracketPart], last: BracketPart | None, more: Sequence[str]
) -> list[TextEdit]:
    """Append parts after `last`, the last remaining one; None if each part had its own line and none remains."""
    if last is None:
        indent = buffer.text[buffer.line_start(parts[0].start) : parts[0].start]
        return [buffer.insert_lines(buffer.line_start(parts[0].start), [f"{indent}{text}," for text in more])]
    if _alone(buffer, last):
        indent = buffer.text[buffer.line_start(last.start) : last.start]
        begins = buffer.next_line(last.end if last.comma is None else last.comma)
        comma = "," if parts[-1].comma is not None else ""
        lines = [f"{indent}{text}," for text in more[:-1]] + [f"{indent}{more[-1]}{comma}"]
        missing = [TextEdit(last.end, last.end, ",")] if last.comma is None else []
        return [*missing, buffer.insert_lines(begins, lines)]
    return [TextEdit(last.end, last.end, "".join(f", {text}" for text in more))]


class _Row(Struct, frozen=True):
    """One item of a list: the offset of its dash, and its whole lines from `start` to `end`.

    comment: where the comment lines right above it begin; `start` if there are none.
    """

    dash: int
    comment: int
    start: int
    end: int


def _block_list_edits(buffer: TextBuffer, node: Node) -> list[TextEdit]:
    """Return the edits that remove items of a list, and add new ones below the last that remains."""
    rows = list(_rows(buffer, node))
    kept = [row for at, row in enumerate(rows) if at not in node.removed]
    splices = [_removal(buffer, node, rows, at) for at in sorted(node.removed)]
    if node.added:
        splices.append(buffer.insert_lines(rows[-1].end, list(_new_items(buffer, node, (kept or rows)[-1]))))
    elif not kept:
        splices.append(_emptied(buffer, node))
    return splices


def _rows(buffer: TextBuffer, node: Node) -> Iterator[_Row]:
    at = node.start
    for item in node.items:
        dash = buffer.skip_blanks(at)
        start = buffer.line_start(dash)
        yield _Row(dash, buffer.comment_above(start, rf" {{{dash - start}}}#"), start, buffer.next_line(item.end))
        at = item.end


def _removal(buffer: TextBuffer, node: Node, rows: Sequence[_Row], at: int) -> TextEdit:
    """Remove one item, with the comment above it if comments in this list are about single items."""
    row = rows[at]
    # A comment above the first item alone may be about the whole list, unless that has one in the line of its key.
    list_line = buffer.text[buffer.line_start(rows[0].comment - 1) : rows[0].comment] if rows[0].comment else ""
    others = any(other.comment < other.start for other in rows[1:])
    is_about_item = at > 0 or len(rows) == 1 or others or re.match(r"\s*[^\s#].*\s#", list_line) is not None
    start = row.comment if node.commented and is_about_item else row.start
    end = row.end
    is_blank_above = start > 0 and not buffer.text[buffer.line_start(start - 1) : start].strip()
    if is_blank_above or (at == 0 and len(node.removed) < len(rows)):
        # Of the blank lines around a removed item those above are kept; a list does not begin with one.
        end = cast("re.Match[str]", _EMPTY_LINES.match(buffer.text, end)).end()
    return TextEdit(start, end)


def _emptied(buffer: TextBuffer, node: Node) -> TextEdit:
    """Write `[]` after the key of a list that has no items left."""
    key = next(key for key, value in cast(Node, node.parent).parts if value is node)
    at = buffer.skip_blanks(key.end, lines=False) + 1
    if node.outer < node.start:
        at = node.outer + len(buffer.text[node.outer :].split(None, 1)[0])
    return TextEdit(at, at, " []")


def _new_items(buffer: TextBuffer, node: Node, beside: _Row) -> Iterator[str]:
    """Yield the lines of new items; mappings in block style if those of the list are, or the line would be too long."""
    indent = buffer.text[beside.start : beside.dash]
    gap = buffer.text[beside.dash + 1 : beside.end]
    gap = gap[: len(gap) - len(gap.lstrip(" "))] or " "
    in_blocks = any(item.kind == "mapping" and not item.flow for item in node.items)
    for raw in node.added:
        line = f"{indent}-{gap}{render_inline(raw, in_brackets=False)}"
        if isinstance(raw, dict) and (in_blocks or len(line) > WIDTH):
            yield from (f"{indent}{one}" for one in _entry_lines(raw))
        else:
            yield line


def _entry_lines(raw: dict[str, Json]) -> Iterator[str]:
    """Yield the lines of a raw mapping as an item of a list."""
    return format_entry_lines(cast("dict[str, Json]", unescape_variables(raw)), "")


def _block_mapping_edits(buffer: TextBuffer, node: Node) -> list[TextEdit]:
    """Return the edits that remove keys of a mapping, and add new ones below the last. Raises UnsafeEdit."""
    splices = [_key_removal(buffer, node, at) for at in sorted(node.removed)]
    if node.added_keys:
        first = node.parts[0][0].outer
        indent = " " * (first - buffer.line_start(first))
        lines = [f"{indent}{line[2:]}" for line in _entry_lines(node.added_keys)]
        splices.append(buffer.insert_lines(buffer.next_line(node.end), lines))
    return splices


def _key_removal(buffer: TextBuffer, node: Node, at: int) -> TextEdit:
    start, end = part_span(node.parts[at])
    if buffer.begins_line(start):
        return TextEdit(buffer.line_start(start), buffer.next_line(end))
    # The key is on the line of a dash: the next key moves there.
    if at + 1 >= len(node.parts) or at + 1 in node.removed:
        raise UnsafeEdit(node.parts[at][0], "it is on the line of a dash")
    return TextEdit(start, node.parts[at + 1][0].outer)
