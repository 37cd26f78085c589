"""`lmsconf fleet`: validate, plan, compare, test and apply in many workspaces of one project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lmsconf.cli.command import Command, Group
from lmsconf.cli.fleet_options import FleetRun, fleet_options
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import Output, output_options
from lmsconf.cli.output_streams import masks_people, write_stderr
from lmsconf.cli.planning import plan_signing_key
from lmsconf.errors import ExitCode, LmsconfError, UsageError

_FORMATS = ("text", "json", "markdown", "html")


@click.group(cls=Group)
def fleet() -> None:
    """Work on many workspaces of one project.

    Workspaces are those of lmsconf.yaml and of its table, `workspaces: {file: workspaces.csv}`. Each one is worked on
    as the command of the same name does, in a process of its own, with its own token: LMSCONF_TOKEN, LMSCONF_URL and
    LMSCONF_WORKSPACE are ignored. A workspace that fails does not hold up the others.
    """


@fleet.command(cls=Command)
@fleet_options
@output_options(_FORMATS)
@pass_context
def validate(context: CommandContext, /, output: Output, **options: Any) -> ExitCode:
    """Check the manifests of each workspace, without a connection."""
    return _run(context, "validate", output, options)


@fleet.command(cls=Command)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Save the plan of each workspace, and an index, to this folder.",
)
@click.option(
    "--shard",
    metavar="I/N",
    help="Plan the I-th of N equal parts of the selected workspaces, for `lmsconf fleet collect`.",
)
@click.option("--no-effects", is_flag=True, help="Do not compute who gains or loses content.")
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 when there are changes.")
@fleet_options
@output_options(_FORMATS, pages=True)
@pass_context
def plan(context: CommandContext, /, out: Path | None, detailed: bool, output: Output, **options: Any) -> ExitCode:
    """Show what apply would change in each workspace.

    Changes that are the same in several workspaces are shown once. With --out, a folder gets a plan file for each
    workspace and index.json, for `lmsconf fleet show` and `lmsconf fleet apply`. Exits with the most severe exit code
    of all workspaces.
    """
    code = _run(context, "plan", output, options, out)
    return ExitCode.OK if code is ExitCode.CHANGES and not detailed else code


@fleet.command(cls=Command)
@fleet_options
@output_options(_FORMATS, pages=True)
@pass_context
def drift(context: CommandContext, /, output: Output, **options: Any) -> ExitCode:
    """Show which workspaces differ from their manifests. Exits 2 if any does."""
    return _run(context, "drift", output, options)


@fleet.command(cls=Command)
@fleet_options
@output_options(_FORMATS)
@pass_context
def test(context: CommandContext, /, output: Output, **options: Any) -> ExitCode:
    """Run the tests of the manifests in each workspace, on the state after its plan."""
    return _run(context, "test", output, options)


@fleet.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@output_options(_FORMATS, pages=True)
@pass_context
def show(context: CommandContext, /, folder: Path, output: Output) -> ExitCode:
    """Show the plans that `lmsconf fleet plan --out DIR` saved, failures first."""
    from lmsconf.fleet.fleet_run import read_index
    from lmsconf.fleet.shared_changes import read_report
    from lmsconf.render import FLEET_VIEWS

    output.show(FLEET_VIEWS, read_report(folder, read_index(folder), plan_signing_key(context)))
    return ExitCode.OK


@fleet.command(cls=Command)
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR…"
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The new folder.")
@output_options(_FORMATS, pages=True)
@pass_context
def collect(context: CommandContext, /, folders: tuple[Path, ...], out: Path, output: Output) -> ExitCode:
    """Put the folders of all shards of a `lmsconf fleet plan` together into one, and show it.

    Exits with the most severe exit code of all workspaces; changes alone are 0.
    """
    from lmsconf.fleet.collect import collect_folders
    from lmsconf.fleet.shared_changes import read_report
    from lmsconf.render import FLEET_VIEWS

    key = plan_signing_key(context)
    index = collect_folders(folders, out)
    output.show(FLEET_VIEWS, read_report(out, index, key))
    return ExitCode.OK if index.exit is ExitCode.CHANGES else index.exit


@fleet.command(cls=Command)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["github", "gitlab", "argo", "kubernetes"]),
    required=True,
    help="The engine.",
)
@click.option("--shards", type=click.IntRange(1, 256), required=True, metavar="N", help="The number of jobs.")
@click.option("--select", "selector", metavar="LABELS", default="*", help="Plan only workspaces with these labels.")
@click.option(
    "--image", metavar="IMAGE", help="The container image with lmsconf and the project; needed for argo and kubernetes."
)
def matrix(format_: str, shards: int, selector: str, image: str | None) -> ExitCode:
    """Print what an engine needs to plan a fleet in shards.

    For github, the value of `strategy.matrix`; for gitlab, a child pipeline; for argo, a Workflow; for kubernetes, an
    indexed Job. Each job runs `lmsconf fleet plan --shard I/N`. It holds no token: jobs get them from the engine.
    """
    from lmsconf.fleet.label_selector import parse_selector
    from lmsconf.fleet.matrix import NEEDS_IMAGE, Matrix, matrix_document

    if format_ in NEEDS_IMAGE and image is None:
        raise UsageError(f"--format {format_} needs --image", hint="Name it by its digest: registry/lmsconf@sha256:…")
    parse_selector(selector, "--select")
    click.echo(matrix_document(Matrix(shards=shards, select=selector, image=image), format_), nl=False)
    return ExitCode.OK


@fleet.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option("--auto-approve", is_flag=True, help="Do not ask.")
@click.option(
    "--allow",
    metavar="GUARD=N",
    multiple=True,
    help="Allow what a guard of fleet_guards counts over all workspaces, if the total is exactly N.",
)
@click.option(
    "--max-failures",
    type=click.IntRange(min=0),
    metavar="N",
    help="Stop after a wave with more failures; default: max_failures of lmsconf.yaml, or 0.",
)
@click.option("--meta", metavar="KEY=VALUE", multiple=True, help="Note in each report, such as commit=1a2b3c.")
@fleet_options
@output_options(_FORMATS)
@pass_context
def apply(
    context: CommandContext,
    /,
    folder: Path,
    auto_approve: bool,
    allow: tuple[str, ...],
    max_failures: int | None,
    meta: tuple[str, ...],
    output: Output,
    **options: Any,
) -> ExitCode:
    """Apply the plans that `lmsconf fleet plan --out DIR` saved, in the waves of lmsconf.yaml.

    Each plan is applied as `lmsconf apply PLANFILE` does. After a wave with more failures than --max-failures, the
    waves after it are not begun. Run it again to apply what is left: a plan that was applied is not applied twice.
    """
    from lmsconf.cli.apply_screen import parse_key_values
    from lmsconf.cli.prompts import confirm, refuse_without_terminal
    from lmsconf.fleet.fleet_run import read_index
    from lmsconf.fleet.label_selector import parse_selector
    from lmsconf.fleet.waves import APPLIED, apply_in_waves, describe_waves, make_waves, refuse_fleet_guards
    from lmsconf.model.fleet import FleetAction, FleetReport
    from lmsconf.model.policy import parse_consents
    from lmsconf.render import FLEET_VIEWS
    from lmsconf.render.fleet_wording import fleet_headline

    consents, notes = parse_consents(allow), parse_key_values(meta)
    if not auto_approve:
        refuse_without_terminal("Pass --auto-approve.")
    run = FleetRun(context, **options)
    planned = run.selected(read_index(folder))
    refuse_fleet_guards(planned, run.project.fleet_guards(), consents)
    waves = make_waves(planned, [parse_selector(text, "waves") for text in run.project.waves()])
    if not auto_approve:
        write_stderr(fleet_headline(FleetReport(index=planned)))
        write_stderr(f"Waves: {', then '.join(describe_waves(waves))}.")
        if not confirm("Apply these plans?"):
            raise LmsconfError("declined: nothing was changed")
    index = apply_in_waves(
        folder,
        planned,
        waves,
        run.engine(),
        lambda entry: run.task(entry.workspace, FleetAction.APPLY, folder, digest=entry.digest, meta=notes),
        applied=read_index(folder, APPLIED) if (folder / APPLIED).is_file() else None,
        max_failures=run.project.max_failures() if max_failures is None else max_failures,
        created_at=run.now,
        listen=run.listener,
    )
    output.show(FLEET_VIEWS, FleetReport(index=index))
    return index.exit


def _run(
    context: CommandContext, action: str, output: Output, options: Mapping[str, Any], out: Path | None = None
) -> ExitCode:
    """Run a command in each selected workspace, show the results, and return the exit code."""
    from tempfile import TemporaryDirectory

    from lmsconf.fleet.fleet_run import make_folder, run_tasks, write_index
    from lmsconf.fleet.shared_changes import read_report
    from lmsconf.model.fleet import FleetAction
    from lmsconf.render import FLEET_VIEWS

    if out is not None:
        if masks_people():
            hint = "Remove --out or --mask-people."
            raise UsageError("plan files contain e-mails, so --out and --mask-people exclude each other", hint=hint)
        make_folder(out)
    key, run = plan_signing_key(context), FleetRun(context, **options)
    with TemporaryDirectory(prefix="lmsconf-fleet-") as scratch:
        folder = Path(scratch) if out is None else out
        tasks = [run.task(name, FleetAction(action), folder.absolute()) for name in run.workspaces]
        with run.listener(action.capitalize(), len(tasks)) as tell:
            index = run_tasks(tasks, run.engine(), FleetAction(action), run.now, tell)
        if out is not None:
            write_index(folder, index)
        output.show(FLEET_VIEWS, read_report(folder, index, key))
    return index.exit
