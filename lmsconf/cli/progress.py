"""The two looks of progress: a bar where a person watches, sparse lines where a log is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from lmsconf.render.escape import safe

Tell = Callable[[int, "int | None", str], None]
"""Called as (done, total, label); total is None where it is not known yet. Any thread may call."""

_SOON = 50
"""Fewer steps than this are not worth a line."""


@contextmanager
def bar(stream: TextIO) -> Iterator[Tell]:
    """One bar that is redrawn, and gone at the end."""
    # rich is slow to import, and of use to nobody but a person at a terminal.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as shown:
        task = shown.add_task("", total=None)

        def tell(done: int, total: int | None, label: str) -> None:
            shown.update(task, completed=done, total=total, description=safe(label))

        yield tell


@contextmanager
def lines(stream: TextIO) -> Iterator[Tell]:
    """A line for each tenth of the way; every hundred where the end is not known. What is over soon has no lines."""
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
            stream.write(f"{safe(label)}: {done:,}{f' of {total:,}' if total is not None else ''}\n")
            stream.flush()

    yield tell
