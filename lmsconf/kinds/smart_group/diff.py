"""Live and declared state of smart groups: names, and conditions and managers where they are declared."""

from __future__ import annotations

from lmsconf.kinds.custom_field.choices import refuse_left_out
from lmsconf.kinds.shared.common import needed, not_read
from lmsconf.kinds.shared.people_lists import People
from lmsconf.kinds.smart_group.conditions import (
    as_set,
    check_conditions,
    effective,
    in_names,
    named_refs,
    note_conditions,
    record_choice_renames,
)
from lmsconf.kinds.smart_group.types import SmartGroupSpec, SmartRow
from lmsconf.kinds.user.directory import check_people, directory, foretell_managers, note_unknown, shown_people
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.planner.context import BeforeAfter, Deletion, Match, PlanContext


def diff_smart_group(planning: PlanContext, match: Match[SmartGroupSpec, SmartRow]) -> BeforeAfter | None:
    """Compare name, and conditions and managers where declared."""
    declared, row = match.declared, match.row
    spec = declared.spec
    if row is None and spec.conditions is None:
        needed(planning, declared, "conditions")
        return None
    before: Form = {} if row is None else {"name": normalize_name(row.name)}
    after: Form = {"name": declared.address.name}
    sizes: dict[str, int] = {}
    if spec.conditions is not None:
        if not check_conditions(planning, declared, spec.conditions):
            return None
        if row is None:
            refuse_left_out(planning, declared, named_refs(spec.conditions))
        live = None if row is None else row.conditions
        if row is not None and live is None:
            not_read(planning, declared.address, "conditions", declared.places.at("conditions"))
            return None
        live_conditions = in_names(planning, live or ())
        wanted = effective(spec.conditions, live_conditions)
        record_choice_renames(planning, wanted, live_conditions)
        after["conditions"] = as_set(wanted)
        if row is not None:
            before["conditions"] = as_set(live_conditions)
            sizes["conditions"] = len(live_conditions)
            if not planning.policy.additive:
                note_conditions(planning, row.id, wanted)
    if spec.managers is not None:
        after["managers"] = managers = check_people(planning, declared, "managers", spec.managers)
        if row is not None:
            if row.managers is None:
                not_read(planning, declared.address, "managers", declared.places.at("managers"))
                return None
            note_unknown(planning, declared, "managers", row.managers)
            before["managers"] = directory(planning).comparable(row.managers, managers)
            sizes["managers"] = len(row.managers)
        held = before.get("managers")
        kept = held.include if isinstance(held, People) else frozenset()
        foretell_managers(planning, declared, managers.include - kept)
    if row is None:
        return BeforeAfter(before=None, after=after, defaults=() if "managers" in after else ("managers",))
    return BeforeAfter(before=before, after=after, sizes=sizes)


def state_of_deleted(planning: PlanContext, deletion: Deletion[SmartRow]) -> BeforeAfter:
    """Return the live name, conditions and managers of a smart group to be deleted; members are computed."""
    row = deletion.row
    form: Form = {"name": normalize_name(row.name)}
    if row.conditions is None or row.managers is None:
        not_read(
            planning,
            deletion.address,
            "conditions and managers",
            deletion.absent.source if deletion.absent else None,
        )
        return BeforeAfter(before=form, after=None)
    form["conditions"] = as_set(in_names(planning, row.conditions))
    form["managers"] = People(shown_people(planning, row.managers))
    return BeforeAfter(before=form, after=None, sizes={"managers": len(row.managers)})
