"""Fit entries into a size limit: each degrades from full text to shorter ones, down to being only counted.

The variants of an entry are its texts, shortest first. Each round raises every entry to its next one, in order,
while there is room, so all entries are named before one is shown in full. No text is truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

TextVariant: TypeAlias = Callable[[], str]


class SizeLimit(Struct, frozen=True):
    """The maximum size of a comment in bytes, None: unlimited. folds: whether the service renders `<details>`."""

    size: int | None
    folds: bool = True


SERVICE_LIMITS = {
    "github": SizeLimit(65_536),
    "gitlab": SizeLimit(1_000_000),
    "azure": SizeLimit(150_000),
    "bitbucket": SizeLimit(32_767, folds=False),
    "summary": SizeLimit(1_048_576),
    "none": SizeLimit(None),
}
"""Service → limit. Services count characters differently, but none counts more of them than the text has bytes."""

UNLIMITED = SERVICE_LIMITS["none"]

MIN_LIMIT = 8_000
"""The smallest limit, in bytes: at most this much is needed for counts, guards and headings."""

NAME_SIZE = 240
"""Maximum bytes of one name in a line; the details have the full name."""

_PATIENCE = 50
"""After this many consecutive entries that do not fit, the rest of a round is skipped."""


def parse_size_limit(text: str) -> SizeLimit:
    """Parse `--limit`: a service name or a number of bytes. Raises ValueError for anything else, or under LEAST."""
    if text in SERVICE_LIMITS:
        return SERVICE_LIMITS[text]
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is neither a number of bytes nor one of {', '.join(SERVICE_LIMITS)}")
    if int(text) < MIN_LIMIT:
        raise ValueError(f"{text} bytes are too few for a summary; pass {MIN_LIMIT:,} or more")
    return SizeLimit(int(text))


def truncate(text: str, escape: Callable[[str], str], max_bytes: int = NAME_SIZE) -> str:
    """Return the escaped text, truncated so that the result has at most `max_bytes` bytes."""
    escaped = escape(text)
    while byte_size(escaped) > max_bytes:
        text = text[: min(len(text) - 1, len(text) * max_bytes // byte_size(escaped))]
        escaped = escape(f"{text}…")
    return escaped


def byte_size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def choose_variants(entries: Sequence[Sequence[TextVariant]], max_bytes: int | None) -> tuple[list[str | None], bool]:
    """Choose a text for each entry, or None for no room; also return whether all are in full.

    max_bytes: of all texts together; None: unlimited.
    """
    if max_bytes is None:
        return [variants[-1]() for variants in entries], True
    chosen: list[str | None] = [None] * len(entries)
    whole = True
    for height in range(max(map(len, entries), default=0)):
        max_bytes, all_climbed = _round(entries, chosen, height, max_bytes)
        whole &= all_climbed
    return chosen, whole


def _round(
    entries: Sequence[Sequence[TextVariant]], chosen: list[str | None], height: int, room: int
) -> tuple[int, bool]:
    """Raise each named entry to its next variant. Return the room left in bytes, and whether all could be raised."""
    missed, climbed = 0, True
    for position, variants in enumerate(entries):
        before = chosen[position]
        if height >= len(variants) or (height and before is None):
            continue
        text = variants[height]()
        more = byte_size(text) - byte_size(before or "")
        if more <= room:
            chosen[position], room, missed = text, room - more, 0
        else:
            missed, climbed = missed + 1, False
            if missed == _PATIENCE:
                break
    return room, climbed
