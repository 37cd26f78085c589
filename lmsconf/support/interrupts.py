"""Ctrl-C and SIGTERM where they must not cut something in two."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import FrameType
from typing import NoReturn

from lmsconf.errors import Terminated

Handler = Callable[[KeyboardInterrupt], None]


@contextmanager
def handle_signal(number: signal.Signals, handler: Callable[[int, FrameType | None], object] | int) -> Iterator[None]:
    """While the context is active, handle a signal in this way, and afterwards as before. Main thread only."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def raise_terminated(number: int, frame: FrameType | None) -> NoReturn:
    """Handle SIGTERM so that a terminated run can still report what it did."""
    raise Terminated


@contextmanager
def defer_interrupts(handler: Handler) -> Iterator[None]:
    """While the context is active, pass an interruption to `handler` instead of raising it at an arbitrary point.

    Signals arrive in the main thread only; in other threads, and for a signal without a Python handler, nothing
    changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: usual for number in (signal.SIGINT, signal.SIGTERM) if callable(usual := signal.getsignal(number))
    }

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before[signal.Signals(number)](number, frame)
        except KeyboardInterrupt as cut:
            handler(cut)

    with ExitStack() as handled:
        for number in before:
            handled.enter_context(handle_signal(number, handle))
        yield


class Interrupts:
    """What an interruption of one run does: it is raised, recorded, or passed to a handler, as the run goes on.

    first: the first interruption of the run. Until anything else is asked for, interruptions are raised.
    """

    def __init__(self) -> None:
        self.first: KeyboardInterrupt | None = None
        self._handle: Handler = _raise
        self._installed = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Handle interruptions while the outermost of these contexts is active."""
        if self._installed:
            yield
            return
        self._installed, self._handle, self.first = True, _raise, None
        try:
            with defer_interrupts(self._hear):
                yield
        finally:
            self._installed = False

    def _hear(self, cut: KeyboardInterrupt) -> None:
        self.first = self.first or cut
        self._handle(cut)

    def defer(self) -> None:
        """Record interruptions from now on, but raise a second one, so that a run that hangs can be ended."""
        self._handle = self._defer

    def _defer(self, _: KeyboardInterrupt) -> None:
        self._handle = _raise

    @contextmanager
    def passed_to(self, handler: Handler) -> Iterator[None]:
        """Pass interruptions to `handler` in this context, also one that was recorded; record those that follow it."""
        self._handle = handler
        try:
            if self.first is not None:
                handler(self.first)
            yield
        finally:
            self.defer()

    def raised(self) -> AbstractContextManager[None]:
        """Raise the first interruption in this context, also one that was recorded, and record all that follow."""
        return self.passed_to(self._raise_once)

    def _raise_once(self, cut: KeyboardInterrupt) -> None:
        self.defer()
        raise cut


def _raise(cut: KeyboardInterrupt) -> None:
    raise cut
