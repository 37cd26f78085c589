"""The live rows that existing manifests declare or delete, under whatever name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.planning import match_kind
from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.context import CallTemplates, PlanContext
from lmsconf.planner.kind import Kind


class DeclaredRows(Struct, frozen=True):
    """What existing manifests declare or delete.

    ids: of live rows by kind. this_workspace, other_workspaces: the addresses for this one, and those only for others.
    """

    ids: Mapping[str, frozenset[str]]
    this_workspace: frozenset[Address]
    other_workspaces: frozenset[Address]


def find_declared_rows(
    existing: Manifests, snapshot: Snapshot, kinds: Mapping[str, Kind], policy: Policy, call_templates: CallTemplates
) -> DeclaredRows:
    """Return the live rows that manifests declare or delete; rows that are deleted together with those included."""
    # Without ownership: rows that are owned but not declared are to be exported.
    planning = PlanContext(snapshot, replace(policy, ownership={}), call_templates, lambda _: True)
    resources = [resource for resource in existing.declared if _applies(resource, policy)]
    delete_entries = [entry for entry in existing.absent if _applies(entry, policy)]
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for name, kind in kinds.items():
        declared = [resource for resource in resources if resource.address.kind == name]
        absent = [entry for entry in delete_entries if entry.address.kind == name]
        result = match_kind(planning, kind.name, declared, absent)
        ids[name].update(match.row.id for match in result.matches if match.row is not None)
        ids[name].update(one.row.id for one in result.deletions if one.absent is not None or one.with_ is not None)
    this_workspace = frozenset([resource.address for resource in resources] + [one.address for one in delete_entries])
    every = [resource.address for resource in existing.declared] + [entry.address for entry in existing.absent]
    return DeclaredRows(
        {name: frozenset(of) for name, of in ids.items()}, this_workspace, frozenset(every) - this_workspace
    )


def _applies(entry: DesiredResource[Any] | DeleteEntry[Any], policy: Policy) -> bool:
    return entry.applies_in(policy.workspace)
