"""`lmsconf graph`: draw the dependency graph of the manifests."""

from __future__ import annotations

import click

from lmsconf.cli.frame import CommandContext, Output, output_options, pass_context
from lmsconf.cli.planning import build_policy, load_context_settings
from lmsconf.errors import ExitCode


@click.command()
@click.option("--only", metavar="ADDRESS", multiple=True, help="Only this and what it needs; * is a wildcard.")
@output_options(["mermaid", "dot"])
@pass_context
def graph(context: CommandContext, *, only: tuple[str, ...], output: Output) -> ExitCode:
    """Show the dependency graph.

    Content points to its audience, with a thick line where it is mandatory; smart groups point to the fields that they
    ask for. What no manifest declares is dashed. The workspace is not looked at.
    """
    from lmsconf.errors import ProblemsFound
    from lmsconf.kinds import all_kinds
    from lmsconf.planner.dependency_graph import build_graph
    from lmsconf.planner.selection import Selection
    from lmsconf.render.dependency_graph import GRAPH_VIEWS
    from lmsconf.workspace.project_manifests import load_manifests, refuse_errors

    settings = load_context_settings(context)
    manifests = load_manifests(settings)
    refuse_errors(manifests)
    chosen = Selection(all_kinds(), manifests.declared, build_policy(settings, only))
    if wrong := list(chosen.problems(one.address for one in manifests.declared)):
        raise ProblemsFound(wrong)
    output.show(GRAPH_VIEWS, build_graph(all_kinds(), (one for one in manifests.declared if chosen(one.address))))
    return ExitCode.OK
