"""Compare a plan with the plan of the manifests it replaces (the base), on one snapshot.

Each change is classified: made by this change, pending before it, or a repair of a manual edit. Also lists the
resources that the change abandons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.export import absent_assignment_entry
from lmsconf.kinds.planning import match_kind
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET
from lmsconf.manifest.edit.yaml_text import format_inline
from lmsconf.model.blockers import is_blocking
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.model.plan import Change, ChangeOrigin, NoLongerDeclared, Plan
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.context import CallTemplates, PlanContext
from lmsconf.planner.guards import evaluate_guards
from lmsconf.planner.kind import Kind
from lmsconf.planner.read_scope import Declarations


class ManifestsVersion(NamedTuple):
    """Manifests of one commit or folder, with the settings of its project file as a policy and by path."""

    manifests: Manifests
    policy: Policy
    settings: Mapping[str, Json]


class BaseManifests(Struct, frozen=True, kw_only=True):
    """What manifests are compared with. older: previous versions, latest first, as far as the history reaches."""

    name: str
    version: ManifestsVersion
    older: Sequence[ManifestsVersion] = ()


Planned = Callable[[ManifestsVersion], "Sequence[Change] | None"]
"""Plan a version on the snapshot; None if it cannot be planned."""


def merge_manifests(manifests: Manifests, others: Manifests, kinds: Mapping[str, Kind]) -> Manifests:
    """The manifests, plus everything that the others declare."""
    more = Declarations(others.declared, others.absent)
    both = Declarations(manifests.declared, manifests.absent).merge(more, kinds)
    return replace(manifests, declared=tuple(both.declared), absent=tuple(both.absent))


def attach_origins(plan: Plan, base: BaseManifests, planned: Planned) -> Plan:
    """Return the plan with the origin of each change set."""
    before = planned(base.version)
    if before is None:
        return replace(plan, base=base.name, problems=(*plan.problems, _unplannable(base.name)))
    shared = {_key(change) for change in plan.changes} & {_key(change) for change in before}
    pending = shared - _lasting(shared, base.older, planned)
    changes = tuple(replace(change, origin=_origin(_key(change), shared, pending)) for change in plan.changes)
    return replace(plan, base=base.name, changes=changes)


def evaluate_base_guards(plan: Plan, policy: Policy, base: BaseManifests, under_base: Plan) -> Plan:
    """Evaluate the plan under the guards of its base too, and add what those refuse.

    under_base: the same manifests, planned under the base's guards. What only those refuse is a problem of the whole
    plan, not of a change, so that the plan keeps the digest that it has without a base.
    """
    under = f"under the settings of {base.name}"
    guards = evaluate_guards(plan.measures, policy.guards, policy.consents, (under, base.version.policy.guards))
    known = {(problem.code, problem.address) for problem in plan.all_problems}
    refused = tuple(
        replace(problem, message=f"{problem.message}, {under}", address=None)
        for problem in under_base.all_problems
        if is_blocking(problem) and (problem.code, problem.address) not in known
    )
    return replace(plan, guards=guards, problems=(*plan.problems, *refused))


def _key(change: Change) -> str:
    """A comparable key of a change: everything it does."""
    return repr((change.address, change.action, change.id, change.before, change.after))


def _lasting(shared: set[str], older: Sequence[ManifestsVersion], planned: Planned) -> set[str]:
    """The changes that every older version contains too: repairs, since none of these versions introduced them."""
    left, known = set(shared), False
    for version in older:
        if not left:
            break
        changes = planned(version)
        if changes is not None:
            known = True
            left &= {_key(change) for change in changes}
    return left if known else set()


def _origin(key: str, shared: set[str], pending: set[str]) -> ChangeOrigin:
    if key not in shared:
        return ChangeOrigin.THIS_CHANGE
    return ChangeOrigin.PENDING if key in pending else ChangeOrigin.REPAIR


def find_orphaned_resources(
    kinds: Mapping[str, Kind],
    now: ManifestsVersion,
    base: ManifestsVersion,
    snapshot: Snapshot,
    call_templates: CallTemplates,
) -> tuple[NoLongerDeclared, ...]:
    """Resources that are live, were declared by the base, and are now neither declared nor deleted."""
    current = {row for row, _ in _declared_rows(kinds, now, snapshot, call_templates)}
    left = (
        declared
        for row, declared in _declared_rows(kinds, base, snapshot, call_templates)
        if declared is not None and row not in current and kinds[declared.address.kind].ownership_schema is not None
    )
    workspace = now.policy.workspace
    lines = {declared.address: _absent_line(kinds[declared.address.kind], declared, workspace) for declared in left}
    return tuple(NoLongerDeclared(address=address, absent=lines[address]) for address in sorted(lines))


def _absent_line(kind: Kind, declared: DesiredResource[Any], workspace: str) -> str:
    """Return the `absent` section that deletes one resource in a workspace, such as `absent: {groups: [Sales]}`."""
    id = declared.pin(workspace)
    entry: Json
    if kind.name == CONTENT_TARGET:
        entry = absent_assignment_entry(declared.spec, workspace)
    else:
        entry = declared.address.name if id is None else {kind.name_key: declared.address.name, "id": id}
    return f"absent: {format_inline({kind.section: [entry]})}"


def _declared_rows(
    kinds: Mapping[str, Kind], version: ManifestsVersion, snapshot: Snapshot, call_templates: CallTemplates
) -> Iterator[tuple[tuple[str, str], DesiredResource[Any] | None]]:
    """Kind and id of each live row that manifests declare, with its declaration; None for one to be deleted."""
    manifests, policy = version.manifests, version.policy
    planning = PlanContext(snapshot, policy, call_templates, lambda _: True)
    for name, kind in kinds.items():
        declared = [resource for resource in manifests.declared if _is_of(resource, name, policy)]
        absent = [entry for entry in manifests.absent if _is_of(entry, name, policy)]
        matched = match_kind(planning, kind.name, declared, absent)
        yield from (((name, match.row.id), match.declared) for match in matched.matches if match.row is not None)
        yield from (((name, deletion.row.id), None) for deletion in matched.deletions)


def _is_of(entry: DesiredResource[Any] | DeleteEntry[Any], kind: str, policy: Policy) -> bool:
    return entry.address.kind == kind and entry.applies_in(policy.workspace)


def _unplannable(name: str) -> Problem:
    return Problem(
        code="base/not-planned",
        message=f"the manifests of {name} cannot be planned, so changes cannot be attributed",
        severity=Severity.WARNING,
        hint="To see the errors, check them out and run `lmsconf plan`.",
    )
