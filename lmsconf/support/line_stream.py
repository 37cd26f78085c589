"""Lines written to a file, a pipe or stdout while a command runs, from a thread of their own.

A reader that stops reading, a closed pipe or a full disk must not stop a run that changes a workspace: `put` never
raises, and waits at most once for too long. The first failure ends the stream; only its last line may be cut.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from lmsconf.support.atomic_files import os_error_message

_ROOM: Final = 64 * 1024 * 1024
"""The bytes that may wait for a slow reader."""


class LineStream:
    """A stream of lines. The first line is written at once, and raises OSError if it cannot be.

    write: writes all bytes, and flushes them. patience: the seconds for which `put`, where there is no room for more
    lines, and `close` wait for a reader that does not read; None: no limit. room: the bytes that may wait for it.
    failure: why lines are missing; None if none are. is_stuck: a write that nobody reads may still be under way.
    """

    def __init__(
        self, first: bytes, write: Callable[[bytes], None], *, patience: float | None = None, room: int = _ROOM
    ) -> None:
        write(first)
        self.failure: str | None = None
        self.is_stuck = False
        self._write, self._patience, self._room = write, patience, room
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._progress = threading.Condition()
        self._waiting = 0
        # A daemon: a reader that never reads does not keep the process alive.
        self._writer = threading.Thread(target=self._drain, name="lmsconf-events", daemon=True)
        self._writer.start()

    def put(self, line: bytes) -> None:
        """Queue a line; it is written as soon as those before it are. Wait while there is no room for more."""
        if self.failure is not None:
            return
        with self._progress:
            # In this order: an interruption between both must not leave a line to wait for that never comes.
            self._lines.put(line)
            self._waiting += len(line)
            self._wait_until_below(self._room)

    def close(self) -> None:
        """Wait until all lines are written."""
        with self._progress:
            self._wait_until_below(0)
        self._lines.put(None)

    def _wait_until_below(self, room: int) -> None:
        """Wait until at most so many bytes wait, or the stream has failed; fail if nothing moves for too long."""
        while self.failure is None and self._waiting > room:
            before = self._waiting
            if not self._progress.wait(self._patience) and self._waiting == before:
                self.is_stuck = True
                self.failure = f"its reader has not read for {self._patience:g} seconds"

    def _drain(self) -> None:
        while (line := self._lines.get()) is not None and self.failure is None:
            try:
                self._write(line)
            except OSError as error:
                self.failure = self.failure or os_error_message(error)
            with self._progress:
                self._waiting -= len(line)
                self._progress.notify_all()


def descriptor_writer(descriptor: int) -> Callable[[bytes], None]:
    """Return a function that writes all of its bytes to a file descriptor, without a buffer. It raises OSError."""

    def write(data: bytes) -> None:
        while data:
            data = data[os.write(descriptor, data) :]

    return write
