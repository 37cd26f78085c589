"""`lmsconf apply`: plans, asks, does it, and looks whether it was done."""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from lmsconf.cli.frame import (
    Context,
    Output,
    colored,
    cut_short,
    emit,
    interrupted,
    masked,
    output_options,
    pass_context,
    progress,
    say,
)
from lmsconf.cli.planning import (
    allow,
    applying,
    consents_of,
    declared,
    make,
    max_rate,
    parallelism,
    plan_key,
    policy_of,
    reading,
    selection,
    settings_of,
)
from lmsconf.core.scope import Verify
from lmsconf.core.values import Status
from lmsconf.errors import Exit, LmsconfError, Problem, ProblemsFound, StalePlan, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lmsconf.core.apply import Begin
    from lmsconf.core.blocked import Blocker
    from lmsconf.core.plan import Manifests
    from lmsconf.core.policy import Consent
    from lmsconf.core.values import ApplyReport, Call, Outcome, Plan
    from lmsconf.journal.writing import Journal
    from lmsconf.settings import Settings
    from lmsconf.workspace import Workspace


@click.command()
@click.argument("planfile", type=click.Path(path_type=Path), required=False)
@selection
@click.option("--auto-approve", is_flag=True, help="Do not ask.")
@click.option("--expect-digest", "digest", metavar="D", help="Apply only a plan with this digest.")
@allow
@click.option(
    "--verify",
    type=click.Choice(["all", "touched"]),
    default="all",
    show_default=True,
    help="Look afterwards at all that the plan was made of, or only at what it changes.",
)
@click.option("--meta", metavar="K=V", multiple=True, help="Put this into the report: commit=4f1d2a.")
@parallelism
@max_rate
@output_options(["text", "json", "markdown", "html"])
@pass_context
def apply(
    context: Context,
    *,
    planfile: Path | None,
    only: tuple[str, ...],
    excluded: tuple[str, ...],
    additive: bool,
    auto_approve: bool,
    digest: str | None,
    allow: tuple[str, ...],
    verify: str,
    meta: tuple[str, ...],
    parallelism: int,
    max_rate: float | None,
    output: Output,
) -> Exit:
    """Change the workspace to match the manifests.

    With PLANFILE, exactly what was planned and reviewed is done, and nobody is asked. Without it, a plan is made and
    shown first; answer yes, or say --auto-approve.

    Afterwards everything that the plan was made of is planned again, and whatever differs is told with exit 6. The
    manifests of a PLANFILE must be at hand for that: where they are not, only what it changes is looked at.
    """
    consents, noted = consents_of(allow), _meta(meta)
    if planfile is not None and (only or excluded or additive):
        raise UsageError("a plan file is applied whole", hint="Use --only, --except and --additive with lmsconf plan.")
    asks = planfile is None and not auto_approve
    if asks and digest is None and not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on", hint="Say --auto-approve, or apply a plan file.")
    settings = settings_of(context)
    with _alone(settings), _changeable(settings, parallelism, max_rate) as workspace, ExitStack() as locks:
        if planfile is not None:
            plan, manifests = _from_file(workspace, planfile, consents, plan_key(context)), None
        else:
            manifests = declared(workspace)
            plan = make(workspace, manifests, policy_of(settings, only, excluded, additive, consents))
        plan = replace(plan, command=applying(settings, only, excluded, additive, planfile))
        journal = None
        try:
            if planfile is None:
                emit(_shown(plan), sys.stderr, color=colored(sys.stderr))
            _expect(plan, digest)
            if planfile is not None:
                # A plan that no longer fits is stale first, whatever its guards say.
                _check_fresh(workspace, plan)
            _stop(plan)
            if plan.calls and asks and digest is None:
                _ask(plan)
            keep = locks.enter_context(_locked(workspace, plan))
            if plan.calls and (planfile is None or keep):
                # While it was read, shown and approved, and by whoever had the lock, things may have been changed.
                _check_fresh(workspace, plan)
            journal = _journal(settings, plan, noted)
        except LmsconfError as error:
            if output.format != "text":
                # There is a plan, so the document that somebody waits for is the report, of calls not attempted.
                _finish(output, workspace.untouched(plan, error, meta=noted))
            raise
        except KeyboardInterrupt as cut:
            cut_short(cut)
            report = workspace.untouched(plan, _Cut(cut), meta=noted)
        else:
            with journal or nullcontext():
                look = _Look(Verify(verify), manifests)
                report = _carry_out(workspace, plan, noted, journal, keep, look)
    return _finish(output, report, journal)


class _Cut(LmsconfError):
    """Ctrl-C or SIGTERM before the first call."""

    code = "interrupted"

    def __init__(self, by: KeyboardInterrupt) -> None:
        super().__init__("the run was interrupted before its first call")
        self.exit = interrupted(by)


def _meta(pairs: Sequence[str]) -> dict[str, str]:
    """`k=v` pairs as a mapping. Raises UsageError."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"--meta {pair}: that is no key and value", hint="Write --meta commit=4f1d2a.")
        found[key] = value
    return found


def _from_file(workspace: Workspace, path: Path, consents: tuple[Consent, ...], key: bytes | None) -> Plan:
    from lmsconf.core.planfile import loads
    from lmsconf.files import read_text

    return workspace.judged(loads(read_text(path), key), consents)


def _shown(plan: Plan) -> str:
    from lmsconf.views.text import plan_text

    return plan_text(masked(plan))


def _expect(plan: Plan, digest: str | None) -> None:
    from lmsconf.core.planfile import plan_digest

    found = plan_digest(plan)
    if digest is not None and digest != found:
        raise StalePlan(f"the plan's digest is {found}, not {digest}", hint="Review the plan as it is now.")


def _check_fresh(workspace: Workspace, plan: Plan) -> None:
    with reading("Checking") as tell:
        workspace.check_fresh(plan, tell)


def _stop(plan: Plan) -> None:
    """Raises with exit 4 when a guard or a foretold refusal stands in the way; nothing has been sent."""
    from lmsconf.core.blocked import blockers, is_blocking

    refusals = [one for one in plan.all_problems if is_blocking(one)]
    guards = [_tripped(plan, one) for one in blockers(plan) if one.allow is not None]
    if refusals or guards:
        raise ProblemsFound([*refusals, *guards], exit=Exit.STOPPED)


def _tripped(plan: Plan, guard: Blocker) -> Problem:
    """A guard that stands in the way, with what stopped it and the words that would lift all of them."""
    from lmsconf.views import wording

    consent = f"To allow exactly this: {wording.consent(plan.guards, plan.command)}"
    hint = "\n".join(filter(None, [guard.hint, consent]))
    return Problem(code=f"guard/{guard.name}", message=f"{wording.stop(guard)}. Apply stops here.", hint=hint)


def _ask(plan: Plan) -> None:
    from lmsconf.views import wording
    from lmsconf.views.escape import safe

    where = wording.first_line(plan.workspace, plan.url, plan.people)
    emit(safe(f"{where} Apply this plan? Only yes is taken for yes: "), sys.stderr)
    if sys.stdin.readline().strip() != "yes":
        raise LmsconfError("declined: nothing was changed")


@contextmanager
def _changeable(settings: Settings, parallelism: int, max_rate: float | None) -> Iterator[Workspace]:
    """The workspace of the settings, for as long as the `with` lasts."""
    from lmsconf.connect import Connection
    from lmsconf.settling import Timing
    from lmsconf.workspace import Workspace

    timing = Timing(tell=_waits())
    with Connection(settings, max_rate=max_rate) as connection:
        yield Workspace(settings=settings, connection=connection, parallelism=parallelism, timing=timing)


def _waits() -> Callable[[float], None]:
    """Tells why nothing seems to happen: once, for all the waits of a run."""
    first = [True]

    def tell(left: float) -> None:
        if first:
            first.clear()
            say(f"What was sent does not show yet; waiting for it, each time for at most {math.ceil(left)} s.")

    return tell


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Keeps every other run off the workspace, once nothing that an earlier one has sent can arrive any more."""
    from lmsconf.journal.arrivals import let_arrive
    from lmsconf.journal.lock import locked

    chosen = settings.workspace
    with locked(settings.root, chosen.name):
        # The embedded workspace is in this process: what another one was doing has ended with it.
        if not chosen.embedded:
            let_arrive(settings.root, chosen.url, settings.settle, tell=say)
        yield


@contextmanager
def _locked(workspace: Workspace, plan: Plan) -> Iterator[Begin | None]:
    """Keeps runs on other machines off the workspace too, where the project asks for that."""
    terms = workspace.settings.lock
    if terms is None or not plan.calls:
        yield None
        return
    from lmsconf.locking import Locksmith

    smith = Locksmith(workspace.connection, settle=workspace.settings.settle)
    try:
        with smith.held(terms) as holding:
            yield holding.keep
    finally:
        if smith.left:
            say(smith.left)


def _journal(settings: Settings, plan: Plan, meta: dict[str, str]) -> Journal | None:
    """Where the run is written down; a plan without calls leaves nothing to write."""
    from lmsconf.journal.writing import Journal

    return Journal.begin(settings.root, plan, meta=meta) if plan.calls else None


class _Look(NamedTuple):
    """What is looked at afterwards, and the manifests that were planned just now; None of a plan file."""

    verify: Verify
    manifests: Manifests | None


def _carry_out(
    workspace: Workspace,
    plan: Plan,
    meta: dict[str, str],
    journal: Journal | None,
    keep: Begin | None,
    look: _Look,
) -> ApplyReport:
    done = 0
    begun = False

    def begin(call: Call) -> None:
        nonlocal begun
        begun = True
        if keep is not None:
            keep(call)

    def count(outcome: Outcome) -> None:
        nonlocal done
        done += outcome.status is not Status.NOT_ATTEMPTED
        tell(done, len(plan.calls), "Applying")

    try:
        with progress() as tell:
            return workspace.apply(
                plan,
                meta=meta,
                tell=count,
                journal=journal,
                keep=begin,
                verify=look.verify,
                made_from=look.manifests,
            )
    except KeyboardInterrupt as cut:
        if begun:
            raise
        # It came before the calls were, which hear of it themselves.
        report = workspace.untouched(plan, _Cut(cut), meta=meta)
        problems = () if journal is None else journal.end(report)
        return replace(report, problems=(*report.problems, *problems))


def _finish(output: Output, report: ApplyReport, journal: Journal | None = None) -> Exit:
    """Gives the report. Raises ProblemsFound where that cannot be written: what was done is done all the same."""
    from lmsconf.views import APPLY_VIEWS

    try:
        output.show(APPLY_VIEWS, report)
    except LmsconfError as lost:
        raise ProblemsFound(
            [*report.problems, _untold(lost, report, journal)], exit=Exit.worst([lost.exit, Exit(report.exit)])
        ) from lost
    return Exit(report.exit)


def _untold(lost: LmsconfError, report: ApplyReport, journal: Journal | None) -> Problem:
    from lmsconf.views import wording

    ended = f"{wording.ending(report)} {wording.convergence(report)}"
    return Problem(
        code=lost.code,
        message=f"{lost.message}. The run itself ended with exit code {report.exit}: {ended}",
        hint="Call by call, its journal has it: lmsconf runs latest" if journal else lost.hint,
    )
