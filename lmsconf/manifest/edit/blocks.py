"""Pending edits of block lists and block mappings → text edits."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Some
from dataclasses import dataclass

from lmsconf.manifest.edit.text_buffer import TextBuffer, TextEdit, Unsafe, plain_text, rendered
from lmsconf.manifest.edit.tree_builder import Mapping, Node, Pair, Sequence
from lmsconf.manifest.edit.yaml_text import WIDTH, entry_lines
from lmsconf.model.values import Json


@dataclass(frozen=True, slots=True)
class _Row:
    """One item of a list: the offset of its dash, and its whole lines from `start` to `end`.

    comment: where the comment lines right above it begin; `start` if there are none.
    """

    dash: int
    comment: int
    start: int
    end: int


def list_splices(page: TextBuffer, node: Sequence) -> list[TextEdit]:
    """Return the edits that remove items of a list, and add new ones below the last that remains. Raises Unsafe."""
    rows = list(_rows(page, node))
    if not node.removed and not node.more:
        return []
    kept = [row for at, row in enumerate(rows) if at not in node.removed]
    splices = [_removal(page, node, rows, at) for at in sorted(node.removed)]
    if node.more:
        splices.append(page.insertion(rows[-1].end, list(_new_items(page, node, (kept or rows)[-1]))))
    elif not kept:
        splices.append(_emptied(page, node))
    return splices


def _rows(page: TextBuffer, node: Sequence) -> Iterator[_Row]:
    at = node.start
    for item in node.items:
        dash = page.skip(at)
        if page.text[dash : dash + 1] != "-" or not page.begins_line(dash):
            raise Unsafe(item, "its dash does not begin a line")
        start = page.line_start(dash)
        yield _Row(dash, _comment_above(page, start, dash - start), start, page.next_line(item.content_end))
        at = item.content_end


def _comment_above(page: TextBuffer, start: int, indent: int) -> int:
    """Return the start of the comment lines right above, if they have the same indent; else `start`."""
    while start:
        above = page.line_start(start - 1)
        line = page.text[above:start]
        if not line.startswith(" " * indent + "#"):
            break
        start = above
    return start


def _removal(page: TextBuffer, node: Sequence, rows: Some[_Row], at: int) -> TextEdit:
    """Remove one item, with the comment above it if comments in this list are about single items."""
    row = rows[at]
    start = row.comment if node.commented and _is_about_item(rows, at) else row.start
    end = row.end
    if _is_blank_above(page, start) or (at == 0 and len(node.removed) < len(rows)):
        # Of the blank lines around a removed item those above are kept; a list does not begin with one.
        while end < len(page.text) and not page.text[end : page.line_end(end)].strip() and page.next_line(end) > end:
            end = page.next_line(end)
    return TextEdit(start, end)


def _is_about_item(rows: Some[_Row], at: int) -> bool:
    """Whether the comment above an item is about it: one above the first item alone may be about the whole list."""
    return at > 0 or len(rows) == 1 or any(row.comment < row.start for row in rows[1:])


def _is_blank_above(page: TextBuffer, start: int) -> bool:
    return start > 0 and not page.text[page.line_start(start - 1) : start].strip()


def _emptied(page: TextBuffer, node: Sequence) -> TextEdit:
    """Write `[]` after the key of a list that has no items left. Raises Unsafe."""
    pair = _pair_of(node)
    colon = page.skip(pair.key.end, lines=False)
    if page.text[colon : colon + 1] != ":":
        raise Unsafe(node, "its key does not stand in one line")
    at = colon + 1
    if node.outer < node.start:
        at = node.outer + len(page.text[node.outer :].split(None, 1)[0])
    return TextEdit(at, at, " []")


def _pair_of(node: Node) -> Pair:
    parent = node.parent
    if isinstance(parent, Mapping):
        return next(pair for pair in parent.pairs if pair.value is node)
    raise Unsafe(node, "it stands in a list of lists")


def _new_items(page: TextBuffer, node: Sequence, beside: _Row) -> Iterator[str]:
    """Yield the lines of new items; mappings in block style if those of the list are, or the line would be too long."""
    indent = page.text[beside.start : beside.dash]
    gap = page.text[beside.dash + 1 : beside.end]
    gap = gap[: len(gap) - len(gap.lstrip(" "))] or " "
    in_blocks = any(isinstance(item, Mapping) and not item.flow for item in node.items)
    for raw in node.more:
        line = f"{indent}-{gap}{rendered(raw, inside=False)}"
        if isinstance(raw, dict) and (in_blocks or len(line) > WIDTH):
            yield from (f"{indent}{one}" for one in entry_lines(_mapping(raw), ""))
        else:
            yield line


def _mapping(raw: Json) -> dict[str, Json]:
    value = plain_text(raw)
    return value if isinstance(value, dict) else {}


def mapping_splices(page: TextBuffer, node: Mapping) -> list[TextEdit]:
    """Return the edits that remove keys of a mapping, and add new ones below the last. Raises Unsafe."""
    splices = [_key_removal(page, node, at) for at in sorted(node.removed)]
    if node.more:
        indent = " " * (node.pairs[0].key.outer - page.line_start(node.pairs[0].key.outer))
        lines = [f"{indent}{line[2:]}" for line in entry_lines(_mapping(node.more), "")]
        splices.append(page.insertion(page.next_line(node.content_end), lines))
    return splices


def _key_removal(page: TextBuffer, node: Mapping, at: int) -> TextEdit:
    pair = node.pairs[at]
    start = pair.key.outer
    if page.begins_line(start):
        end = max(pair.value.content_end, pair.key.end)
        return TextEdit(page.line_start(start), page.next_line(end))
    # The key is on the line of a dash: the next key moves there.
    if at + 1 >= len(node.pairs) or at + 1 in node.removed:
        raise Unsafe(pair.key, "it stands beside a dash")
    return TextEdit(start, node.pairs[at + 1].key.outer)
