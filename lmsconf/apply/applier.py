"""Changing a workspace: a plan is judged, found fresh, carried out, and looked at once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, Clock
from lmsconf.apply.executor import ON_EXISTING, CallExecutor, send_all
from lmsconf.apply.grant_check import grants_to_verify
from lmsconf.apply.scheduler import Begin, Run, Tell
from lmsconf.apply.staleness import stale
from lmsconf.apply.verification import NO_MANIFESTS, OTHER_MANIFESTS, TOUCHED_ONLY, ReadBack, not_looked, read_back
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import ExitCode, LmsconfError, Problem, ProblemsFound, StalePlan, Terminated, Unauthorized
from lmsconf.journal.writing import Journal
from lmsconf.kinds import all_kinds
from lmsconf.kinds.shared.names import CONTENT_TARGET
from lmsconf.kinds.shared.replay import as_manifests
from lmsconf.model.address import Address
from lmsconf.model.names import exactly
from lmsconf.model.policy import Consent, Guards, Policy, saved_guards
from lmsconf.model.scope import Verified, Verify, skipped
from lmsconf.model.values import Action, ApplyReport, Call, Change, Outcome, Plan, Status, is_unseen
from lmsconf.planner.guards import evaluate_guards, protected
from lmsconf.planner.plan import Manifests, handed_out, make_plan
from lmsconf.workspace.reader import Reading, WorkspaceReader, read_manifests, refuse_errors, wanted_for

Look = Callable[[Run, AmbiguousWriteResolver], ReadBack]
"""Looks at the workspace after a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Applier(WorkspaceReader):
    """One workspace that can be changed too.

    timing: how seconds pass while lost answers are settled. patience: for how many seconds what was done may not show;
    left out, as long as answers take to settle, and no time in the embedded workspace, where nothing is late.
    """

    timing: Clock = field(default_factory=Clock)
    patience: float | None = None

    def judged(self, plan: Plan, consents: Iterable[Consent]) -> Plan:
        """A plan under the guards of today and under those that it was saved with: the stricter limit holds."""
        policy, saved = self.settings.policy, _saved_guards(plan)
        beside = ("under the limits that the plan was saved with", saved)
        guards = evaluate_guards(plan.measures, policy.guards, [*policy.consents, *consents], beside)
        # What a base protects is a problem of the plan as a whole, and stays.
        kept = [one for one in plan.all_problems if one.code != "refusal/protected" or one.address is None]
        patterns = policy.guards.stricter(saved).protect
        # Given to the changes again, so that a plan that is judged as it was has the digest that it had.
        changes, problems = handed_out(plan.changes, [*kept, *protected(plan.changes, patterns)])
        return replace(plan, guards=guards, changes=changes, problems=tuple(problems))

    def check_fresh(self, plan: Plan, progress: Reading | None = None) -> None:
        """Raises StalePlan when anything that the plan touches is not as it was when the plan was made."""
        if plan.offline:
            raise StalePlan(
                "the plan was made from a snapshot file and cannot be applied",
                hint="Plan against the workspace: leave --snapshot out.",
            )
        if plan.expires_at <= (moment := self.now()):
            raise StalePlan(
                f"the plan expired at {plan.expires_at}, and it is {moment}",
                hint="Plan again and review it. `plans: {valid_for: 7d}` in the project file says how long plans hold.",
            )
        if (plan.workspace, plan.url) != (self.connection.name, self.connection.url):
            raise StalePlan(
                f"the plan was made for workspace {plan.workspace} ({plan.url}), and this is "
                f"{self.connection.name} ({self.connection.url})",
                hint="Choose the workspace with --workspace, or plan again.",
            )
        manifests, policy = self._again(plan)
        snapshot = self.read(wanted_for(manifests, policy), progress)
        now, broken = self.as_far_as_it_goes(manifests, policy, snapshot)
        if found := stale(plan, now, broken):
            changed = ", ".join(dict.fromkeys(one.address for one in found if one.address))
            raise StalePlan(
                f"the workspace has changed since the plan was made{': ' if changed else ''}{changed}",
                hint="Plan again and review it.",
                found=found,
            )

    def _settling(self, plan: Plan, again: Begin) -> AmbiguousWriteResolver:
        return AmbiguousWriteResolver(
            look=lambda address: self._looked(plan, address),
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

    def _looked(self, plan: Plan, address: Address) -> Plan:
        """What one resource's own changes come to now; all changes where it makes no sense without the others."""
        try:
            return self._replayed(plan, only=address)
        except ProblemsFound:
            # One of a circle of names has to step aside, which shows only beside the one that has its name.
            return self._replayed(plan)

    def _replayed(self, plan: Plan, *, only: Address | None = None) -> Plan:
        """What the plan's own changes come to now: all of them before it is applied, none of them after.

        only: of this resource alone, and of what it needs.
        """
        manifests, policy = self._again(plan, only)
        snapshot = self.read(wanted_for(manifests, policy))
        return make_plan(all_kinds(), manifests, snapshot, policy, self.terms, created_at=self.now())

    def _again(self, plan: Plan, only: Address | None = None) -> tuple[Manifests, Policy]:
        """A plan's own changes as manifests, and the policy to plan them under: nothing is owned, nothing left out."""
        mine = self.settings.policy
        policy = Policy(
            workspace=mine.workspace,
            today=mine.today,
            timezone=mine.timezone,
            create_people=mine.create_people,
            # Only totals are compared, and a share would cost reads.
            guards=_unlimited(mine, plan),
            only=() if only is None else (exactly(str(only)),),
            # What the plan leaves unchanged is no part of its manifests, and would look as if none spoke of it.
            compares=0,
        )
        return as_manifests(plan, all_kinds()), policy

    def execute(
        self,
        plan: Plan,
        *,
        meta: Mapping[str, str],
        tell: Tell | None = None,
        journal: Journal | None = None,
        keep: Begin | None = None,
        verify: Verify = Verify.ALL,
        made_from: Manifests | None = None,
    ) -> ApplyReport:
        """Sends the calls of a plan, verifies them and reports. Checks nothing before: use `lmsconf.apply`.

        journal: where each call is written down before it is sent, and what became of it after. keep: hears of each
        call before that, and stops the run by raising LmsconfError. verify: what is planned again. made_from: the
        manifests that the plan was made from just now; left out, those at hand are used where they are the same ones.
        """
        look = self._look_back(plan, verify, made_from)
        if journal is None:
            return self._carried_out(plan, meta, look, tell, keep)
        told = tell or (lambda _: None)

        def begin(call: Call) -> None:
            if keep is not None:
                keep(call)
            journal.intent(call)

        def note(outcome: Outcome) -> None:
            journal.outcome(outcome)
            told(outcome)

        report = self._carried_out(plan, meta, look, note, begin)
        return replace(report, problems=(*report.problems, *journal.end(report)))

    def _carried_out(
        self, plan: Plan, meta: Mapping[str, str], look: Look, tell: Tell | None, begin: Begin | None = None
    ) -> ApplyReport:
        started = self.now()
        with self.connection.crew(self.parallelism) as crew:
            settling = self._settling(plan, begin or (lambda _: None))
            sender = CallExecutor(
                crew, all_kinds(), settling, grants=grants_to_verify(plan), changing=_changed_assignments(plan)
            )
            run = send_all(plan, sender, width=self.parallelism, tell=tell, begin=begin)
        found = not_looked("The run was stopped before that.")
        try:
            if run.stopped_by is None and run.interrupted_by is None and (run.wrote or not plan.calls):
                found = look(run, settling)
        except KeyboardInterrupt as cut:
            # What was done is worth telling, though nobody waited to see whether it took.
            run.interrupted_by = cut
        mine = {outcome.address for outcome in run.outcomes}
        unseen = [one for one in found.residue if one.address in mine and is_unseen(one, run.outcomes)]
        return ApplyReport(
            plan_digest=plan_digest(plan),
            workspace=plan.workspace,
            url=plan.url,
            people=plan.people,
            started_at=started,
            finished_at=self.now(),
            outcomes=run.outcomes,
            verified=found.verified,
            converged=found.converged,
            residue=found.residue,
            problems=(*found.problems, *(self._without_effect(plan, run, one) for one in unseen)),
            meta=dict(meta),
            exit=_exit(run, found.converged),
        )

    def _look_back(self, plan: Plan, verify: Verify, made_from: Manifests | None) -> Look:
        """How to look at the workspace when the run has ended. The manifests are read before it begins."""
        if made_from is not None and not plan.changes:
            # It was read for this very plan, and nothing is sent.
            verified = Verified(
                scope=Verify.ALL,
                partial=plan.partial,
                skipped=skipped(plan.all_problems),
                left_out=len(plan.left_out),
            )
            return lambda run, settling: ReadBack(verified=verified, converged=True)
        manifests, reason = (None, TOUCHED_ONLY) if verify is not Verify.ALL else self._manifests_of(plan, made_from)
        if manifests is None and not plan.changes:
            return lambda run, settling: not_looked(reason or "")
        return partial(
            read_back,
            plan,
            touched=lambda: self._replayed(plan),
            whole=None if manifests is None else partial(self._everything, plan, manifests),
            reason=reason,
        )

    def _manifests_of(self, plan: Plan, made_from: Manifests | None) -> tuple[Manifests | None, str | None]:
        """The manifests that a plan was made from, where they are at hand; else why they are not."""
        try:
            found = made_from or read_manifests(self.settings)
            refuse_errors(found)
        except LmsconfError:
            return None, NO_MANIFESTS
        return (found, None) if found.digest == plan.manifests_digest else (None, OTHER_MANIFESTS)

    def _everything(self, plan: Plan, manifests: Manifests) -> tuple[Plan, tuple[Problem, ...]]:
        """What a plan of the same part of the manifests comes to now, and the errors of what cannot be planned."""
        mine, chosen = self.settings.policy, plan.selection
        policy = replace(
            mine,
            # Nothing is counted here, and a share would cost reads, as would likely renames.
            guards=_unlimited(mine, plan),
            compares=0,
            only=chosen.only,
            excluded=chosen.excluded,
            additive=chosen.additive,
            verifying=True,
        )
        return self.told_apart(manifests, policy, self.read(wanted_for(manifests, policy)))

    def untouched(self, plan: Plan, error: LmsconfError, *, meta: Mapping[str, str]) -> ApplyReport:
        """The report of a run that was stopped before its first call."""
        outcomes = tuple(
            Outcome(
                call=call.id,
                address=call.address,
                operation=call.operation,
                status=Status.NOT_ATTEMPTED,
                reason=error.message,
                hint=error.hint,
                people=call.people,
            )
            for call in plan.calls
        )
        return ApplyReport(
            plan_digest=plan_digest(plan),
            workspace=plan.workspace,
            url=plan.url,
            people=plan.people,
            started_at=self.now(),
            finished_at=self.now(),
            outcomes=outcomes,
            verified=Verified(reason="Nothing was sent."),
            converged=None,
            residue=(),
            problems=error.problems,
            meta=dict(meta),
            exit=error.exit,
        )

    def _without_effect(self, plan: Plan, run: Run, change: Change) -> Problem:
        """Calls were accepted, and still it differs: the names or behaviours assumed are probably others."""
        whole = all(one.status is Status.DONE for one in run.outcomes if one.address == change.address)
        what = "the calls, and it is still not as planned" if whole else "its creation, and it still does not show"
        operations = dict.fromkeys(call.operation for call in plan.calls if call.address == change.address)
        keys = [key for operation in operations for key in self.connection.wire.dialect_keys(operation)]
        look = "Look at the dialect keys " + ", ".join(dict.fromkeys(keys))
        hint = f"{look}." if keys else "Plan again to see what is left."
        if _is_changed_assignment(change):
            hint = ON_EXISTING
        return Problem(
            code="apply/no-effect",
            message=f"{change.address}: the service accepted {what}",
            hint=hint,
            source=change.source,
            address=str(change.address),
        )


def _unlimited(policy: Policy, plan: Plan) -> Guards:
    """Guards without shares to read for, and with as many admins as the plan and the project want."""
    least = policy.guards.stricter(_saved_guards(plan)).min_admins
    return Guards(removals=None, updates=None, min_admins=least)


def _saved_guards(plan: Plan) -> Guards:
    """What a plan was judged by when it was made, under a base's settings too where it had one."""
    return saved_guards({guard.name: guard.limit for guard in plan.guards}, plan.policy)


def _is_changed_assignment(change: Change) -> bool:
    return change.address.kind == CONTENT_TARGET and change.action is Action.UPDATE


def _changed_assignments(plan: Plan) -> frozenset[str]:
    """The ids of the calls that assign again what is assigned."""
    changed = {change.address for change in plan.changes if _is_changed_assignment(change)}
    return frozenset(call.id for call in plan.calls if call.address in changed)


def _exit(run: Run, converged: bool | None) -> ExitCode:
    """What a run came to, as an exit code."""
    if run.interrupted_by is not None:
        return run.interrupted_by.exit if isinstance(run.interrupted_by, Terminated) else ExitCode.INTERRUPTED
    failed = any(outcome.status is not Status.DONE for outcome in run.outcomes)
    if failed and not run.wrote:
        if run.stopped_by is not None:
            return run.stopped_by.exit
        if any(isinstance(error, Unauthorized) for error in run.errors):
            return ExitCode.UNAUTHORIZED
        return ExitCode.BLOCKED if any(error.code == "refusal/in-use" for error in run.errors) else ExitCode.ERROR
    if failed:
        return ExitCode.PARTIAL
    # A plan without calls whose manifests are not at hand leaves nothing to do, and nothing to look at.
    return ExitCode.OK if converged or (converged is None and not run.outcomes) else ExitCode.NOT_CONVERGED
