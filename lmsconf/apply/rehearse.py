"""Rehearse a plan on a twin: check the twin, send the plan's own calls, read back, and plan a second time.

A twin is an embedded workspace in memory, filled from a snapshot, under the same dialect and at the same time. Guards
and foretold refusals stop nothing here: the calls are sent as if they were allowed, to see what becomes of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from threading import Event, Lock
from typing import Final

from msgspec import Struct, convert
from msgspec.structs import replace

from lmsconf import __version__
from lmsconf.api.retry import RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import TIME_FORMAT
from lmsconf.api.spec.operations import USERS
from lmsconf.apply.replanning import plan_anew
from lmsconf.apply.run_plan import execute
from lmsconf.apply.scheduler import ApplyEvents
from lmsconf.apply.staleness import change_hash
from lmsconf.documents.plan_file import plan_digest
from lmsconf.documents.snapshot_file import file_digest
from lmsconf.errors import LmsconfError, Problem, ProblemsFound, StalePlan
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Api, CallResult, CallStatus
from lmsconf.model.declarations import Manifests
from lmsconf.model.guards import Policy
from lmsconf.model.names import escape_invisible
from lmsconf.model.outcomes import ApplyReport, VerifyMode
from lmsconf.model.plan import (
    Action,
    Change,
    Plan,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsalReceipt,
    RehearsedAssumption,
    RehearsedGroup,
)
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.plan import calls_by_key
from lmsconf.planner.read.fields_and_groups import parse_user_ids, read_members, smart_group_ids
from lmsconf.planner.read.needed_listings import keep_keys
from lmsconf.project.settings import Settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.fill_sandbox import REDACTED, fill_workspace
from lmsconf.workspace.plan_with_base import plan_with_base
from lmsconf.workspace.project_manifests import BaseManifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

_SHOWN: Final = 5
"""How many reasons, or resources that the twin plans otherwise, are shown; the others are counted."""


class CannotRehearse(LmsconfError):
    """A snapshot of which no twin can be made, or a twin that does not read as the workspace."""

    code = "rehearsal/no-twin"


class RehearsalClock:
    """A clock that passes only by waiting, so that retries of a rehearsal take no time. Thread-safe.

    start: when it starts, as ISO 8601.
    """

    def __init__(self, start: str) -> None:
        self._start = datetime.fromisoformat(start)
        self._passed = 0.0
        self._lock = Lock()

    def passed(self) -> float:
        """Seconds that somebody waited."""
        return self._passed

    def wait(self, seconds: float, stop: Event | None = None) -> None:
        """Let so many seconds pass."""
        with self._lock:
            self._passed += seconds

    def now(self) -> datetime:
        """The time in UTC."""
        return (self._start + timedelta(seconds=self._passed)).astimezone(UTC)

    def epoch(self) -> float:
        """The time in seconds since the epoch."""
        return self.now().timestamp()


class Twin(Struct, frozen=True, kw_only=True):
    """An open twin. workspace: reads and plans on it, one request at a time, so that a run can be repeated."""

    service: Sandbox
    workspace: WorkspaceReader


@contextmanager
def open_twin(snapshot: Snapshot, settings: Settings, at: str) -> Iterator[Twin]:
    """Open a twin of a workspace for the length of a block. at: the time on its clock.

    Raises CannotRehearse for a snapshot that cannot be loaded: one that is redacted or incomplete, or that refers to
    what it does not hold.
    """
    if snapshot.redaction is not None:
        raise CannotRehearse(
            f"the plan cannot be rehearsed: {REDACTED}",
            hint="Save one without --redact, or rehearse on the workspace itself, without --snapshot.",
        )
    clock, numbers = RehearsalClock(at), count(1)
    service = Sandbox(
        spec=ApiSpec(_service_dialect(snapshot, settings), settings.dialect_at),
        clock=clock.epoch,
        # The ids that a snapshot holds may be of any form: none is one that a deleted resource of the workspace had.
        ids=lambda prefix: f"twin-{prefix}-{next(numbers)}",
    )
    try:
        _fill(service, snapshot)
        yield Twin(service=service, workspace=_workspace(service, settings, clock))
    finally:
        service.close_workspace()


def _workspace(service: Sandbox, settings: Settings, clock: RehearsalClock) -> WorkspaceReader:
    """Return a reader with a connection of its own, on which waiting takes no time."""
    retry = RetryPolicy(
        sleep=clock.wait,
        clock=clock.passed,
        wall_clock=clock.epoch,
        random_number=random.Random(0).random,  # noqa: S311  the same pauses in each rehearsal
    )
    return WorkspaceReader(
        settings=settings,
        connection=Connection(settings, retry=retry, service=service),
        parallelism=1,
        clock=clock.now,
        timing=WaitClock(now=clock.passed, sleep=clock.wait),
        patience=0.0,
    )


def _service_dialect(snapshot: Snapshot, settings: Settings) -> Mapping[str, str | int]:
    """Return the dialect that the twin itself speaks: that of the project, with the time format of live assignments.

    `auto` means that of the service, which only its own times show.
    """
    behaviour = ApiSpec(settings.dialect).behaviour(TIME_FORMAT)
    rows = (row for listing in snapshot.listings.values() for row in listing.rows)
    ends = (getattr(row, key, None) for row in rows for key in ("start", "finish"))
    first = next((end for end in ends if isinstance(end, str)), None) if behaviour == "auto" else None
    return settings.dialect if first is None or not first.isdigit() else {**settings.dialect, TIME_FORMAT: "epoch-ms"}


def _fill(service: Sandbox, snapshot: Snapshot) -> None:
    """Load a snapshot into an empty twin. Raises CannotRehearse."""
    try:
        with service.store.write_transaction() as repository:
            fill_workspace(repository, snapshot, source="snapshot", spec=service.spec, keeps_unlisted=True)
    except ProblemsFound as error:
        reasons = [problem.message for problem in error.problems]
        more = [f"… and {len(reasons) - _SHOWN:,} more"] if len(reasons) > _SHOWN else []
        hint = "\n".join(["It does not hold what a twin needs:", *map(escape_invisible, reasons[:_SHOWN]), *more])
        raise CannotRehearse("the plan cannot be rehearsed on this snapshot", hint=hint) from error


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


def rehearse_on(
    twin: Twin,
    plan: Plan,
    manifests: Manifests,
    policy: Policy,
    snapshot: Snapshot,
    progress: ApplyEvents | None = None,
) -> Rehearsal:
    """Rehearse a plan on an open twin of the snapshot, which is then as the plan leaves it.

    Raises CannotRehearse where the twin gives another plan.
    """
    progress = progress or ApplyEvents()
    planned = partial(plan_anew, twin.workspace, manifests, policy, progress.phase, "Reading")
    _refuse_other_plan(plan, planned()[0])
    report = execute(twin.workspace, plan, meta={}, progress=progress, verify=VerifyMode.ALL, made_from=manifests)
    requests = len(twin.service.log)
    remaining, problems = _second_plan(report, planned)
    failed = tuple(
        convert(outcome, CallResult, from_attributes=True)
        for outcome in report.outcomes
        if outcome.status is not CallStatus.DONE
    )
    return Rehearsal(
        receipt=RehearsalReceipt(
            plan_digest=plan_digest(plan),
            snapshot_digest=file_digest(snapshot),
            outcome=_outcome(failed, remaining, problems),
            at=plan.created_at,
            tool=f"lmsconf {__version__}",
        ),
        taken_at=snapshot.taken_at,
        calls=len(plan.calls),
        done=report.count(CallStatus.DONE),
        failed=failed,
        # What a plan says of such a change is said of the plan itself.
        remaining=tuple(replace(change, problems=()) for change in remaining),
        problems=problems,
        assumptions=tuple(_assumptions(plan, twin.workspace.connection.spec)),
        memberships=tuple(_groups(twin.workspace.connection, plan, report, remaining)),
        pace=RehearsalPace(requests=requests),
    )


def _assumptions(plan: Plan, spec: ApiSpec) -> Iterator[RehearsedAssumption]:
    """Yield the dialect keys that the calls of the plan rely on."""
    for key, calls in calls_by_key(plan, spec).items():
        operations = tuple(dict.fromkeys(call.operation for call in calls))
        yield RehearsedAssumption(
            key=key, value=spec.behaviour(key), operations=operations, declared=spec.is_known(key)
        )


def _refuse_other_plan(plan: Plan, twins: Plan) -> None:
    """Raise CannotRehearse if the twin, before the first call, does not give the plan that is rehearsed.

    The order of lists in a change is that of responses, and means nothing.
    """
    keys = ("action", "before", "after")
    then, now = ({str(change.address): change_hash(change, keys) for change in one.changes} for one in (plan, twins))
    differs = sorted({address for address, _ in then.items() ^ now.items()})
    if differs:
        more = f", and {len(differs) - _SHOWN:,} more" if len(differs) > _SHOWN else ""
        raise CannotRehearse(
            f"the plan cannot be rehearsed: the twin gives another plan for {', '.join(differs[:_SHOWN])}{more}",
            hint="The service returns something that the sandbox cannot hold. Review the plan without --rehearse.",
        )


def _second_plan(
    report: ApplyReport, planned: Callable[[], tuple[Plan, tuple[Problem, ...]]]
) -> tuple[tuple[Change, ...], tuple[Problem, ...]]:
    """Return the changes and errors of the second plan: that of the run's verification, if it was made."""
    if report.verified.scope is VerifyMode.ALL:
        return report.residue, report.problems
    now, broken = planned()
    return now.changes, tuple(dict.fromkeys((*report.problems, *broken)))


def _groups(
    connection: Connection, plan: Plan, report: ApplyReport, remaining: tuple[Change, ...]
) -> Iterator[RehearsedGroup]:
    """Yield the groups whose membership the plan changes, with the members that they have on the twin now."""
    deleted = {change.address for change in plan.changes if change.action is Action.DELETE}
    deleted -= {change.address for change in remaining}
    ids = {
        **{outcome.address: RemoteId(outcome.id) for outcome in report.outcomes if outcome.id is not None},
        **{change.address: change.id for change in plan.changes if change.id is not None},
    }
    if not plan.effects.groups:
        return
    with connection.worker_pool(1) as pool:
        api = connection.reader(pool)
        people = api.rows(USERS, keep=keep_keys("userId", "archivedAt")).rows
        archived = {RemoteId(str(row["userId"])) for row in people if row.get("archivedAt")}
        smart = {group.address for group in plan.effects.groups if group.address.kind == SMART_GROUP} - deleted
        # A service may have several manual groups of a name.
        ids |= smart_group_ids(api, smart - ids.keys())
        for group in plan.effects.groups:
            is_deleted = group.address in deleted
            members = frozenset() if is_deleted else _live_members(api, group.address, ids.get(group.address))
            yield RehearsedGroup(
                address=group.address,
                before=group.before,
                predicted=group.after,
                reached=None if members is None else len(members - archived),
                basis=group.basis,
            )


def _outcome(
    failed: tuple[CallResult, ...], remaining: tuple[Change, ...], problems: tuple[Problem, ...]
) -> RehearsalOutcome:
    if failed:
        return RehearsalOutcome.REFUSED
    if remaining or any(problem.is_error for problem in problems):
        return RehearsalOutcome.NOT_CONVERGED
    return RehearsalOutcome.SUCCESS


def _live_members(api: Api, group: Address, id: RemoteId | None) -> frozenset[RemoteId] | None:
    """Return the ids of the listed members, archived people too; None without the group. Raises ApiError."""
    if id is None:
        return None
    if group.kind == SMART_GROUP:
        return next(read_members(api, [id]))
    return parse_user_ids(api.get("manual-groups.members", path={"groupId": id}))


def rehearsed_plan(
    reader: WorkspaceReader,
    manifests: Manifests,
    policy: Policy,
    live: Snapshot,
    *,
    base: BaseManifests | None,
    offline: bool = False,
    max_rate: float | None,
    progress: ApplyEvents | None = None,
) -> Plan:
    """Return the plan of the manifests with its rehearsal. Raises CannotRehearse, and ProblemsFound like any plan.

    live: the whole workspace; offline: from a saved snapshot. base: the manifests to compare with. max_rate: requests a
    second, at most.
    """
    plan = (
        reader.plan_offline(manifests, policy, live)
        if base is None
        else plan_with_base(reader, manifests, policy, base, snapshot=live)
    )
    plan, rate = replace(plan, offline=offline), None if offline else reader.connection.rate
    with open_twin(live, reader.settings, plan.created_at) as twin:
        done = rehearse_on(twin, plan, manifests, policy, live, progress)
    pace = replace(done.pace, rate=rate, is_limit=rate is not None and rate == max_rate)
    return replace(plan, rehearsal=replace(done, pace=pace))
