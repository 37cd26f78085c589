"""Run a plan: send its calls, verify the result, and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from msgspec.structs import replace

from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver
from lmsconf.apply.call_executor import CallExecutor
from lmsconf.apply.explain_mismatch import no_effect_problem, wrong_assumptions
from lmsconf.apply.replanning import (
    Replan,
    exit_code,
    replan_everything,
    replay,
    unverified,
    verify_by_replanning,
)
from lmsconf.apply.scheduler import ApplyEvents, BeforeCall, CallCounter, CallRun, Phase, RunResult, unstarted_run
from lmsconf.apply.try_assumptions import FirstCalls
from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import ApiError, LmsconfError, Problem, ProblemsFound, Severity
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call
from lmsconf.model.declarations import Manifests
from lmsconf.model.outcomes import (
    ApplyReport,
    CallOutcome,
    VerifiedScope,
    VerifyMode,
    is_already_accepted,
)
from lmsconf.model.plan import Plan
from lmsconf.planner.read.fields_and_groups import compare_members
from lmsconf.support.interrupts import Interrupts
from lmsconf.workspace.project_manifests import error_free, load_manifests
from lmsconf.workspace.reader import WorkspaceReader


def _replan_alone(workspace: WorkspaceReader, plan: Plan, address: Address) -> Plan:
    """Re-plan the changes of one resource; all, if it cannot be planned alone, as in a cycle of renames."""
    try:
        return replay(workspace, plan, only=address)
    except ProblemsFound:
        return replay(workspace, plan)


def execute(
    workspace: WorkspaceReader,
    plan: Plan,
    *,
    meta: Mapping[str, str],
    progress: ApplyEvents | None = None,
    journal: Journal | None = None,
    before_call: BeforeCall | None = None,
    verify: VerifyMode = VerifyMode.ALL,
    made_from: Manifests | None = None,
    interrupts: Interrupts | None = None,
) -> ApplyReport:
    """Send the calls of a plan, verify the result and report. Does no check beforehand: use `lmsconf.apply`.

    progress: receives the phases, each call right before it is sent, and its outcome. journal: records
    each call before that, and its outcome. before_call: called before both; stops the run by raising LmsconfError.
    verify: what is planned again. made_from: the manifests that the plan was just made from; default: the project's
    manifests, if their digest is the plan's. interrupts: records Ctrl-C and SIGTERM, so that whatever is interrupted,
    what was done is reported and recorded.
    """
    interrupts, progress = interrupts or Interrupts(), progress or ApplyEvents()
    workspace = workspace if journal is None else replace(workspace, on_seen=journal.note_read)
    with interrupts.installed():
        interrupts.defer()
        replan = _whole_replan(workspace, plan, verify, made_from, progress.phase)
        started, digest = workspace.now(), plan_digest(plan) if journal is None else journal.plan_digest
        run, resolver, side_effects = _send_calls(workspace, plan, journal, before_call, progress, interrupts)
        report = unverified(_begun_report(plan, digest, run, started, meta), "The run was stopped before that.")
        try:
            if run.stopped_by is None and run.interrupted_by is None and (run.may_have_written or not plan.calls):
                with interrupts.raised():
                    report = _verify(workspace, plan, report, resolver, replan, progress.phase)
        except KeyboardInterrupt as cut:
            # Report what was done, although verification was interrupted.
            run.interrupted_by = cut
        run.interrupted_by = run.interrupted_by or interrupts.first
        report = _ended_report(workspace, plan, run, report, side_effects)
        problems = () if journal is None else journal.record_end(report)
    return replace(report, problems=(*report.problems, *problems)) if problems else report


def _begun_report(plan: Plan, digest: str, run: RunResult, started: str, meta: Mapping[str, str]) -> ApplyReport:
    """Return the report of a run of which nothing was read back yet."""
    return ApplyReport(
        plan_digest=digest,
        workspace=plan.workspace,
        url=plan.url,
        people=plan.people,
        started_at=started,
        finished_at=started,
        outcomes=run.outcomes,
        verified=VerifiedScope(),
        converged=None,
        residue=(),
        problems=(),
        meta=dict(meta),
        exit=exit_code(run, None),
        predicted=plan.effects.totals if plan.changes else None,
    )


def _ended_report(
    workspace: WorkspaceReader, plan: Plan, run: RunResult, report: ApplyReport, side_effects: Sequence[Problem]
) -> ApplyReport:
    """Return the report of a run at its end, with what its calls should have changed and what they did besides."""
    unseen = [change for change in report.remaining_changes if is_already_accepted(change, run.outcomes)]
    return replace(
        report,
        finished_at=workspace.now(),
        problems=(
            *report.problems,
            *wrong_assumptions(run.errors),
            *side_effects,
            *(no_effect_problem(plan, run, change, workspace.connection.spec) for change in unseen),
        ),
        exit=exit_code(run, report.converged),
    )


def _verify(
    workspace: WorkspaceReader,
    plan: Plan,
    report: ApplyReport,
    resolver: AmbiguousWriteResolver,
    replan: Replan | str,
    phase: Phase,
) -> ApplyReport:
    """Plan again, and warn where the effects on people are not those that the plan predicted.

    replan: of `_whole_replan`.
    """
    if isinstance(replan, str) and not plan.changes:
        return unverified(report, replan)
    report = verify_by_replanning(workspace, plan, report, resolver, replan, phase)
    if not (report.converged and plan.changes and plan.effects.groups):
        return report
    created = {outcome.address: RemoteId(outcome.id) for outcome in report.outcomes if outcome.id is not None}
    try:
        with workspace.connection.worker_pool(workspace.parallelism) as pool:
            more = [*compare_members(workspace.connection.reader(pool), plan, created)]
    except ApiError as error:
        # What was applied is verified; only who is in a group now was not read.
        more = [
            Problem(
                code="effects/not-compared",
                message=f"who is in the changed groups now was not read: {error.message}",
                severity=Severity.WARNING,
            )
        ]
    return replace(report, problems=(*report.problems, *more))


def _send_calls(
    workspace: WorkspaceReader,
    plan: Plan,
    journal: Journal | None,
    before_call: BeforeCall | None,
    progress: ApplyEvents,
    interrupts: Interrupts,
) -> tuple[RunResult, AmbiguousWriteResolver, Sequence[Problem]]:
    """Send the calls, and record each of them; also return warnings of what they have done beside the plan."""

    def begin(call: Call) -> None:
        if before_call is not None:
            before_call(call)
        if journal is not None:
            journal.record_intent(call)
        progress.record(call)

    def end(outcome: CallOutcome) -> None:
        if journal is not None:
            journal.record_outcome(outcome)
        progress.record(outcome)
        counter.count(outcome)

    settle = workspace.settings.policy.settle
    patience = 0.0 if workspace.settings.workspace.embedded else settle
    resolver = AmbiguousWriteResolver(
        look=partial(_replan_alone, workspace, plan),
        settle_after_loss=settle,
        settle_after_response=patience if workspace.patience is None else workspace.patience,
        timing=workspace.timing,
        before_retry=begin,
    )
    first_calls = FirstCalls(workspace, plan, resolver, journal)
    with ExitStack() as stack:
        counter = CallCounter(len(plan.calls), stack.enter_context(progress.phase("Applying")))
        pool = stack.enter_context(workspace.connection.worker_pool(workspace.parallelism, counter.report))
        executor = CallExecutor(resolver, plan, partial(replay, workspace, plan), first_calls)
        run = CallRun(
            plan,
            lambda call, ids: pool.submit(partial(executor.send, call, ids)),
            width=workspace.parallelism,
            tell=end,
            begin=begin,
            stop_waiting=resolver.stop_waiting.set,
            weight=first_calls.priority,
            is_serial=first_calls.is_serial,
        ).run(interrupts)
        if run.is_abandoned:
            pool.close(wait=False)
    return run, resolver, first_calls.side_effects


def _whole_replan(
    workspace: WorkspaceReader, plan: Plan, verify: VerifyMode, made_from: Manifests | None, phase: Phase
) -> Replan | str:
    """Return what plans the manifests again that a plan was made from; the reason if not all of them are verified."""
    if made_from is not None and not plan.changes:
        return lambda: (plan, ())  # It was compared with the workspace when it was made just now.
    if plan.undo_of is not None:
        return "The plan undoes a run, so only what it touched was checked."
    if verify is not VerifyMode.ALL:
        return "Nothing else was checked (--verify touched)."
    try:
        manifests = error_free(made_from or load_manifests(workspace.settings))
    except LmsconfError:
        return "There are no readable local manifests, so only what this plan touched was checked."
    if manifests.digest != plan.manifests_digest:
        return "The local manifests differ from those that this plan was made from, so nothing else was checked."
    return partial(replan_everything, workspace, plan, manifests, phase)


def report_unstarted(
    workspace: WorkspaceReader, plan: Plan, error: LmsconfError, *, meta: Mapping[str, str]
) -> ApplyReport:
    """Return the report of a run that stopped before its first call."""
    report = _begun_report(plan, plan_digest(plan), unstarted_run(plan, error), workspace.now(), meta)
    return unverified(report, "Nothing was sent.", error.problems)
