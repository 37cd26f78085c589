"""`lmsconf completion`: print a shell's completion script."""

from __future__ import annotations

import sys

import click

from lmsconf.cli.output_streams import write_redacted
from lmsconf.errors import ExitCode, LmsconfError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> ExitCode:
    """Print the completion script of a shell.

    For bash, put eval "$(lmsconf completion bash)" into ~/.bashrc; for zsh the same with zsh into ~/.zshrc; for fish,
    lmsconf completion fish | source.
    """
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise LmsconfError(f"click knows no completion for {shell}")
    write_redacted(
        shell_class(context.find_root().command, {}, "lmsconf", "_LMSCONF_COMPLETE").source() + "\n", sys.stdout
    )
    return ExitCode.OK
