"""Read a workspace: validate, plan, snapshot, drift. Values in, values out; nothing is printed or changed.

A plan made from a snapshot file has notices for its reviewers: the file's age and completeness.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, Severity
from lmsconf.kinds.kind_table import KINDS, dependencies
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, in_snapshot_order
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.access import AccessTestReport, ReportHeader
from lmsconf.model.address import Address
from lmsconf.model.calls import Report
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftReport
from lmsconf.model.effects import Basis
from lmsconf.model.guards import Policy
from lmsconf.model.names import count_noun
from lmsconf.model.plan import Plan, RenameCandidate
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.time_formats import format_utc
from lmsconf.planner.plan import PlanWithoutEffects, plan_without_effects
from lmsconf.planner.read.needed_listings import ReadContext, ReadScope
from lmsconf.planner.read.read_all_kinds import read_snapshot
from lmsconf.project.settings import Settings
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import add_previous_names, error_free, without_entries

if TYPE_CHECKING:
    from lmsconf.planner.audience.access_facts import AccessQuery
    from lmsconf.planner.audience.people_questions import WorkspaceAccess
    from lmsconf.planner.drift import AppliedBase
    from lmsconf.workspace.project_manifests import BaseManifests, ManifestsVersion


def add_snapshot_notices(plan: Plan, snapshot: Snapshot, workspace: str, now: datetime) -> Plan:
    """The plan with the notices of its snapshot before all other problems."""
    return replace(plan, problems=(*_notices(snapshot, workspace, now), *plan.problems))


_NOUNS: Final = {
    listing: noun
    for kind in in_snapshot_order(KINDS.values())
    for listing, noun in ((CONTENT, kind.listing_nouns.get(CONTENT)), (kind.name, (kind.noun, kind.plural)))
    if noun is not None
}
"""Listing → what is in it, singular and plural, in the order of notices."""


def _notices(snapshot: Snapshot, workspace: str, now: datetime) -> Iterator[Problem]:
    """Yield what a snapshot holds, since when, and what is wrong with it for this workspace."""
    listed = [(noun, snapshot.of(listing)) for listing, noun in _NOUNS.items() if listing in snapshot.listings]
    held = ", ".join(count_noun(len(listing.rows), *noun) for noun, listing in listed)
    # Most workspaces change daily.
    is_old = now - datetime.fromisoformat(snapshot.taken_at) > timedelta(days=2)
    yield Problem(
        code="snapshot/age",
        message=f"the snapshot was taken at {snapshot.taken_at}, and holds {held}",
        hint="Save a new one with `lmsconf snapshot FILE`: later changes are not in this plan." if is_old else None,
        severity=Severity.WARNING if is_old else Severity.NOTE,
    )
    yield from (
        Problem(
            code="snapshot/incomplete",
            message=f"the snapshot does not contain all {plural}: {why}",
            severity=Severity.WARNING,
        )
        for listing, (_, plural) in _NOUNS.items()
        if (why := snapshot.of(listing).incomplete) is not None
    )
    if snapshot.redaction is not None:
        yield Problem(
            code="snapshot/redacted",
            message="the snapshot is redacted: it only counts people who were not in the manifests when it was saved, "
            'and shows them as "unnamed person 1" and so on; several labels may be the same person',
            severity=Severity.NOTE,
        )
    if snapshot.workspace != workspace:
        yield Problem(
            code="snapshot/other-workspace",
            message=f"the snapshot is of workspace {snapshot.workspace}, and the plan is for workspace {workspace}",
            hint=f"Pass --workspace {snapshot.workspace}, if this is intended.",
            severity=Severity.WARNING,
        )


class WaitClock(Struct, frozen=True, kw_only=True):
    """Monotonic seconds, a way to sleep, and a callback that receives the longest remaining time before each sleep.

    sleep: blocks for that many seconds, or until the event is set.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float, Event], object] = lambda seconds, stop_waiting: stop_waiting.wait(seconds)
    tell: Callable[[float], None] = lambda left: None


class WorkspaceReader(Struct, frozen=True, kw_only=True):
    """One workspace, read through a connection and never changed.

    parallelism: concurrent requests. clock: the current time, for reports. on_read: called with each snapshot that was
    read. on_seen: the same, for the journal of a run. timing: the clock of a run that waits until its writes are
    visible. patience: seconds in which a write with a response may not be visible yet; default: the `settle` setting,
    and 0 in the embedded workspace, where writes are visible at once.
    """

    settings: Settings
    connection: Connection
    parallelism: int = 8
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    on_read: Callable[[Snapshot], None] = lambda _: None
    on_seen: Callable[[Snapshot], None] = lambda _: None
    timing: WaitClock = field(default_factory=WaitClock)
    patience: float | None = None

    def now(self) -> str:
        """The current time in UTC, as documents show it."""
        return format_utc(self.clock())

    def snapshot(self, progress: Report | None = None, manifests: Manifests | None = None) -> Snapshot:
        """Read everything that manifests can declare.

        Language and applications need a request per person, and are read only where `manifests` declare them.
        """
        return self.read(ReadScope(manifests or Manifests(), self.settings.policy, everything=True), progress)

    def redact_snapshot(self, snapshot: Snapshot, manifests: Manifests | None) -> Snapshot:
        """The snapshot reduced to the people that the manifests name."""
        from lmsconf.planner.snapshot_redaction import redact_snapshot

        return redact_snapshot(
            PlanContext(snapshot, self.settings.policy, self.connection.spec, lambda _: True), manifests or Manifests()
        )

    def read(self, wanted: ReadScope, progress: Report | None = None) -> Snapshot:
        """Read what is wanted."""
        return self.read_on(wanted, progress, effects=False)[1]

    def plan(self, manifests: Manifests, policy: Policy, progress: Report | None = None) -> Plan:
        """Return what apply would do. Raises ProblemsFound if the manifests or the workspace do not allow a plan."""
        reading, snapshot = self.read_on(ReadScope(error_free(manifests), policy), progress)
        return self.add_effects(self.draft(manifests, snapshot, policy), reading, progress)

    def draft(
        self, manifests: Manifests, snapshot: Snapshot, policy: Policy, taken_at: str | None = None
    ) -> PlanWithoutEffects:
        """Plan on a snapshot, without effects on people. taken_at: of a snapshot file; None for what was read just now.

        Raises ProblemsFound if the manifests or the snapshot do not allow a plan.
        """
        return plan_without_effects(
            manifests,
            snapshot,
            policy,
            self.connection.spec,
            created_at=taken_at or self.now(),
            from_snapshot_file=taken_at is not None,
        )

    def read_on(
        self, wanted: ReadScope, progress: Report | None, *, effects: bool = True
    ) -> tuple[ReadContext, Snapshot]:
        """Read what is wanted; return the snapshot, and the reading, with which the effects of a plan are read."""
        with self.connection.worker_pool(self.parallelism, progress) as pool:
            reading = ReadContext(
                self.connection.reader(pool, everything=wanted.everything),
                wanted,
                self.connection.spec,
                effects=effects and wanted.policy.effects,
            )
            snapshot = read_snapshot(reading, url=self.connection.url, taken_at=self.now())
        self.on_read(snapshot)
        self.on_seen(snapshot)
        return reading, snapshot

    def add_effects(
        self, draft: PlanWithoutEffects, reading: ReadContext | None = None, progress: Report | None = None
    ) -> Plan:
        """Return the plan with its effects on people and its lints, reading what the plan itself did not need.

        reading: None if it is made from a snapshot file.
        """
        from lmsconf.planner.audience.effects import with_effects

        if reading is None:
            return with_effects(draft, None)
        with self.connection.worker_pool(self.parallelism, progress) as pool:
            reading.api = self.connection.reader(pool)
            return with_effects(draft, reading)

    def read_for_drift(
        self,
        manifests: Manifests,
        base: BaseManifests | None = None,
        progress: Report | None = None,
        *,
        reads_all: bool = False,
    ) -> Snapshot:
        """Read what the manifests and those of a base are compared with for drift; with `reads_all`, everything."""
        policy = self.settings.policy
        wanted = ReadScope(manifests, policy) if base is None else reads_needed_by_both(manifests, policy, base.version)
        return self.read(replace(wanted, everything=reads_all, edits=True), progress)

    def drift(
        self,
        manifests: Manifests,
        base: BaseManifests | None = None,
        snapshot: Snapshot | None = None,
        *,
        count_unmanaged: bool = False,
        reads_all: bool = False,
        progress: Report | None = None,
    ) -> DriftReport:
        """Compare manifests and workspace as far as they can be planned; the rest is an error in the report.

        base: manifests that are assumed to be applied, to identify manual changes. snapshot: what is compared, or None
        for what is read now. reads_all: it holds the whole workspace, for coverage, as `count_unmanaged` needs it.
        Raises ProblemsFound if nothing can be planned.
        """
        from lmsconf.planner.drift import DriftInputs, make_drift
        from lmsconf.planner.read.assignments import last_edits

        error_free(manifests)
        reads_all = reads_all or count_unmanaged
        if snapshot is None:
            snapshot = self.read_for_drift(manifests, base, progress, reads_all=reads_all)
        # Where everything comparable was read already, all of it is compared.
        policy = replace(self.settings.policy, compares=None) if reads_all else self.settings.policy
        renamed: dict[Address, RenameCandidate] = {}
        while True:
            plan, broken = self.partial_plan(add_previous_names(manifests, renamed), policy, snapshot)
            fresh = _paired(plan)
            if not fresh.keys() - renamed.keys():
                break
            # Detecting a rename may enable another: a field identifies smart groups by their conditions.
            renamed |= fresh
        declared = manifests.in_workspace(policy.workspace).declared
        return make_drift(
            plan,
            snapshot,
            declared,
            DriftInputs(
                applied=None if base is None else self._applied(base, snapshot, policy.compares),
                edits={CONTENT_TARGET: last_edits(snapshot, policy.timezone)},
                broken=broken,
                needs={one.address: dependencies(one) for one in declared},
                renamed=renamed,
                command=policy.command,
            ),
            ignores=self.settings.ignores,
            today=policy.today,
            count_unmanaged=count_unmanaged,
            reads_all=reads_all,
        )

    def _applied(self, base: BaseManifests, snapshot: Snapshot, compares: int | None) -> AppliedBase:
        """What the base's manifests would change on the snapshot."""
        from lmsconf.planner.drift import AppliedBase

        try:
            plan, broken = self.partial_plan(
                error_free(base.version.manifests), replace(base.version.policy, compares=compares), snapshot
            )
        except ProblemsFound:
            return AppliedBase(name=base.name, changes=None)
        return AppliedBase(name=base.name, changes=plan.changes, lost=frozenset(problem.address for problem in broken))

    def plan_offline(self, manifests: Manifests, policy: Policy, snapshot: Snapshot) -> Plan:
        """Plan against a snapshot file; the plan can be shown, not applied."""
        from lmsconf.planner.snapshot_redaction import drop_unknown_people, restore_snapshot

        known = drop_unknown_people(snapshot, manifests)
        live = restore_snapshot(snapshot, error_free(manifests))
        return self.add_effects(self.draft(known, live, policy, snapshot.taken_at))

    def partial_plan(
        self, manifests: Manifests, policy: Policy, snapshot: Snapshot
    ) -> tuple[Plan, tuple[Problem, ...]]:
        """Plan everything that can be planned; delete undeclared owned resources only if that is everything."""
        plan, broken = self.plan_with_errors(manifests, policy, snapshot)
        if not broken:
            return plan, ()
        # Resources that could not be planned would look undeclared, so ownership cannot be decided.
        plan, more = self.plan_with_errors(manifests, replace(policy, ownership={}), snapshot)
        return plan, tuple(dict.fromkeys((*broken, *more)))

    def plan_with_errors(
        self, manifests: Manifests, policy: Policy, snapshot: Snapshot
    ) -> tuple[Plan, tuple[Problem, ...]]:
        """Plan everything that can be planned; also return the errors of the rest.

        Raises ProblemsFound for an error that belongs to no declared resource.
        """
        broken: list[Problem] = []
        while True:
            try:
                return self.draft(manifests, snapshot, policy).plan, tuple(dict.fromkeys(broken))
            except ProblemsFound as failed:
                errors = [problem for problem in failed.problems if problem.is_error]
                left = without_entries(manifests, {problem.address for problem in errors})
                if left == manifests:
                    raise
                manifests = left
                broken.extend(errors)


def _paired(plan: Plan) -> dict[Address, RenameCandidate]:
    """Manual renames: one creation and one live resource with similar content, and no other candidates for either."""
    taken = Counter(candidate.id for rename in plan.renames for candidate in rename.alike)
    return {
        rename.address: candidate
        for rename in plan.renames
        for candidate in rename.alike
        if len(rename.alike) == 1 and taken[candidate.id] == 1 and candidate.is_earlier_name
    }


def reads_needed_by_both(manifests: Manifests, policy: Policy, base: ManifestsVersion) -> ReadScope:
    """What to read for manifests and their base together."""
    wide = replace(
        policy,
        ownership={**base.policy.ownership, **policy.ownership},
        guards=policy.guards.stricter(base.policy.guards),
    )
    return ReadScope(manifests, wide, beside=base.manifests)


def run_access_tests(
    workspace: WorkspaceReader, manifests: Manifests, progress: Report | None = None, *, live: bool = False
) -> AccessTestReport:
    """Return the results of the tests of manifests: on the state after the plan or, with `live`, before it.

    Raises ProblemsFound if no plan can be made, and its state is asked for.
    """
    from lmsconf.planner.audience.people_questions import judge_tests, query_of

    tests = [test for test in manifests.tests if test.applies_in(workspace.settings.policy.workspace)]
    state, header = read_people_view(workspace, manifests, query_of(tests), progress)
    if not (live or header.planned):
        raise ProblemsFound(header.problems)
    return AccessTestReport(
        workspace=header.workspace,
        url=header.url,
        people=header.people,
        created_at=header.created_at,
        live=live,
        results=judge_tests(state, tests, live=live),
    )


def read_people_view(
    workspace: WorkspaceReader, manifests: Manifests, query: AccessQuery, progress: Report | None = None
) -> tuple[WorkspaceAccess, ReportHeader]:
    """Read what a query asks for, before and after the plan; only before where no plan can be made.

    Returns the answers about people, and the header of a report made from them.
    """
    from lmsconf.planner.audience.people_questions import read_access_state

    problems = tuple(problem for problem in manifests.problems if problem.is_error)
    usable = Manifests() if problems else manifests
    # Manifests that cannot be read own nothing: else all that they would declare is planned for deletion.
    owned = {} if problems else workspace.settings.policy.ownership
    policy = replace(workspace.settings.policy, effects=True, ownership=owned)
    reading, snapshot = workspace.read_on(ReadScope(usable, policy), progress)
    sent = reading.api.requests
    try:
        draft = workspace.draft(usable, snapshot, policy)
    except ProblemsFound as failed:
        problems += tuple(problem for problem in failed.problems if problem.is_error)
        draft = workspace.draft(Manifests(), snapshot, replace(policy, ownership={}))
    with workspace.connection.worker_pool(workspace.parallelism, progress) as pool:
        reading.api = workspace.connection.reader(pool)
        state = read_access_state(draft, reading, query)
    return state, ReportHeader(
        workspace=draft.plan.workspace,
        url=draft.plan.url,
        people=draft.plan.people,
        created_at=draft.plan.created_at,
        planned=not problems,
        basis=Basis.EXACT,
        reasons=(),
        requests=sent + reading.api.requests,
        problems=problems,
    )
