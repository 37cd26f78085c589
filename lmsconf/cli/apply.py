"""`lmsconf apply`: plan, ask for approval, apply and verify."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from lmsconf.apply.apply import ApplyOptions, PlanToApply, apply_safely
from lmsconf.apply.replanning import reevaluate_guards
from lmsconf.apply.scheduler import ApplyEvent, ApplyEvents, Waiting
from lmsconf.cli import report_interrupt
from lmsconf.cli.command import Command
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import (
    Output,
    confirm,
    mask_if_enabled,
    output_options,
    refuse_without_terminal,
    supports_color,
    write_redacted,
    write_stderr,
)
from lmsconf.cli.workspace_options import (
    NO_EVENTS,
    CommandEvents,
    allow,
    apply_command_line,
    events_option,
    load_context_settings,
    load_saved,
    load_valid_manifests,
    max_rate,
    on_request,
    parallelism,
    plan_signing_key,
    selection_options,
    show_reading_progress,
    split_pairs,
)
from lmsconf.documents.plan_file import loads
from lmsconf.errors import ExitCode, LmsconfError, Problem, ProblemsFound, refuse_if
from lmsconf.model.fleet import INTERRUPTIONS
from lmsconf.model.guards import parse_consents
from lmsconf.model.outcomes import ApplyReport, VerifyMode
from lmsconf.model.plan import Plan
from lmsconf.render import APPLY_VIEWS
from lmsconf.render.outcome_wording import apply_summary, verification_result
from lmsconf.render.plan_wording import workspace_line
from lmsconf.render.text import plan_text
from lmsconf.workspace.reader import WorkspaceReader


@click.command(cls=Command)
@click.argument("planfile", type=click.Path(path_type=Path), required=False)
@selection_options
@click.option("--auto-approve", is_flag=True, help="Do not ask.")
@click.option("--expect-digest", "digest", metavar="D", help="Apply only a plan with this digest.")
@click.option(
    "--require-rehearsal",
    "needs_rehearsal",
    is_flag=True,
    help="Apply only a plan file made with plan --rehearse whose rehearsal succeeded.",
)
@allow
@click.option(
    "--verify",
    type=click.Choice(["all", "touched"]),
    default="all",
    show_default=True,
    help="Check everything in the plan's scope afterwards, or only what the plan changes.",
)
@click.option("--meta", metavar="K=V", multiple=True, help="Add this to the report: commit=4f1d2a. Can be repeated.")
@parallelism
@max_rate
@output_options(["text", "json", "markdown", "html"])
@events_option
@click.pass_obj
def apply(
    context: CommandContext,
    *,
    planfile: Path | None,
    only: tuple[str, ...],
    excluded: tuple[str, ...],
    additive: bool,
    no_effects: bool,
    auto_approve: bool,
    digest: str | None,
    needs_rehearsal: bool,
    allow: tuple[str, ...],
    verify: str,
    meta: tuple[str, ...],
    parallelism: int,
    max_rate: float | None,
    output: Output,
    events: CommandEvents,
) -> ExitCode:
    """Change the workspace to match the manifests.

    With PLANFILE, applies exactly that reviewed plan, without asking. Without it, makes a plan, shows it, and asks for
    approval unless --auto-approve is given.

    Afterwards everything in the plan's scope is planned again, and apply exits 6 if there are differences. For a
    PLANFILE this needs the manifests that it was made from; without them, only what the plan changes is checked.
    """
    consented, noted = parse_consents(allow), parse_meta(meta)
    refuse_if(
        (
            planfile is not None and (only or excluded or additive or no_effects),
            "a plan file is always applied as a whole",
            "Use --only, --except, --additive and --no-effects with lmsconf plan.",
        ),
        (
            planfile is None and needs_rehearsal,
            "--require-rehearsal needs a plan file, which holds the rehearsal's receipt",
            "Save a rehearsed plan with: lmsconf plan --rehearse --out FILE. Then apply FILE.",
        ),
    )
    asks = planfile is None and not auto_approve and digest is None
    if asks:
        refuse_without_terminal("Pass --auto-approve, or apply a plan file.")
    settings = load_context_settings(context)

    def prepare(workspace: WorkspaceReader, progress: ApplyEvents) -> PlanToApply:
        manifests = None
        if planfile is not None:
            key = plan_signing_key(context)
            saved = load_saved(planfile, lambda text: loads(text, key), "apply takes a plan file")
            plan = reevaluate_guards(workspace, saved, consented)
        else:
            manifests = load_valid_manifests(settings, events)
            policy = replace(
                settings.policy,
                only=only,
                excluded=excluded,
                additive=additive,
                consents=(*consented, *settings.policy.consents),
                effects=not no_effects,
                pace=max_rate,
            )
            with progress.phase("Reading") as tell:
                plan = workspace.plan(manifests, policy, tell)
        plan = replace(plan, command=apply_command_line(settings, only, excluded, additive, planfile))
        return PlanToApply(plan=plan, manifests=manifests, is_saved=planfile is not None)

    def approve(plan: Plan) -> bool:
        events.record(Waiting("approval", "Waiting for approval"))
        return confirm("Apply this plan?", about=workspace_line(plan))

    options = ApplyOptions(
        approve=approve if asks else None,
        digest=digest,
        needs_rehearsal=needs_rehearsal,
        verify=VerifyMode(verify),
        meta=noted,
        parallelism=parallelism,
        max_rate=max_rate,
        on_call=on_request(None if events is NO_EVENTS else events.record),
    )
    shown = apply_progress(output, events, shows_plan=planfile is None)
    with options.interrupts.installed():
        report, journal = apply_safely(settings, prepare, options, shown)
        events.record(report)
        return write_report(output, report, journalled=journal is not None, was_asked=asks)


def apply_progress(output: Output, events: CommandEvents, *, shows_plan: bool) -> ApplyEvents:
    """Return what shows progress bars, the plan and notes on stderr, and records all of it as events.

    A plan from a file was reviewed already and is not shown.
    """
    has_waited = False

    def record(event: ApplyEvent) -> None:
        nonlocal has_waited
        events.record(event)
        match event:
            case Plan() if shows_plan:
                # What stops it is the error that follows.
                text = plan_text(mask_if_enabled(event), names_blockers=False)
                write_redacted(text, sys.stderr, color=supports_color(sys.stderr))
            case Waiting(reason="settle", seconds=float() | int() as seconds) if not has_waited:
                has_waited = True
                write_stderr(f"Waiting until the changes are readable, at most {math.ceil(seconds)} s.")
            case Waiting(reason="earlier_run", message=text) | str(text):
                write_stderr(text)
            case ApplyReport() if output.format != "text":
                # A program expects one document: the report, with all calls not attempted.
                # For a person the error is enough.
                write_report(output, event, journalled=False)
            case KeyboardInterrupt():
                report_interrupt(event)

    return ApplyEvents(phase=partial(show_reading_progress, events=events), record=record)


def write_report(output: Output, report: ApplyReport, *, journalled: bool, was_asked: bool = False) -> ExitCode:
    """Write the report and return its exit code.

    was_asked: the plan and the question, shown above it on a terminal, name the workspace. If it cannot be
    written, raises ProblemsFound with the report's problems, the outcome of the run, and the worse of the two exit
    codes.
    """
    if output.format == "text" and not journalled and report.exit in INTERRUPTIONS:
        # Nothing has begun. As where the plan is declined, the error is enough for a person.
        raise ProblemsFound(report.problems, exit=ExitCode(report.exit))
    try:
        text = partial(APPLY_VIEWS["text"], names_workspace=not (was_asked and output.is_on_terminal))
        output.show({**APPLY_VIEWS, "text": text}, report)
    except LmsconfError as lost:
        ended = f"{apply_summary(report)} {verification_result(report)}"
        unwritten = Problem(
            code=lost.code,
            message=f"{lost.message}. The run itself ended with exit code {report.exit}: {ended}",
            hint="Its journal lists every call: lmsconf runs latest" if journalled else lost.hint,
        )
        raise ProblemsFound(
            [*report.problems, unwritten], exit=ExitCode.worst([lost.exit, ExitCode(report.exit)])
        ) from lost
    return ExitCode(report.exit)


def parse_meta(pairs: Sequence[str]) -> dict[str, str]:
    """Parse the `k=v` pairs of `--meta`. Raises UsageError."""
    return dict(split_pairs("--meta", pairs, "KEY=VALUE", "commit=4f1d2a"))
