"""The options that all commands of `lmsconf fleet` share, and the workspaces and engine that they choose."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from lmsconf.cli.frame import CommandContext
from lmsconf.cli.output_streams import show_progress
from lmsconf.cli.planning import parallelism
from lmsconf.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from lmsconf.fleet.fleet_run import Engine
    from lmsconf.fleet.tasks import FleetTask
    from lmsconf.model.fleet import FleetAction, FleetEntry, FleetIndex

P = ParamSpec("P")

_OPTIONS = (
    click.option(
        "--select",
        "selector",
        metavar="LABELS",
        default="*",
        help="Work only on workspaces with these labels: ring=canary,region!=us.",
    ),
    click.option(
        "--processes",
        type=click.IntRange(1, 256),
        metavar="N",
        help="Limit the number of worker processes; default: two for each core.",
    ),
    click.option(
        "--time-limit",
        type=click.FloatRange(min=1),
        metavar="SECONDS",
        help="End the work in a workspace after this time, with exit code 8.",
    ),
    click.option(
        "--max-rate",
        type=click.FloatRange(min=0.1),
        metavar="N",
        help="Limit requests per second of all processes together.",
    ),
)


def fleet_options(command: Callable[P, ExitCode | None]) -> Callable[P, ExitCode | None]:
    """Add the options that say which workspaces are worked on, and how fast."""
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed((*_OPTIONS, parallelism)), command)


class FleetRun:
    """The selected workspaces of a project, and how they are worked on."""

    def __init__(
        self,
        context: CommandContext,
        *,
        selector: str,
        processes: int | None,
        time_limit: float | None,
        max_rate: float | None,
        parallelism: int,
        no_effects: bool = False,
        shard: str | None = None,
    ) -> None:
        """Raises ProblemsFound for a project file with errors, UsageError where no workspace is selected."""
        from datetime import UTC, datetime

        from lmsconf.fleet.fleet_run import parse_shard, select_workspaces
        from lmsconf.fleet.label_selector import parse_selector
        from lmsconf.model.time_formats import format_utc
        from lmsconf.project.config_reader import read_project_file

        if context.workspace is not None:
            hint = f"Pass --select workspace={context.workspace}, or run the command without `fleet`."
            raise UsageError("--workspace selects one workspace, and fleet works on many", hint=hint)
        self._root, self._environ = context.project.absolute(), context.environ
        self.project = read_project_file(self._root)
        names = select_workspaces(self.project, parse_selector(selector, "--select"), self._environ)
        self.workspaces = names if shard is None else names[parse_shard(shard)]
        self.now = format_utc(datetime.now(UTC))
        self._processes = processes or 2 * (os.cpu_count() or 1)
        self._time_limit, self._parallelism, self._effects = time_limit, parallelism, not no_effects
        workers = max(1, min(self._processes, len(self.workspaces)))
        self._max_rate = None if max_rate is None else max(0.01, max_rate / workers)

    def task(self, workspace: str, action: FleetAction, out: Path, **more: Any) -> FleetTask:
        from lmsconf.fleet.tasks import FleetTask

        return FleetTask(
            workspace=workspace,
            action=action,
            out=out.absolute(),
            parallelism=self._parallelism,
            max_rate=self._max_rate,
            effects=self._effects,
            **more,
        )

    def engine(self) -> Engine:
        from lmsconf.fleet.fleet_run import lost_task
        from lmsconf.fleet.local_engine import LocalEngine

        return LocalEngine(
            root=self._root,
            environ=self._environ,
            processes=self._processes,
            lost=lost_task(self.project),
            time_limit=self._time_limit,
        ).run

    def selected(self, index: FleetIndex) -> FleetIndex:
        """Return the entries of the selected workspaces."""
        names = frozenset(self.workspaces)
        return replace(index, entries=tuple(entry for entry in index.entries if entry.workspace in names))

    @contextmanager
    def listener(self, label: str, total: int) -> Iterator[Callable[[FleetEntry], None]]:
        """Show how many workspaces have a result; yield the function that is called with each."""
        from lmsconf.model.progress import RunProgress

        ended = 0
        with show_progress(label=label) as tell:

            def listen(entry: FleetEntry) -> None:
                nonlocal ended
                ended += 1
                tell(RunProgress(done=ended, total=total, is_final=True), label)

            yield listen
