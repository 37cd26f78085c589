"""Reorder the parts of lists and mappings in place: each moves as the text it is, with the comments that belong to it.

A comment right above a part belongs to it, and so do deeper comments below it. One that stands alone, between blank
lines, is a heading: parts are ordered above and below it, and none moves past it. Blank lines stay where they are.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from lmsconf.manifest.edit.text_buffer import TextBuffer, UnsafeEdit
from lmsconf.manifest.edit.tree_builder import Mapping, Node
from lmsconf.manifest.edit.tree_builder import Sequence as Items

MODELINE: Final = re.compile(r"#\s*yaml-language-server:")
"""A comment for editors, which stays at the top of its file."""
SortKey: TypeAlias = "Callable[[int], object]"
"""The sort key of a part, by its index."""


class Part(NamedTuple):
    """The text of one part, from its comment to the end of its lines; start: of the part without its comment."""

    comment: int
    start: int
    end: int


class Permutation(NamedTuple):
    """Parts in the order of the text, and the index of the part that takes each place."""

    parts: Sequence[tuple[int, int]]
    order: Sequence[int]


def permutation(buffer: TextBuffer, node: Mapping | Items, key: SortKey) -> Permutation | None:
    """Return the permutation that sorts the parts of a node; None if they are sorted. Raises UnsafeEdit."""
    spans = list(_spans(buffer, node))
    if node.flow:
        return _in_brackets(buffer, node, spans, key)
    parts = [_part(buffer, node, start, end) for start, end in spans]
    order = [at for group in _groups(buffer, parts) for at in sorted(group, key=key)]  # type: ignore[arg-type]  # keys are comparable
    moved = [at for place, at in enumerate(order) if place != at]
    if not moved:
        return None
    return Permutation(_movable(buffer, node, parts, moved), order)


def reordered(text: str, permutations: Sequence[Permutation]) -> str:
    """Return the text with all permutations applied, those within a part too."""
    ordered = sorted(permutations, key=lambda one: (one.parts[0][0], -one.parts[-1][1]))
    return "".join(_rendered(text, (0, len(text)), ordered, [one.parts[0][0] for one in ordered]))


def _rendered(
    text: str, span: tuple[int, int], permutations: Sequence[Permutation], starts: Sequence[int]
) -> Iterator[str]:
    at, end = span
    number = bisect_left(starts, at)
    while number < len(starts) and starts[number] < end:
        one = permutations[number]
        if one.parts[-1][1] > end:
            number += 1  # it is the one that this span is a part of
            continue
        for place, source in enumerate(one.order):
            yield text[at : one.parts[place][0]]
            yield from _rendered(text, one.parts[source], permutations, starts)
            at = one.parts[place][1]
        number = bisect_left(starts, at)
    yield text[at:end]


def _spans(buffer: TextBuffer, node: Mapping | Items) -> Iterator[tuple[int, int]]:
    """Yield start and end of each part: of a key and its value, of an item, of an item with its dash."""
    if isinstance(node, Mapping):
        yield from ((pair.key.outer, max(pair.key.end, pair.value.content_end)) for pair in node.pairs)
        return
    at = node.start
    for item in node.items:
        yield (item.outer if node.flow else buffer.skip_blanks(at)), item.content_end
        at = item.content_end


def _in_brackets(buffer: TextBuffer, node: Node, spans: Sequence[tuple[int, int]], key: SortKey) -> Permutation | None:
    order = sorted(range(len(spans)), key=key)  # type: ignore[arg-type]  # keys are comparable
    if order == list(range(len(spans))):
        return None
    between = [(before[1], after[0]) for before, after in pairwise([(0, node.start + 1), *spans, (node.end - 1, 0)])]
    if any("#" in buffer.text[start:end] for start, end in between):
        raise UnsafeEdit(node, "a comment stands between brackets")
    return Permutation(spans, order)


def _part(buffer: TextBuffer, node: Node, start: int, content_end: int) -> Part:
    """Return a part of a block: its dash or key, its lines, and the comments that belong to it."""
    if isinstance(node, Items) and buffer.text[start : start + 1] != "-":
        raise UnsafeEdit(node, "an item has no dash")
    indent = start - buffer.line_start(start)
    end = after = buffer.next_line(content_end)
    while after < len(buffer.text):
        line = buffer.text[after : buffer.next_line(after)]
        if line.strip() and (not line.lstrip(" ").startswith("#") or len(line) - len(line.lstrip(" ")) <= indent):
            break
        after = buffer.next_line(after)
        end = after if line.strip() else end
    return Part(_comment_above(buffer, start, indent), start, end)


def _comment_above(buffer: TextBuffer, start: int, indent: int) -> int:
    """Return the start of the comment lines right above a part; the start of its line if there are none."""
    begin = buffer.line_start(start)
    while begin:
        above = buffer.line_start(begin - 1)
        line = buffer.text[above:begin].lstrip(" ")
        if not line.startswith("#") or begin - above - len(line) > indent or MODELINE.match(line):
            break
        begin = above
    return begin


def _groups(buffer: TextBuffer, parts: Sequence[Part]) -> Iterator[list[int]]:
    """Yield the indexes of the parts between headings."""
    group = [0] if parts else []
    for number, (before, part) in enumerate(pairwise(parts), 1):
        if buffer.text[before.end : part.comment].strip():
            yield group
            group = []
        group.append(number)
    yield group


def _movable(buffer: TextBuffer, node: Node, parts: Sequence[Part], moved: Sequence[int]) -> list[tuple[int, int]]:
    """Return the spans that change places. Raises UnsafeEdit if comments cannot tell what they belong to."""
    columns = {part.start - buffer.line_start(part.start) for part in parts}
    if len(columns) > 1 or not all(buffer.begins_line(part.start) for part in parts[1:]):
        raise UnsafeEdit(node, "its parts do not begin in one column")
    commented = [at for at, part in enumerate(parts) if part.comment < buffer.line_start(part.start)]
    if not buffer.begins_line(parts[0].start):
        # The first key stands beside the dash of an item, and so does what takes its place.
        if 0 in moved and any(at in commented for at in moved if at):
            raise UnsafeEdit(node, "the key that belongs beside the dash has a comment above it")
        first = (parts[0].start, parts[0].end)
        return [first, *((part.start if 0 in moved else part.comment, part.end) for part in parts[1:])]
    if commented == [0] and buffer.skip_blanks(0) == parts[0].start:
        # The first lines of a file are about the file.
        return [(buffer.line_start(part.start), part.end) for part in parts]
    if 0 in moved and commented == [0]:
        raise UnsafeEdit(node, "the comment above its first part may be about that part, or about all of them")
    return [(part.comment, part.end) for part in parts]
