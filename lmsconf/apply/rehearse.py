"""Rehearse a plan on a twin: check the twin, send the plan's own calls, read back, and plan a second time.

Guards and foretold refusals stop nothing here: the calls are sent as if they were allowed, to see what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf import __version__
from lmsconf.api.spec.operations import USERS
from lmsconf.apply.events import ApplyProgress
from lmsconf.apply.staleness import change_hash
from lmsconf.apply.twin import CannotRehearse, Twin, open_twin
from lmsconf.documents.plan_file import plan_digest
from lmsconf.documents.snapshot_file import snapshot_digest
from lmsconf.errors import Problem, StalePlan
from lmsconf.kinds.manual_group.read import parse_user_ids
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.kinds.smart_group.compare_members import read_members
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.api import Api
from lmsconf.model.calls import CallStatus
from lmsconf.model.declarations import Manifests
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import (
    Action,
    Change,
    FailedCall,
    Plan,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsalReceipt,
    RehearsedAssumption,
    RehearsedGroup,
)
from lmsconf.model.policy import Policy
from lmsconf.model.scope import VerifyMode
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.assumptions import calls_by_key
from lmsconf.planner.reading import keep_keys
from lmsconf.workspace.plan_with_base import plan_with_base
from lmsconf.workspace.reader import WorkspaceReader, reads_needed

if TYPE_CHECKING:
    from lmsconf.workspace.plan_with_base import BaseManifests

_AGAIN = "Rehearse it with: lmsconf plan --rehearse --out FILE. Review and apply that file."


def refuse_unrehearsed(plan: Plan, digest: str) -> None:
    """Raise StalePlan unless the plan, with this digest, was rehearsed successfully.

    The receipt is covered by the seal and the signature of the plan file, which loading it verifies.
    """
    if plan.rehearsal is None:
        raise StalePlan("the plan was not rehearsed, and --require-rehearsal is given", hint=_AGAIN)
    receipt = plan.rehearsal.receipt
    if receipt.plan_digest != digest:
        raise StalePlan(
            f"the rehearsal in the file is of a plan with the digest {receipt.plan_digest}, and this one's is {digest}",
            hint=_AGAIN,
        )
    if receipt.outcome is not RehearsalOutcome.SUCCESS:
        words = {RehearsalOutcome.REFUSED: "some of its calls were refused"}
        why = words.get(receipt.outcome, "a second plan on the twin was not empty")
        raise StalePlan(
            f"the rehearsal of the plan did not succeed: {why}",
            hint="`lmsconf show FILE` shows what happened. Change the manifests, and rehearse again.",
        )


_SHOWN: Final = 5
"""How many resources are named that the twin plans otherwise; the others are counted."""


class RehearsalOptions(Struct, frozen=True, kw_only=True):
    """How a plan is rehearsed.

    rate: requests a second that the service takes, as far as it is known. is_limit: it is `--max-rate`.
    """

    rate: float | None = None
    is_limit: bool = False
    progress: ApplyProgress = field(default_factory=ApplyProgress)


def rehearse_on(
    twin: Twin,
    plan: Plan,
    manifests: Manifests,
    policy: Policy,
    snapshot: Snapshot,
    options: RehearsalOptions,
) -> Rehearsal:
    """Rehearse a plan on an open twin of the snapshot, which is then as the plan leaves it.

    Raises CannotRehearse where the twin gives another plan.
    """
    return _Rehearsing(plan, manifests, policy, twin, options).run(snapshot)


class _Rehearsing:
    """One rehearsal on an open twin."""

    def __init__(self, plan: Plan, manifests: Manifests, policy: Policy, twin: Twin, options: RehearsalOptions) -> None:
        self._plan, self._manifests, self._policy = plan, manifests, policy
        self._twin, self._options = twin, options

    def run(self, snapshot: Snapshot) -> Rehearsal:
        """Rehearse the plan, and return what came of it."""
        self._refuse_other_plan()
        report = self._twin.applier.execute(
            self._plan, meta={}, progress=self._options.progress, verify=VerifyMode.ALL, made_from=self._manifests
        )
        requests = self._twin.requests
        remaining, problems = self._second_plan(report)
        failed = tuple(_failed_calls(report))
        return Rehearsal(
            receipt=RehearsalReceipt(
                plan_digest=plan_digest(self._plan),
                snapshot_digest=snapshot_digest(snapshot),
                outcome=_outcome(failed, remaining, problems),
                at=self._plan.created_at,
                tool=f"lmsconf {__version__}",
            ),
            taken_at=snapshot.taken_at,
            calls=len(self._plan.calls),
            done=report.count(CallStatus.DONE),
            failed=failed,
            # What a plan says of such a change is said of the plan itself.
            remaining=tuple(replace(change, problems=()) for change in remaining),
            problems=problems,
            assumptions=tuple(self._assumptions()),
            groups=tuple(self._groups(report, remaining)),
            pace=RehearsalPace(requests=requests, rate=self._options.rate, is_limit=self._options.is_limit),
        )

    def _assumptions(self) -> Iterator[RehearsedAssumption]:
        """Yield the dialect keys that the calls of the plan rely on."""
        terms = self._twin.applier.call_templates
        for key, calls in calls_by_key(self._plan, terms).items():
            operations = tuple(dict.fromkeys(call.operation for call in calls))
            yield RehearsedAssumption(
                key=key, value=terms.behaviour(key), operations=operations, declared=terms.is_known(key)
            )

    def _planned(self) -> tuple[Plan, tuple[Problem, ...]]:
        """Read the twin and plan the manifests on it."""
        applier = self._twin.applier
        with self._options.progress.phase("Reading") as progress:
            snapshot = applier.read(reads_needed(self._manifests, self._policy), progress)
        return applier.partial_plan(self._manifests, self._policy, snapshot)

    def _refuse_other_plan(self) -> None:
        """Raise CannotRehearse if the twin, before the first call, does not give the plan that is rehearsed."""
        now = {str(change.address): change for change in self._planned()[0].changes}
        before = {str(change.address): change for change in self._plan.changes}
        differs = sorted(address for address in now.keys() | before.keys() if _differs(before, now, address))
        if differs:
            more = f", and {len(differs) - _SHOWN:,} more" if len(differs) > _SHOWN else ""
            raise CannotRehearse(
                f"the plan cannot be rehearsed: the twin gives another plan for {', '.join(differs[:_SHOWN])}{more}",
                hint="The service returns something that the sandbox cannot hold. Review the plan without --rehearse.",
            )

    def _second_plan(self, report: ApplyReport) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
        """Return the changes and errors of the second plan: that of the run's verification, if it was made."""
        if report.verified.scope is VerifyMode.ALL:
            return report.residue, report.problems
        now, broken = self._planned()
        return now.changes, tuple(dict.fromkeys((*report.problems, *broken)))

    def _groups(self, report: ApplyReport, remaining: tuple[Change, ...]) -> Iterator[RehearsedGroup]:
        """Yield the groups whose membership the plan changes, with the members that they have on the twin now."""
        deleted = {change.address for change in self._plan.changes if change.action is Action.DELETE}
        deleted -= {change.address for change in remaining}
        ids = {change.address: change.id for change in self._plan.changes if change.id is not None}
        made = {outcome.address: RemoteId(outcome.id) for outcome in report.outcomes if outcome.id is not None}
        wanted = self._plan.effects.groups
        if not wanted:
            return
        with self._twin.applier.connection.worker_pool(1) as pool:
            api = self._twin.applier.connection.reader(pool)
            people = api.rows(USERS, keep=keep_keys("userId", "archivedAt")).rows
            archived = {RemoteId(str(row["userId"])) for row in people if row.get("archivedAt")}
            for group in wanted:
                members: Set[RemoteId] | None = frozenset()
                if group.address not in deleted:
                    members = _live_members(api, group.address, ids.get(group.address) or made.get(group.address))
                yield RehearsedGroup(
                    address=group.address,
                    before=group.before,
                    predicted=group.after,
                    reached=None if members is None else len(members - archived),
                    basis=group.basis,
                )


def _differs(before: dict[str, Change], now: dict[str, Change], address: str) -> bool:
    """Whether a change is not the same in both plans; the order of lists is that of responses, and means nothing."""
    both = [plan.get(address) for plan in (before, now)]
    forms = [None if one is None else change_hash(one, ("action", "before", "after")) for one in both]
    return forms[0] != forms[1]


def _failed_calls(report: ApplyReport) -> Iterator[FailedCall]:
    for outcome in report.outcomes:
        if outcome.status is not CallStatus.DONE:
            yield FailedCall(
                call=outcome.call,
                address=outcome.address,
                operation=outcome.operation,
                status=outcome.status,
                reason=outcome.reason,
                hint=outcome.hint,
            )


def _outcome(
    failed: tuple[FailedCall, ...], remaining: tuple[Change, ...], problems: tuple[Problem, ...]
) -> RehearsalOutcome:
    if failed:
        return RehearsalOutcome.REFUSED
    if remaining or any(problem.is_error for problem in problems):
        return RehearsalOutcome.NOT_CONVERGED
    return RehearsalOutcome.SUCCESS


def _live_members(api: Api, group: Address, id: RemoteId | None) -> frozenset[RemoteId] | None:
    """Return the ids of the members that the service lists, archived people among them; None if the group is not there.

    id: None for a smart group that is found by its name alone. Raises ApiError.
    """
    if group.kind == SMART_GROUP:
        return read_members(api, group.name, id)
    # A service may have several manual groups of a name.
    return None if id is None else parse_user_ids(api.get("manual-groups.members", path={"groupId": id}))


class RehearsalRequest(Struct, frozen=True, kw_only=True):
    """What is rehearsed, and how.

    snapshot: the saved snapshot to plan on; None: the workspace is read. base: the manifests to compare with.
    max_rate: requests a second, at most.
    """

    policy: Policy
    snapshot: Snapshot | None = None
    base: BaseManifests | None = None
    max_rate: float | None = None
    progress: ApplyProgress = field(default_factory=ApplyProgress)


def rehearsed_plan(
    reader: WorkspaceReader,
    request: RehearsalRequest,
    manifests: Manifests,
    read: Callable[[Manifests], Snapshot],
) -> Plan:
    """Return the plan of the manifests with its rehearsal. Raises CannotRehearse, and ProblemsFound like any plan.

    read: reads the whole workspace, unless a snapshot is given.
    """
    live = read(manifests) if request.snapshot is None else request.snapshot
    if request.base is None:
        plan = reader.plan_offline(manifests, request.policy, live)
    else:
        plan = plan_with_base(reader, manifests, request.policy, request.base, snapshot=live)
    plan = replace(plan, offline=request.snapshot is not None)
    rate = None if request.snapshot is not None else reader.connection.rate
    options = RehearsalOptions(
        rate=rate, is_limit=rate is not None and rate == request.max_rate, progress=request.progress
    )
    with open_twin(live, reader.settings, plan.created_at) as twin:
        return replace(plan, rehearsal=rehearse_on(twin, plan, manifests, request.policy, live, options))
