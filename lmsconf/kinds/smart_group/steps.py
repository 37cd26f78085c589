"""The calls that create, change and delete smart groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from lmsconf.kinds.custom_field.compare import answered_ref
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.shared.manifest_entries import PeopleList
from lmsconf.kinds.shared.steps import (
    free_name_ref,
    freed_name_ref,
    people_dependencies,
    people_list_steps,
    rename_steps,
)
from lmsconf.kinds.smart_group.conditions import (
    condition_refs,
    conditions_by_id,
    conditions_by_name,
    ordered_conditions,
)
from lmsconf.kinds.smart_group.types import DeclaredCondition, SmartGroupRow, SmartGroupSpec
from lmsconf.kinds.user.people_directory import people_directory
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Step
from lmsconf.model.forms import Form
from lmsconf.planner.context import BeforeAfter, Deletion, Match, PlanContext


def smart_group_steps(
    planning: PlanContext, match: Match[SmartGroupSpec, SmartGroupRow], sides: BeforeAfter
) -> list[Step]:
    """One create, or rename, replace the conditions, add managers, then remove managers."""
    at, row = match.address, match.row
    after, before = sides.after or {}, sides.before or {}
    if row is None:
        return [_create(planning, at, after)]
    path = {"smartGroupId": row.id}
    steps = list(rename_steps(planning, "smart-groups.rename", path, match, sides))
    if "conditions" in after and after["conditions"] != before["conditions"]:
        steps.append(_replace(planning, path, before, after))
    managers = after.get("managers")
    if isinstance(managers, PeopleList):
        adds, removes = "smart-groups.add-managers", "smart-groups.remove-manager"
        held = before["managers"]
        old = held if isinstance(held, PeopleList) else None
        steps.extend(people_list_steps(planning, at, path, adds, removes, old, managers, row.managers or ()))
    return steps


def _create(planning: PlanContext, at: Address, after: Form) -> Step:
    conditions = ordered_conditions(after)
    body: dict[str, object] = {"name": at.name, "conditions": conditions_by_id(planning, conditions)}
    managers = after.get("managers")
    emails = managers.include if isinstance(managers, PeopleList) else frozenset()
    if emails:
        body["managers"] = [people_directory(planning).id(email) for email in sorted(emails)]
    return Step(
        operation="smart-groups.create",
        body=planning.call_templates.body("smart-groups.create", **body),
        makes=frozenset({Ref(at)}),
        uses=free_name_ref(at) | condition_refs(conditions) | people_dependencies(planning, emails, manages=True),
        people=tuple(sorted(emails)),
    )


def _replace(planning: PlanContext, path: Mapping[str, str], before: Form, after: Form) -> Step:
    # The service discards all previous conditions, so all of them are sent each time.
    conditions = ordered_conditions(after)
    body = planning.call_templates.body(
        "smart-groups.replace-conditions", conditions=conditions_by_id(planning, conditions)
    )
    now, old = condition_refs(conditions), ordered_conditions(before)
    dropped = condition_refs(old) - now
    return Step(
        operation="smart-groups.replace-conditions",
        path=path,
        body=body,
        uses=now.union(_new_answers(old, conditions)),
        releases=dropped.union(answered_ref(ref.address, ref.part) for ref in dropped),
    )


def _new_answers(before: Sequence[DeclaredCondition], after: Sequence[DeclaredCondition]) -> Iterator[Ref]:
    """Yield Refs to the answers that conditions start to ask for: nobody leaves before theirs is set."""
    fields = {condition.field for condition in before}
    for condition in after:
        if condition.field not in fields:
            at = Address.of(CUSTOM_FIELD, condition.field)
            yield from (answered_ref(at, choice) for choice in condition.choices or (None,))


def smart_group_deletion(planning: PlanContext, deletion: Deletion[SmartGroupRow]) -> list[Step]:
    """Return the DELETE, after the assignments of the group are deleted."""
    conditions = conditions_by_name(planning, deletion.row.conditions or ())
    return [
        Step(
            operation="smart-groups.delete",
            path={"smartGroupId": deletion.row.id},
            makes=freed_name_ref(SMART_GROUP, deletion.row),
            releases=condition_refs(conditions),
            ends=frozenset({Ref(deletion.address)}),
            revokes=True,
        )
    ]
