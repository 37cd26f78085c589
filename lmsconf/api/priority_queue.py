"""Thread-safe priority queue that can wait briefly for the next request of a chain."""

from __future__ import annotations

import threading
from enum import IntEnum, auto
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class Priority(IntEnum):
    """CHAIN: the next request follows from the response, as with pages. FAN_OUT: independent, and served after them."""

    CHAIN = auto()
    FAN_OUT = auto()


class PriorityQueue(Generic[T]):
    """Items by priority, FIFO among equals. Thread-safe."""

    def __init__(self) -> None:
        self._heap: list[tuple[Priority, int, T]] = []
        self._order = count()
        self._changed = threading.Condition()

    def put(self, priority: Priority, item: T) -> None:
        """Add an item."""
        with self._changed:
            heappush(self._heap, (priority, next(self._order), item))
            self._changed.notify()

    def get(self, linger: float | None) -> tuple[Priority, T]:
        """Remove and return the first item with its priority; block until there is one.

        linger: seconds to wait for a CHAIN item while only others are queued, None not to wait. The worker that has
        just finished a page is free exactly when the next page is submitted; with another job taken in that moment, the
        page would wait for all of it.
        """
        with self._changed:
            if linger and self._heap:
                self._changed.wait_for(self._has_chain, linger)
            self._changed.wait_for(lambda: self._heap)
            priority, _, thing = heappop(self._heap)
            return priority, thing

    def clear(self) -> list[T]:
        """Remove and return all items, in no order."""
        with self._changed:
            things = [thing for _, _, thing in self._heap]
            self._heap.clear()
            return things

    def _has_chain(self) -> bool:
        return bool(self._heap) and self._heap[0][0] is Priority.CHAIN
