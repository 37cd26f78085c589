"""The table of commands, each imported lazily, and the group that has them.

`lmsconf --help` and shell completion wait for this module's imports, so it imports click and nothing slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import NamedTuple, cast

import click

from lmsconf import __version__
from lmsconf.cli.command import Group


class CommandEntry(NamedTuple):
    """A command's module and attribute, and its line in `--help`, which needs no import."""

    module: str
    attribute: str
    help: str


COMMANDS: Mapping[str, CommandEntry] = {
    "init": CommandEntry("lmsconf.cli.init", "init", "Create a project: a project file, a first manifest, a workflow."),
    "validate": CommandEntry("lmsconf.cli.manifest_commands", "validate", "Check the manifests, without a connection."),
    "fmt": CommandEntry("lmsconf.cli.manifest_commands", "fmt", "Put keys and lists of manifests in order."),
    "plan": CommandEntry("lmsconf.cli.plan", "plan", "Show what apply would change."),
    "show": CommandEntry("lmsconf.cli.runs", "show", "Show a saved plan, snapshot or apply report."),
    "apply": CommandEntry("lmsconf.cli.apply", "apply", "Change the workspace to match the manifests."),
    "drift": CommandEntry("lmsconf.cli.drift", "drift", "Show where the workspace differs from the manifests."),
    "access": CommandEntry(
        "lmsconf.cli.people_commands", "access", "Show what a person has, will have after the plan, and why."
    ),
    "audience": CommandEntry(
        "lmsconf.cli.people_commands",
        "audience",
        "Show how many people are in an audience, now and after the plan.",
    ),
    "test": CommandEntry(
        "lmsconf.cli.people_commands", "test", "Run the tests of the manifests on the state after the plan."
    ),
    "runs": CommandEntry("lmsconf.cli.runs", "runs", "List what was applied from here, or show one run call by call."),
    "history": CommandEntry("lmsconf.cli.runs", "history", "Show which runs changed a resource or a person."),
    "evidence": CommandEntry("lmsconf.cli.runs", "evidence", "Write a folder that shows what runs did, or verify one."),
    "unlock": CommandEntry("lmsconf.cli.workspace_commands", "unlock", "Remove a stale lock."),
    "export": CommandEntry("lmsconf.cli.export", "export", "Write manifests for the live workspace."),
    "snapshot": CommandEntry(
        "lmsconf.cli.workspace_commands", "snapshot", "Save the state of the workspace to a file."
    ),
    "explain": CommandEntry(
        "lmsconf.cli.manifest_commands", "explain", "Explain a key of manifests or of lmsconf.yaml, or a code."
    ),
    "help": CommandEntry("lmsconf.cli.help", "help_command", "Print a page of the guide."),
    "graph": CommandEntry("lmsconf.cli.manifest_commands", "graph", "Show the dependency graph."),
    "doctor": CommandEntry(
        "lmsconf.cli.workspace_commands",
        "doctor",
        "Check the connection, the token, and the assumptions about the service.",
    ),
    "api": CommandEntry("lmsconf.cli.workspace_commands", "api", "Send one request to the API and print the response."),
    "completion": CommandEntry("lmsconf.cli.completion", "completion", "Print the completion script of a shell."),
    "fleet": CommandEntry("lmsconf.cli.fleet", "fleet", "Work on many workspaces of one project."),
    "sandbox": CommandEntry("lmsconf.cli.sandbox", "sandbox", "Serve, seed or reset the embedded workspace."),
}


class LazyGroup(Group):
    """The group with the commands of the table; listing them imports no command module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else cast(click.Command, getattr(import_module(entry.module), entry.attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, entry.help) for name, entry in COMMANDS.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lmsconf", message="%(prog)s %(version)s")
def app() -> None:
    """Configuration as code for a learning platform's workspace.

    Manifests declare custom fields, groups, smart groups and assignments. `lmsconf plan` shows what differs from them
    in the workspace, and `lmsconf apply` changes it. Global options can be given before or after the command.
    """
