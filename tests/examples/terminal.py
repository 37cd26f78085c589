"""A shell on a pseudo-terminal into which blocks are pasted: nothing on it waits for an answer that nobody gives."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from itertools import count
from types import TracebackType
from typing import Self

from .clone import Clone

_ENDED = re.compile(rb"<<(\d+) (\d+) (\d+)>>")


class Hung(AssertionError):
    """A block waits for something: what the terminal shows."""


class Terminal:
    """An interactive bash on a pseudo-terminal of that many columns.

    `PAGER` is `cat`: a pager is seen, and the reader leaves it.
    """

    def __init__(self, clone: Clone, columns: int) -> None:
        variables = {"TERM": "xterm-256color", "PAGER": "cat", "PROMPT_COMMAND": "ran=$((ran + 1))"}
        self._end, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._shell = subprocess.Popen(
            # A process without a terminal that opens one gets it as its own.
            [
                "/bin/bash",
                "-c",
                f"exec <{(tty := os.ttyname(self._theirs))} >{tty} 2>&1 /bin/bash --noprofile --norc -i",
            ],
            cwd=clone.here,
            env=clone.environment(**variables),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._numbers = count(7)

    def paste(self, text: str, quiet: float = 60) -> tuple[int, int]:
        """Pastes a text, and gives the exit code of its last command and how many prompts the shell showed meanwhile.

        Raises Hung when nothing comes for that many seconds.
        """
        number = next(self._numbers)
        typed = f" ran=0\n{text}\n printf '<<%s %s %s>>\\n' $? $ran {number}\n".encode()
        assert len(typed) < 4096, "more than a terminal's queue has room for"
        os.write(self._end, typed)
        shown = b""
        while not (ended := [found for found in _ENDED.finditer(shown) if int(found[3]) == number]):
            ready, _, _ = select.select([self._end], [], [], quiet)
            if not ready:
                raise Hung(f"waits for something nobody sees:\n{text}\n{shown[-2000:].decode(errors='replace')}")
            shown += os.read(self._end, 65536)
        return int(ended[0][1]), int(ended[0][2]) - 1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._end)  # the shell hangs up, and what it started in the background with it
        os.close(self._theirs)
        try:
            self._shell.wait(30)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()
