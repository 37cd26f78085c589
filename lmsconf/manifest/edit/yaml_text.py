"""Format values as YAML for manifests: short lists on one line, long ones by item, quotes only where needed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lmsconf.manifest.nodes import resolve_scalar
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
    # A doubled `$` escapes the start of a variable.
    word = str(value).replace("$(", "$$(")
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


def format_inline(value: Json) -> str:
    """Format a value on one line, however long."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)}: {format_inline(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(format_inline, value)) + "]"
    return format_scalar(value, in_brackets=True)


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
        shown = format_inline(value) if isinstance(value, list | dict) else format_scalar(value, in_brackets=False)
        yield f"{lead}{_key(key)}: {shown}"


def _items(items: Sequence[Json], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, dict) and not _fits(f"{indent}- ", item):
            yield from format_entry_lines(item, indent)
        else:
            text = format_inline(item) if isinstance(item, list | dict) else format_scalar(item, in_brackets=False)
            yield f"{indent}- {text}"


def _is_table(items: Sequence[Json]) -> bool:
    """Whether to write one item per line: several items with a mapping among them, or a single long mapping."""
    mappings = any(isinstance(item, dict) for item in items)
    return mappings and (len(items) > 1 or len(format_inline(items[0])) > _SHORT)


def _fits(lead: str, value: Json) -> bool:
    return len(lead) + len(format_inline(value)) <= WIDTH
