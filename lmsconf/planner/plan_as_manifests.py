"""Turn a plan's changes back into declarations, to re-plan before a run and to verify after it.

Thus a plan file is applied without its manifests, and the fresh plan that checks it covers the same resources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmsconf.errors import LmsconfError, Problem, SourceLocation, StalePlan
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import CallIndex
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource, Manifests
from lmsconf.model.plan import Action, Plan
from lmsconf.planner.kind import AnyKind, ManifestEntry, required_keys


def plan_to_manifests(plan: Plan, kinds: Mapping[str, AnyKind]) -> Manifests:
    """Return the desired state of the resources that the plan changes.

    Raises LmsconfError for a form that its kind cannot parse, StalePlan for one without its identifying keys.
    """
    declared: list[DesiredResource[Any]] = []
    absent: list[DeleteEntry[Any]] = []
    calls = CallIndex(plan.calls)
    for change in plan.changes:
        if change.is_effect:
            # Not declared: a side effect of another change.
            continue
        kind = kinds[change.address.kind]
        side = change.before if change.action is Action.DELETE else change.after
        if not isinstance(side, dict) or not required_keys(kind) <= side.keys():
            hint = "Plan again, and apply that file unchanged."
            raise StalePlan(f"{change.address}: the plan describes it incompletely", hint=hint)
        body = kind.replay_entry(change, side, calls)
        places = FixedSource(change.source or SourceLocation(str(change.address)))
        entry = ManifestEntry(body=body, places=places, timezone=None, report=_refuse)
        if change.action is Action.DELETE:
            absent.extend(kind.parse_absent(entry))
        else:
            declared.extend(kind.parse(entry))
    return Manifests(
        declared=tuple(declared),
        absent=tuple(absent),
        files=plan.manifests_files,
        digest=plan.manifests_digest,
    )


def people_ids(plan: Plan, kinds: Mapping[str, AnyKind]) -> frozenset[RemoteId]:
    """Return the ids of the people that the plan changes, and of those that its calls add to lists."""
    changed = {change.id for change in plan.changes if change.id is not None and kinds[change.address.kind].is_person}
    bodies = (call.body.values() for call in plan.calls if call.people and isinstance(call.body, Mapping))
    lists = (value for values in bodies for value in values if isinstance(value, list))
    return frozenset(changed | {RemoteId(id) for ids in lists for id in ids if isinstance(id, str)})


def _refuse(problem: Problem) -> None:
    raise LmsconfError(problem.message, hint=problem.hint)
