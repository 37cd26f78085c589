"""Page long output on a terminal, as git does: with LMSCONF_PAGER, else PAGER, else less."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Final, TextIO

from lmsconf.errors import Terminated
from lmsconf.project.credentials import env_may_hold_token
from lmsconf.support.interrupts import defer_interrupts

_NONE: Final = ("", "cat")
_NOT_RUN: Final = (126, 127)
"""Exit codes of a shell that cannot run a command."""
_SECONDS: Final = 5.0
"""How long a pager may take to end after SIGTERM, before it is killed."""
_DEFAULTS: Final = {"LESS": "FRX", "LV": "-c"}
"""As git has them: less ends where all fits on one screen, shows colours, and leaves the text on the terminal."""


def pager_command(environ: Mapping[str, str]) -> str | None:
    """Return the shell command of the pager; None where the variable is empty or says `cat`."""
    chosen = next((environ[name] for name in ("LMSCONF_PAGER", "PAGER") if name in environ), "less").strip()
    return None if chosen in _NONE else chosen


def page(text: str, command: str, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Show a text in a pager on the terminal of `stream`. Returns False, with nothing shown, if it cannot be run.

    A reader who leaves the pager before the end has seen enough: that is no error. Ctrl-C is the pager's.
    """
    # The pager needs nothing of lmsconf's variables, which hold tokens, as those that LMSCONF_TOKEN_ENVS lists.
    variables = _DEFAULTS | {
        name: value
        for name, value in environ.items()
        if not name.startswith("LMSCONF_") and not env_may_hold_token(name, environ)
    }
    stream.flush()
    running: subprocess.Popen[bytes] | None = None
    cuts: list[KeyboardInterrupt] = []
    try:
        # A signal raised while the process is made would leave a pager that nobody can end.
        with defer_interrupts(cuts.append):
            running = subprocess.Popen(  # noqa: S603  # the user's own choice of a program, as for git
                ["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=stream.fileno(), env=variables, bufsize=0
            )
        for cut in cuts:
            if isinstance(cut, Terminated):
                raise cut
        with _ctrl_c_left_to_pager():
            if running.stdin is not None:
                _feed(running.stdin, text.encode(stream.encoding or "utf-8", "backslashreplace"))
            return running.wait() not in _NOT_RUN
    except OSError:
        if running is not None:
            raise
        return False
    except Terminated:
        if running is not None:
            _terminate(running)
        raise


@contextmanager
def _ctrl_c_left_to_pager() -> Iterator[None]:
    """Ignore Ctrl-C inside of the block: the pager gets it too, and decides what it means."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _feed(pipe: IO[bytes], content: bytes) -> None:
    """Write all into the pager, or as much as it takes. Nothing is buffered, so closing never waits for the pager."""
    rest = memoryview(content)
    with suppress(BrokenPipeError), pipe:
        while rest:
            rest = rest[pipe.write(rest) :]


def _terminate(running: subprocess.Popen[bytes]) -> None:
    """End the pager, after a while by force."""
    if running.stdin is not None:
        running.stdin.close()
    running.terminate()
    try:
        running.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
