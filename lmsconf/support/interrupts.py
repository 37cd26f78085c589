"""Ctrl-C and SIGTERM where they must not cut something in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def defer_interrupts(handler: Callable[[KeyboardInterrupt], None]) -> Iterator[None]:
    """While the context is active, pass an interruption to `handler` instead of raising it at an arbitrary point.

    Signals arrive in the main thread only; in other threads, and for a signal without a Python handler, nothing
    changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        usual = before[signal.Signals(number)]
        try:
            if callable(usual):
                usual(number, frame)
        except KeyboardInterrupt as cut:
            handler(cut)

    replaced = [number for number, usual in before.items() if callable(usual)]
    for number in replaced:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, before[number])
