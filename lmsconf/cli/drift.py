"""`lmsconf drift`: report differences between workspace and manifests, or accept them into the manifests."""

from __future__ import annotations

import click

from lmsconf.cli.command import Command, completes
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import Output, output_options, write_stderr
from lmsconf.cli.workspace_options import (
    CommandEvents,
    events_option,
    load_context_settings,
    load_valid_manifests,
    max_rate,
    open_workspace,
    parallelism,
    show_reading_progress,
    trust_project,
    trusted_parts,
)
from lmsconf.errors import ExitCode, refuse_if


@click.command(cls=Command)
@click.option(
    "--accept",
    "accepted",
    metavar="ADDRESS",
    multiple=True,
    shell_complete=completes("addresses"),
    help="Edit the manifests to match the workspace, and show the changed lines; * is a wildcard.",
)
@click.option(
    "--base",
    metavar="DIR|REF",
    help="The manifests that were applied last. Only what differs from them as well, and so was changed by hand, "
    "is drift.",
)
@trust_project
@click.option(
    "--unmanaged",
    "count_unmanaged",
    is_flag=True,
    help="Count unmanaged resources as drift; reads the whole workspace.",
)
@click.option("--coverage", is_flag=True, help="Show how much of the workspace is declared; reads the whole workspace.")
@parallelism
@max_rate
@output_options(["text", "json", "markdown", "html", "junit", "sarif"], pages=True)
@events_option
@click.pass_obj
def drift(
    context: CommandContext,
    *,
    accepted: tuple[str, ...],
    base: str | None,
    trust_project: str | None,
    count_unmanaged: bool,
    coverage: bool,
    parallelism: int,
    max_rate: float | None,
    output: Output,
    events: CommandEvents,
) -> ExitCode:
    """Show where the workspace differs from the manifests.

    Drift only reads the workspace. Drift is: a live resource that differs from its declaration, a declared resource
    that is missing from the workspace, and a resource that lmsconf owns and no manifest declares. Matches of `ignore:`
    in the project file are listed but do not count. Exits 2 if there is drift, 0 if not, and 1 if something could not
    be compared.

    With --base, which names the manifests that were applied last, a difference counts only if the workspace differs
    from the base too. If the workspace matches the base, the change is listed as not applied yet. Without --base every
    difference counts.

    With --accept, the manifests are edited in place to match the workspace, with everything that depends on the
    accepted changes. Comments and order are kept, and the changed lines are printed to stdout. If one manifest cannot
    be edited safely, no file is written.
    """
    from lmsconf.render import DRIFT_VIEWS
    from lmsconf.support.files import write_all_or_none
    from lmsconf.workspace.drift_selection import DriftedProject
    from lmsconf.workspace.project_manifests import load_base

    trusted = trusted_parts(trust_project, base)
    refuse_if(
        (accepted and base is not None, "--accept and --base exclude each other", "Remove --base."),
        (accepted and output.format != "text", "--accept prints a diff, which has no other format", "Remove --format."),
    )
    settings = load_context_settings(context)
    manifests = load_valid_manifests(settings, events)
    applied = (
        None
        if base is None
        else load_base(base, settings, settings.policy, context.environ, trusted=trusted, with_older=False)
    )
    with (
        open_workspace(settings, parallelism, max_rate, events) as workspace,
        show_reading_progress("Reading", events) as tell,
    ):
        reads_all = coverage or count_unmanaged or bool(accepted)
        snapshot = workspace.read_for_drift(manifests, applied, tell, reads_all=reads_all)
        drifted = DriftedProject(
            drift=workspace.drift(
                manifests,
                applied,
                snapshot,
                count_unmanaged=count_unmanaged and not accepted,
                reads_all=reads_all,
            ),
            manifests=manifests,
            settings=settings,
            compute_drift=lambda drafted: workspace.drift(drafted, snapshot=snapshot, reads_all=reads_all),
        )
        edits = drifted.accept(accepted) if accepted else None
        report = drifted.drift if accepted else drifted.without_refused_edits()
    events.record(report)
    if edits is None:
        output.show(DRIFT_VIEWS, report)
        return report.exit
    # Written only once it is verified that no accepted resource differs any more.
    write_all_or_none(settings.root, edits.before, edits.after)
    for address in edits.beyond:
        write_stderr(f"Also accepted (dependency): {address}")
    output.write(edits.diff)
    return ExitCode.OK
