"""The use cases: validate, plan, apply, snapshot. Values in, values out; nothing is printed and nobody is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from lmsconf.connect import Connection, dialect_problems
from lmsconf.core.address import Address
from lmsconf.core.apply import Run, Tell
from lmsconf.core.guard import judge, protected
from lmsconf.core.names import exactly
from lmsconf.core.plan import Manifests, handed_out, make_plan, outlived
from lmsconf.core.planfile import plan_digest
from lmsconf.core.policy import Consent, Policy
from lmsconf.core.snapshot import Snapshot
from lmsconf.core.values import ApplyReport, Change, Outcome, Plan, Status
from lmsconf.errors import Exit, LmsconfError, Problem, ProblemsFound, Severity, StalePlan, Terminated
from lmsconf.kinds import all_kinds
from lmsconf.kinds.reading import Wanted, read_workspace
from lmsconf.kinds.replay import as_manifests
from lmsconf.kinds.terms import ServiceTerms
from lmsconf.manifest.load import load
from lmsconf.project import ENV_WORKSPACE
from lmsconf.sending import Sender, send_all
from lmsconf.settings import Settings
from lmsconf.settling import Settling, Timing

Clock = Callable[[], datetime]
Reading = Callable[[int, int], None]
"""Hears how many requests are done, of how many."""


def read_manifests(settings: Settings) -> Manifests:
    """What the manifests of the project say, and every problem of every file."""
    found = load(
        settings.manifests,
        settings.root,
        all_kinds(),
        timezone=settings.policy.timezone,
        variables=settings.variables,
        workspaces=(*settings.workspaces, ENV_WORKSPACE),
    )
    return replace(found, problems=(*settings.problems, *found.problems))


def validate(settings: Settings) -> Manifests:
    """The manifests with every problem that shows without the workspace, those of the dialect and of the day too."""
    found = read_manifests(settings)
    late = outlived(found.absent, settings.policy)
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

    def plan_offline(self, manifests: Manifests, policy: Policy, snapshot: Snapshot) -> Plan:
        """The plan against a workspace as it once was; it can be shown, not applied."""
        refuse_errors(manifests)
        return make_plan(
            all_kinds(), manifests, snapshot, policy, self.terms, created_at=snapshot.taken_at, offline=True
        )

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
        try:
            now = self._replayed(plan, progress)
        except ProblemsFound as found:
            raise _stale(problem.message for problem in found.problems if problem.is_error) from found
        changed = [
            address
            for address in sorted({*plan.fingerprints, *now.fingerprints})
            if plan.fingerprints.get(address) != now.fingerprints.get(address)
        ]
        if changed:
            raise _stale(f"{address} is not as it was" for address in changed)

    def _settling(self, plan: Plan) -> Settling:
        return Settling(
            look=lambda address: self._replayed(plan, only=address), seconds=self.settings.settle, timing=self.timing
        )

    def _replayed(self, plan: Plan, progress: Reading | None = None, *, only: Address | None = None) -> Plan:
        """What the plan's own changes come to now: all of them before it is applied, none of them after.

        only: of this resource alone, and of what it needs.
        """
        manifests = as_manifests(plan, all_kinds())
        mine = self.settings.policy
        policy = Policy(
            workspace=mine.workspace,
            today=mine.today,
            timezone=mine.timezone,
            create_people=True,
            only=() if only is None else (exactly(str(only)),),
        )
        wanted = Wanted(declared=manifests.declared, absent=manifests.absent, policy=policy)
        snapshot = self._read(wanted, progress)
        return make_plan(all_kinds(), manifests, snapshot, policy, self.terms, created_at=self.now())

    def apply(self, plan: Plan, *, meta: Mapping[str, str], tell: Tell | None = None) -> ApplyReport:
        """Carries a plan out, reads back what it touched, and reports. The caller has asked, checked and judged."""
        started = self.now()
        with self.connection.crew(self.parallelism) as crew:
            sender = Sender(crew, all_kinds(), self._settling(plan))
            run = send_all(plan, sender, width=self.parallelism, tell=tell)
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


def _stale(reasons: Iterable[str]) -> StalePlan:
    return StalePlan(
        "the workspace has changed since the plan was made: " + "; ".join(reasons), hint="Plan again and review it."
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
