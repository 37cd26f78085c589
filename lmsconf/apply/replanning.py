"""Plan again what a plan changes: to evaluate its guards, to see that it still fits, and to verify a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver
from lmsconf.apply.scheduler import Phase, RunResult, unreported
from lmsconf.apply.staleness import find_foreign_changes, find_stale_resources, refuse_unusable
from lmsconf.errors import (
    ExitCode,
    LmsconfError,
    Problem,
    ProblemsFound,
    Rejected,
    StalePlan,
    Unauthorized,
    WrongAssumption,
    interrupt_exit_code,
)
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus, Report
from lmsconf.model.declarations import Manifests
from lmsconf.model.guards import Consent, GuardLimits, Policy, saved_guard_limits
from lmsconf.model.names import exact_pattern, matches_patterns
from lmsconf.model.outcomes import ApplyReport, VerifiedScope, VerifyMode, count_skipped_people, is_already_accepted
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.check_guards import evaluate_guards, find_protected_changes, find_protected_losses
from lmsconf.planner.plan import desired_state_of_changes, move_problems_to_changes, people_to_read
from lmsconf.planner.read.needed_listings import ReadScope
from lmsconf.workspace.reader import WorkspaceReader

Replan: TypeAlias = Callable[[], tuple[Plan, tuple[Problem, ...]]]
"""Plans again; also returns the errors of what cannot be planned."""


def unverified(report: ApplyReport, reason: str, problems: tuple[Problem, ...] = ()) -> ApplyReport:
    """Return a report where nothing was read, or could be, with the reason."""
    return replace(report, verified=VerifiedScope(reason=reason), problems=problems)


def verify_by_replanning(
    workspace: WorkspaceReader,
    plan: Plan,
    report: ApplyReport,
    resolver: AmbiguousWriteResolver,
    replan: Replan | str,
    phase: Phase,
) -> ApplyReport:
    """Plan again. Everything is read once; acknowledged writes may become visible late, and only those are read again.

    Returns the report with what it showed, and the errors of what could not be planned or read. replan: plans
    everything in the plan's selection; or the reason why only what the plan touched is verified.
    """
    addresses = {outcome.address for outcome in report.outcomes}
    whole = None if isinstance(replan, str) else replan
    verified = VerifiedScope(
        scope=VerifyMode.TOUCHED if whole is None else VerifyMode.ALL,
        resources=len({change.address for change in plan.changes}),
        partial=plan.partial,
        reason=replan if isinstance(replan, str) else None,
    )
    seen = replace(report, verified=verified, converged=False)
    for _ in resolver.poll_times(resolver.settle_after_response):
        try:
            if whole is None:
                changes = replay(workspace, plan, phase=phase).changes
            else:
                now, errors = whole()
                changes = tuple(change for change in now.changes if change.address in addresses)
                seen = replace(
                    seen,
                    verified=replace(
                        verified, skipped=count_skipped_people(now.all_problems), left_out=len(now.left_out)
                    ),
                    residue=tuple(change for change in now.changes if change.address not in addresses),
                    problems=errors,
                )
                whole = None  # From here on, only what was touched is read again.
        except ProblemsFound as error:
            return replace(seen, problems=(*seen.problems, *(one for one in error.problems if one.is_error)))
        except Rejected as refused:
            # What the run has deleted may still be listed, and not be readable any more.
            result = unverified(report, refused.message, refused.problems)
            continue
        except LmsconfError as error:
            return unverified(report, error.message, error.problems)
        residue = (*changes, *seen.residue)
        result = replace(seen, converged=not (residue or seen.problems), residue=residue)
        if not any(change.address in addresses and is_already_accepted(change, report.outcomes) for change in changes):
            break
    return result


def exit_code(run: RunResult, converged: bool | None) -> ExitCode:
    """Map a run to its exit code."""
    if run.interrupted_by is not None:
        return interrupt_exit_code(run.interrupted_by)
    if run.stopped_by is not None and not run.may_have_written:
        return run.stopped_by.exit
    if all(outcome.status is CallStatus.DONE for outcome in run.outcomes):
        # A plan without calls whose manifests are not available leaves nothing to do or to verify.
        return ExitCode.OK if converged or (converged is None and not run.outcomes) else ExitCode.NOT_CONVERGED
    if run.may_have_written:
        return (
            ExitCode.NOT_CONVERGED
            if any(isinstance(error, WrongAssumption) and not error.refused for error in run.errors)
            else ExitCode.PARTIAL
        )
    if any(isinstance(error, Unauthorized) for error in run.errors):
        return ExitCode.UNAUTHORIZED
    return ExitCode.BLOCKED if any(error.code == "refusal/in-use" for error in run.errors) else ExitCode.ERROR


def reevaluate_guards(workspace: WorkspaceReader, plan: Plan, consents: Iterable[Consent]) -> Plan:
    """Return the plan under the current guards and those that it was saved with: the stricter limit holds."""
    policy, saved = workspace.settings.policy, _saved_guards(plan)
    guards = evaluate_guards(
        plan.measures,
        policy.guards,
        [*policy.consents, *consents],
        ("under the limits that the plan was saved with", saved),
    )
    refused = list(find_protected_changes(plan.changes, policy.guards.stricter(saved).protect))
    again = {one.address for one in refused}
    # A group that the plan was saved with as protected was judged then, apart from those who are archived meanwhile.
    left = {
        group.address: group.leave
        for group in plan.effects.groups
        if group.leave
        and group.address.kind == SMART_GROUP
        and str(group.address) not in again
        and not any(matches_patterns(str(group.address), patterns) for patterns in saved.protect)
    }
    refused += find_protected_losses(left, policy.guards.protect)
    # A resource that the base protects is a problem of the whole plan (no address), and stays. So does a saved
    # refusal: plans list their patterns without the lists that exclusions belong to.
    kept = [
        problem
        for problem in plan.all_problems
        if problem.code != "refusal/protected" or problem.address is None or problem.address not in again
    ]
    # Assign problems to changes again, so that a plan whose problems are the same keeps its digest.
    changes, problems = move_problems_to_changes(plan.changes, [*kept, *refused])
    return replace(plan, guards=guards, changes=changes, problems=tuple(problems))


def refuse_stale_plan(workspace: WorkspaceReader, plan: Plan, phase: Phase = unreported) -> Snapshot:
    """Return the snapshot that a plan fits. Raises StalePlan if it expired, or is of another state or workspace."""
    with phase("Checking") as progress:
        return _fitting(workspace, plan, find_stale_resources, progress)[0]


def plan_what_is_left(workspace: WorkspaceReader, plan: Plan) -> Plan:
    """Return what is left of a plan, of which an earlier run may have carried out any number of calls.

    Raises StalePlan as `refuse_stale_plan` does, where a resource is not between what it was when the plan was
    made and what the plan makes of it.
    """
    _, left = _fitting(workspace, plan, find_foreign_changes)
    # Its guards were evaluated for the whole plan, and it is verified as the whole plan would be.
    return replace(left, guards=plan.guards, selection=plan.selection, expires_at=plan.expires_at, undo_of=plan.undo_of)


def _fitting(
    workspace: WorkspaceReader,
    plan: Plan,
    find: Callable[[Plan, Plan, Sequence[Problem]], Sequence[Problem]],
    progress: Report | None = None,
) -> tuple[Snapshot, Plan]:
    """Return what the plan's own changes depend on, and these changes planned again.

    Raises StalePlan if the plan expired, is offline or for another workspace, and where `find` returns differences
    between both plans.
    """
    refuse_unusable(workspace, plan)
    own = own_changes(workspace, plan)
    snapshot = workspace.read(own, progress)
    now, unplannable = workspace.plan_with_errors(own.manifests, own.policy, snapshot)
    if differences := find(plan, now, unplannable):
        changed = ", ".join(dict.fromkeys(difference.address for difference in differences if difference.address))
        raise StalePlan(
            f"the workspace has changed since the plan was made{': ' if changed else ''}{changed}",
            hint="Plan again and review it.",
            problems=differences,
        )
    return snapshot, now


def replay(workspace: WorkspaceReader, plan: Plan, *, only: Address | None = None, phase: Phase = unreported) -> Plan:
    """Re-plan the plan's own changes on the current snapshot. only: of this resource, and what it needs."""
    own = own_changes(workspace, plan, only)
    with phase("Verifying") as progress:
        snapshot = workspace.read(own, progress)
    return workspace.draft(own.manifests, snapshot, own.policy).plan


def own_changes(workspace: WorkspaceReader, plan: Plan, only: Address | None = None) -> ReadScope:
    """Return a plan's own changes as manifests, with the policy to plan them: no ownership, nothing excluded.

    All that they are compared with is read; people by the ids in the plan. only: of this resource, and what it needs.
    """
    project_policy = workspace.settings.policy
    policy = Policy(
        workspace=project_policy.workspace,
        today=project_policy.today,
        timezone=project_policy.timezone,
        create_people=project_policy.create_people,
        # Only totals are compared, and a percentage limit would cost reads.
        guards=_unlimited(project_policy, plan),
        only=() if only is None else (exact_pattern(str(only)),),
        # Unchanged resources of the plan are not in these manifests, and would look undeclared.
        compares=0,
    )
    return ReadScope(desired_state_of_changes(plan), policy, people=people_to_read(plan))


def replan_everything(
    workspace: WorkspaceReader, plan: Plan, manifests: Manifests, phase: Phase
) -> tuple[Plan, tuple[Problem, ...]]:
    """Re-plan the plan's whole selection of the manifests; also return the errors of what cannot be planned."""
    policy = replace(
        workspace.settings.policy,
        # No guard is evaluated here, and percentage limits and rename detection would cost reads.
        guards=_unlimited(workspace.settings.policy, plan),
        compares=0,
        only=plan.selection.only,
        excluded=plan.selection.excluded,
        additive=plan.selection.additive,
        verifying=True,
    )
    return plan_anew(workspace, manifests, policy, phase, "Verifying")


def plan_anew(
    workspace: WorkspaceReader, manifests: Manifests, policy: Policy, phase: Phase, label: str
) -> tuple[Plan, tuple[Problem, ...]]:
    """Read what manifests need, and plan them as a phase with this label; also return the errors of the rest."""
    with phase(label) as progress:
        snapshot = workspace.read(ReadScope(manifests, policy), progress)
    return workspace.partial_plan(manifests, policy, snapshot)


def _unlimited(policy: Policy, plan: Plan) -> GuardLimits:
    """Guards without percentage limits, which need reads, and with the stricter `min_admins` of plan and project."""
    least = policy.guards.stricter(_saved_guards(plan)).min_admins
    return GuardLimits(min_admins=least).with_limits({"removals": None, "updates": None})


def _saved_guards(plan: Plan) -> GuardLimits:
    """The guards that the plan was evaluated under when it was made, including those of its base."""
    return saved_guard_limits({guard.name: guard.limit for guard in plan.guards}, plan.policy)
