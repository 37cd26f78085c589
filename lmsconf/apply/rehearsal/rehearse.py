"""Rehearse a plan on a twin: check the twin, send the plan's own calls, read back, and plan a second time.

Guards and foretold refusals stop nothing here: the calls are sent as if they were allowed, to see what becomes of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf import __version__
from lmsconf.api.spec.listings import USERS
from lmsconf.apply.phases import Phase, unreported
from lmsconf.apply.rehearsal.twin import CannotRehearse, Twin, open_twin
from lmsconf.documents.plan_file import plan_digest
from lmsconf.documents.snapshot_file import snapshot_digest
from lmsconf.errors import Problem
from lmsconf.kinds.manual_group.read import parse_user_ids
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.kinds.smart_group.compare_members import read_members
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.api import Api
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import Json, canonical_json
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
from lmsconf.project.settings import Settings
from lmsconf.workspace.reader import reads_needed

_SHOWN: Final = 5
"""How many resources are named that the twin plans otherwise; the others are counted."""


class RehearsalOptions(Struct, frozen=True, kw_only=True):
    """How a plan is rehearsed.

    rate: requests a second that the service takes, as far as it is known. is_limit: it is `--max-rate`. phase: receives
    the progress.
    """

    rate: float | None = None
    is_limit: bool = False
    phase: Phase = unreported


def rehearse(
    plan: Plan, manifests: Manifests, policy: Policy, snapshot: Snapshot, settings: Settings, options: RehearsalOptions
) -> Rehearsal:
    """Rehearse a plan that was just made from these manifests and this snapshot, under this policy.

    Raises CannotRehearse where no twin can be made of the snapshot, or where the twin gives another plan.
    """
    with open_twin(snapshot, settings, plan.created_at) as twin:
        return rehearse_on(twin, plan, manifests, policy, snapshot, options)


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
            self._plan, meta={}, phase=self._options.phase, verify=VerifyMode.ALL, made_from=self._manifests
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
            memberships=tuple(self._groups(report, remaining)),
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
        with self._options.phase("Reading") as progress:
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
    forms = [None if one is None else (one.action, _form(one.before), _form(one.after)) for one in both]
    return forms[0] != forms[1]


def _form(value: Json) -> str:
    return canonical_json(_unordered(value)).decode("utf-8", "surrogatepass")


def _unordered(value: Json) -> Json:
    if isinstance(value, list):
        return sorted(map(_unordered, value), key=lambda one: str(canonical_json(one)))
    return {key: _unordered(item) for key, item in value.items()} if isinstance(value, dict) else value


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
