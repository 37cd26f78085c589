"""Progress output: a bar for a terminal, sparse lines for a log; both tell what limits the rate."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeAlias

from lmsconf.model.progress import RunProgress
from lmsconf.render.escape import escape_terminal
from lmsconf.render.progress_wording import LimitWording, count_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress

Tell: TypeAlias = Callable[[RunProgress, str], None]
"""Progress callback: how far, and the label. Thread-safe."""

_MANY = 50
"""The total below which `progress_lines` writes no count."""


_bars: list[Progress] = []
"""The bar that is on the terminal, if any."""


@contextmanager
def progress_bar(stream: TextIO, label: str) -> Iterator[Tell]:
    """Yield the callback of a transient progress bar, removed at the end. What limits the rate is shown above it.

    label: what is under way, until the callback is called.
    """
    # rich is slow to import, and only needed on a terminal.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    limits, above = LimitWording(), Text()

    class BarBelowText(Progress):
        def get_renderables(self) -> Iterator[RenderableType]:
            if above.plain:
                yield above
            yield from super().get_renderables()

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[count]}", markup=False),
        TimeElapsedColumn(),
    )
    with BarBelowText(*columns, console=Console(file=stream), transient=True) as shown:
        task = shown.add_task(escape_terminal(label), total=None, count="")
        _bars.append(shown)

        def tell(progress: RunProgress, label: str) -> None:
            if line := limits.due_line(progress):
                above.plain = f"{escape_terminal(label)}: {line}"
            elif progress.limit is None:
                above.plain = ""
            # A bar on a total that still grows would move back.
            total = progress.total if progress.is_final else None
            description = escape_terminal(label)
            shown.update(
                task, completed=progress.done, total=total, description=description, count=count_text(progress)
            )

        try:
            yield tell
        finally:
            _bars.remove(shown)


@contextmanager
def without_progress_bar() -> Iterator[None]:
    """Remove the bar inside the block, so that a question is not drawn over."""
    bars = list(_bars)
    for bar in bars:
        bar.stop()
    yield
    for bar in bars:
        bar.start()


@contextmanager
def progress_lines(stream: TextIO) -> Iterator[Tell]:
    """Yield a callback that writes the count at first, per tenth of the total, and once the total is known.

    A short task has no lines. What limits the rate is a line at most once a minute.
    """
    lock, limits = threading.Lock(), LimitWording()
    last: tuple[str, bool, int] | None = None

    def tell(progress: RunProgress, label: str) -> None:
        nonlocal last
        name = escape_terminal(label)
        with lock:
            step = (label, progress.is_final, progress.done * 10 // max(progress.total, 1))
            if progress.total >= _MANY and (last is None or last[:2] != step[:2] or last[2] < step[2]):
                last = step
                stream.write(f"{name}: {count_text(progress)}\n")
            if line := limits.due_line(progress):
                stream.write(f"{name}: {line}\n")
            stream.flush()

    yield tell
