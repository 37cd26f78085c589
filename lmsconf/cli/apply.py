"""`lmsconf apply`: plan, ask for approval, apply and verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from lmsconf.cli.command import Command
from lmsconf.cli.events import CommandEvents, events_option
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import Output, output_options
from lmsconf.cli.planning import (
    allow,
    apply_command_line,
    build_policy,
    load_context_settings,
    load_valid_manifests,
    max_rate,
    on_request,
    parallelism,
    plan_signing_key,
    selection_options,
)
from lmsconf.cli.prompts import refuse_without_terminal
from lmsconf.errors import ExitCode, UsageError
from lmsconf.model.outcomes import VerifyMode

if TYPE_CHECKING:
    from lmsconf.apply.applier import Applier
    from lmsconf.apply.events import ApplyProgress
    from lmsconf.model.plan import Plan


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
@pass_context
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
    from lmsconf.apply.safe_apply import ApplyOptions, PlanSource, PreparedPlan
    from lmsconf.apply.safe_apply import apply_safely as apply_safely
    from lmsconf.cli.apply_screen import ApplyScreen, approval_prompt, parse_key_values, write_report
    from lmsconf.model.policy import parse_consents

    consented, noted = parse_consents(allow), parse_key_values(meta)
    if planfile is not None and (only or excluded or additive or no_effects):
        hint = "Use --only, --except, --additive and --no-effects with lmsconf plan."
        raise UsageError("a plan file is always applied as a whole", hint=hint)
    if needs_rehearsal and planfile is None:
        hint = "Save a rehearsed plan with: lmsconf plan --rehearse --out FILE. Then apply FILE."
        raise UsageError("--require-rehearsal needs a plan file, which holds the rehearsal's receipt", hint=hint)
    asks = planfile is None and not auto_approve and digest is None
    if asks:
        refuse_without_terminal("Pass --auto-approve, or apply a plan file.")
    settings = load_context_settings(context)

    def prepare(workspace: Applier, progress: ApplyProgress) -> PreparedPlan:
        manifests = snapshot = None
        if planfile is not None:
            plan = workspace.reevaluate_guards(_loaded(planfile, plan_signing_key(context)), consented)
        else:
            manifests = load_valid_manifests(workspace, events)
            policy = build_policy(settings, only, excluded, additive, consented, effects=not no_effects, pace=max_rate)
            with progress.phase("Reading") as tell:
                plan, snapshot = workspace.plan_and_snapshot(manifests, policy, tell)
        command = apply_command_line(settings, only, excluded, additive, planfile)
        return PreparedPlan(plan=replace(plan, command=command), manifests=manifests, snapshot=snapshot)

    options = ApplyOptions(
        approve=approval_prompt(events) if asks else None,
        digest=digest,
        needs_rehearsal=needs_rehearsal,
        verify=VerifyMode(verify),
        meta=noted,
        parallelism=parallelism,
        max_rate=max_rate,
        on_call=on_request(events),
    )
    screen = ApplyScreen(output, events, shows_plan=planfile is None)
    source = PlanSource(get=prepare, saved=planfile is not None)
    with options.interrupts.installed():
        report, journalled = apply_safely(settings, source, options, screen)
        events.applied(report)
        return write_report(output, report, journalled=journalled, was_asked=asks)


def _loaded(planfile: Path, key: bytes | None) -> Plan:
    """Load a plan file. Raises StalePlan for an edited one, and UsageError for a manifest."""
    from lmsconf.documents.document import errors_of_file
    from lmsconf.documents.plan_file import loads
    from lmsconf.support.atomic_files import read_text

    text = read_text(planfile)
    with errors_of_file(str(planfile), text, "apply takes a plan file"):
        return loads(text, key)
