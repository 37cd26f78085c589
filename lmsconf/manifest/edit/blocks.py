"""Pending edits of block lists and block mappings → text edits."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Some

from msgspec import Struct

from lmsconf.manifest.edit.text_buffer import TextBuffer, TextEdit, UnsafeEdit, render_inline, unescape_variables
from lmsconf.manifest.edit.tree_builder import Mapping, Node, Pair, Sequence
from lmsconf.manifest.edit.yaml_text import WIDTH, format_entry_lines
from lmsconf.model.canonical_json import Json


class _Row(Struct, frozen=True):
    """One item of a list: the offset of its dash, and its whole lines from `start` to `end`.

    comment: where the comment lines right above it begin; `start` if there are none.
    """

    dash: int
    comment: int
    start: int
    end: int


def block_list_edits(buffer: TextBuffer, node: Sequence) -> list[TextEdit]:
    """Return the edits that remove items of a list, and add new ones below the last that remains. Raises UnsafeEdit."""
    rows = list(_rows(buffer, node))
    if not node.removed and not node.added:
        return []
    kept = [row for at, row in enumerate(rows) if at not in node.removed]
    splices = [_removal(buffer, node, rows, at) for at in sorted(node.removed)]
    if node.added:
        splices.append(buffer.insert_lines(rows[-1].end, list(_new_items(buffer, node, (kept or rows)[-1]))))
    elif not kept:
        splices.append(_emptied(buffer, node))
    return splices


def _rows(buffer: TextBuffer, node: Sequence) -> Iterator[_Row]:
    at = node.start
    for item in node.items:
        dash = buffer.skip_blanks(at)
        if buffer.text[dash : dash + 1] != "-" or not buffer.begins_line(dash):
            raise UnsafeEdit(item, "its dash is not at the start of a line")
        start = buffer.line_start(dash)
        yield _Row(dash, _comment_above(buffer, start, dash - start), start, buffer.next_line(item.content_end))
        at = item.content_end


def _comment_above(buffer: TextBuffer, start: int, indent: int) -> int:
    """Return the start of the comment lines right above, if they have the same indent; else `start`."""
    while start:
        above = buffer.line_start(start - 1)
        line = buffer.text[above:start]
        if not line.startswith(" " * indent + "#"):
            break
        start = above
    return start


def _removal(buffer: TextBuffer, node: Sequence, rows: Some[_Row], at: int) -> TextEdit:
    """Remove one item, with the comment above it if comments in this list are about single items."""
    row = rows[at]
    start = row.comment if node.commented and _is_about_item(rows, at) else row.start
    end = row.end
    if _is_blank_above(buffer, start) or (at == 0 and len(node.removed) < len(rows)):
        # Of the blank lines around a removed item those above are kept; a list does not begin with one.
        while (
            end < len(buffer.text)
            and not buffer.text[end : buffer.line_end(end)].strip()
            and buffer.next_line(end) > end
        ):
            end = buffer.next_line(end)
    return TextEdit(start, end)


def _is_about_item(rows: Some[_Row], at: int) -> bool:
    """Whether the comment above an item is about it: one above the first item alone may be about the whole list."""
    return at > 0 or len(rows) == 1 or any(row.comment < row.start for row in rows[1:])


def _is_blank_above(buffer: TextBuffer, start: int) -> bool:
    return start > 0 and not buffer.text[buffer.line_start(start - 1) : start].strip()


def _emptied(buffer: TextBuffer, node: Sequence) -> TextEdit:
    """Write `[]` after the key of a list that has no items left. Raises UnsafeEdit."""
    pair = _pair_of(node)
    colon = buffer.skip_blanks(pair.key.end, lines=False)
    if buffer.text[colon : colon + 1] != ":":
        raise UnsafeEdit(node, "its key spans several lines")
    at = colon + 1
    if node.outer < node.start:
        at = node.outer + len(buffer.text[node.outer :].split(None, 1)[0])
    return TextEdit(at, at, " []")


def _pair_of(node: Node) -> Pair:
    parent = node.parent
    if isinstance(parent, Mapping):
        return next(pair for pair in parent.pairs if pair.value is node)
    raise UnsafeEdit(node, "it is in a list of lists")


def _new_items(buffer: TextBuffer, node: Sequence, beside: _Row) -> Iterator[str]:
    """Yield the lines of new items; mappings in block style if those of the list are, or the line would be too long."""
    indent = buffer.text[beside.start : beside.dash]
    gap = buffer.text[beside.dash + 1 : beside.end]
    gap = gap[: len(gap) - len(gap.lstrip(" "))] or " "
    in_blocks = any(isinstance(item, Mapping) and not item.flow for item in node.items)
    for raw in node.added:
        line = f"{indent}-{gap}{render_inline(raw, in_brackets=False)}"
        if isinstance(raw, dict) and (in_blocks or len(line) > WIDTH):
            yield from (f"{indent}{one}" for one in format_entry_lines(_mapping(raw), ""))
        else:
            yield line


def _mapping(raw: Json) -> dict[str, Json]:
    value = unescape_variables(raw)
    return value if isinstance(value, dict) else {}


def block_mapping_edits(buffer: TextBuffer, node: Mapping) -> list[TextEdit]:
    """Return the edits that remove keys of a mapping, and add new ones below the last. Raises UnsafeEdit."""
    splices = [_key_removal(buffer, node, at) for at in sorted(node.removed)]
    if node.added:
        indent = " " * (node.pairs[0].key.outer - buffer.line_start(node.pairs[0].key.outer))
        lines = [f"{indent}{line[2:]}" for line in format_entry_lines(_mapping(node.added), "")]
        splices.append(buffer.insert_lines(buffer.next_line(node.content_end), lines))
    return splices


def _key_removal(buffer: TextBuffer, node: Mapping, at: int) -> TextEdit:
    pair = node.pairs[at]
    start = pair.key.outer
    if buffer.begins_line(start):
        end = max(pair.value.content_end, pair.key.end)
        return TextEdit(buffer.line_start(start), buffer.next_line(end))
    # The key is on the line of a dash: the next key moves there.
    if at + 1 >= len(node.pairs) or at + 1 in node.removed:
        raise UnsafeEdit(pair.key, "it is on the line of a dash")
    return TextEdit(start, node.pairs[at + 1].key.outer)
