"""Which live smart group each declaration means, and what differs: name, conditions and managers where declared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lmsconf.kinds.custom_field.compare import refuse_unrenamed_choices
from lmsconf.kinds.shared.manifest_entries import PeopleList, refuse_missing_key, refuse_unread_list
from lmsconf.kinds.smart_group.conditions import (
    NumberedCondition,
    SimilarConditions,
    condition_refs,
    condition_set,
    conditions_by_name,
    keep_system_conditions,
    ordered_conditions,
    plan_condition_losses,
    record_planned_conditions,
    record_possible_renames,
    record_references,
    refuse_unknown_references,
)
from lmsconf.kinds.smart_group.types import SmartGroupRow, SmartGroupSpec
from lmsconf.kinds.user.people_directory import (
    archived_among,
    check_managers,
    count_for_share,
    note_unlisted_ids,
    people_directory,
    people_display_names,
    refuse_unknown_people,
)
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, Similarity
from lmsconf.planner.matching import match_named


def match_smart_groups(
    planning: PlanContext, declared: Sequence[DesiredResource[SmartGroupSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[SmartGroupSpec, SmartGroupRow]:
    """Match smart groups by name, with the conditions that migrations of fields replace."""
    if not planning.migrations:
        return match_named(planning, SmartGroupRow, "smart group", declared, absent)
    from lmsconf.kinds.custom_field.migrated_references import add_replaced_conditions, give_reasons

    wanted = add_replaced_conditions(planning, declared, absent)
    matched = match_named(planning, SmartGroupRow, "smart group", wanted, absent)
    give_reasons(planning, matched)
    return matched


def diff_smart_group(planning: PlanContext, match: Match[SmartGroupSpec, SmartGroupRow]) -> BeforeAfter | None:
    """Compare name, and conditions and managers where declared."""
    declared, row = match.declared, match.row
    spec = declared.spec
    if row is None and spec.conditions is None:
        refuse_missing_key(planning, declared, "conditions")
        return None
    before: Form = {} if row is None else {"name": normalize_name(row.name)}
    after: Form = {"name": declared.address.name}
    sizes: dict[str, int] = {}
    archived: dict[str, frozenset[str]] = {}
    if spec.conditions is not None:
        if not refuse_unknown_references(planning, declared, spec.conditions):
            return None
        if row is None:
            refuse_unrenamed_choices(planning, declared, condition_refs(spec.conditions))
        live = None if row is None else row.conditions
        if row is not None and live is None:
            refuse_unread_list(planning, declared.address, "conditions", declared.places.at("conditions"))
            return None
        live_conditions = conditions_by_name(planning, live or ())
        wanted = keep_system_conditions(spec.conditions, live_conditions)
        record_possible_renames(planning, wanted, live_conditions)
        after["conditions"] = condition_set(wanted)
        if row is not None:
            before["conditions"] = condition_set(live_conditions)
            sizes["conditions"] = len(live_conditions)
            if not planning.policy.additive:
                record_planned_conditions(planning, row.id, wanted)
    if spec.managers is not None:
        after["managers"] = managers = refuse_unknown_people(planning, declared, "managers", spec.managers)
        if row is not None:
            if row.managers is None:
                refuse_unread_list(planning, declared.address, "managers", declared.places.at("managers"))
                return None
            note_unlisted_ids(planning, declared, "managers", row.managers)
            directory, left = people_directory(planning), archived_among(planning, row.managers)
            before["managers"] = directory.live_to_compare(row.managers, managers)
            sizes["managers"] = count_for_share(planning, row.managers)
            archived["managers"] = directory.live_to_compare(left, managers).include
        held = before.get("managers")
        kept = held.include if isinstance(held, PeopleList) else frozenset()
        check_managers(planning, declared, managers.include, kept)
    if row is None:
        return BeforeAfter(before=None, after=after, defaults=() if "managers" in after else ("managers",))
    return BeforeAfter(before=before, after=after, sizes=sizes, archived=archived)


def smart_group_before_deletion(planning: PlanContext, deletion: Deletion[SmartGroupRow]) -> BeforeAfter:
    """Return the live name, conditions and managers of a smart group to be deleted; members are computed."""
    row = deletion.row
    form: Form = {"name": normalize_name(row.name)}
    if row.conditions is None or row.managers is None:
        refuse_unread_list(
            planning,
            deletion.address,
            "conditions and managers",
            deletion.absent.source if deletion.absent else None,
        )
        return BeforeAfter(before=form, after=None)
    form["conditions"] = condition_set(conditions_by_name(planning, row.conditions))
    form["managers"] = PeopleList(people_display_names(planning, row.managers))
    archived = people_display_names(planning, archived_among(planning, row.managers))
    sizes = {"managers": len(row.managers) - len(archived)}
    return BeforeAfter(before=form, after=None, sizes=sizes, archived={"managers": archived})


def kept_system_condition(sides: BeforeAfter) -> str | None:
    """Return why conditions cannot be as before again: no entry takes a system condition from a live condition."""
    before, after = (_by_content(side or {}) for side in (sides.before, sides.after))
    given = any(None in systems and any(after.get(content, ())) for content, systems in before.items())
    return "a condition without a system_condition keeps the one that it gets" if given else None


def _by_content(form: Form) -> dict[tuple[str, frozenset[str]], list[str | None]]:
    """(field, choices) → the system conditions of the conditions with these."""
    systems: dict[tuple[str, frozenset[str]], list[str | None]] = {}
    for condition in ordered_conditions(form):
        systems.setdefault((condition.field, condition.choices), []).append(condition.system_condition)
    return systems


def record_condition_changes(planning: PlanContext, matched: MatchResult[SmartGroupSpec, SmartGroupRow]) -> None:
    """Record which fields and choices each live smart group keeps and drops, and what the service takes from it."""
    deletions = () if planning.policy.additive else matched.deletions
    deleted = frozenset(deletion.row.id for deletion in deletions if planning.chosen(deletion.address))
    record_references(planning, deleted)
    plan_condition_losses(planning, matched, deleted)


def live_smart_group_form(planning: PlanContext, row: SmartGroupRow) -> Form:
    """Return the name, and the conditions where they were read."""
    form: Form = {"name": normalize_name(row.name)}
    if row.conditions is not None:
        form["conditions"] = condition_set(conditions_by_name(planning, row.conditions))
    return form


def similar_conditions(planning: PlanContext, form: Form) -> Similarity:
    """Compare smart groups by their conditions."""
    conditions = cast("frozenset[NumberedCondition]", form.get("conditions", frozenset()))
    unnumbered = (condition for condition, _ in conditions)
    items = {(condition.field, choice) for condition in unnumbered for choice in condition.choices or (None,)}
    return Similarity(
        of="conditions", key=SimilarConditions(conditions) if conditions else None, items=frozenset(items)
    )
