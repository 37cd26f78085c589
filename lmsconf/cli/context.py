"""What a command runs with: the global options of its command line, the project's folder, the environment.

`lmsconf --help` imports this module, so slow imports (pathlib among them) are inside the functions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import click
from msgspec import Struct

from lmsconf.errors import LmsconfError, refuse_if

if TYPE_CHECKING:
    from pathlib import Path


COMPLETION_VARIABLE = "_LMSCONF_COMPLETE"
"""The environment variable in which the completion script of a shell says what it wants."""


class CommandContext(Struct, frozen=True):
    """The project folder, workspace and environment variables of a command.

    directory: the argument of -C; without, the project is looked for in the working directory and above it.
    """

    directory: Path | None
    workspace: str | None
    environ: Mapping[str, str]

    @property
    def project(self) -> Path:
        """The project's folder. Raises LmsconfError if it is found in a folder that is not trusted."""
        from pathlib import Path

        from lmsconf.project.settings import find_project_folder

        return find_project_folder(Path(), self.environ) if self.directory is None else self.directory


def context_of(context: click.Context) -> CommandContext:
    """Return what the command runs with: what its caller has set, or what the command line and this process say."""
    from pathlib import Path

    if context.obj is None:
        directory, workspace = (next(iter(_given(context, name)), None) for name in ("directory", "workspace"))
        context.obj = CommandContext(None if directory is None else Path(directory), workspace, dict(os.environ))
    return cast(CommandContext, context.obj)


def project_prefix() -> str:
    """Return the path of the project in its repository, with a slash at the end; empty if it is its top folder.

    Empty also without a repository, and for a folder that is not trusted: what is shown then is that error.
    """
    from lmsconf.support.files import find_work_tree

    with suppress(LmsconfError):
        folder = context_of(click.get_current_context()).project
        if (top := find_work_tree(folder)) is not None:
            return f"{os.path.relpath(os.path.realpath(folder), top)}/".removeprefix("./")
    return ""


def is_given(flag: str) -> bool:
    """Whether the command that is running has a global flag, such as `verbose`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(_given(context, flag))


def _given(context: click.Context, name: str | None) -> list[str]:
    """Return the values of a global option so far: it may stand before and after the name of the command."""
    return cast("list[str]", context.meta.setdefault(f"lmsconf.{name}", []))


def note_flag(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Note a global flag."""
    _given(context, option.name).extend(option.opts if value else ())


def note_value(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> None:
    """Note the value of a global option. Raises click.UsageError for two different ones."""
    given = _given(context, option.name)
    given.extend(value for value in dict.fromkeys(values) if value not in given)
    if len(given) > 1:
        context.fail(f"{option.opts[0]} is given twice, with {given[0]!r} and {given[1]!r}.")


def note_folder(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> None:
    """Note the folder of the project. Raises UsageError if it does not exist."""
    from pathlib import Path

    note_value(context, option, values)
    for folder in map(Path, values):
        wrong = "that is a file" if folder.exists() else "there is no such folder"
        refuse_if((not folder.is_dir(), f"-C {values[0]}: {wrong}", "Pass the folder that contains lmsconf.yaml."))
