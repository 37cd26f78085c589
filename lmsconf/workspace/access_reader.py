"""Read a workspace to answer questions about people, with the plan of the manifests where one can be made."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.kinds import all_kinds
from lmsconf.kinds.content_target.effects.query import AccessQuery
from lmsconf.kinds.content_target.effects.state import WorkspaceAccess, read_access_state
from lmsconf.model.access import ReportHeader
from lmsconf.model.declarations import Manifests
from lmsconf.model.effects import Basis
from lmsconf.model.policy import Policy
from lmsconf.model.progress import Report
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.plan import DraftPlan, draft_plan
from lmsconf.workspace.reader import WorkspaceReader, reads_needed


class PeopleView(NamedTuple):
    """Answers about people, and the header of a report made from them."""

    state: WorkspaceAccess
    header: ReportHeader


def read_people_view(
    workspace: WorkspaceReader, manifests: Manifests, query: AccessQuery, progress: Report | None = None
) -> PeopleView:
    """Read what a query asks for, before and after the plan; only before where no plan can be made."""
    problems = tuple(problem for problem in manifests.problems if problem.is_error)
    usable = Manifests() if problems else manifests
    policy = replace(workspace.settings.policy, effects=True)
    if problems:
        # Manifests that cannot be read own nothing: else all that they would declare is planned for deletion.
        policy = replace(policy, ownership={})
    reading, snapshot = workspace.read_on(reads_needed(usable, policy), progress)
    sent = reading.api.requests
    draft, failed = _draft(workspace, usable, snapshot, policy)
    with workspace.connection.worker_pool(workspace.parallelism, progress) as pool:
        reading.api = workspace.connection.reader(pool)
        state = read_access_state(draft, reading, query)
    return PeopleView(state, _header(draft, sent + reading.api.requests, (*problems, *failed)))


def _draft(
    workspace: WorkspaceReader, manifests: Manifests, snapshot: Snapshot, policy: Policy
) -> tuple[DraftPlan, tuple[Problem, ...]]:
    """Return the plan; where none can be made, one that changes nothing, with the errors."""
    try:
        return _plan(workspace, manifests, snapshot, policy), ()
    except ProblemsFound as failed:
        return _plan(workspace, Manifests(), snapshot, replace(policy, ownership={})), failed.problems


def _plan(workspace: WorkspaceReader, manifests: Manifests, snapshot: Snapshot, policy: Policy) -> DraftPlan:
    kinds, templates = all_kinds(), workspace.call_templates
    return draft_plan(kinds, manifests, snapshot, policy, templates, created_at=workspace.now())


def _header(draft: DraftPlan, requests: int, problems: tuple[Problem, ...]) -> ReportHeader:
    errors = tuple(problem for problem in problems if problem.is_error)
    return ReportHeader(
        workspace=draft.plan.workspace,
        url=draft.plan.url,
        people=draft.plan.people,
        created_at=draft.plan.created_at,
        planned=not errors,
        basis=Basis.EXACT,
        reasons=(),
        requests=requests,
        problems=errors,
    )
