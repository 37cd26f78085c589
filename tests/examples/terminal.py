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
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from .clone import Clone

_PROMPT = re.compile(rb"<<(\d+) (\d+)>> ")
_PAGER = re.compile(rb"(?:\(END\)|:)(?:\x1b\[[0-9;]*[mK])*\Z")


class Hung(AssertionError):
    """A block waits for something: what the terminal shows."""


class Terminal:
    """An interactive bash on a pseudo-terminal of 24 lines and that many columns."""

    def __init__(self, clone: Clone, columns: int) -> None:
        self._end, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        tty = os.ttyname(self._theirs)
        self._shell = subprocess.Popen(
            # A process without a terminal that opens one gets it as its own.
            ["/bin/bash", "-c", f"exec <{tty} >{tty} 2>&1 /bin/bash --noprofile --norc -i"],
            cwd=clone.here,
            env=clone.environment(TERM="xterm-256color", PROMPT_COMMAND="ran=$((ran + 1))"),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._ran = 0
        self._paste("PS1='<<$? $ran>> '", 60)

    def paste(self, lines: Sequence[str], quiet: float = 60, *, whole: bool = False) -> tuple[int, int]:
        """Pastes command lines at once, and gives the exit code of the last and how many the shell read.

        A pager after the last line is left with q, unless these are the `whole` of a block, which opens none.
        Raises Hung when nothing comes for that many seconds.
        """
        before = self._ran
        return self._paste("\n".join(lines), quiet, len(lines), leaves=not whole), self._ran - before

    def _paste(self, text: str, quiet: float, count: int = 1, *, leaves: bool = True) -> int:
        """Pastes a text of so many commands, and gives the exit code of the last."""
        typed = f"{text}\n".encode()
        assert len(typed) < 4096, "more than a terminal's queue has room for"
        os.write(self._end, typed)
        shown, awaited = b"", self._ran + count
        while True:
            prompts = [(int(found[1]), int(found[2])) for found in _PROMPT.finditer(shown)]
            if prompts and prompts[-1][1] >= awaited:
                code, self._ran = prompts[-1]
                return code
            paged = leaves and bool(_PAGER.search(shown))
            ready, _, _ = select.select([self._end], [], [], 1 if paged else quiet)
            if ready:
                shown += os.read(self._end, 65536)
            elif paged:
                os.write(self._end, b"q")
                shown += b" left\n"
            else:
                raise Hung(f"waits for something nobody sees:\n{text}\n{shown[-2000:].decode(errors='replace')}")

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
