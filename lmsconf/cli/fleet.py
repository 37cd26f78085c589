"""`lmsconf fleet`: validate, plan, compare, test and apply in many workspaces of one project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from lmsconf.cli.command import Command, FiniteRange, Group
from lmsconf.cli.context import CommandContext
from lmsconf.cli.fleet_options import FleetRun, fleet_options
from lmsconf.cli.output import Output, masks_people, output_options, write_stderr
from lmsconf.cli.workspace_options import plan_signing_key, trust_project
from lmsconf.errors import ExitCode, refuse_if

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
@click.pass_obj
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
@click.option(
    "--base",
    metavar="REF",
    help="Compare with the manifests of a branch, a commit or a folder, as `lmsconf plan --base` does.",
)
@trust_project
@click.option("--no-effects", is_flag=True, help="Do not compute who gains or loses content.")
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 when there are changes.")
@fleet_options
@output_options(_FORMATS, pages=True)
@click.pass_obj
def plan(context: CommandContext, /, out: Path | None, detailed: bool, output: Output, **options: Any) -> ExitCode:
    """Show what apply would change in each workspace.

    Changes that are the same in several workspaces are shown once. With --out, a folder gets a plan file for each
    workspace and index.json, for `lmsconf fleet show` and `lmsconf fleet apply`. Exits with the most severe exit code
    of all workspaces.

    In a pull request, pass --base: guards are judged by the settings of the base as well, and a workspace whose url,
    token or dialect differs from the base's gets no request, unless --trust-project names what differs.
    """
    code = _run(context, "plan", output, options, out)
    return ExitCode.OK if code is ExitCode.CHANGES and not detailed else code


@fleet.command(cls=Command)
@fleet_options
@output_options(_FORMATS, pages=True)
@click.pass_obj
def drift(context: CommandContext, /, output: Output, **options: Any) -> ExitCode:
    """Show which workspaces differ from their manifests. Exits 2 if any does."""
    return _run(context, "drift", output, options)


@fleet.command(cls=Command)
@fleet_options
@output_options(_FORMATS)
@click.pass_obj
def test(context: CommandContext, /, output: Output, **options: Any) -> ExitCode:
    """Run the tests of the manifests in each workspace, on the state after its plan."""
    return _run(context, "test", output, options)


@fleet.command(cls=Command)
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@output_options(_FORMATS, pages=True)
@click.pass_obj
def show(context: CommandContext, /, folder: Path, output: Output) -> None:
    """Show the plans that `lmsconf fleet plan --out DIR` saved, failures first."""
    from lmsconf.fleet.fleet_run import read_index
    from lmsconf.fleet.shards import read_report
    from lmsconf.render import FLEET_VIEWS

    key = plan_signing_key(context)
    output.show(FLEET_VIEWS, read_report(folder, read_index(folder, key), key))


@fleet.command(cls=Command)
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR…"
)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The new folder.")
@output_options(_FORMATS, pages=True)
@click.pass_obj
def collect(context: CommandContext, /, folders: tuple[Path, ...], out: Path, output: Output) -> ExitCode:
    """Put the folders of all shards of a `lmsconf fleet plan` together into one, and show it.

    A missing shard is an error. Exits with the most severe exit code of all workspaces; changes alone are 0.
    """
    from lmsconf.fleet.shards import collect_folders, read_report
    from lmsconf.render import FLEET_VIEWS

    key = plan_signing_key(context)
    index = collect_folders(folders, out, key)
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
    "--max-rate",
    type=FiniteRange(min=0.1),
    metavar="N",
    help="Limit requests per second of all jobs together.",
)
@click.option(
    "--image", metavar="IMAGE", help="The container image with lmsconf and the project; needed for argo and kubernetes."
)
def matrix(format_: str, shards: int, selector: str, max_rate: float | None, image: str | None) -> None:
    """Print what an engine needs to plan a fleet in shards.

    For github, the value of `strategy.matrix`; for gitlab, a child pipeline; for argo, a Workflow that also collects;
    for kubernetes, an indexed Job. Each job runs `lmsconf fleet plan --shard I/N`. The document has no token: jobs get
    tokens from the engine.
    """
    from lmsconf.fleet.fleet_run import parse_selector
    from lmsconf.fleet.shards import matrix_document

    parse_selector(selector, "--select")
    click.echo(matrix_document(format_, shards, selector, max_rate, image), nl=False)


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
@click.pass_obj
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

    Collect the folders of shards first: waves and guards are about the whole fleet. Each plan is applied as
    `lmsconf apply PLANFILE` does. After a wave with more failures than --max-failures, the waves after it are not
    begun. Run it again to apply what is left: a plan that was applied is not applied twice.
    """
    from lmsconf.cli.apply import parse_meta
    from lmsconf.cli.output import refuse_without_terminal, require_consent
    from lmsconf.fleet.fleet_run import parse_selector, read_index
    from lmsconf.fleet.tasks import begun_plans
    from lmsconf.fleet.waves import apply_waves, make_waves, read_applied, refuse_fleet_guards
    from lmsconf.model.fleet import FleetAction
    from lmsconf.model.guards import parse_consents
    from lmsconf.model.names import count_noun
    from lmsconf.render import FLEET_VIEWS
    from lmsconf.render.outcome_wording import fleet_headline

    consents, notes = parse_consents(allow), parse_meta(meta)
    if not auto_approve:
        refuse_without_terminal("Pass --auto-approve.")
    key, run = plan_signing_key(context), FleetRun(context, **options)
    planned = run.selected(folder, read_index(folder, key))
    applied = read_applied(folder, key)
    refuse_fleet_guards(planned, run.project.fleet_guards, consents)
    waves = make_waves(planned, [parse_selector(text, "waves") for text in run.project.waves])
    if not auto_approve:
        write_stderr(fleet_headline(planned))
        sizes = (f"{selector} ({count_noun(len(wave), 'workspace')})" for selector, wave in waves.items())
        write_stderr(f"Waves: {', then '.join(sizes)}.")
        require_consent("Apply these plans?")
    begun = begun_plans(run.root)
    index = apply_waves(
        waves,
        applied,
        folder,
        key,
        engine=run.engine,
        # A plan that an earlier run in the project has begun is continued.
        make_task=lambda entry: run.task(
            entry.workspace,
            FleetAction.APPLY,
            folder,
            digest=entry.digest,
            meta=notes,
            attempt=2 if entry.digest in begun else 1,
        ),
        listen=run.listener,
        max_failures=run.project.max_failures if max_failures is None else max_failures,
        created_at=run.now,
    )
    output.show(FLEET_VIEWS, index)
    return index.exit


def _run(
    context: CommandContext, action: str, output: Output, options: Mapping[str, Any], out: Path | None = None
) -> ExitCode:
    """Run a command in each selected workspace, show the results, and return the exit code."""
    from tempfile import TemporaryDirectory

    from msgspec.structs import replace

    from lmsconf.fleet.fleet_run import fleet_index, make_folder, run_tasks, write_index
    from lmsconf.fleet.shards import read_report
    from lmsconf.model.fleet import FleetAction, FleetEntry
    from lmsconf.render import FLEET_VIEWS

    refuse_if(
        (
            out is not None and masks_people(),
            "plan files contain e-mails, so --out and --mask-people exclude each other",
            "Remove --out or --mask-people.",
        )
    )
    if out is not None:
        make_folder(out)
    key, run = plan_signing_key(context), FleetRun(context, **options)
    with TemporaryDirectory(prefix="lmsconf-fleet-") as scratch:
        folder = Path(scratch) if out is None else out
        tasks = [run.task(name, FleetAction(action), folder.absolute()) for name in run.workspaces]
        entries: dict[str, FleetEntry] = {}
        with run.listener(action.capitalize(), len(tasks)) as tell:
            run_tasks(tasks, run.engine, entries, tell)
        index = fleet_index(entries, FleetAction(action), run.now, run.shard)
        if out is not None:
            write_index(folder, index, key)
        report = read_report(folder, index, key)
        if out is None:  # the files are deleted with their folder
            report = replace(report, entries=tuple(replace(entry, file=None) for entry in index.entries))
        output.show(FLEET_VIEWS, report)
    return index.exit
