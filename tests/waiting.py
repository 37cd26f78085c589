"""How tests wait: for an event, never for a time. Only a program that hangs takes as long as `HANGS`."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from lmsconf.sandbox.service import Logged

HANGS: Final = 60.0
"""Seconds after which what a test waits for will not come any more. Nothing else is judged by it."""


def awaited(event: threading.Event) -> None:
    """Comes back once the event is set; fails where it never is."""
    assert event.wait(HANGS), "it never came"


class Held:
    """Hears of the requests that a sandbox was asked, and keeps back the answer to the first that fits.

    Inside of `with` that request has been carried out and not been answered.
    """

    def __init__(self, fits: Callable[[Logged], bool]) -> None:
        self._fits, self._asked, self._let_go = fits, threading.Event(), threading.Event()

    def __call__(self, call: Logged) -> None:
        if self._fits(call):
            self._asked.set()
            awaited(self._let_go)

    def __enter__(self) -> None:
        awaited(self._asked)

    def __exit__(self, *_: object) -> None:
        self._let_go.set()


class Interruptions:
    """Ctrl-C for this process, sent from any thread: back only once the main thread has begun to handle it."""

    def __enter__(self) -> Interruptions:
        self._begun = threading.Event()
        self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def send(self) -> None:
        """One more of them."""
        self._begun.clear()
        os.kill(os.getpid(), signal.SIGINT)
        awaited(self._begun)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._begun.set()
        raise KeyboardInterrupt
