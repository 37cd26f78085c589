"""The use cases: validate, plan, apply, snapshot. Values in, values out; nothing is printed and nobody is asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from lmsconf.comparing import Base, Version, compared, joined, let_go
from lmsconf.connect import Connection, dialect_problems
from lmsconf.core.address import Address
from lmsconf.core.apply import Begin, Run, Tell
from lmsconf.core.drift import Drift
from lmsconf.core.drifting import Evidence, make_drift, touched
from lmsconf.core.drifting import outlived as ignores_outlived
from lmsconf.core.freshness import stale
from lmsconf.core.guard import judge, protected
from lmsconf.core.names import exactly
from lmsconf.core.plan import Manifests, handed_out, make_plan, outlived
from lmsconf.core.planfile import plan_digest
from lmsconf.core.policy import Consent, Guards, Policy
from lmsconf.core.snapshot import Snapshot
from lmsconf.core.values import ApplyReport, Call, Change, Outcome, Plan, Status
from lmsconf.errors import Exit, LmsconfError, Problem, ProblemsFound, Severity, StalePlan, Terminated
from lmsconf.journal.reading import runs
from lmsconf.journal.writing import Journal
from lmsconf.kinds import all_kinds
from lmsconf.kinds.edits import edits_of
from lmsconf.kinds.pseudonyms import recognised
from lmsconf.kinds.reading import Wanted, read_workspace
from lmsconf.kinds.replay import as_manifests
from lmsconf.kinds.terms import ServiceTerms
from lmsconf.manifest.load import Keep, load
from lmsconf.project import ENV_WORKSPACE
from lmsconf.sending import Sender, send_all
from lmsconf.settings import Settings
from lmsconf.settling import Settling, Timing

Clock = Callable[[], datetime]
Reading = Callable[[int, int], None]
"""Hears how many requests are done, of how many."""


def read_manifests(
    settings: Settings, keep: Keep | None = None, drafts: Mapping[str, bytes] | None = None
) -> Manifests:
    """What the manifests of the project say, and every problem of every file. keep: hears each entry written out.

    drafts: by path in the project, what files are taken to hold whatever is on the disk.
    """
    found = load(
        settings.manifests,
        settings.root,
        all_kinds(),
        timezone=settings.policy.timezone,
        variables=settings.variables,
        workspaces=(*settings.workspaces, ENV_WORKSPACE),
        keep=keep,
        drafts=drafts,
    )
    return replace(found, problems=(*settings.problems, *found.problems))


def validate(settings: Settings, keep: Keep | None = None) -> Manifests:
    """The manifests with every problem that shows without the workspace, those of the dialect and of the day too."""
    found = read_manifests(settings, keep)
    late = (*outlived(found.absent, settings.policy), *ignores_outlived(settings.ignores, settings.policy.today))
    return replace(found, problems=(*dialect_problems(settings), *found.problems, *late))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One workspace, seen through a connection.

    parallelism: how many requests are under way at a time. clock: what time it is, for reports. timing: how seconds
    pass while lost answers are settled.
    """

    settings: Settings
    connection: Connection
    parallelism: int = 4
    clock: Clock = lambda: datetime.now(UTC)
    timing: Timing = field(default_factory=Timing)

    @property
    def terms(self) -> ServiceTerms:
        return ServiceTerms(self.connection.wire)

    def now(self) -> str:
        """The time, as it stands in documents."""
        return self.clock().astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

    def snapshot(self, progress: Reading | None = None) -> Snapshot:
        """Everything that manifests can speak of."""
        return self._read(Wanted(policy=self.settings.policy, everything=True), progress)

    def _read(self, wanted: Wanted, progress: Reading | None = None) -> Snapshot:
        with self.connection.crew(self.parallelism, progress) as crew:
            return read_workspace(
                self.connection.reader(crew),
                all_kinds(),
                wanted,
                self.terms,
                url=self.connection.url,
                taken_at=self.now(),
            )

    def plan(self, manifests: Manifests, policy: Policy, progress: Reading | None = None) -> Plan:
        """What apply would do. Raises ProblemsFound where the manifests or the workspace do not allow a plan."""
        refuse_errors(manifests)
        wanted = Wanted(declared=manifests.declared, absent=manifests.absent, policy=policy)
        snapshot = self._read(wanted, progress)
        return make_plan(all_kinds(), manifests, snapshot, policy, self.terms, created_at=self.now())

    def drift(
        self, manifests: Manifests, *, count_unmanaged: bool = False, progress: Reading | None = None
    ) -> Drift:
        """What differs between manifests and workspace, as far as it can be told; the rest is an error in it.

        Raises ProblemsFound where nothing can be told at all.
        """
        refuse_errors(manifests)
        return self.drift_from(self.compared(manifests, progress), manifests, count_unmanaged=count_unmanaged)

    def compared(self, manifests: Manifests, progress: Reading | None = None) -> Snapshot:
        """All that manifests are compared with when drift is looked for."""
        return self._read(replace(_for(manifests, self.settings.policy), everything=True, edits=True), progress)

    def drift_from(self, snapshot: Snapshot, manifests: Manifests, *, count_unmanaged: bool = False) -> Drift:
        """What differs between manifests and what was read."""
        refuse_errors(manifests)
        policy = self.settings.policy
        plan, broken = self._as_far_as_it_goes(manifests, policy, snapshot)
        if broken:
            # What could not be planned would look undeclared, so it cannot be told what is owned and not declared.
            plan, more = self._as_far_as_it_goes(manifests, replace(policy, ownership={}), snapshot)
            broken = tuple(dict.fromkeys((*broken, *more)))
        evidence = Evidence(
            touched=touched(runs(self.settings.root), self.connection.url),
            edits=edits_of(snapshot, policy.timezone),
            broken=broken,
        )
        return make_drift(
            plan,
            snapshot,
            [one for one in manifests.declared if one.only_in is None or policy.workspace in one.only_in],
            evidence,
            ignores=self.settings.ignores,
            today=policy.today,
            count_unmanaged=count_unmanaged,
        )

    def plan_offline(self, manifests: Manifests, policy: Policy, snapshot: Snapshot) -> Plan:
        """The plan against a workspace as it once was; it can be shown, not applied."""
        refuse_errors(manifests)
        seen = recognised(snapshot, manifests, all_kinds())
        return make_plan(all_kinds(), manifests, seen, policy, self.terms, created_at=snapshot.taken_at, offline=True)

    def plan_beside(
        self,
        manifests: Manifests,
        policy: Policy,
        base: Base,
        *,
        snapshot: Snapshot | None = None,
        progress: Reading | None = None,
    ) -> Plan:
        """The plan whose changes say whether they come from what differs between the manifests and their base.

        snapshot: what both are planned against; left out, the workspace is read for both at once.
        """
        refuse_errors(manifests)
        theirs = base.version.manifests
        both = replace(manifests, declared=joined(manifests, theirs), absent=(*manifests.absent, *theirs.absent))
        if snapshot is None:
            owned = {**base.version.policy.ownership, **policy.ownership}
            seen = self._read(_for(both, replace(policy, ownership=owned)), progress)
        else:
            seen = recognised(snapshot, both, all_kinds())
        at = self.now() if snapshot is None else snapshot.taken_at
        offline = snapshot is not None
        made = make_plan(all_kinds(), manifests, seen, policy, self.terms, created_at=at, offline=offline)
        made = compared(made, base, lambda version: self._changes_of(version, seen))
        if policy.only or policy.excluded:
            return made
        return replace(made, let_go=let_go(all_kinds(), Version(manifests, policy), base.version, seen, self.terms))

    def _changes_of(self, version: Version, snapshot: Snapshot) -> tuple[Change, ...] | None:
        """What other manifests would change; None where they cannot be planned."""
        try:
            refuse_errors(version.manifests)
            return self._as_far_as_it_goes(version.manifests, version.policy, snapshot)[0].changes
        except ProblemsFound as found:
            # What only this change names, another version need not know.
            unknown = all(problem.code == "select/nothing" for problem in found.problems if problem.is_error)
            return () if unknown else None

    def judged(self, plan: Plan, consents: Iterable[Consent]) -> Plan:
        """A plan under the guards of today: a saved one is judged again by what the project file says now."""
        policy = self.settings.policy
        guards = judge(plan.measures, policy.guards, [*policy.consents, *consents])
        kept = [problem for problem in plan.all_problems if problem.code != "refusal/protected"]
        # Given to the changes again, so that a plan that is judged as it was has the digest that it had.
        changes, problems = handed_out(plan.changes, [*kept, *protected(plan.changes, policy.guards.protect)])
        return replace(plan, guards=guards, changes=changes, problems=tuple(problems))

    def check_fresh(self, plan: Plan, progress: Reading | None = None) -> None:
        """Raises StalePlan when anything that the plan touches is not as it was when the plan was made."""
        if plan.offline:
            raise StalePlan(
                "the plan was made from a snapshot file and cannot be applied",
                hint="Plan against the workspace: leave --snapshot out.",
            )
        if (plan.workspace, plan.url) != (self.connection.name, self.connection.url):
            raise StalePlan(
                f"the plan was made for workspace {plan.workspace} ({plan.url}), and this is "
                f"{self.connection.name} ({self.connection.url})",
                hint="Choose the workspace with --workspace, or plan again.",
            )
        manifests, policy = self._again(plan)
        snapshot = self._read(_for(manifests, policy), progress)
        now, broken = self._as_far_as_it_goes(manifests, policy, snapshot)
        if found := stale(plan, now, broken):
            changed = ", ".join(dict.fromkeys(one.address for one in found if one.address))
            raise StalePlan(
                f"the workspace has changed since the plan was made{': ' if changed else ''}{changed}",
                hint="Plan again and review it.",
                found=found,
            )

    def _as_far_as_it_goes(
        self, manifests: Manifests, policy: Policy, snapshot: Snapshot
    ) -> tuple[Plan, tuple[Problem, ...]]:
        """The plan of all that can be planned, and the errors of what cannot. Raises ProblemsFound for any other."""
        broken: list[Problem] = []
        while True:
            try:
                plan = make_plan(all_kinds(), manifests, snapshot, policy, self.terms, created_at=self.now())
            except ProblemsFound as failed:
                errors = [problem for problem in failed.problems if problem.is_error]
                left = _without(manifests, {problem.address for problem in errors})
                if left == manifests:
                    raise
                manifests = left
                broken.extend(errors)
            else:
                return plan, tuple(dict.fromkeys(broken))

    def _settling(self, plan: Plan, again: Begin) -> Settling:
        return Settling(
            look=lambda address: self._looked(plan, address),
            seconds=self.settings.settle,
            timing=self.timing,
            again=again,
        )

    def _looked(self, plan: Plan, address: Address) -> Plan:
        """What one resource's own changes come to now; all changes where it makes no sense without the others."""
        try:
            return self._replayed(plan, only=address)
        except ProblemsFound:
            # One of a circle of names has to step aside, which shows only beside the one that has its name.
            return self._replayed(plan)

    def _replayed(self, plan: Plan, progress: Reading | None = None, *, only: Address | None = None) -> Plan:
        """What the plan's own changes come to now: all of them before it is applied, none of them after.

        only: of this resource alone, and of what it needs.
        """
        manifests, policy = self._again(plan, only)
        snapshot = self._read(_for(manifests, policy), progress)
        return make_plan(all_kinds(), manifests, snapshot, policy, self.terms, created_at=self.now())

    def _again(self, plan: Plan, only: Address | None = None) -> tuple[Manifests, Policy]:
        """A plan's own changes as manifests, and the policy to plan them under: nothing is owned, nothing left out."""
        mine = self.settings.policy
        policy = Policy(
            workspace=mine.workspace,
            today=mine.today,
            timezone=mine.timezone,
            create_people=True,
            guards=Guards(min_admins=mine.guards.min_admins),
            only=() if only is None else (exactly(str(only)),),
        )
        return as_manifests(plan, all_kinds()), policy

    def apply(
        self,
        plan: Plan,
        *,
        meta: Mapping[str, str],
        tell: Tell | None = None,
        journal: Journal | None = None,
        keep: Begin | None = None,
    ) -> ApplyReport:
        """Carries a plan out, reads back what it touched, and reports. The caller has asked, checked and judged.

        journal: where each call is written down before it is sent, and what became of it after. keep: hears of each
        call before that, and stops the run by raising LmsconfError.
        """
        if journal is None:
            return self._carried_out(plan, meta, tell, keep)
        told = tell or (lambda _: None)

        def begin(call: Call) -> None:
            if keep is not None:
                keep(call)
            journal.intent(call)

        def note(outcome: Outcome) -> None:
            journal.outcome(outcome)
            told(outcome)

        report = self._carried_out(plan, meta, note, begin)
        return replace(report, problems=(*report.problems, *journal.end(report)))

    def _carried_out(
        self, plan: Plan, meta: Mapping[str, str], tell: Tell | None, begin: Begin | None = None
    ) -> ApplyReport:
        started = self.now()
        with self.connection.crew(self.parallelism) as crew:
            sender = Sender(crew, all_kinds(), self._settling(plan, begin or (lambda _: None)))
            run = send_all(plan, sender, width=self.parallelism, tell=tell, begin=begin)
        residue: tuple[Change, ...] = ()
        problems: tuple[Problem, ...] = ()
        converged: bool | None = None
        try:
            residue, problems, converged = self._look_back(plan, run)
        except KeyboardInterrupt as cut:
            # What was done is worth telling, though nobody waited to see whether it took.
            run.interrupted_by = cut
        return ApplyReport(
            plan_digest=plan_digest(plan),
            workspace=plan.workspace,
            url=plan.url,
            people=plan.people,
            started_at=started,
            finished_at=self.now(),
            outcomes=run.outcomes,
            converged=converged,
            residue=residue,
            problems=problems,
            meta=dict(meta),
            exit=_exit(run, converged),
        )

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
            converged=None,
            residue=(),
            problems=error.problems,
            meta=dict(meta),
            exit=error.exit,
        )

    def _look_back(self, plan: Plan, run: Run) -> tuple[tuple[Change, ...], tuple[Problem, ...], bool | None]:
        """What a fresh plan of the same resources still wants; nothing is known where the service is gone."""
        if not plan.calls:
            return (), (), True
        if run.stopped_by is not None or run.interrupted_by is not None or not run.wrote:
            return (), (), None
        try:
            again = self._replayed(plan)
        except ProblemsFound as found:
            return (), tuple(problem for problem in found.problems if problem.is_error), False
        except LmsconfError as error:
            return (), error.problems, None
        all_done = all(outcome.status is Status.DONE for outcome in run.outcomes)
        problems = [self._without_effect(plan, change) for change in again.changes] if all_done else []
        return again.changes, tuple(problems), not again.changes

    def _without_effect(self, plan: Plan, change: Change) -> Problem:
        """Every call was accepted, and still this differs: the names or behaviours assumed are probably others."""
        operations = dict.fromkeys(call.operation for call in plan.calls if call.address == change.address)
        keys = [key for operation in operations for key in self.connection.wire.dialect_keys(operation)]
        look = "Look at the dialect keys " + ", ".join(dict.fromkeys(keys))
        hint = f"{look}." if keys else "Plan again to see what is left."
        return Problem(
            code="apply/no-effect",
            message=f"{change.address}: the service accepted the calls, and it is still not as planned",
            hint=hint,
            severity=Severity.WARNING,
            source=change.source,
            address=str(change.address),
        )


def refuse_errors(manifests: Manifests) -> None:
    """Raises ProblemsFound when the manifests have errors; nothing is read for manifests that cannot be planned."""
    if any(problem.is_error for problem in manifests.problems):
        raise ProblemsFound(manifests.problems)


def _for(manifests: Manifests, policy: Policy) -> Wanted:
    return Wanted(declared=manifests.declared, absent=manifests.absent, policy=policy)


def _without(manifests: Manifests, addresses: Collection[str | None]) -> Manifests:
    """The manifests but for what they say of these."""
    return replace(
        manifests,
        declared=tuple(one for one in manifests.declared if str(one.address) not in addresses),
        absent=tuple(one for one in manifests.absent if str(one.address) not in addresses),
    )


def _exit(run: Run, converged: bool | None) -> Exit:
    """What a run came to, as an exit code."""
    if run.interrupted_by is not None:
        return run.interrupted_by.exit if isinstance(run.interrupted_by, Terminated) else Exit.INTERRUPTED
    failed = any(outcome.status is not Status.DONE for outcome in run.outcomes)
    if failed and not run.wrote:
        if run.stopped_by is not None:
            return run.stopped_by.exit
        return Exit.STOPPED if any(error.code == "refusal/in-use" for error in run.errors) else Exit.ERROR
    if failed:
        return Exit.PARTIAL
    return Exit.OK if converged else Exit.DIVERGED
