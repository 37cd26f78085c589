"""Pending edits of flow style, `[…]` and `{…}` → text edits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from lmsconf.manifest.edit.text_buffer import TextBuffer, TextEdit, UnsafeEdit
from lmsconf.manifest.edit.tree_builder import Node


class BracketPart(Struct, frozen=True):
    """The span of one item, or of one key with its value. comma: the offset of the comma after it, if any."""

    start: int
    end: int
    comma: int | None


def bracket_edits(
    buffer: TextBuffer, node: Node, spans: Sequence[tuple[int, int]], removed: Collection[int], added: Sequence[str]
) -> list[TextEdit]:
    """Return the edits that remove parts within brackets and append new ones, in the layout of the others.

    spans: start and end of each part. removed: indexes of the parts to remove. Raises UnsafeEdit.
    """
    if buffer.text[node.start : node.start + 1] not in ("[", "{"):
        raise UnsafeEdit(node, "it has no brackets of its own")
    parts = [_part(buffer, start, end) for start, end in spans]
    kept = [part for at, part in enumerate(parts) if at not in removed]
    if not kept and not (added and parts and _alone(buffer, parts[0])):
        return [TextEdit(node.start + 1, node.end - 1, ", ".join(added))] if removed or added else []
    splices = _removals(buffer, parts, removed)
    if added:
        splices += _additions(buffer, parts, kept[-1] if kept else None, added)
    return splices


def _part(buffer: TextBuffer, start: int, end: int) -> BracketPart:
    after = buffer.skip_blanks(end)
    return BracketPart(start, end, after if buffer.text[after : after + 1] == "," else None)


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
