"""Lines written to a file, a pipe or stdout while a command runs, from a thread of their own.

A reader that stops reading, a closed pipe or a full disk must not stop a run that changes a workspace: `put` never
blocks and never raises. The first failure ends the stream; only its last line may be cut.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from lmsconf.support.atomic_files import os_error_message

_QUEUED: Final = 64 * 1024 * 1024
"""The bytes that may wait for a slow reader."""


class LineStream:
    """A stream of lines. The first line is written at once, and raises OSError if it cannot be.

    write: writes all bytes, and flushes them. failure: why lines are missing; None if none are.
    """

    def __init__(self, first: bytes, write: Callable[[bytes], None]) -> None:
        write(first)
        self.failure: str | None = None
        self._write = write
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._counts = threading.Lock()
        self._queued = self._written = 0
        # A daemon: a reader that never reads does not keep the process alive.
        self._writer = threading.Thread(target=self._drain, name="lmsconf-events", daemon=True)
        self._writer.start()

    def put(self, line: bytes) -> None:
        """Queue a line; it is written as soon as those before it are."""
        with self._counts:
            self._queued += len(line)
            if self.failure is None and self._queued - self._written > _QUEUED:
                self.failure = "its reader is too slow"
        if self.failure is None:
            self._lines.put(line)

    def close(self, patience: float | None = None) -> None:
        """Wait until all lines are written, or none is for `patience` seconds; None: no limit."""
        self._lines.put(None)
        before = -1
        while self._writer.is_alive() and self._written != before:
            before = self._written
            self._writer.join(patience)
        if self._writer.is_alive():
            self.failure = self.failure or f"its reader has not read for {patience:g} seconds"

    def _drain(self) -> None:
        while (line := self._lines.get()) is not None and self.failure is None:
            try:
                self._write(line)
            except OSError as error:
                self.failure = os_error_message(error)
            with self._counts:
                self._written += len(line)


def descriptor_writer(descriptor: int) -> Callable[[bytes], None]:
    """Return a function that writes all of its bytes to a file descriptor, without a buffer. It raises OSError."""

    def write(data: bytes) -> None:
        while data:
            data = data[os.write(descriptor, data) :]

    return write
