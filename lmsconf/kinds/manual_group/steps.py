"""The calls that create, change and delete manual groups, and how additions to their lists are verified."""

from __future__ import annotations

from typing import Final

from lmsconf.kinds.manual_group.types import GroupRow, ManualGroupSpec, list_ids
from lmsconf.kinds.shared.kind_names import GROUP
from lmsconf.kinds.shared.people_lists import PeopleList
from lmsconf.kinds.shared.renames import free_name_ref, freed_name_ref, rename_steps
from lmsconf.kinds.user.people_directory import people_display_names
from lmsconf.kinds.user.people_list_steps import joined_group_ref, people_list_steps
from lmsconf.model.address import Ref
from lmsconf.model.calls import Step
from lmsconf.planner.context import BeforeAfter, Deletion, Match, PlanContext

LIST_OPERATIONS: Final = (
    ("managers", "manual-groups.add-managers", "manual-groups.remove-manager"),
    ("members", "manual-groups.add-members", "manual-groups.remove-member"),
)
"""List → the operations that add people to it and remove them."""


def group_steps(planning: PlanContext, match: Match[ManualGroupSpec, GroupRow], sides: BeforeAfter) -> list[Step]:
    """Create or rename; then, for managers and for members, add people before removing any."""
    at, row = match.address, match.row
    me = Ref(at)
    id = me if row is None else row.id
    steps: list[Step] = []
    if row is None:
        body = planning.call_templates.body("manual-groups.create", name=at.name)
        steps.append(Step(operation="manual-groups.create", body=body, makes=frozenset({me}), uses=free_name_ref(at)))
    else:
        steps.extend(rename_steps(planning, "manual-groups.rename", {"groupId": row.id}, match, sides))
    for key, adds, removes in LIST_OPERATIONS:
        after = (sides.after or {}).get(key)
        if isinstance(after, PeopleList):
            held = (sides.before or {}).get(key)
            before = held if isinstance(held, PeopleList) else None
            live = (list_ids(row, key) if row else None) or ()
            steps.extend(people_list_steps(planning, at, {"groupId": id}, adds, removes, before, after, live))
    return steps


def group_deletion(planning: PlanContext, deletion: Deletion[GroupRow]) -> list[Step]:
    """Return the DELETE, after its assignments are deleted and its members are added to their new groups."""
    members = people_display_names(planning, deletion.row.members or ())
    return [
        Step(
            operation="manual-groups.delete",
            path={"groupId": deletion.row.id},
            makes=freed_name_ref(GROUP, deletion.row),
            uses=frozenset(map(joined_group_ref, members)),
            ends=frozenset({Ref(deletion.address)}),
            revokes=True,
        )
    ]
