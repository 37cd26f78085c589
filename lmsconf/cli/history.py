"""`lmsconf history`: which runs changed a resource or a person."""

from __future__ import annotations

import click

from lmsconf.cli.command import Command, completes
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import Output, output_options
from lmsconf.errors import ExitCode


@click.command(cls=Command)
@click.argument("address", metavar="ADDRESS|EMAIL", shell_complete=completes("addresses"))
@output_options(["text", "json"], pages=True)
@pass_context
def history(context: CommandContext, *, address: str, output: Output) -> ExitCode:
    """Show which runs changed a resource or a person.

    Lists when and by which commit and approval it was changed, why, and what. ADDRESS is as a plan prints it, such as
    `group/Onboarding coaches`. For an e-mail, changes of the person, of lists
    with the person, and of assignments to the person are shown. Renames are followed back.

    Only runs that are kept in this folder are looked at, and what was done by hand is not recorded.
    """
    from lmsconf.audit.history import HISTORY_VIEWS, find_history
    from lmsconf.journal.journal_reader import read_runs

    chosen = context.workspace
    runs = (
        run
        for run in read_runs(context.project)
        if chosen is None or run.opening is None or run.opening.workspace == chosen
    )
    output.show(HISTORY_VIEWS, find_history(runs, address))
    return ExitCode.OK
