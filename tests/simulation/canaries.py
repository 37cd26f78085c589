"""A token and a pre-signed link that everything which goes wrong repeats, and what must never hold either.

Whatever a run gives away is put down as it leaves lmsconf: plan files, reports in each format, problems, tracebacks,
logs at debug level, and journals. A few bytes of a canary anywhere in it are a leak.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from itertools import cycle
from pathlib import Path
from typing import Final

from lmsconf.cli.output_streams import report_problems
from lmsconf.cli.run_command import report_crash
from lmsconf.documents.plan_file import dumps
from lmsconf.errors import Problem
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.render import APPLY_VIEWS, PLAN_VIEWS

TOKEN: Final = "canary/token+0815=="
LINK: Final = "https://files.example/in?X-Amz-Expires=60&X-Amz-Signature=canary-link-4711"
SAID: Final = f"you sent Bearer {TOKEN} for {LINK}"
"""What is put into every answer and every failure that is not the real one."""
CANARIES: Final = (b"token+0815", b"token%2B0815", b"canary-link-4711")


class RunOutputs:
    """What the runs of one schedule give away, byte for byte. Formats take turns, but for JSON, which holds all."""

    def __init__(self) -> None:
        self._written = io.StringIO()
        self._turns = cycle(name for name in APPLY_VIEWS if name != "json")

    def plan(self, plan: Plan) -> None:
        """A plan as it is saved, and as it is shown."""
        self._written.write(dumps(plan))
        self._written.write(PLAN_VIEWS[next(self._turns)](plan))

    def outcome(self, done: ApplyReport) -> None:
        """What became of a plan, and the problems that it came with."""
        self._written.write(APPLY_VIEWS["json"](done))
        self._written.write(APPLY_VIEWS[next(self._turns)](done))
        self.problems(done.problems)

    def problems(self, found: Sequence[Problem]) -> None:
        """Problems, as a command tells of them."""
        self._heard(lambda: report_problems(found))

    def error(self, error: BaseException) -> None:
        """An error, as a command tells of one that nobody foresaw: with all that led to it."""
        self._heard(lambda: report_crash(type(error), error, error.__traceback__))

    def _heard(self, say: Callable[[], None]) -> None:
        with redirect_stderr(self._written):
            say()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Everything that is logged meanwhile is put down too."""
        root, handler = logging.getLogger(), logging.StreamHandler(self._written)
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            root.setLevel(level)
            root.removeHandler(handler)

    def leaks(self, folder: Path | None) -> tuple[str, ...]:
        """The canaries in all of it, and in the files of a folder."""
        files = [] if folder is None else [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        texts = [self._written.getvalue().encode(), *files]
        return tuple(canary.decode() for canary in CANARIES if any(canary in text for text in texts))
