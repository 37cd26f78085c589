"""`lmsconf explain`, `graph`, `runs` and `completion`: commands that print, and never look at the workspace."""

from __future__ import annotations

import sys

import click

from lmsconf.cli.command import Command, completes
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import Output, output_options
from lmsconf.cli.output_streams import mask_if_enabled, write_redacted
from lmsconf.errors import ExitCode, LmsconfError


@click.command(cls=Command)
@click.argument("key", metavar="[KEY|CODE]", default="", shell_complete=completes("explained"))
@output_options(["text", "json"], pages=True)
def explain(*, key: str, output: Output) -> ExitCode:
    """Explain a key of manifests or of lmsconf.yaml, or a code.

    KEY is a kind or section with keys below it, a key of the project file, or a key alone, such as for_each. CODE is
    in brackets after a message. Without an argument, what can be explained is listed; `lmsconf explain project`, `lint`
    and `codes` list more.
    """
    from lmsconf.manifest.explain import explain as explained
    from lmsconf.render.key_explanation import EXPLAIN_VIEWS

    output.show(EXPLAIN_VIEWS, explained(key))
    return ExitCode.OK


@click.command(cls=Command)
@click.option(
    "--only",
    metavar="ADDRESS",
    multiple=True,
    shell_complete=completes("addresses"),
    help="Show only this address and what it needs; * is a wildcard.",
)
@output_options(["mermaid", "dot"])
@pass_context
def graph(context: CommandContext, *, only: tuple[str, ...], output: Output) -> ExitCode:
    """Show the dependency graph.

    An edge leads from content to its audience, thick if mandatory, and from a smart group to the fields of its
    conditions. Resources that no manifest declares are dashed. The workspace is not read.
    """
    from lmsconf.cli.planning import build_policy, load_context_settings
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
    if wrong := list(chosen.problems()):
        raise ProblemsFound(wrong)
    output.show(GRAPH_VIEWS, build_graph(all_kinds(), (one for one in manifests.declared if chosen(one.address))))
    return ExitCode.OK


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> ExitCode:
    """Print the completion script of a shell.

    For bash, put eval "$(lmsconf completion bash)" into ~/.bashrc; for zsh the same with zsh into ~/.zshrc; for fish,
    lmsconf completion fish | source.
    """
    from click.shell_completion import get_completion_class

    from lmsconf.cli.completion_shells import VARIABLE, register_shells

    register_shells()
    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise LmsconfError(f"there is no completion for {shell}")
    write_redacted(shell_class(context.find_root().command, {}, "lmsconf", VARIABLE).source() + "\n", sys.stdout)
    return ExitCode.OK


@click.command(cls=Command)
@click.argument("run", required=False, shell_complete=completes("runs"))
@output_options(["text", "json"])
@pass_context
def runs(context: CommandContext, *, run: str | None, output: Output) -> ExitCode:
    """List what was applied from here, or show one run call by call.

    RUN is `latest`, or the beginning of the name of a run or of the digest of its plan. With `lmsconf --workspace NAME
    runs`, only runs on that workspace are listed. In an interrupted run, a call in flight may have been sent, and its
    result is not known.
    """
    from lmsconf.journal.journal_reader import find_run, read_runs
    from lmsconf.render.recorded_runs import RUN_VIEWS, RUNS_VIEWS

    root = context.project
    if run is not None:
        output.write(RUN_VIEWS[output.format](mask_if_enabled(find_run(root, run))))
        return ExitCode.OK
    chosen = context.workspace
    listed = [one for one in read_runs(root) if chosen is None or (one.opening and one.opening.workspace == chosen)]
    output.write(RUNS_VIEWS[output.format](mask_if_enabled(listed)))
    return ExitCode.OK
