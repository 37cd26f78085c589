"""The options that all commands of `lmsconf fleet` share, and the workspaces and engine that they choose."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from lmsconf.cli.command import FiniteRange
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import add_options, show_progress
from lmsconf.cli.workspace_options import parallelism, trusted_parts
from lmsconf.errors import LmsconfError, refuse_if

if TYPE_CHECKING:
    from lmsconf.fleet.fleet_run import Engine
    from lmsconf.fleet.tasks import FleetTask
    from lmsconf.model.fleet import FleetAction, FleetEntry, FleetIndex

fleet_options = add_options(
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
        type=FiniteRange(min=1),
        metavar="SECONDS",
        help="End the work in a workspace after this time, with exit code 8; of an apply, 5.",
    ),
    click.option(
        "--max-rate",
        type=FiniteRange(min=0.1),
        metavar="N",
        help="Limit requests per second to each host: of each process, to an equal part of N.",
    ),
    click.option(
        "--engine",
        type=click.Choice(["local", "dask"]),
        default="local",
        help="Where processes run: on this machine, or on the workers of a Dask scheduler; default: local.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="The Dask scheduler, tls://HOST:PORT; default: scheduler-address of Dask's configuration.",
    ),
    click.option(
        "--worker-project",
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="The project's folder on Dask workers; default: the same path as here.",
    ),
    click.option(
        "--allow-unencrypted", is_flag=True, help="Connect to a Dask scheduler on another machine without TLS."
    ),
    parallelism,
)
"""The options that say which workspaces are worked on, and how fast."""


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
        engine: str,
        scheduler: str | None,
        worker_project: Path | None,
        allow_unencrypted: bool,
        no_effects: bool = False,
        shard: str | None = None,
        base: str | None = None,
        trust_project: str | None = None,
    ) -> None:
        """Raises ProblemsFound for a project file with errors, UsageError where no workspace is selected."""
        from datetime import UTC, datetime

        from lmsconf.fleet.fleet_run import parse_selector, parse_shard, run_locally, select_workspaces
        from lmsconf.model.time_formats import format_utc
        from lmsconf.project.config_reader import read_project_file

        refuse_if(
            (
                context.workspace is not None,
                "--workspace selects one workspace, and fleet works on many",
                f"Pass --select workspace={context.workspace}, or run the command without `fleet`.",
            ),
            (
                base is not None and engine != "local",
                "--base needs the project's repository, which Dask workers may not have",
                "Remove --base, or plan with --engine local, where its commit is.",
            ),
            (
                engine == "local" and (scheduler is not None or worker_project is not None or allow_unencrypted),
                "--scheduler, --worker-project and --allow-unencrypted are about Dask",
                "Add --engine dask, or remove them.",
            ),
        )
        trusted = trusted_parts(trust_project, base)
        number = processes or 2 * (os.cpu_count() or 1)
        self.root = context.project.absolute()
        self.project = read_project_file(self.root)
        self._selector = selector
        names = select_workspaces(self.project, parse_selector(selector, "--select"), context.environ)
        self.shard = None if shard is None else parse_shard(shard, names)
        self.workspaces = names if self.shard is None else names[self.shard.number - 1 :: self.shard.of]
        self.now = format_utc(datetime.now(UTC))
        if engine == "local":
            self.engine: Engine = partial(run_locally, self.root, context.environ, number, time_limit)
        else:
            from lmsconf.fleet.dask_engine import find_scheduler, run_on_dask
            from lmsconf.fleet.dask_worker import ProjectDigests

            self.engine = partial(
                run_on_dask,
                find_scheduler(scheduler, unencrypted=allow_unencrypted),
                ProjectDigests(self.root, self.project),
                worker_project or self.root,
                None if processes is None and max_rate is None else number,
                time_limit,
                unencrypted=allow_unencrypted,
            )
        self._terms = {
            "parallelism": parallelism,
            "max_rate": max_rate,
            "effects": not no_effects,
            "base": base,
            "trusted": tuple(sorted(trusted)),
        }

    def task(self, workspace: str, action: FleetAction, out: Path, **more: Any) -> FleetTask:
        from lmsconf.fleet.tasks import FleetTask

        return FleetTask(
            workspace=workspace,
            action=action,
            url=str(self.project.mapping_at("workspaces", workspace)["url"]),
            labels=self.project.labels(workspace),
            out=str(out.absolute()),
            **{**self._terms, **more},
        )

    def selected(self, folder: Path, index: FleetIndex) -> FleetIndex:
        """Return the entries of the selected workspaces. folder: where the index is.

        Raises LmsconfError for an index of another command or of a shard, and for a workspace that the project does
        not have; UsageError if it has none of the selected workspaces.
        """
        from lmsconf.model.fleet import FleetAction

        declared, names = self.project.mapping_at("workspaces"), frozenset(self.workspaces)
        refuse_if(
            (
                index.action is not FleetAction.PLAN,
                f"the folder has the results of lmsconf fleet {index.action.value}, not plans",
                "Name a folder that lmsconf fleet plan --out has made.",
            ),
            *(
                (
                    entry.workspace not in declared,
                    f"the folder has a plan for {entry.workspace}, and the project has no such workspace",
                    "Check out the commit of the plan, or plan again.",
                )
                for entry in index.entries
            ),
            (
                index.shard is not None,
                f"{folder} has only shard {index.shard}, and waves and guards are about the whole fleet",
                "Collect all shards with lmsconf fleet collect, and apply that folder.",
            ),
            error=LmsconfError,
        )
        entries = tuple(entry for entry in index.entries if entry.workspace in names)
        refuse_if(
            (
                index.entries and not entries,
                f"--select {self._selector}: the folder has no plan of a workspace with these labels",
                "Select others, or plan again with this selector.",
            )
        )
        return replace(index, entries=entries)

    @contextmanager
    def listener(self, label: str, total: int) -> Iterator[Callable[[FleetEntry], None]]:
        """Show how many workspaces have a result; yield the function that is called with each."""
        from lmsconf.model.calls import RunProgress

        numbers = count(1)
        with show_progress(label) as tell:
            yield lambda entry: tell(RunProgress(done=next(numbers), total=total, is_final=True))
