"""Execute a plan: evaluate its guards, check that it is not stale, send its calls, verify the result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, WaitClock
from lmsconf.apply.dialect_hint import wrong_assumptions
from lmsconf.apply.executor import CallExecutor
from lmsconf.apply.first_calls import FirstCalls
from lmsconf.apply.grant_verification import grants_to_verify
from lmsconf.apply.late_comparison import late_checks
from lmsconf.apply.not_as_planned import no_effect_problem
from lmsconf.apply.phases import CallCounter, Phase, unreported
from lmsconf.apply.replanning import PlanReplayer
from lmsconf.apply.run_outcome import exit_code, hints_on_updates, unattempted_calls
from lmsconf.apply.scheduler import Begin, RunResult, Tell, run_calls
from lmsconf.apply.value_search import ResourceTrials
from lmsconf.apply.verification import (
    NO_MANIFESTS,
    OTHER_MANIFESTS,
    TOUCHED_ONLY,
    UNDONE,
    VerificationResult,
    skipped_verification,
    verify_by_replanning,
)
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import ApiError, LmsconfError, Problem, ProblemsFound, Severity
from lmsconf.journal.journal_reader import seen_values
from lmsconf.journal.journal_writer import Journal
from lmsconf.kinds import all_kinds
from lmsconf.kinds.smart_group.compare_members import compare_members
from lmsconf.model.address import Address
from lmsconf.model.declarations import Manifests
from lmsconf.model.outcomes import ApplyReport, CallOutcome, is_already_accepted
from lmsconf.model.plan import Plan
from lmsconf.model.scope import VerifiedScope, VerifyMode, count_skipped_people
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.assumptions import calls_by_key
from lmsconf.support.interrupts import Interrupts
from lmsconf.workspace.project_manifests import load_manifests, refuse_errors

Verify = Callable[[RunResult, AmbiguousWriteResolver], VerificationResult]
"""Verify the workspace after a run."""
Value = TypeVar("Value")


class Applier(PlanReplayer, Struct, frozen=True, kw_only=True):
    """A reader of a workspace that can also change it.

    timing: the clock used while ambiguous writes are resolved. patience: seconds in which an acknowledged write may not
    be visible yet; default: the `settle` setting, and 0 in the embedded workspace, where writes are visible at once.
    """

    timing: WaitClock = field(default_factory=WaitClock)
    patience: float | None = None

    def _resolver(self, plan: Plan, again: Begin) -> AmbiguousWriteResolver:
        return AmbiguousWriteResolver(
            look=lambda address: self._replan_resource(plan, address),
            seconds=self.settings.settle,
            patience=self._patience,
            timing=self.timing,
            again=again,
        )

    @property
    def _patience(self) -> float:
        if self.patience is not None:
            return self.patience
        return 0.0 if self.settings.workspace.embedded else self.settings.settle

    def _replan_resource(self, plan: Plan, address: Address) -> Plan:
        """Re-plan the changes of one resource; all changes if it cannot be planned without the others."""
        try:
            return self._replayed(plan, only=address)
        except ProblemsFound:
            # A resource in a cycle of renames needs a temporary name, which requires the one that has its name.
            return self._replayed(plan)

    def execute(
        self,
        plan: Plan,
        *,
        meta: Mapping[str, str],
        phase: Phase = unreported,
        journal: Journal | None = None,
        keep: Begin | None = None,
        sent: Begin | None = None,
        ended: Tell | None = None,
        verify: VerifyMode = VerifyMode.ALL,
        made_from: Manifests | None = None,
        kept: Snapshot | None = None,
        interrupts: Interrupts | None = None,
    ) -> ApplyReport:
        """Send the calls of a plan, verify the result and report. Does no check beforehand: use `lmsconf.apply`.

        phase: receives the progress. journal: records each call before it is sent, and its outcome. keep: called before
        that for each call; stops the run by raising LmsconfError. sent: called after both, right before each call is
        sent; ended: called with its outcome. verify: what is planned again. made_from: the
        manifests that the plan was just made from; default: the project's manifests, if their digest is the plan's.
        kept: what this run read of the workspace before, so that only what the plan touches needs to be read again.
        interrupts: keeps Ctrl-C and SIGTERM, so that whatever is interrupted, what was done is reported and recorded.
        """
        interrupts = interrupts or Interrupts()
        with interrupts.installed():
            interrupts.keep()
            verify_run = self._verifier(plan, verify, made_from, kept, phase)
            before = (keep, None if journal is None else journal.record_intent, sent)
            after = (None if journal is None else journal.record_outcome, ended)
            digest = plan_digest(plan) if journal is None else journal.plan_digest
            calls = self._first_calls(plan, journal)
            report = self._run(plan, digest, meta, verify_run, phase, _each(after), _each(before), interrupts, calls)
            problems = () if journal is None else journal.record_end(report)
        return replace(report, problems=(*report.problems, *problems)) if problems else report

    def _run(
        self,
        plan: Plan,
        digest: str,
        meta: Mapping[str, str],
        verify_run: Verify,
        phase: Phase,
        record: Tell,
        begin: Begin,
        interrupts: Interrupts,
        first_calls: FirstCalls,
    ) -> ApplyReport:
        started = self.now()
        with phase("Applying") as report:
            counter = CallCounter(len(plan.calls), report)
            run, resolver = self._send_calls(plan, counter, record, begin, interrupts, first_calls)
        verification = skipped_verification("The run was stopped before that.")
        try:
            if run.stopped_by is None and run.interrupted_by is None and (run.may_have_written or not plan.calls):
                with interrupts.raised():
                    verification = self._compare_prediction(plan, verify_run(run, resolver))
        except KeyboardInterrupt as cut:
            # Report what was done, although verification was interrupted.
            run.interrupted_by = cut
        run.interrupted_by = run.interrupted_by or interrupts.first
        touched = {outcome.address for outcome in run.outcomes}
        unseen = [
            one for one in verification.residue if one.address in touched and is_already_accepted(one, run.outcomes)
        ]
        return ApplyReport(
            plan_digest=digest,
            workspace=plan.workspace,
            url=plan.url,
            people=plan.people,
            started_at=started,
            finished_at=self.now(),
            outcomes=run.outcomes,
            verified=verification.verified,
            converged=verification.converged,
            residue=verification.residue,
            problems=(
                *verification.problems,
                *wrong_assumptions(run.errors),
                *(no_effect_problem(plan, run, change, self.connection.spec) for change in unseen),
            ),
            meta=dict(meta),
            exit=exit_code(run, verification.converged),
            predicted=plan.effects.totals if plan.changes else None,
        )

    def _compare_prediction(self, plan: Plan, verification: VerificationResult) -> VerificationResult:
        """Return a verification with warnings where the effects on people are not those that the plan predicted."""
        if not verification.converged or not plan.effects.groups:
            return verification
        try:
            with self.connection.worker_pool(self.parallelism) as pool:
                more = [*compare_members(self.connection.reader(pool), plan)]
        except ApiError as error:
            # What was applied is verified; only who is in a group now was not read.
            message = f"who is in the changed groups now was not read: {error.message}"
            more = [Problem(code="effects/not-compared", message=message, severity=Severity.WARNING)]
        return replace(verification, problems=(*verification.problems, *more))

    def _send_calls(
        self,
        plan: Plan,
        counter: CallCounter,
        record: Tell,
        begin: Begin,
        interrupts: Interrupts,
        first_calls: FirstCalls,
    ) -> tuple[RunResult, AmbiguousWriteResolver]:
        """Send the calls. record: called with each outcome."""

        def note(outcome: CallOutcome) -> None:
            record(outcome)
            counter.count(outcome)

        with self.connection.worker_pool(self.parallelism, counter.report) as pool:
            resolver = self._resolver(plan, begin)
            kinds = all_kinds()
            executor = CallExecutor(
                pool,
                kinds,
                resolver,
                grants=grants_to_verify(plan),
                hints=hints_on_updates(plan),
                late=late_checks(plan, lambda: self._replayed(plan)),
                first_calls=first_calls,
            )
            run = run_calls(
                plan,
                executor.submit,
                width=self.parallelism,
                tell=note,
                begin=begin,
                stop_waiting=executor.stop_waiting,
                weight=first_calls.weight,
                interrupts=interrupts,
            )
            if run.is_abandoned:
                pool.close(wait=False)
        return run, resolver

    def _first_calls(self, plan: Plan, journal: Journal | None) -> FirstCalls:
        """Return what the calls rest on that neither the project file states nor an earlier run has seen."""
        if self.settings.workspace.embedded or self.connection.is_given:
            return FirstCalls()
        templates = self.call_templates
        resting = {key: calls for key, calls in calls_by_key(plan, templates).items() if not templates.is_known(key)}
        seen = seen_values(self.settings.root, self.connection.url) if resting else {}
        keys: defaultdict[str, set[str]] = defaultdict(set)
        for key, calls in resting.items():
            for call in calls if seen.get(key) != templates.behaviour(key) else ():
                keys[call.id].add(key)
        return FirstCalls(
            plan,
            {id: frozenset(some) for id, some in keys.items()},
            ResourceTrials(partial(self.read_resource, plan), partial(self.replan_resource, plan)),
            (lambda _: None) if journal is None else lambda key: journal.record_seen(key, templates.behaviour(key)),
        )

    def _verifier(
        self, plan: Plan, verify: VerifyMode, made_from: Manifests | None, kept: Snapshot | None, phase: Phase
    ) -> Verify:
        """Return the function that verifies the workspace after the run. Reads the manifests before the run."""
        if made_from is not None and not plan.changes:
            # The workspace was read for this plan just now, and nothing is sent.
            verified = VerifiedScope(
                scope=VerifyMode.ALL,
                partial=plan.partial,
                skipped=count_skipped_people(plan.all_problems),
                left_out=len(plan.left_out),
            )
            return lambda run, resolver: VerificationResult(verified=verified, converged=True)
        manifests, reason = (
            (None, TOUCHED_ONLY) if verify is not VerifyMode.ALL else self._manifests_of(plan, made_from)
        )
        if plan.undo_of is not None:
            manifests, reason = None, UNDONE
        if manifests is None and not plan.changes:
            return lambda run, resolver: skipped_verification(reason or "")
        return partial(
            verify_by_replanning,
            plan,
            # After everything was read, what was read before the run would hide what others have renamed during it.
            touched=lambda: self._left(plan, kept if manifests is None else None, phase),
            whole=None if manifests is None else partial(self._everything, plan, manifests, phase),
            reason=reason,
        )

    def _manifests_of(self, plan: Plan, made_from: Manifests | None) -> tuple[Manifests | None, str | None]:
        """Return the manifests that a plan was made from if they are available; otherwise the reason why not."""
        try:
            manifests = made_from or load_manifests(self.settings)
            refuse_errors(manifests)
        except LmsconfError:
            return None, NO_MANIFESTS
        return (manifests, None) if manifests.digest == plan.manifests_digest else (None, OTHER_MANIFESTS)

    def report_unstarted(self, plan: Plan, error: LmsconfError, *, meta: Mapping[str, str]) -> ApplyReport:
        """Return the report of a run that stopped before its first call."""
        return ApplyReport(
            plan_digest=plan_digest(plan),
            workspace=plan.workspace,
            url=plan.url,
            people=plan.people,
            started_at=self.now(),
            finished_at=self.now(),
            outcomes=unattempted_calls(plan, error),
            verified=VerifiedScope(reason="Nothing was sent."),
            converged=None,
            residue=(),
            problems=error.problems,
            meta=dict(meta),
            exit=error.exit,
            predicted=plan.effects.totals if plan.changes else None,
        )


def _each(callbacks: Iterable[Callable[[Value], None] | None]) -> Callable[[Value], None]:
    """Return a function that calls each of the callbacks in turn."""
    given = [callback for callback in callbacks if callback is not None]

    def call_each(value: Value) -> None:
        for callback in given:
            callback(value)

    return call_each
