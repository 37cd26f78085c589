"""Progress output: a bar for a terminal, sparse lines for a log."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from lmsconf.render.escape import escape_terminal

Tell = Callable[[int, "int | None", str], None]
"""Progress callback (done, total, label); total is None while unknown. Thread-safe."""

_SOON = 50
"""The number of completed steps below which `progress_lines` writes nothing."""


@contextmanager
def progress_bar(stream: TextIO) -> Iterator[Tell]:
    """Yield the callback of a transient progress bar, removed at the end."""
    # rich is slow to import, and only needed on a terminal.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as shown:
        task = shown.add_task("", total=None)

        def tell(done: int, total: int | None, label: str) -> None:
            shown.update(task, completed=done, total=total, description=escape_terminal(label))

        yield tell


@contextmanager
def progress_lines(stream: TextIO) -> Iterator[Tell]:
    """Yield a callback that writes a line per tenth of the total, or per 100 steps while the total is unknown.

    The first 49 steps write nothing, so that a short task has no lines.
    """
    lock = threading.Lock()
    last: tuple[str, int] | None = None

    def tell(done: int, total: int | None, label: str) -> None:
        nonlocal last
        if done < _SOON:
            return
        step = done * 10 // total if total else done // 100
        with lock:
            if last is not None and last[0] == label and last[1] >= step:
                return
            last = (label, step)
            stream.write(f"{escape_terminal(label)}: {done:,}{f' of {total:,}' if total is not None else ''}\n")
            stream.flush()

    yield tell
