"""How much work something is, counted in calls of functions: a number that is the same on every machine."""

from __future__ import annotations

import sys
from types import FrameType, TracebackType


class Effort:
    """Counts the functions that this thread calls, Python's and those written in C, while it is entered."""

    def __init__(self) -> None:
        self.calls = 0

    def __enter__(self) -> Effort:
        sys.setprofile(self._count)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        sys.setprofile(None)

    def _count(self, frame: FrameType, event: str, value: object) -> None:
        self.calls += event in ("call", "c_call")
