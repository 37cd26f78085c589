"""Limits on responses: rows, pages and memory of a listing, memory of a fan-out, values of one response.

They stop a run, with an error, at a service whose pages never end or whose rows are oversized. They leave room for
200,000 people, 5,000 groups, one of them with 100,000 members, and 20,000 assignments of one content.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from lmsconf.errors import InvalidResponse, UsageError, shorten
from lmsconf.model.canonical_json import Json

MIB: Final = 1024 * 1024
ANSWER: Final = 16 * MIB
"""Maximum size of one response body, in bytes."""
PAGES: Final = 20_000
"""Maximum number of pages of one listing."""
TEXT: Final = 100_000
"""Maximum length of one string of a row, in characters."""
_EVERYTHING: Final = 6
FACTOR: Final = "LMSCONF_READ_LIMIT"
"""The environment variable that raises the limits on listings and fan-outs: how many times as much is read."""


class ListingLimit(Struct, frozen=True):
    """Maximum number of rows of a listing, and of the memory that they take, in bytes."""

    rows: int
    memory: int


def _factor() -> int:
    """Return how many times as much is read. Raises UsageError."""
    text = os.environ.get(FACTOR) or "1"
    if not re.fullmatch("[1-9][0-9]{0,2}", text):
        raise UsageError(f"{FACTOR} is not a whole number from 1 to 999: {shorten(text)}", hint=f"Set {FACTOR}=2.")
    return int(text)


def listing_limit(operation: str, *, whole_rows: bool) -> ListingLimit:
    """Return the limit of one listing. whole_rows: rows are kept whole, not only the fields that a plan compares."""
    rows, memory = (250_000, 128 * MIB) if operation in ("users.list", "users.extended-info") else (50_000, 24 * MIB)
    factor = _factor()
    return ListingLimit(rows * factor, memory * factor * (_EVERYTHING if whole_rows else 1))


def fan_out_memory_limit(*, whole_responses: bool) -> int:
    """Return the maximum memory, in bytes, of the responses of one read operation that is called once per resource.

    whole_responses: they are kept whole.
    """
    return 96 * MIB * _factor() * (_EVERYTHING if whole_responses else 1)


class LimitExceeded(InvalidResponse):
    """Ends a run. subject: what exceeds its limit. limit: the limit, in words."""

    def __init__(self, subject: str, limit: str) -> None:
        super().__init__(
            f"the service answers more {subject} than lmsconf reads: {limit}",
            hint="Nothing was changed. A listing that does not end, or rows of such a size, are the service's mistake: "
            f"ask its operator. If the workspace is that large, set {FACTOR}=2 to read twice as much.",
        )


def estimate_memory(value: Json, counted: set[int] | None = None, *, subject: str = "a row") -> int:
    """Estimate the memory of a decoded value, in bytes.

    counted: ids of the objects in lists that are already counted; an object shared between lists counts once.
    subject: what the value is, for the error. Raises InvalidResponse for a string longer than TEXT.
    """
    size, left = 0, list[Iterable[Json]]([(value,)])
    while left:
        for item in left.pop():
            if isinstance(item, str):
                if len(item) > TEXT:
                    raise InvalidResponse(
                        f"{subject} cannot be used: it contains a text of more than {TEXT:,} characters"
                    )
                # One character outside ASCII widens every character of a string, to at most 4 bytes.
                size += 56 + len(item) * (1 if item.isascii() else 4)
            elif isinstance(item, dict):
                size += 200 + sum(map(len, item))
                left.append(item.values())
            elif isinstance(item, list):
                size += 56 + 8 * len(item)
                left.append(item if counted is None else _uncounted(item, counted))
            elif item is not None and not isinstance(item, bool):
                size += 32
    return size


def _uncounted(items: list[Json], counted: set[int]) -> Iterator[Json]:
    """Yield the items of a list except the objects in `counted`, and add the new ones to it."""
    for item in items:
        if not isinstance(item, dict):
            yield item
        elif id(item) not in counted:
            counted.add(id(item))
            yield item


def pages_ahead(rows: list[dict[str, Json]]) -> int:
    """Return how many pages like one with these rows may be requested ahead: two at least, however large they are.

    Some of the rows tell how much memory a page takes.
    """
    some = rows[:: max(1, len(rows) // 10)]
    try:
        size = sum(map(estimate_memory, some)) * len(rows) // max(1, len(some))
    except InvalidResponse:
        return 2
    return max(2, min(16, 32 * MIB // max(size, 1)))


class MemoryQuota:
    """Memory quota shared by the responses of a fan-out. Thread-safe."""

    def __init__(self, size: int, subject: str) -> None:
        self._size, self._left, self._subject = size, size, subject
        self._lock = threading.Lock()

    def charge(self, value: Json) -> Json:
        """Count a value that is kept, and return it. Raises InvalidResponse beyond the quota or for a long string."""
        size = estimate_memory(value, subject=f"an answer {self._subject}")
        with self._lock:
            self._left -= size
            if self._left < 0:
                raise LimitExceeded(self._subject, f"more than {self._size // MIB} MiB in all")
        return value


def refuse_oversized_body(body: bytes, *, paged: bool) -> None:
    """Raise ValueError for a body that would take too much memory once decoded.

    The estimate counts braces, brackets and commas: fast, and too high for strings that contain them.
    """
    limit = 32 if paged else 64
    is_large = len(body) >= MIB // 4
    if is_large and 400 * body.count(b"{") + 100 * (body.count(b"[") + body.count(b",")) > limit * MIB:
        raise ValueError(f"it holds more values than fit in {limit} MiB of memory")
