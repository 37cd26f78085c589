"""The base of all commands with their global options, and the table of commands, each imported lazily.

`lmsconf --help` and shell completion wait for this module's imports, so it imports click and nothing slower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from math import isfinite
from typing import Any, Final, cast

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

from lmsconf import __version__
from lmsconf.cli.context import context_of, note_flag, note_folder, note_value
from lmsconf.cli.output import mask_people


def completes(values: str) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]:
    """Return the click callback that completes to what the function `values` of `cli.completion` returns."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        function = getattr(import_module("lmsconf.cli.completion"), values)
        return cast("list[CompletionItem[str]]", function(context_of(ctx), incomplete))

    return complete


class FiniteRange(click.FloatRange):
    """The type of an option that is a number: nan is in each range of click, infinity in most."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises click.BadParameter."""
        number = super().convert(value, param, ctx)
        return number if isfinite(number) else self.fail(f"{value!r} is not a finite number.", param, ctx)


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
        callback=lambda context, option, value: mask_people(True) if value else None,
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

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first line of the help, which click would shorten on a narrow terminal."""
        return (self.help or "").partition("\n")[0]

    def get_help(self, ctx: click.Context) -> str:
        from lmsconf.cli.usage import help_formatter

        formatter = help_formatter()
        self.format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from lmsconf.cli.usage import write_examples, write_options

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
            from lmsconf.cli.usage import fail_unknown_command

            fail_unknown_command(ctx, args[0], known)
        return super().resolve_command(ctx, args)


class CommandEntry(Struct, frozen=True):
    """The module of this package that has a command under its name, and its line in `--help`."""

    module: str
    help: str


COMMANDS: Mapping[str, CommandEntry] = {
    "init": CommandEntry("init", "Create a project: a project file, a first manifest, a workflow."),
    "validate": CommandEntry("manifest_commands", "Check the manifests, without a connection."),
    "fmt": CommandEntry("manifest_commands", "Put keys and lists of manifests in order."),
    "plan": CommandEntry("plan", "Show what apply would change."),
    "show": CommandEntry("runs", "Show a saved plan, snapshot or apply report."),
    "apply": CommandEntry("apply", "Change the workspace to match the manifests."),
    "drift": CommandEntry("drift", "Show where the workspace differs from the manifests."),
    "access": CommandEntry("people_commands", "Show what a person has, will have after the plan, and why."),
    "audience": CommandEntry("people_commands", "Show how many people are in an audience, now and after the plan."),
    "test": CommandEntry("people_commands", "Run the tests of the manifests on the state after the plan."),
    "runs": CommandEntry("runs", "List what was applied from here, or show one run call by call."),
    "history": CommandEntry("runs", "Show which runs changed a resource or a person."),
    "evidence": CommandEntry("runs", "Write a folder that shows what runs did, or verify one."),
    "unlock": CommandEntry("workspace_commands", "Remove a stale lock."),
    "export": CommandEntry("export", "Write manifests for the live workspace."),
    "snapshot": CommandEntry("workspace_commands", "Save the state of the workspace to a file."),
    "explain": CommandEntry("manifest_commands", "Explain a key of manifests or of lmsconf.yaml, or a code."),
    "help": CommandEntry("help", "Print a page of the guide."),
    "graph": CommandEntry("manifest_commands", "Show the dependency graph."),
    "doctor": CommandEntry(
        "workspace_commands", "Check the connection, the token, and the assumptions about the service."
    ),
    "api": CommandEntry("workspace_commands", "Send one request to the API and print the response."),
    "completion": CommandEntry("help", "Print the completion script of a shell."),
    "fleet": CommandEntry("fleet", "Work on many workspaces of one project."),
    "sandbox": CommandEntry("sandbox", "Serve, seed or reset the embedded workspace."),
}


class LazyGroup(Group):
    """The group with the commands of the table; listing them imports no command module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        return cast(click.Command, getattr(import_module(f"lmsconf.cli.{COMMANDS[cmd_name].module}"), cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lmsconf", message="%(prog)s %(version)s")
def app() -> None:
    """Configuration as code for a learning platform's workspace.

    Manifests declare custom fields, groups, smart groups and assignments. `lmsconf plan` shows what differs from them
    in the workspace, and `lmsconf apply` changes it. Global options can be given before or after the command.
    """
