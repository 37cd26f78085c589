"""How much a service may answer: rows, pages and memory of a listing, answers of a fan-out, values of one answer.

A service whose pages never end, or whose rows are as large as it likes, ends the run with a sentence. What is normal is
200,000 people, 5,000 groups, one of them with 100,000 members, and 20,000 assignments of one content.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from lmsconf.errors import BadAnswer
from lmsconf.model.values import Json

MIB: Final = 1024 * 1024
ANSWER: Final = 16 * MIB
"""How many bytes one answer may have."""
PAGES: Final = 20_000
"""How many pages one listing may have."""
AHEAD: Final = 16
"""How many pages of one listing are asked for before the first of them is used."""
FAN_OUT: Final = 96 * MIB
"""How much memory the answers about single resources may take together, one question asked about all of them."""
TEXT: Final = 100_000
"""How many characters one text of a row may have."""
_PAGE_VALUES: Final = 32 * MIB
_VALUES: Final = 64 * MIB
_SMALL: Final = MIB // 4
_EVERYTHING: Final = 6


@dataclass(frozen=True, slots=True)
class Limit:
    """How many rows a listing may have, and how much memory they may take."""

    rows: int
    memory: int


_PEOPLE: Final = Limit(250_000, 128 * MIB)
_OTHERS: Final = Limit(50_000, 24 * MIB)
_LISTINGS: Final = {"users.list": _PEOPLE, "users.extended-info": _PEOPLE}


class TooLarge(ValueError):
    """An answer that holds more than is decoded."""


def limit_of(operation: str, *, everything: bool) -> Limit:
    """The limit of one listing. everything: whether all of each row is wanted, and not only what a plan compares."""
    found = _LISTINGS.get(operation, _OTHERS)
    return replace(found, memory=found.memory * _EVERYTHING) if everything else found


def fan_out(*, everything: bool) -> int:
    """How much memory the answers of one fan-out may take."""
    return FAN_OUT * _EVERYTHING if everything else FAN_OUT


def too_many(what: str, limit: str) -> BadAnswer:
    """The error that ends a run: what came, and more than how much of it."""
    return BadAnswer(
        f"the service answers more {what} than lmsconf reads: {limit}",
        hint="Nothing was changed. A listing that does not end, or rows of such a size, are the service's mistake; ask "
        "whoever runs it.",
    )


def memory_of(value: Json, seen: set[int] | None = None) -> int:
    """About how many bytes of memory a decoded value takes. What a list shares with an earlier one counts once.

    seen: the objects in lists that were counted before. Raises TooLarge for a text that is longer than any name.
    """
    size, left = 0, [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            if len(one) > TEXT:
                raise TooLarge(f"it holds a text of more than {TEXT:,} characters")
            # A character beyond ASCII makes every character of its text wider.
            size += 56 + len(one) * (1 if one.isascii() else 4)
        elif isinstance(one, dict):
            size += 200 + sum(map(len, one))
            left.extend(one.values())
        elif isinstance(one, list):
            size += 56 + 8 * len(one)
            left.extend(one if seen is None else _unseen(one, seen))
        elif one is not None and not isinstance(one, bool):
            size += 32
    return size


def _unseen(items: list[Json], seen: set[int]) -> Iterator[Json]:
    """The items of a list but for objects that stood in a list before."""
    for item in items:
        if not isinstance(item, dict):
            yield item
        elif id(item) not in seen:
            seen.add(id(item))
            yield item


class Room:
    """What is left of a limit, for several threads. Raises BadAnswer where it is used up."""

    def __init__(self, size: int, what: str) -> None:
        self._size, self._left, self._what = size, size, what
        self._lock = threading.Lock()

    def take(self, value: Json) -> None:
        """Counts one more value that is held on to."""
        try:
            size = memory_of(value)
        except TooLarge as error:
            raise BadAnswer(f"an answer {self._what} cannot be used: {error}") from None
        with self._lock:
            self._left -= size
            if self._left < 0:
                raise too_many(self._what, f"more than {self._size // MIB} MiB in all")


def check_values(body: bytes, *, paged: bool) -> None:
    """Raises TooLarge for an answer that would take much more memory decoded than it has bytes.

    It is found by counting what begins and separates values, which is quick, and too many where texts hold such marks.
    """
    if len(body) < _SMALL:
        return
    size = 400 * body.count(b"{") + 100 * (body.count(b"[") + body.count(b","))
    limit = _PAGE_VALUES if paged else _VALUES
    if size > limit:
        raise TooLarge(f"it holds more values than fit in {limit // MIB} MiB of memory")
