"""`lmsconf validate`: check the manifests without reading the workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import Output, output_options
from lmsconf.cli.output_streams import report_problems
from lmsconf.cli.planning import load_context_settings
from lmsconf.errors import ExitCode, ProblemsFound, UsageError

if TYPE_CHECKING:
    from lmsconf.export.manifest_files import ExpandedManifest
    from lmsconf.model.declarations import Manifests

_FORMATS = ("text", "json", "markdown", "html", "github", "sarif", "codequality")


@click.command(cls=Command)
@click.option("--expanded", is_flag=True, help="Print the manifests with variables, for_each and sets expanded.")
@output_options(_FORMATS, problems=_FORMATS[1:])
@pass_context
def validate(context: CommandContext, *, expanded: bool, output: Output) -> ExitCode:
    """Check the manifests, without a connection.

    Reports every problem of every file with its line, and the findings of lints: manifests that are valid but probably
    not intended (`lmsconf explain lint` lists them). Exits 1 if there is an error.

    For code reviews: --format markdown prints a comment, github prints workflow commands, which GitHub shows at each
    line, sarif a log for code scanning, and codequality GitLab's report of that name.

    --expanded prints the manifests without variables, for_each, sets, except and CSV files.
    """
    if expanded and output.format != "text":
        raise UsageError("--expanded prints YAML", hint="Remove --format.")
    plain = _expanded_manifest() if expanded else None
    manifests = _valid_manifests(context, plain)
    if output.format != "text":
        from lmsconf.render import PROBLEMS_VIEWS

        output.show(PROBLEMS_VIEWS, manifests.problems)
        return ExitCode.OK
    report_problems(manifests.problems)
    if plain:
        output.write(plain.yaml_text())
        return ExitCode.OK
    count, files = len(manifests.declared), len(manifests.files)
    tests = len(manifests.tests)
    tested = f" and {tests:,} test{'s' * (tests != 1)}" if tests else ""
    output.write(f"{count:,} resource{'s' * (count != 1)}{tested} in {files} file{'s' * (files != 1)}: no errors.\n")
    return ExitCode.OK


def _valid_manifests(context: CommandContext, plain: ExpandedManifest | None) -> Manifests:
    """Return the manifests with their warnings and notes. Raises ProblemsFound with all problems if one is an error."""
    from lmsconf.workspace.project_manifests import validate_offline

    manifests = validate_offline(load_context_settings(context), plain.add_entry if plain else None)
    if any(problem.is_error for problem in manifests.problems):
        raise ProblemsFound(manifests.problems)
    return manifests


def _expanded_manifest() -> ExpandedManifest:
    from lmsconf.export.manifest_files import ExpandedManifest

    return ExpandedManifest()
