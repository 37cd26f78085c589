"""lmsconf on a pseudo-terminal, within this process: somebody types, and all that is shown is kept."""

import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from flow.shell import Ran, lmsconf
from waiting import HANGS

STREAMS = ("stdin", "stdout", "stderr")


class Screen:
    """All that a terminal has shown, with its line ends as a program writes them."""

    def __init__(self) -> None:
        self.shown, self._more = b"", threading.Condition()

    def add(self, part: bytes) -> None:
        """Shows more."""
        with self._more:
            self.shown += part
            self._more.notify_all()

    def wait_for(self, words: str) -> None:
        """Comes back once these words are shown."""
        with self._more:
            assert self._more.wait_for(lambda: words.encode() in self.shown, HANGS), self.shown

    @property
    def text(self) -> str:
        return self.shown.decode().replace("\r\n", "\n")


@contextmanager
def on_terminal(
    typed: str = "", *, streams: Collection[str] = STREAMS, columns: int = 80, rows: int = 24
) -> Iterator[Screen]:
    """Inside the block these streams of the process are a terminal, on which that is typed; the others stay."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    attributes = termios.tcgetattr(theirs)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    os.write(ours, typed.encode())
    screen = Screen()
    reading = threading.Thread(target=_read, args=(ours, screen))
    reading.start()
    before = {name: getattr(sys, name) for name in streams}
    files = {name: os.fdopen(os.dup(theirs), "r" if name == "stdin" else "w", encoding="utf-8") for name in streams}
    os.close(theirs)
    for name, file in files.items():
        setattr(sys, name, file)
    try:
        yield screen
    finally:
        for name in streams:
            setattr(sys, name, before[name])
            files[name].close()
        reading.join()
        os.close(ours)


def _read(terminal: int, screen: Screen) -> None:
    """Reads until the other end is closed."""
    with suppress(OSError):
        while part := os.read(terminal, 65536):
            screen.add(part)


def at_terminal(
    folder: Path,
    *arguments: str,
    typed: str = "",
    env: Mapping[str, str] | None = None,
    streams: Collection[str] = STREAMS,
    code: int | None = None,
    **size: int,
) -> tuple[Ran, str]:
    """Runs one command on a terminal; gives its exit code with what streams elsewhere got, and the screen.

    code: what it has to exit with. size: the columns and rows of the terminal.
    """
    with on_terminal(typed, streams=streams, **size) as screen:
        ran = lmsconf(folder, *arguments, env=env, streams=frozenset(STREAMS) - frozenset(streams), code=code)
    return ran, screen.text
