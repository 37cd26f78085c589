"""`lmsconf runs`: list or show the runs recorded in the project's journals."""

from __future__ import annotations

import click

from lmsconf.cli.command import Command
from lmsconf.cli.completes import completes
from lmsconf.cli.frame import CommandContext, Output, output_options, pass_context
from lmsconf.cli.output_streams import mask_if_enabled
from lmsconf.errors import ExitCode
from lmsconf.journal.journal_reader import find_run
from lmsconf.journal.journal_reader import read_runs as recorded_runs
from lmsconf.render.recorded_runs import RUN_VIEWS, RUNS_VIEWS


@click.command(cls=Command)
@click.argument("run", required=False, shell_complete=completes("runs"))
@output_options(list(RUNS_VIEWS))
@pass_context
def runs(context: CommandContext, *, run: str | None, output: Output) -> ExitCode:
    """List what was applied from here, or show one run call by call.

    RUN is `latest`, or the beginning of the name of a run or of the digest of its plan. With `lmsconf --workspace NAME
    runs`, only runs on that workspace are listed. In an interrupted run, a call in flight may have been sent, and its
    result is not known.
    """
    root = context.project
    if run is not None:
        output.write(RUN_VIEWS[output.format](mask_if_enabled(find_run(root, run))))
        return ExitCode.OK
    chosen = context.workspace
    listed = [one for one in recorded_runs(root) if chosen is None or (one.opening and one.opening.workspace == chosen)]
    output.write(RUNS_VIEWS[output.format](mask_if_enabled(listed)))
    return ExitCode.OK
