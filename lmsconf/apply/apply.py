"""The safe sequence of an apply. Every apply runs it, from the command line and from Python.

    1. take the local lock, and wait until no request of an earlier run can arrive any more
    2. make the plan, or load it; compare its digest with the expected one, and with that of its rehearsal
    3. compare a saved plan with the workspace as it is now: everything that its changes depend on is read
    4. stop at blocking problems and tripped guards
    5. ask for approval
    6. take the remote lock, if the project has one; compare the plan once more, unless step 3 did so just now
    7. open the journal, send the calls, verify the result

Until step 7 nothing is changed in the workspace but the lock itself.

One race remains. Somebody changes a resource between step 6 and its call: the call overwrites what it sets, or the
service refuses it, and the read-back of step 7 reports what is not as declared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.api.client import Exchange
from lmsconf.apply.rehearse import refuse_unrehearsed
from lmsconf.apply.remote_lock import LockManager
from lmsconf.apply.replanning import reevaluate_guards, refuse_stale_plan
from lmsconf.apply.run_plan import execute, report_unstarted
from lmsconf.apply.scheduler import ApplyEvents, BeforeCall, Waiting
from lmsconf.documents.journal.journal_folder import hold_lock
from lmsconf.documents.journal.journal_reader import wait_for_pending_writes
from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import LmsconfError, StalePlan, interrupt_exit_code
from lmsconf.kinds.custom_field.lost_answers import MOST_KEPT
from lmsconf.model.calls import CallStatus
from lmsconf.model.declarations import Manifests
from lmsconf.model.guards import Consent
from lmsconf.model.outcomes import ApplyReport, VerifyMode, undo_command
from lmsconf.model.plan import Plan
from lmsconf.model.problem_codes import refuse_blocked
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.undo.kept_state import people_losing_answers, pre_image
from lmsconf.project.settings import Settings
from lmsconf.support.interrupts import Interrupts
from lmsconf.workspace.connection import Connection, RateLimiters
from lmsconf.workspace.manifests_commit import manifests_commit
from lmsconf.workspace.reader import WaitClock, WorkspaceReader


class PlanToApply(Struct, frozen=True, kw_only=True):
    """A plan, and the manifests if it was made from them just now.

    is_saved: it was made earlier, and is compared with the workspace before its guards can stop it.
    """

    plan: Plan
    manifests: Manifests | None = None
    is_saved: bool


PlanSource: TypeAlias = Callable[[WorkspaceReader, ApplyEvents], PlanToApply]
"""Makes or loads the plan."""


def saved_plan_source(plan: Plan, consents: Sequence[Consent] = ()) -> PlanSource:
    """Return the source of a plan that was made earlier: its guards are evaluated as they are now."""
    return lambda workspace, _: PlanToApply(plan=reevaluate_guards(workspace, plan, consents), is_saved=True)


class ApplyOptions(Struct, frozen=True, kw_only=True):
    """How a plan is applied.

    approve: asked once, if the plan has calls, after its guards have passed; False ends the run with nothing sent.
        Default: approved. The workspace is compared again afterwards.
    digest: the digest that the plan must have.
    needs_rehearsal: whether the plan must have the receipt of a rehearsal that succeeded.
    verify: which resources are read and compared again after the last call.
    meta: key and value pairs for the report and the journal.
    parallelism: requests in flight at once.
    max_rate: requests a second; default: as many as the service accepts.
    rate_limiters: shared with earlier connections of this process, so that together they keep the limit.
    on_call: called after each attempt of a request, from several threads.
    environ: the environment that git runs with; default: that of the process.
    interrupts: records Ctrl-C and SIGTERM from the start of the run until its report is written.
    """

    approve: Callable[[Plan], bool] | None = None
    digest: str | None = None
    needs_rehearsal: bool = False
    verify: VerifyMode = VerifyMode.ALL
    meta: Mapping[str, str] = field(default_factory=dict)
    parallelism: int = 8
    max_rate: float | None = None
    rate_limiters: RateLimiters | None = None
    on_call: Callable[[Exchange], None] | None = None
    environ: Mapping[str, str] | None = None
    interrupts: Interrupts = field(default_factory=Interrupts)


def apply_safely(
    settings: Settings, source: PlanSource, options: ApplyOptions, progress: ApplyEvents
) -> tuple[ApplyReport, Path | None]:
    """Apply the plan of `source` safely. Returns the report and the journal of the run; None if nothing was begun.

    Raises, with nothing sent: WorkspaceLocked and LockHeldElsewhere where another run has the workspace,
    StalePlan where the digest, the rehearsal or the workspace differs, ProblemsFound with exit 4 where a
    guard or a refusal stops it, LmsconfError where the plan is not approved or the journal cannot be written.
    Raises KeyboardInterrupt only before the plan is made: from then on an interruption is part of the report.
    """
    interrupts = options.interrupts
    with (
        interrupts.installed(),
        hold_lock(settings.root, settings.workspace.name),
        Connection(
            settings, max_rate=options.max_rate, rate_limiters=options.rate_limiters, on_call=options.on_call
        ) as connection,
        ExitStack() as exit_stack,
    ):
        # The embedded workspace is in this process: requests of an earlier process ended with it.
        if not settings.workspace.embedded:
            wait_for_pending_writes(
                settings.root,
                settings.workspace.url,
                settings.policy.settle,
                notify=lambda writes: progress.record(Waiting("earlier_run", str(writes), writes.seconds)),
            )
        workspace = WorkspaceReader(
            settings=settings,
            connection=connection,
            parallelism=options.parallelism,
            timing=_wait_clock(progress, "settle", "Waiting for what was sent to show"),
            on_read=progress.record,
        )
        to_apply = source(workspace, progress)
        plan = to_apply.plan
        try:
            progress.record(plan)
            renew_lock, snapshot = _check_approve_and_lock(workspace, to_apply, options, progress, exit_stack)
            # From here on Ctrl-C is recorded in the report.
            interrupts.defer()
            journal = _begin_journal(settings, plan, options, snapshot, progress) if plan.calls else None
        except LmsconfError as error:
            interrupts.defer()
            progress.record(report_unstarted(workspace, plan, error, meta=options.meta))
            raise
        except KeyboardInterrupt as cut:
            interrupts.defer()
            progress.record(cut)
            return report_unstarted(workspace, plan, _interrupted(cut), meta=options.meta), None
        # To verify, the workspace is read again: let go of the old snapshot before, or both are in memory.
        del snapshot
        with journal or nullcontext():
            report = execute(
                workspace,
                plan,
                meta=options.meta,
                progress=progress,
                journal=journal,
                before_call=renew_lock,
                verify=options.verify,
                made_from=to_apply.manifests,
                interrupts=interrupts,
            )
        if journal is not None and any(one.status is CallStatus.DONE or one.unsure for one in report.outcomes):
            report = replace(report, undo_command=undo_command(journal.path.stem, settings.policy.command))
        return report, None if journal is None else journal.path


def _interrupted(by: KeyboardInterrupt) -> LmsconfError:
    """Return the error of Ctrl-C or SIGTERM before the first call."""
    return LmsconfError(
        "the run was interrupted before its first call",
        hint="Nothing was changed.",
        code="interrupted",
        exit=interrupt_exit_code(by),
    )


def _wait_clock(progress: ApplyEvents, reason: str, message: str) -> WaitClock:
    return WaitClock(tell=lambda left: progress.record(Waiting(reason, message, left)))


def _check_approve_and_lock(
    workspace: WorkspaceReader,
    to_apply: PlanToApply,
    options: ApplyOptions,
    progress: ApplyEvents,
    exit_stack: ExitStack,
) -> tuple[BeforeCall | None, Snapshot | None]:
    """Check the plan, ask for approval and take the remote lock: steps 2 to 6, once the plan was made or loaded.

    Returns the function that renews the remote lock before each call, and the snapshot that the plan was last compared
    with.
    """
    plan, snapshot = to_apply.plan, None
    if options.digest is not None and options.digest != (digest := plan_digest(plan)):
        raise StalePlan(
            f"expected the digest {options.digest}, but the plan's is {digest}", hint="Review the plan as it is now."
        )
    if options.needs_rehearsal:
        refuse_unrehearsed(plan, plan_digest(plan))
    if to_apply.is_saved:
        # Before the guards: a stale plan is reported as stale, not as stopped by a guard.
        snapshot = refuse_stale_plan(workspace, plan, progress.phase)
    refuse_blocked(plan)
    approve = options.approve if plan.calls else None
    if approve is not None and not approve(plan):
        raise LmsconfError("declined: nothing was changed")
    renew_lock = _hold_remote_lock(workspace, plan, progress, exit_stack)
    # A plan made by this run was not compared yet. A saved one was, but may have waited since, for review or a lock.
    compared_just_now = to_apply.is_saved and not approve and not renew_lock
    if plan.calls and not compared_just_now:
        snapshot = refuse_stale_plan(workspace, plan, progress.phase)
    return renew_lock, snapshot


def _begin_journal(
    settings: Settings, plan: Plan, options: ApplyOptions, snapshot: Snapshot | None, progress: ApplyEvents
) -> Journal:
    """Open the journal, and keep the plan beside it, with what it changes and destroys as it is now."""
    if snapshot is not None and (number := len([*people_losing_answers(snapshot, plan.changes)])) > MOST_KEPT:
        progress.record(
            f"The answers of {number:,} people are deleted; those of {MOST_KEPT:,} are kept for `plan --undo`."
        )
    return Journal.begin(
        settings.root,
        plan,
        meta=options.meta,
        keep=settings.kept_runs,
        # The embedded workspace is in this process: no call of an earlier one can still take effect.
        keep_seconds=0.0 if settings.workspace.embedded else settings.policy.settle,
        compared=snapshot,
        pre_image=None if snapshot is None else pre_image(plan, snapshot),
        commit=manifests_commit(
            settings,
            plan.manifests_files,
            plan.manifests_digest,
            os.environ if options.environ is None else options.environ,
        ),
        # The embedded workspace does not fsync its commits either. It and the journal survive a killed
        # process; a power failure may cut the end of each.
        sync=(lambda _: None) if settings.workspace.embedded else os.fsync,
    )


def _hold_remote_lock(
    workspace: WorkspaceReader, plan: Plan, progress: ApplyEvents, exit_stack: ExitStack
) -> BeforeCall | None:
    """Hold the remote lock, if the project configures one, until `exit_stack` is closed.

    Returns the function that renews the lock before each call.
    """
    terms = workspace.settings.lock
    if terms is None or not plan.calls:
        return None
    locks = LockManager(
        workspace.connection,
        settle=workspace.settings.policy.settle,
        timing=_wait_clock(progress, "lock", "Waiting until the lock of this run is listed"),
        tell=progress.record,
    )
    return exit_stack.enter_context(locks.hold(terms)).renew_before
