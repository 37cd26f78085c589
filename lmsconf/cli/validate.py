"""`lmsconf validate`: everything that can be checked without the workspace."""

from __future__ import annotations

import click

from lmsconf.cli.frame import Context, Output, output_options, pass_context, report
from lmsconf.cli.planning import settings_of
from lmsconf.errors import Exit, ProblemsFound


@click.command()
@output_options(["text", "json"])
@pass_context
def validate(context: Context, *, output: Output) -> Exit:
    """Check the manifests without looking at the workspace.

    Every problem of every file is reported, each with its place. Exit 1 when there is an error.
    """
    from lmsconf import workspace
    from lmsconf.views.json import problems_json

    settings = settings_of(context)
    found = workspace.validate(settings)
    if any(problem.is_error for problem in found.problems):
        raise ProblemsFound(found.problems)
    if output.format == "json":
        output.write(problems_json(found.problems))
        return Exit.OK
    report(found.problems)
    count, files = len(found.declared), len(found.files)
    output.write(f"{count:,} resource{'s' * (count != 1)} in {files} file{'s' * (files != 1)}: no errors.\n")
    return Exit.OK
