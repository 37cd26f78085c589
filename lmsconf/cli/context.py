"""What a command runs with: the global options of its command line, the project's folder, and the environment.

`lmsconf --help` imports this module, so slow imports (pathlib among them) are inside the functions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import click
from msgspec import Struct

from lmsconf.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_KEY: Final = "lmsconf.global_options"


class GlobalOptions(NamedTuple):
    """What the global options of a command line say.

    pages: whether long output on a terminal goes through a pager.
    """

    directory: str | None = None
    workspace: str | None = None
    masks_people: bool = False
    verbose: bool = False
    pages: bool = True


def global_options() -> GlobalOptions:
    """Return the global options of the command that is running."""
    context = click.get_current_context(silent=True)
    return GlobalOptions() if context is None else options_of(context)


def options_of(context: click.Context) -> GlobalOptions:
    """Return the global options that a command line has so far."""
    return cast(GlobalOptions, context.meta.get(_KEY, GlobalOptions()))


def set_global_options(context: click.Context, options: GlobalOptions) -> None:
    """Note the global options, for this command and those below it; with the project that they choose, if another one.

    Raises UsageError if the folder of -C does not exist, unless the command line is parsed for shell completion.
    """
    before = options_of(context)
    context.meta[_KEY] = options
    if context.obj is None or options[:2] != before[:2]:
        try:
            context.obj = CommandContext.of(options.directory, options.workspace)
        except UsageError:
            if not context.resilient_parsing:
                raise


class CommandContext(Struct, frozen=True):
    """The project folder, workspace and environment variables of a command.

    directory: the argument of -C, or the working directory. named: -C was given, so parent folders are not searched.
    """

    directory: Path
    workspace: str | None
    environ: Mapping[str, str]
    named: bool = True

    @property
    def project(self) -> Path:
        """The project's folder. Raises UntrustedProjectFolder if it is found in a folder that is not trusted."""
        from pathlib import Path

        from lmsconf.project.settings import find_project_folder

        return self.directory if self.named else find_project_folder(Path(), self.environ)

    @classmethod
    def of(cls, directory: str | None, workspace: str | None) -> CommandContext:
        """Return the context of this process. Raises UsageError if `directory` is not a folder."""
        from pathlib import Path

        folder = Path(directory or ".")
        if not folder.is_dir():
            hint = "Pass the folder that contains lmsconf.yaml."
            wrong = "that is a file" if folder.exists() else "there is no such folder"
            raise UsageError(f"-C {directory}: {wrong}", hint=hint)
        return cls(folder, workspace, dict(os.environ), named=directory is not None)


pass_context = click.make_pass_decorator(CommandContext)
