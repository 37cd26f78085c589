"""The base of all commands: global options, taken before and after a command's name, and the layout of `--help`.

`lmsconf --help` imports this module, so it imports click and nothing slower.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import click

from lmsconf.cli.context import context_of, note_flag, note_folder, note_value
from lmsconf.cli.output_streams import mask_people

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    Complete: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]"


def completes(values: str) -> Complete:
    """Return the click callback that completes to what the function `values` of `completion_values` returns."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        function = getattr(import_module("lmsconf.cli.completion"), values)
        return cast("list[CompletionItem[str]]", function(context_of(ctx), incomplete))

    return complete


def _note_masking(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        mask_people(True)


GLOBAL_OPTIONS: Final = (
    click.Option(
        ["-C", "directory"],
        metavar="DIR",
        multiple=True,
        expose_value=False,
        callback=note_folder,
        shell_complete=completes("folders"),
        help="The project's folder, where lmsconf.yaml is; without it, this folder or one above it.",
    ),
    click.Option(
        ["--workspace", "workspace"],
        metavar="NAME",
        multiple=True,
        expose_value=False,
        callback=note_value,
        shell_complete=completes("workspaces"),
        help="The workspace, as lmsconf.yaml names it.",
    ),
    click.Option(
        ["--mask-people"],
        is_flag=True,
        expose_value=False,
        callback=_note_masking,
        envvar="LMSCONF_MASK_PEOPLE",
        help="Write `person 1` and so on for people, in all output. For public logs and comments.",
    ),
    click.Option(
        ["--verbose"],
        is_flag=True,
        expose_value=False,
        callback=note_flag,
        help="Write each request, its time and its retries to stderr.",
    ),
    click.Option(["--no-pager"], is_flag=True, expose_value=False, callback=note_flag, help="Do not page long output."),
)


class _GlobalOptionsMixin(click.Command):
    """A command that takes the global options, and whose help has groups of options and examples."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def get_help(self, ctx: click.Context) -> str:
        from lmsconf.cli.help_layout import help_formatter

        formatter = help_formatter()
        self.format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from lmsconf.cli.help_layout import write_examples, write_options

        write_examples(ctx, formatter)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        write_options(self.get_params(ctx), GLOBAL_OPTIONS, ctx, formatter)


class Command(_GlobalOptionsMixin, click.Command):
    """A command of lmsconf. `click.pass_obj` passes it the CommandContext, as its first argument."""

    def invoke(self, ctx: click.Context) -> Any:
        context_of(ctx)
        return super().invoke(ctx)


class Group(_GlobalOptionsMixin, click.Group):
    """A command of lmsconf that has commands of its own."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve the command; for an unknown one, fail with the nearest match, or with the list."""
        if args and not args[0].startswith("-") and args[0] not in (known := self.list_commands(ctx)):
            from lmsconf.cli.wrong_usage import fail_unknown_command

            fail_unknown_command(ctx, args[0], known)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each command with the first line of its help, which click would shorten on a narrow terminal."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, ((command and command.help) or "").partition("\n")[0]) for name, command in commands]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
