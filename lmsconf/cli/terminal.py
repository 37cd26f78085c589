"""Progress on a terminal or in a log; long output on a terminal: wrapped, or in a pager, as git starts it.

Prose is wrapped to the width of the terminal; what may be copied keeps its lines.
The pager is LMSCONF_PAGER, else PAGER, else less.
"""

from __future__ import annotations

import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from math import ceil, inf
from typing import IO, TYPE_CHECKING, Final, TextIO, cast

from lmsconf.errors import Terminated
from lmsconf.model.calls import RateLimit, Report, RunProgress
from lmsconf.model.time_formats import duration_in_words
from lmsconf.project.credentials import env_may_hold_token
from lmsconf.render.escape import escape_terminal
from lmsconf.render.resource_wording import count_text, rate_text
from lmsconf.support.interrupts import defer_interrupts, handle_signal

if TYPE_CHECKING:
    from rich.progress import Progress


_ESCAPE: Final = re.compile(r"\x1b\[[0-9;]*m")
_COLORED: Final = re.compile(r"(?P<on>\x1b\[[0-9;]+m)(?P<text>[^\x1b]*)(?P<off>\x1b\[0m)")
_KEPT: Final = re.compile(r"\s*(?:(?:-/\+|[+~-]|lmsconf|git|cd) .*|.*\S {2,}\S.*|.*\S *\|.*)")
"""A changed resource or item, a command, a row of a table."""
_WORD: Final = re.compile(r"(?<=: )lmsconf .+$|`[^`]*`\S*|'[^']*'\S*|\S+")
"""A word; also a command after a colon, and what stands in quotes, so that it can be copied."""


def wrap_prose(text: str, columns: int) -> str:
    """Wrap the lines of prose that are wider than the terminal; a following line is indented by two more.

    Colours are kept.
    """
    return "\n".join(_wrapped(line, columns) for line in text.split("\n"))


def rows_on_terminal(text: str, columns: int) -> int:
    """Return how many rows of a terminal a text takes, whose longest lines the terminal breaks."""
    return sum(max(ceil(_width(line) / columns), 1) for line in text.removesuffix("\n").split("\n"))


def _wrapped(line: str, columns: int) -> str:
    plain = _ESCAPE.sub("", line)
    if _width(plain) <= columns or _KEPT.fullmatch(plain):
        return line
    if whole := _COLORED.fullmatch(line):  # in each line: a pager takes colours to end with it
        lines = _wrapped(whole["text"], columns).split("\n")
        return "\n".join(f"{whole['on']}{one}{whole['off']}" for one in lines)
    indent = line[: len(line) - len(line.lstrip())]
    lines = [indent]
    for word in _words(line, columns):  # one that is wider than the terminal has a line of its own
        if lines[-1].strip() and _width(lines[-1]) + 1 + _width(word) > columns:
            lines.append(f"{indent}  ")
        lines[-1] += f" {word}" if lines[-1].strip() else word
    return "\n".join(lines) + line[len(line.rstrip()) :]


def _words(line: str, columns: int) -> Iterator[str]:
    """Yield what a line is not broken within; a quotation that is wider than the terminal is its words."""
    for word in _WORD.findall(line):
        is_too_wide = _width(word) > columns and not word.startswith("lmsconf ")
        yield from word.split() if is_too_wide else [word]


def _width(text: str) -> int:
    """Return how many columns a text takes: an East Asian character two, a combining one and escapes none."""
    from rich.cells import cell_len  # slow to import, and needed only on a terminal

    return cell_len(_ESCAPE.sub("", text))


_SECONDS: Final = 5.0
"""How long a pager may take to end after SIGTERM, before it is killed."""


def page(text: str, stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Show a text in a pager on the terminal of `stream`; False, with nothing shown, if none is wanted or runs.

    A reader who leaves the pager before the end has seen enough: that is no error. Ctrl-C is the pager's.
    """
    command = next((environ[name] for name in ("LMSCONF_PAGER", "PAGER") if name in environ), "less").strip()
    if command in ("", "cat"):
        return False
    # As git: less ends where all fits on one screen, shows colours, and leaves the text on the terminal.
    # The pager needs nothing of lmsconf's variables, which hold tokens, as those that LMSCONF_TOKEN_ENVS lists.
    variables = {"LESS": "FRX", "LV": "-c"} | {
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
        # The pager gets Ctrl-C too, and decides what it means.
        with handle_signal(signal.SIGINT, signal.SIG_IGN), cast("IO[bytes]", running.stdin) as pipe:
            for cut in cuts:
                if isinstance(cut, Terminated):
                    raise cut
            _feed(pipe, text.encode(stream.encoding or "utf-8", "backslashreplace"))
            return running.wait() not in (126, 127)  # a shell cannot run the command
    except OSError:
        if running is not None:
            raise
        return False
    except Terminated:
        if running is not None:
            _terminate(running)
        raise


def _feed(pipe: IO[bytes], content: bytes) -> None:
    """Write all into the pager, or as much as it takes, and close the pipe, which has no buffer to wait for."""
    rest = memoryview(content)
    with suppress(BrokenPipeError), pipe:
        while rest:
            rest = rest[pipe.write(rest) :]


def _terminate(running: subprocess.Popen[bytes]) -> None:
    """End the pager, after a while by force."""
    running.terminate()
    try:
        running.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()


LIMIT_EVERY: Final = 60.0
"""Seconds between two lines, or events, about the same limit; a pause up to this long is not reported."""

SAME_PAUSE: Final = 2.0
"""Seconds by which the end of one pause may differ from call to call."""

LONGER_EVERY: Final = 10.0
"""Seconds between two lines that each say that a pause becomes longer."""


class LimitWording:
    """Words what limits the rate of one phase: a pause at once, the rate and what is left once a minute."""

    def __init__(self) -> None:
        self._told_at = -inf
        self._measured: tuple[float, float, int] | None = None
        self._resumes_at = 0.0

    def due_line(self, progress: RunProgress) -> str | None:
        """Return the line to show now, if one is due."""
        limit = progress.limit
        if limit is None:
            self._measured = None
            return None
        is_paused = limit.resumes_in > LIMIT_EVERY or limit.at < self._resumes_at
        line = self._pause(limit) if is_paused else self._rate(progress, limit)
        if line is not None:
            self._told_at = limit.at
        return line

    def _pause(self, limit: RateLimit) -> str | None:
        """Return the line for a pause of more than a minute that the service asks for: at once, then each minute.

        One that becomes longer while it lasts has another line.
        """
        resumes_at = limit.at + limit.resumes_in
        time = datetime.fromtimestamp(limit.wall + limit.resumes_in).astimezone().strftime("%H:%M")
        if resumes_at > self._resumes_at + SAME_PAUSE and (
            limit.at >= self._resumes_at or limit.at - self._told_at >= LONGER_EVERY
        ):
            self._resumes_at, self._measured = resumes_at, None
            return f"the service asks to wait {duration_in_words(limit.resumes_in)}; resuming at {time}"
        if limit.at - self._told_at >= LIMIT_EVERY:
            return f"still waiting for the service, {duration_in_words(limit.resumes_in)} more; resuming at {time}"
        return None

    def _rate(self, progress: RunProgress, limit: RateLimit) -> str | None:
        seen_at, begun, done_before = self._measured or (limit.at, limit.at, progress.done)
        # For three seconds, responses to requests that were sent before the limit still come in.
        if limit.at < seen_at + 3.0:
            begun, done_before = limit.at, progress.done
        self._measured = seen_at, begun, done_before
        seconds, done, left = limit.at - begun, progress.done - done_before, progress.total - progress.done
        tells_enough = seconds >= 15.0 and done >= 10  # for an estimate
        if limit.rate is None or not tells_enough or not left or limit.at - self._told_at < LIMIT_EVERY:
            return None
        rate, time = rate_text(limit.rate), duration_in_words(left * seconds / done)
        least, more = ("", "") if progress.is_final else ("at least ", " or more")
        return f"limited to {rate} requests a second; {least}{left:,} left, about {time}{more}"


_bars: list[Progress] = []
"""The bar that is on the terminal, if any."""


@contextmanager
def progress_bar(stream: TextIO, label: str) -> Iterator[Report]:
    """Yield the callback of a transient progress bar, removed at the end. What limits the rate is written above it.

    label: what is under way. The callback is thread-safe.
    """
    # rich is slow to import, and only needed on a terminal.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    limits, name = LimitWording(), escape_terminal(label)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
        console=Console(file=stream),
        transient=True,
    ) as shown:
        task = shown.add_task(name, total=None, count="")

        def tell(progress: RunProgress) -> None:
            if line := limits.due_line(progress):
                shown.console.print(Text(f"{name}: {line}"))
            shown.update(task, completed=progress.done, total=progress.total, count=count_text(progress))

        _bars.append(shown)
        try:
            yield tell
        finally:
            _bars.remove(shown)


@contextmanager
def without_progress_bar() -> Iterator[None]:
    """Remove the bar inside the block, so that a question is not drawn over."""
    for bar in _bars:
        bar.stop()
    yield
    for bar in _bars:
        bar.start()


@contextmanager
def progress_lines(stream: TextIO, label: str) -> Iterator[Report]:
    """Yield a callback that writes the count at first, per tenth of the total, and once the total is known.

    A short task has no lines. What limits the rate is a line at most once a minute. The callback is thread-safe.
    """
    lock, limits, name = threading.Lock(), LimitWording(), escape_terminal(label)
    last = (False, -1)

    def tell(progress: RunProgress) -> None:
        nonlocal last
        with lock:
            step = (progress.is_final, progress.done * 10 // max(progress.total, 1))
            if progress.total >= 50 and step > last:
                last = step
                stream.write(f"{name}: {count_text(progress)}\n")
            if line := limits.due_line(progress):
                stream.write(f"{name}: {line}\n")
            stream.flush()

    yield tell
