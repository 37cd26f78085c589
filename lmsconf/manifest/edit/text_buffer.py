"""The text of one file, and edits of spans of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lmsconf.manifest.edit.tree_builder import Node, Scalar
from lmsconf.manifest.edit.yaml_text import double_quoted, format_inline, format_scalar
from lmsconf.model.canonical_json import Json


class UnsafeEdit(Exception):
    """Raised if the pending edits of a node would affect other text too; `why` gives the reason."""

    def __init__(self, node: Node, why: str) -> None:
        super().__init__(why)
        self.node = node
        self.why = why


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

    def line_end(self, at: int) -> int:
        """Return the end of that line, before its line break."""
        end = self.text.find("\n", at)
        end = len(self.text) if end < 0 else end
        return end - 1 if end > at and self.text[end - 1 : end] == "\r" else end

    def next_line(self, at: int) -> int:
        """Return the start of the next line; the end of the text if there is none."""
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end + 1

    def begins_line(self, at: int) -> bool:
        """Whether only spaces precede the offset in its line."""
        return not self.text[self.line_start(at) : at].strip(" ")

    def skip_blanks(self, at: int, *, lines: bool = True) -> int:
        """Return the next offset that is neither whitespace nor comment; in the same line, unless `lines`."""
        blank = " \t\r\n" if lines else " \t"
        while at < len(self.text):
            if self.text[at] == "#" and self.text[at - 1 : at] in ("", *" \t\r\n"):
                if not lines:
                    return at
                at = self.line_end(at)
            elif self.text[at] not in blank:
                break
            else:
                at += 1
        return at

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
    if isinstance(raw, str):
        return raw.replace("$$(", "$(")
    if isinstance(raw, list):
        return [unescape_variables(item) for item in raw]
    return {key: unescape_variables(item) for key, item in raw.items()} if isinstance(raw, dict) else raw


def escape_variables(value: Json) -> Json:
    """Escape `$(`, the start of a variable, in a value."""
    if isinstance(value, str):
        return value.replace("$(", "$$(")
    if isinstance(value, list):
        return [escape_variables(item) for item in value]
    return {key: escape_variables(item) for key, item in value.items()} if isinstance(value, dict) else value


def render_inline(raw: Json, *, in_brackets: bool) -> str:
    """Format a raw value on one line. in_brackets: within brackets."""
    value = unescape_variables(raw)
    return format_inline(value) if isinstance(value, list | dict) else format_scalar(value, in_brackets=in_brackets)


def replacement_edit(buffer: TextBuffer, node: Node, raw: Json) -> TextEdit:
    """Return the edit that replaces a node in its quoting style. Raises UnsafeEdit for a block list or mapping."""
    if not isinstance(node, Scalar) and not getattr(node, "flow", False):
        raise UnsafeEdit(node, "it spans several lines")
    text = render_inline(raw, in_brackets=node.inside)
    if isinstance(raw, str) and isinstance(node, Scalar):
        if node.style == "'" and raw.isprintable():
            text = "'" + raw.replace("'", "''") + "'"
        elif node.style == '"':
            text = double_quoted(raw)
    is_nothing = node.start == node.end and buffer.text[node.start - 1 : node.start] not in ("", " ")
    return TextEdit(node.start, node.end, f" {text}" if is_nothing else text)
