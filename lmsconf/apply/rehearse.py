"""Rehearse a plan on a twin: check the twin, send the plan's own calls, read back, and plan a second time.

A twin is an embedded workspace in memory, filled from a snapshot, under the same dialect and at the same time. Guards
and foretold refusals stop nothing here: the calls are sent as if they were allowed, to see what becomes of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from threading import Event

from msgspec import convert
from msgspec.structs import replace

from lmsconf import __version__
from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import TIME_FORMAT
from lmsconf.api.spec.operations import USERS
from lmsconf.apply.explain_mismatch import few
from lmsconf.apply.replanning import plan_anew
from lmsconf.apply.run_plan import execute
from lmsconf.apply.scheduler import ApplyEvents
from lmsconf.apply.staleness import change_hash
from lmsconf.documents.plan_file import plan_digest
from lmsconf.documents.snapshot_file import file_digest
from lmsconf.errors import LmsconfError, Problem, ProblemsFound, StalePlan, refuse_if
from lmsconf.kinds.assignment.types import TargetRow
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Api, CallResult, CallStatus
from lmsconf.model.control_characters import escape_invisible
from lmsconf.model.declarations import Manifests
from lmsconf.model.guards import Policy
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
from lmsconf.planner.plan import calls_by_assumption
from lmsconf.planner.read.fields_and_groups import parse_user_ids, read_members, smart_group_ids
from lmsconf.planner.read.needed_listings import keep_keys
from lmsconf.project.settings import Settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.fill_sandbox import fill_workspace
from lmsconf.workspace.plan_with_base import plan_with_base
from lmsconf.workspace.project_manifests import BaseManifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader


class CannotRehearse(LmsconfError, code="rehearsal/no-twin"):
    """A snapshot of which no twin can be made, or a twin that does not read as the workspace."""


class RehearsalClock:
    """A clock that passes only by waiting, so that retries of a rehearsal take no time.

    start: when it starts, as ISO 8601.
    """

    def __init__(self, start: str) -> None:
        self._now = datetime.fromisoformat(start).timestamp()

    def wait(self, seconds: float, stop: Event | None = None) -> None:
        """Let so many seconds pass."""
        self._now += seconds

    def epoch(self) -> float:
        """The time in seconds since the epoch."""
        return self._now


@contextmanager
def open_twin(snapshot: Snapshot, settings: Settings, at: str) -> Iterator[tuple[Sandbox, WorkspaceReader]]:
    """Open a twin of a workspace for the length of a block. at: the time on its clock.

    The reader plans on it, one request at a time, so that a run can be repeated.

    Raises CannotRehearse for a snapshot that cannot be loaded: one that is redacted or incomplete, or that refers to
    what it does not hold.
    """
    clock, numbers = RehearsalClock(at), count(1)
    service = Sandbox(
        spec=ApiSpec(_service_dialect(snapshot, settings), settings.dialect_at),
        clock=clock.epoch,
        # The ids that a snapshot holds may be of any form: none is one that a deleted resource of the workspace had.
        ids=lambda prefix: f"twin-{prefix}-{next(numbers)}",
    )
    try:
        _fill(service, snapshot)
        yield (
            service,
            WorkspaceReader(
                settings=settings,
                connection=Connection(
                    settings,
                    retry=RetryPolicy(
                        sleep=clock.wait,
                        clock=clock.epoch,
                        wall_clock=clock.epoch,
                        random_number=random.Random(0).random,  # noqa: S311  the same pauses in each rehearsal
                    ),
                    service=service,
                ),
                parallelism=1,
                clock=lambda: datetime.fromtimestamp(clock.epoch(), UTC),
                timing=WaitClock(now=clock.epoch, sleep=clock.wait),
                patience=0.0,
            ),
        )
    finally:
        service.close_workspace()


def _service_dialect(snapshot: Snapshot, settings: Settings) -> Mapping[str, str | int]:
    """Return the dialect that the twin itself speaks: that of the project, with the time format of live assignments.

    `auto` means that of the service, which only its own times show.
    """
    ends = (end for row in snapshot.rows(TargetRow) for end in (row.start, row.finish) if end is not None)
    if ApiSpec(settings.dialect).behaviour(TIME_FORMAT) == "auto" and next(ends, "").isdigit():
        return {**settings.dialect, TIME_FORMAT: "epoch-ms"}
    return settings.dialect


def _fill(service: Sandbox, snapshot: Snapshot) -> None:
    """Load a snapshot into an empty twin. Raises CannotRehearse."""
    try:
        with service.store.write_transaction() as repository:
            fill_workspace(repository, snapshot, source="snapshot", spec=service.spec, keeps_unlisted=True)
    except ProblemsFound as error:
        if snapshot.redaction is not None:
            raise CannotRehearse(
                f"the plan cannot be rehearsed: {error.problems[0].message}",
                hint="Save one without --redact, or rehearse on the workspace itself, without --snapshot.",
            ) from error
        raise CannotRehearse(
            "the plan cannot be rehearsed on this snapshot",
            hint="It does not hold what a twin needs:\n"
            + few([escape_invisible(problem.message) for problem in error.problems], "\n", most=5),
        ) from error


def refuse_unrehearsed(plan: Plan, digest: str) -> None:
    """Raise StalePlan unless the plan, with this digest, was rehearsed successfully.

    The receipt is covered by the seal and the signature of the plan file, which loading it verifies.
    """
    again = "Rehearse it with: lmsconf plan --rehearse --out FILE. Review and apply that file."
    if plan.rehearsal is None:
        raise StalePlan("the plan was not rehearsed, and --require-rehearsal is given", hint=again)
    receipt, failed = plan.rehearsal.receipt, "the rehearsal of the plan did not succeed"
    change = "`lmsconf show FILE` shows what happened. Change the manifests, and rehearse again."
    refuse_if(
        (
            receipt.plan_digest != digest,
            f"the rehearsal in the file is of a plan with the digest {receipt.plan_digest}, and this one's is {digest}",
            again,
        ),
        (
            receipt.outcome is RehearsalOutcome.REFUSED,
            f"{failed}: some of its calls were refused",
            change,
        ),
        (
            receipt.outcome is not RehearsalOutcome.SUCCESS,
            f"{failed}: a second plan on the twin was not empty",
            change,
        ),
        error=StalePlan,
    )


def rehearse_on(
    service: Sandbox,
    twin: WorkspaceReader,
    plan: Plan,
    manifests: Manifests,
    policy: Policy,
    snapshot: Snapshot,
    progress: ApplyEvents | None = None,
) -> Rehearsal:
    """Rehearse a plan on an open twin of the snapshot, which is then as the plan leaves it.

    Raises CannotRehearse where the twin gives another plan.
    """
    progress, spec = progress or ApplyEvents(), twin.connection.spec
    planned = partial(plan_anew, twin, manifests, policy, progress.phase, "Reading")
    _refuse_other_plan(plan, planned()[0])
    report = execute(twin, plan, meta={}, progress=progress, verify=VerifyMode.ALL, made_from=manifests)
    requests = len(service.log)
    remaining, problems = report.residue, report.problems
    if report.verified.scope is not VerifyMode.ALL:
        now, broken = planned()
        remaining, problems = now.changes, tuple(dict.fromkeys((*report.problems, *broken)))
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
        done=report.summary[CallStatus.DONE],
        failed=failed,
        # What a plan says of such a change is said of the plan itself.
        remaining=tuple(replace(change, problems=()) for change in remaining),
        problems=problems,
        assumptions=tuple(
            RehearsedAssumption(
                key=key,
                value=spec.behaviour(key),
                operations=tuple(dict.fromkeys(call.operation for call in calls)),
                declared=spec.is_known(key),
            )
            for key, calls in calls_by_assumption(plan, spec).items()
        ),
        memberships=tuple(_groups(twin.connection, plan, report, remaining)),
        pace=RehearsalPace(requests=requests),
    )


def _refuse_other_plan(plan: Plan, twins: Plan) -> None:
    """Raise CannotRehearse if the twin, before the first call, does not give the plan that is rehearsed.

    The order of lists in a change is that of responses, and means nothing.
    """
    then, now = (
        {(str(change.address), change_hash(change, ("action", "before", "after"))) for change in one.changes}
        for one in (plan, twins)
    )
    if differs := sorted({address for address, _ in then ^ now}):
        raise CannotRehearse(
            f"the plan cannot be rehearsed: the twin gives another plan for {few(differs, most=5)}",
            hint="The service returns something that the sandbox cannot hold. Review the plan without --rehearse.",
        )


def _groups(
    connection: Connection, plan: Plan, report: ApplyReport, remaining: tuple[Change, ...]
) -> Iterator[RehearsedGroup]:
    """Yield the groups whose membership the plan changes, with the members that they have on the twin now."""
    deleted = {change.address for change in plan.changes if change.action is Action.DELETE} - {
        change.address for change in remaining
    }
    ids = {
        **{outcome.address: RemoteId(outcome.id) for outcome in report.outcomes if outcome.id is not None},
        **{change.address: change.id for change in plan.changes if change.id is not None},
    }
    if not plan.effects.groups:
        return
    with connection.worker_pool(1) as pool:
        api = connection.reader(pool)
        archived = {
            RemoteId(str(row["userId"]))
            for row in api.rows(USERS, keep=keep_keys("userId", "archivedAt")).rows
            if row.get("archivedAt")
        }
        smart = {group.address for group in plan.effects.groups if group.address.kind == SMART_GROUP} - deleted
        # A service may have several manual groups of a name.
        ids |= smart_group_ids(api, smart - ids.keys())
        for group in plan.effects.groups:
            members = (
                frozenset() if group.address in deleted else _live_members(api, group.address, ids.get(group.address))
            )
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
    is_left = remaining or any(problem.is_error for problem in problems)
    return RehearsalOutcome.NOT_CONVERGED if is_left else RehearsalOutcome.SUCCESS


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
    with open_twin(live, reader.settings, plan.created_at) as (service, twin):
        done = rehearse_on(service, twin, plan, manifests, policy, live, progress)
    pace = replace(done.pace, rate=rate, is_limit=rate is not None and rate == max_rate)
    return replace(plan, rehearsal=replace(done, pace=pace))
