"""`lmsconf plan`: what apply would change."""

from __future__ import annotations

from pathlib import Path

import click

from lmsconf.cli.frame import Context, Output, output_options, pass_context
from lmsconf.cli.planning import make, opened, parallelism, policy_of, selection, settings_of
from lmsconf.errors import Exit


@click.command()
@selection
@click.option("--out", "out", type=click.Path(path_type=Path), metavar="FILE", help="Save the plan, for apply.")
@click.option(
    "--snapshot",
    "snapshot_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plan against a saved snapshot, without a connection; such a plan cannot be applied.",
)
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 when there are changes.")
@parallelism
@output_options(["text", "json"])
@pass_context
def plan(
    context: Context,
    *,
    only: tuple[str, ...],
    excluded: tuple[str, ...],
    additive: bool,
    out: Path | None,
    snapshot_file: Path | None,
    detailed: bool,
    parallelism: int,
    output: Output,
) -> Exit:
    """Show what apply would change.

    Nothing is written to the workspace. Exit 0, or 2 with --detailed-exitcode when there are changes.
    """
    from lmsconf.core.planfile import dumps
    from lmsconf.files import read_text, write_atomically
    from lmsconf.views import PLAN_VIEWS
    from lmsconf.workspace import read_manifests

    settings = settings_of(context)
    policy = policy_of(settings, only, excluded, additive)
    with opened(settings, parallelism) as workspace:
        if snapshot_file is None:
            made = make(workspace, policy)
        else:
            from lmsconf.kinds.snapshotfile import loads

            made = workspace.plan_offline(read_manifests(settings), policy, loads(read_text(snapshot_file)))
    if out is not None:
        write_atomically(out, dumps(made))
    output.write(PLAN_VIEWS[output.format](made))
    return Exit.CHANGES if detailed and made.changes else Exit.OK
