"""Pending edits of flow style, `[…]` and `{…}` → text edits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from lmsconf.manifest.edit.text_buffer import TextBuffer, TextEdit, Unsafe
from lmsconf.manifest.edit.tree_builder import Node


@dataclass(frozen=True, slots=True)
class Part:
    """The span of one item, or of one key with its value. comma: the offset of the comma after it, if any."""

    start: int
    end: int
    comma: int | None


def bracket_splices(
    page: TextBuffer, node: Node, spans: Sequence[tuple[int, int]], removed: Collection[int], more: Sequence[str]
) -> list[TextEdit]:
    """Return the edits that remove parts within brackets and append new ones, in the layout of the others.

    spans: start and end of each part. removed: indexes of the parts to remove. Raises Unsafe.
    """
    if page.text[node.start : node.start + 1] not in ("[", "{"):
        raise Unsafe(node, "it has no brackets of its own")
    parts = [_part(page, start, end) for start, end in spans]
    kept = [part for at, part in enumerate(parts) if at not in removed]
    if not kept and not (more and parts and _alone(page, parts[0])):
        return [TextEdit(node.start + 1, node.end - 1, ", ".join(more))] if removed or more else []
    splices = _removals(page, parts, removed)
    if more:
        splices += _additions(page, parts, kept[-1] if kept else None, more)
    return splices


def _part(page: TextBuffer, start: int, end: int) -> Part:
    after = page.skip(end)
    return Part(start, end, after if page.text[after : after + 1] == "," else None)


def _alone(page: TextBuffer, part: Part) -> bool:
    """Whether a part shares no line with another."""
    after = page.skip((part.comma or part.end - 1) + 1, lines=False)
    return page.begins_line(part.start) and page.text[after : after + 1] in ("", "\r", "\n", "#")


def _removals(page: TextBuffer, parts: Sequence[Part], removed: Collection[int]) -> list[TextEdit]:
    splices: list[TextEdit] = []
    last = max((at for at in range(len(parts)) if at not in removed), default=-1)
    tail = parts[last + 1 :]
    # At the end of a line the comma before is removed too: `[a, b]` becomes `[a]`.
    if last >= 0 and tail and "\n" not in page.text[parts[last].end : tail[-1].end]:
        end = tail[-1].end if tail[-1].comma is None else tail[-1].comma
        splices.append(TextEdit(parts[last].end, end))
        tail = []
    for at in sorted(removed):
        part = parts[at]
        if at > last and not tail:
            continue
        if _alone(page, part):
            splices.append(TextEdit(page.line_start(part.start), page.next_line(part.comma or part.end)))
        else:
            splices.append(_out_of_line(page, part))
    return splices


def _out_of_line(page: TextBuffer, part: Part) -> TextEdit:
    """Remove a part from a line that has other parts."""
    end = part.end if part.comma is None else part.comma + 1
    after = page.skip(end, lines=False)
    if page.text[after : after + 1] in ("", "\r", "\n", "#"):
        start = len(page.text[: part.start].rstrip(" \t"))
        return TextEdit(start if not page.begins_line(part.start) else part.start, end)
    return TextEdit(part.start, after)


def _additions(page: TextBuffer, parts: Sequence[Part], last: Part | None, more: Sequence[str]) -> list[TextEdit]:
    """Append parts after `last`, the last remaining one; None if each part had its own line and none remains."""
    if last is None:
        indent = page.text[page.line_start(parts[0].start) : parts[0].start]
        return [page.insertion(page.line_start(parts[0].start), [f"{indent}{text}," for text in more])]
    if _alone(page, last):
        indent = page.text[page.line_start(last.start) : last.start]
        begins = page.next_line(last.end if last.comma is None else last.comma)
        comma = "," if parts[-1].comma is not None else ""
        lines = [f"{indent}{text}," for text in more[:-1]] + [f"{indent}{more[-1]}{comma}"]
        missing = [TextEdit(last.end, last.end, ",")] if last.comma is None else []
        return [*missing, page.insertion(begins, lines)]
    return [TextEdit(last.end, last.end, "".join(f", {text}" for text in more))]
