"""A queue that hands out the most urgent first, and knows that one urgent thing often follows another."""

from __future__ import annotations

import threading
from enum import IntEnum
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

T = TypeVar("T")


class Priority(IntEnum):
    """What goes first: a page that another one waits for, before one of many requests that nothing waits for."""

    CHAIN = 0
    FAN_OUT = 1
    END = 2


class PriorityQueue(Generic[T]):
    """Things in order of urgency, first come first served among equals. Safe to use from many threads."""

    def __init__(self) -> None:
        self._heap: list[tuple[Priority, int, T]] = []
        self._order = count()
        self._changed = threading.Condition()

    def put(self, priority: Priority, thing: T) -> None:
        """Adds a thing."""
        with self._changed:
            heappush(self._heap, (priority, next(self._order), thing))
            self._changed.notify()

    def get(self, linger: float = 0.0) -> tuple[Priority, T]:
        """The most urgent thing, waiting until there is one.

        linger: seconds to hope for the next link of a chain where only less urgent things are there. Whoever has
        just answered one link is free exactly when the next is asked for; taking up something else in that moment
        would make the chain wait for all of it.
        """
        with self._changed:
            if linger and self._heap:
                self._changed.wait_for(self._has_chain, linger)
            self._changed.wait_for(lambda: self._heap)
            priority, _, thing = heappop(self._heap)
            return priority, thing

    def clear(self) -> list[T]:
        """Takes everything out, in no order."""
        with self._changed:
            things = [thing for _, _, thing in self._heap]
            self._heap.clear()
            return things

    def _has_chain(self) -> bool:
        return bool(self._heap) and self._heap[0][0] is Priority.CHAIN
