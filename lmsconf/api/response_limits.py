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
AHEAD: Final = 16
"""Maximum number of pages of one listing that are requested ahead."""
AHEAD_MEMORY: Final = 32 * MIB
"""Maximum memory, in bytes, of these pages; two are requested ahead however large they are."""
_SAMPLE: Final = 10
FAN_OUT: Final = 96 * MIB
"""Maximum memory, in bytes, of the responses of one fan-out: one read operation called once per resource."""
TEXT: Final = 100_000
"""Maximum length of one string of a row, in characters."""
_PAGE_VALUES: Final = 32 * MIB
_VALUES: Final = 64 * MIB
_SMALL: Final = MIB // 4
_EVERYTHING: Final = 6
FACTOR: Final = "LMSCONF_READ_LIMIT"
"""The environment variable that raises the limits on listings and fan-outs: how many times as much is read."""


_TOO_MUCH: Final = (
    "Nothing was changed. A listing that does not end, or rows of such a size, are the service's mistake: ask its "
    f"operator. If the workspace is that large, set {FACTOR}=2 to read twice as much."
)


class ListingLimit(Struct, frozen=True):
    """Maximum number of rows of a listing, and of the memory that they take, in bytes."""

    rows: int
    memory: int


_PEOPLE: Final = ListingLimit(250_000, 128 * MIB)
_OTHERS: Final = ListingLimit(50_000, 24 * MIB)
_LISTINGS: Final = {"users.list": _PEOPLE, "users.extended-info": _PEOPLE}


class OversizedResponse(ValueError):
    """A response with more values, or longer strings, than are accepted."""


def _factor() -> int:
    """Return how many times as much is read. Raises UsageError."""
    text = os.environ.get(FACTOR) or "1"
    if not re.fullmatch("[1-9][0-9]{0,2}", text):
        raise UsageError(f"{FACTOR} is not a whole number from 1 to 999: {shorten(text)}", hint=f"Set {FACTOR}=2.")
    return int(text)


def listing_limit(operation: str, *, whole_rows: bool) -> ListingLimit:
    """Return the limit of one listing. whole_rows: rows are kept whole, not only the fields that a plan compares."""
    limit, factor = _LISTINGS.get(operation, _OTHERS), _factor()
    return ListingLimit(limit.rows * factor, limit.memory * factor * (_EVERYTHING if whole_rows else 1))


def fan_out_memory_limit(*, whole_responses: bool) -> int:
    """Return the maximum memory of one fan-out, in bytes. whole_responses: they are kept whole."""
    return FAN_OUT * _factor() * (_EVERYTHING if whole_responses else 1)


def limit_exceeded_error(subject: str, limit: str) -> InvalidResponse:
    """Return the error that ends a run. subject: what exceeds its limit. limit: the limit, in words."""
    return InvalidResponse(f"the service answers more {subject} than lmsconf reads: {limit}", hint=_TOO_MUCH)


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
    """Return how many pages like one with these rows may be requested ahead: judged by some of the rows."""
    some = rows[:: max(1, len(rows) // _SAMPLE)]
    try:
        size = sum(map(estimate_memory, some)) * len(rows) // max(1, len(some))
    except InvalidResponse:
        size = AHEAD_MEMORY
    return max(2, min(AHEAD, AHEAD_MEMORY // max(size, 1)))


class MemoryQuota:
    """Memory quota shared by the responses of a fan-out. Thread-safe."""

    def __init__(self, size: int, subject: str) -> None:
        self._size, self._left, self._subject = size, size, subject
        self._lock = threading.Lock()

    def charge(self, value: Json) -> None:
        """Count a value that is kept. Raises InvalidResponse if the quota is exceeded or a string is too long."""
        size = estimate_memory(value, subject=f"an answer {self._subject}")
        with self._lock:
            self._left -= size
            if self._left < 0:
                raise limit_exceeded_error(self._subject, f"more than {self._size // MIB} MiB in all")


def refuse_oversized_body(body: bytes, *, paged: bool) -> None:
    """Raise OversizedResponse for a body that would take too much memory once decoded.

    The estimate counts braces, brackets and commas: fast, and too high for strings that contain them.
    """
    if len(body) < _SMALL:
        return
    size = 400 * body.count(b"{") + 100 * (body.count(b"[") + body.count(b","))
    limit = _PAGE_VALUES if paged else _VALUES
    if size > limit:
        raise OversizedResponse(f"it holds more values than fit in {limit // MIB} MiB of memory")
