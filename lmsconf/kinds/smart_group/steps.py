"""The calls that create, change and delete smart groups."""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.kinds.shared.names import SMART_GROUP
from lmsconf.kinds.shared.people_lists import People
from lmsconf.kinds.shared.renames import freed_name_slot, name_slot, rename_steps
from lmsconf.kinds.smart_group.conditions import conditions_of, in_ids, in_names, named_refs
from lmsconf.kinds.smart_group.types import SmartGroupSpec, SmartRow
from lmsconf.kinds.user.directory import directory
from lmsconf.kinds.user.people_steps import awaited, people_steps
from lmsconf.model.address import Address, Ref
from lmsconf.model.forms import Form
from lmsconf.model.values import Step
from lmsconf.planner.context import BeforeAfter, Deletion, Match, PlanContext


def smart_group_steps(planning: PlanContext, match: Match[SmartGroupSpec, SmartRow], sides: BeforeAfter) -> list[Step]:
    """One create, or rename, replace the conditions, add managers, then remove managers."""
    at, row = match.address, match.row
    after, before = sides.after or {}, sides.before
    if row is None or before is None:
        return [_create(planning, at, after)]
    path = {"smartGroupId": row.id}
    steps = list(rename_steps(planning, "smart-groups.rename", path, match, sides))
    if "conditions" in after and after["conditions"] != before["conditions"]:
        steps.append(_replace(planning, path, before, after))
    managers = after.get("managers")
    if isinstance(managers, People):
        adds, removes = "smart-groups.add-managers", "smart-groups.remove-manager"
        held = before["managers"]
        old = held if isinstance(held, People) else None
        steps.extend(people_steps(planning, at, path, adds, removes, old, managers))
    return steps


def _create(planning: PlanContext, at: Address, after: Form) -> Step:
    conditions = conditions_of(after)
    body: dict[str, object] = {"name": at.name, "conditions": in_ids(planning, conditions)}
    managers = after.get("managers")
    emails = managers.include if isinstance(managers, People) else frozenset()
    if emails:
        body["managers"] = [directory(planning).id(one) for one in sorted(emails)]
    return Step(
        operation="smart-groups.create",
        body=planning.terms.body("smart-groups.create", **body),
        makes=frozenset({Ref(at)}),
        uses=name_slot(at) | named_refs(conditions) | awaited(planning, emails, manages=True),
        people=tuple(sorted(emails)),
    )


def _replace(planning: PlanContext, path: Mapping[str, str], before: Form, after: Form) -> Step:
    # The service discards all previous conditions, so all of them are sent each time.
    conditions = conditions_of(after)
    body = planning.terms.body("smart-groups.replace-conditions", conditions=in_ids(planning, conditions))
    now = named_refs(conditions)
    return Step(
        operation="smart-groups.replace-conditions",
        path=path,
        body=body,
        uses=now,
        releases=named_refs(conditions_of(before)) - now,
    )


def smart_group_deletion(planning: PlanContext, deletion: Deletion[SmartRow]) -> Step:
    """Return the DELETE, after the assignments of the group are deleted."""
    conditions = in_names(planning, deletion.row.conditions or ())
    return Step(
        operation="smart-groups.delete",
        path={"smartGroupId": deletion.row.id},
        makes=freed_name_slot(SMART_GROUP, deletion.row),
        releases=named_refs(conditions),
        ends=frozenset({Ref(deletion.address)}),
        revokes=True,
    )
