"""Which live smart group each declaration means, what differs, and the calls that change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from lmsconf.kinds.custom_field.compare import answered_ref, report_unrenamed_choices
from lmsconf.kinds.custom_field.migrated_references import add_replaced_conditions
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.shared.managed_resources import match_named
from lmsconf.kinds.shared.manifest_entry import PeopleList, report_missing_key, report_unread_list
from lmsconf.kinds.shared.plan_context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, Similarity
from lmsconf.kinds.shared.steps import (
    free_name_ref,
    freed_name_ref,
    list_steps,
    people_dependencies,
    rename_steps,
)
from lmsconf.kinds.smart_group.conditions import (
    SimilarConditions,
    check_references,
    condition_refs,
    conditions_by_id,
    conditions_by_name,
    keep_system_conditions,
    plan_condition_losses,
    record_possible_renames,
    record_references,
    sorted_conditions,
    sorted_for_request,
    systems_by_content,
)
from lmsconf.kinds.smart_group.types import DeclaredCondition, SmartGroupRow, SmartGroupSpec
from lmsconf.kinds.user.people_directory import (
    PeopleSides,
    add_live_list,
    compare_lists,
    people_directory,
    sides_by_name,
)
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Step
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name


def match_smart_groups(
    planning: PlanContext, declared: Sequence[DesiredResource[SmartGroupSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[SmartGroupSpec, SmartGroupRow]:
    """Match smart groups by name, with the conditions that migrations of fields replace."""
    declared = add_replaced_conditions(planning, declared, absent)
    return match_named(planning, SmartGroupRow, "smart group", declared, absent)


def diff_smart_group(planning: PlanContext, match: Match[SmartGroupSpec, SmartGroupRow]) -> BeforeAfter | None:
    """Compare the name, and conditions and managers where declared; None after a problem that rules it out.

    Conditions of a live group as they will be go to `planning.planned_conditions`.
    """
    declared, row, conditions = match.declared, match.row, match.declared.spec.conditions
    sides = sides_by_name(match)
    if row is None and conditions is None:
        report_missing_key(planning, declared, "conditions")
        return None
    if conditions is not None and not _compare_conditions(planning, declared, conditions, row, sides):
        return None
    return compare_lists(planning, match, ("managers",), sides)


def _compare_conditions(
    planning: PlanContext,
    declared: DesiredResource[SmartGroupSpec],
    conditions: Sequence[DeclaredCondition],
    row: SmartGroupRow | None,
    sides: PeopleSides,
) -> bool:
    """Add declared and live conditions to the sides; False, reported, if one refers to nothing or was not read."""
    if not check_references(planning, declared, conditions):
        return False
    if row is None:
        report_unrenamed_choices(planning, declared, condition_refs(conditions))
    elif row.conditions is None:
        report_unread_list(planning, declared.address, "conditions", declared.places.at("conditions"))
        return False
    live = conditions_by_name(planning, (row and row.conditions) or ())
    wanted = keep_system_conditions(conditions, live)
    record_possible_renames(planning, wanted, live)
    sides.after["conditions"] = sorted_conditions(wanted)
    if row is not None:
        sides.before["conditions"] = sorted_conditions(live)
        sides.sizes["conditions"] = len(live)
        if not planning.policy.additive:
            planning.planned_conditions[row.id] = wanted
    return True


def smart_group_before_deletion(planning: PlanContext, deletion: Deletion[SmartGroupRow]) -> BeforeAfter:
    """Return the live name, conditions and managers of a smart group to be deleted; members are computed."""
    row = deletion.row
    sides = PeopleSides({"name": normalize_name(row.name)}, {})
    if row.conditions is None or row.managers is None:
        at = deletion.absent.source if deletion.absent else None
        report_unread_list(planning, deletion.address, "conditions and managers", at)
    else:
        sides.before["conditions"] = sorted_conditions(conditions_by_name(planning, row.conditions))
        add_live_list(planning, "managers", row.managers, sides)
    return sides.compared(row)


def why_conditions_stay(sides: BeforeAfter) -> str | None:
    """Return why undo cannot restore the conditions, None if it can.

    A manifest can set a system condition, and cannot remove one that a live condition has.
    """
    before, after = (systems_by_content(sorted_for_request(side or {})) for side in (sides.before, sides.after))
    gained = any(None in systems and any(after.get(content, ())) for content, systems in before.items())
    return "a condition without a system_condition keeps the one that it gets" if gained else None


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
        form["conditions"] = sorted_conditions(conditions_by_name(planning, row.conditions))
    return form


def similar_conditions(planning: PlanContext, form: Form) -> Similarity:
    """Compare smart groups by their conditions."""
    conditions = cast("tuple[DeclaredCondition, ...]", form.get("conditions", ()))
    items = {(condition.field, choice) for condition in conditions for choice in condition.choices or (None,)}
    key = SimilarConditions(conditions) if conditions else None
    return Similarity(of="conditions", key=key, items=frozenset(items))


def smart_group_steps(
    planning: PlanContext, match: Match[SmartGroupSpec, SmartGroupRow], sides: BeforeAfter
) -> list[Step]:
    """One create, or rename, replace the conditions, add managers, then remove managers."""
    at, row = match.address, match.row
    after, before = sides.after or {}, sides.before or {}
    if row is None:
        return [_creation(planning, at, after)]
    path = {"smartGroupId": row.id}
    steps = list(rename_steps(planning, "smart-groups.rename", path, match, sides))
    if "conditions" in after and after["conditions"] != before["conditions"]:
        steps.append(_replacement(planning, path, before, after))
    return [*steps, *list_steps(planning, match, path, sides)]


def _creation(planning: PlanContext, at: Address, after: Form) -> Step:
    conditions = sorted_for_request(after)
    body: dict[str, object] = {"name": at.name, "conditions": conditions_by_id(planning, conditions)}
    managers = after.get("managers")
    emails = managers.include if isinstance(managers, PeopleList) else frozenset()
    if emails:
        body["managers"] = [people_directory(planning).id(email) for email in sorted(emails)]
    return Step(
        operation="smart-groups.create",
        body=planning.api_spec.body_to_wire("smart-groups.create", **body),
        makes=frozenset({Ref(at)}),
        uses=free_name_ref(at) | condition_refs(conditions) | people_dependencies(planning, emails, manages=True),
        people=tuple(sorted(emails)),
    )


def _replacement(planning: PlanContext, path: Mapping[str, str], before: Form, after: Form) -> Step:
    # The service discards all previous conditions, so all of them are sent each time.
    conditions = sorted_for_request(after)
    body = planning.api_spec.body_to_wire(
        "smart-groups.replace-conditions", conditions=conditions_by_id(planning, conditions)
    )
    refs_after, conditions_before = condition_refs(conditions), sorted_for_request(before)
    dropped = condition_refs(conditions_before) - refs_after
    return Step(
        operation="smart-groups.replace-conditions",
        path=path,
        body=body,
        uses=refs_after.union(_answers_to_wait_for(conditions_before, conditions)),
        releases=dropped.union(answered_ref(ref.address, ref.part) for ref in dropped),
    )


def _answers_to_wait_for(before: Sequence[DeclaredCondition], after: Sequence[DeclaredCondition]) -> Iterator[Ref]:
    """Yield Refs to answers to the fields that only the new conditions ask for.

    The calls that set these answers go first, so that nobody leaves the group in between.
    """
    fields = {condition.field for condition in before}
    for condition in after:
        if condition.field not in fields:
            at = Address.of(CUSTOM_FIELD, condition.field)
            yield from (answered_ref(at, choice) for choice in condition.choices or (None,))


def smart_group_deletion(planning: PlanContext, deletion: Deletion[SmartGroupRow]) -> list[Step]:
    """Return the DELETE; by `ends` it waits until the assignments of the group are deleted."""
    return [
        Step(
            operation="smart-groups.delete",
            path={"smartGroupId": deletion.row.id},
            makes=freed_name_ref(SMART_GROUP, deletion.row),
            releases=condition_refs(conditions_by_name(planning, deletion.row.conditions or ())),
            ends=frozenset({Ref(deletion.address)}),
            revokes=True,
        )
    ]
