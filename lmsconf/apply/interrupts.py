"""Ctrl-C and SIGTERM, heard when it suits: what was just sent must be counted before anything else is thought of."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def heard(hear: Callable[[KeyboardInterrupt], None]) -> Iterator[None]:
    """While it lasts, an interruption is given to `hear`, not raised wherever the program happens to be.

    Signals arrive in the main thread only; elsewhere, and where a signal has no handler in Python, nothing changes.
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
            hear(cut)

    replaced = [number for number, usual in before.items() if callable(usual)]
    for number in replaced:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, before[number])
