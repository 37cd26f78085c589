"""Groups of both kinds: matches, differences and calls; of manual ones also live rows and specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.custom_field.compare import answered_ref, report_unrenamed_choices
from lmsconf.kinds.custom_field.types import ActiveMigration, DeclaredCondition
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, GROUP, SMART_GROUP
from lmsconf.kinds.shared.managed_resources import match_named
from lmsconf.kinds.shared.manifest_entry import (
    LISTS,
    ManifestEntry,
    PeopleList,
    included,
    parse_people_list,
)
from lmsconf.kinds.shared.plan_context import (
    BeforeAfter,
    Deletion,
    Match,
    MatchResult,
    PlanContext,
    Similarity,
    report_missing_key,
    report_unread_list,
)
from lmsconf.kinds.shared.rename_and_list_steps import (
    free_name_ref,
    free_name_ref_of_row,
    joined_group_ref,
    list_steps,
    people_dependencies,
    rename_steps,
)
from lmsconf.kinds.smart_group import (
    ConditionsRenameKey,
    SmartGroupRow,
    SmartGroupSpec,
    check_references,
    condition_refs,
    conditions_in_request_order,
    conditions_of,
    conditions_to_request,
    live_conditions_as_declared,
    record_possible_choice_renames,
    sorted_conditions,
    system_conditions_by_field_and_choices,
    with_live_system_conditions,
)
from lmsconf.kinds.user.people_directory import compare_group
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Step
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import LOCK_PREFIX, normalize_name
from lmsconf.model.snapshot import IdAndName

FEWEST_MEMBERS: Final = 2
"""Groups with fewer members are not compared by them."""


class GroupRow(IdAndName, frozen=True):
    """A live manual group. `members` and `managers` are user ids, None where they were not read."""

    listing = GROUP

    members: frozenset[RemoteId] | None = None
    managers: frozenset[RemoteId] | None = None


class ManualGroupSpec(Struct, frozen=True):
    """A declared manual group; None for an undeclared list."""

    members: PeopleList | None
    managers: PeopleList | None


def has_members_to_compare(spec: ManualGroupSpec) -> bool:
    """Whether a group to be created declares enough members to be compared by them."""
    return spec.members is not None and len(spec.members.include) >= FEWEST_MEMBERS


def parse_group(entry: ManifestEntry, _: Address) -> ManualGroupSpec:
    """Parse the members and managers of an entry; report a reserved name."""
    if str(entry.body["name"]).startswith(LOCK_PREFIX):
        entry.problem(
            "manifest/reserved",
            f'a group cannot be called "{entry.body["name"]}"',
            "name",
            hint=f'Names that begin with "{LOCK_PREFIX}" are for the lock that `lock:` asks for. Choose another.',
        )
    return ManualGroupSpec(parse_people_list(entry, "members"), parse_people_list(entry, "managers"))


def only_listed_people(planning: PlanContext, row: GroupRow) -> GroupRow:
    """Return a row without the members and managers who are archived or in no list of people."""
    # A service may list only active people, and yet show an archived person whose id is requested.
    listed = planning.people.ids - planning.archived_ids
    members, managers = (None if ids is None else ids & listed for ids in (row.members, row.managers))
    return replace(row, members=members, managers=managers)


def live_group_form(planning: PlanContext, row: Any) -> Form:
    """Return the live name, conditions and people of a group of either kind; a list that was not read is empty."""
    live = getattr(row, "conditions", None) or ()
    conditions = sorted_conditions(live_conditions_as_declared(planning, live))
    return {
        "name": normalize_name(row.name),
        **({"conditions": conditions} if hasattr(row, "conditions") else {}),
        **{key: PeopleList(planning.people.display_names(ids)) for key, ids in _lists_of(row).items()},
    }


def _lists_of(row: Any) -> dict[str, frozenset[RemoteId]]:
    """Return the lists of people that a group has, as ids; empty where they were not read."""
    return {key: getattr(row, key) or frozenset() for key in LISTS if hasattr(row, key)}


def group_before_deletion(planning: PlanContext, deletion: Deletion[Any]) -> BeforeAfter:
    """Return the live name of a group of either kind to be deleted, with its conditions and its lists of people."""
    row = deletion.row
    for key in [key for key in ("conditions", *LISTS) if getattr(row, key, ()) is None]:
        report_unread_list(planning, deletion.address, key, deletion.source)
    lists = _lists_of(row)
    archived = {key: planning.people.display_names(planning.archived_ids & ids) for key, ids in lists.items()}
    return BeforeAfter(
        before=live_group_form(planning, row),
        after=None,
        sizes={key: len(ids) - len(archived[key]) for key, ids in lists.items()},
        archived=archived,
    )


def members_for_rename_detection(planning: PlanContext, form: Form) -> Similarity:
    """Compare groups by their active members, or by all where these are few: one could be equal by chance."""
    members = included(form, "members")
    active = members - planning.people.archived
    key = active if len(active) >= FEWEST_MEMBERS else members
    return Similarity(of="members", key=key if active and len(members) >= FEWEST_MEMBERS else None, items=active)


_SERVICE: Final = {GROUP: ("manual-groups", "groupId"), SMART_GROUP: ("smart-groups", "smartGroupId")}
"""Kind → the first part of its operations, and the name of its id in paths."""


def group_steps(planning: PlanContext, match: Match[Any, Any], sides: BeforeAfter) -> list[Step]:
    """Create, or rename and replace conditions; then, for managers and members, add people before removing any.

    A smart group is created with its conditions and managers.
    """
    at, row = match.address, match.row
    before, after = sides.before or {}, sides.after or {}
    if row is None and at.kind == SMART_GROUP:
        return [_smart_group_creation(planning, at, after)]
    service, id_key = _SERVICE[at.kind]
    path = {id_key: Ref(at) if row is None else row.id}
    if row is None:
        steps = [
            Step(
                operation="manual-groups.create",
                body=planning.api_spec.body_to_wire("manual-groups.create", name=at.name),
                makes=frozenset({Ref(at)}),
                uses=free_name_ref(at),
            )
        ]
    else:
        steps = [*rename_steps(planning, f"{service}.rename", path, match, sides)]
        if before.get("conditions") != after.get("conditions"):
            steps.append(_replacement(planning, path, before, after))
    return [*steps, *list_steps(planning, match, path, sides)]


def group_deletion(planning: PlanContext, deletion: Deletion[Any]) -> list[Step]:
    """Return the DELETE, after its assignments are deleted and its members are added to their new groups."""
    at, row = deletion.address, deletion.row
    conditions = getattr(row, "conditions", None) or ()
    service, id_key = _SERVICE[at.kind]
    return [
        Step(
            operation=f"{service}.delete",
            path={id_key: row.id},
            makes=free_name_ref_of_row(at.kind, row),
            uses=frozenset(map(joined_group_ref, planning.people.display_names(getattr(row, "members", None) or ()))),
            releases=condition_refs(live_conditions_as_declared(planning, conditions)),
            ends=frozenset({Ref(at)}),
            revokes=True,
        )
    ]


def match_smart_groups(
    planning: PlanContext, declared: Sequence[DesiredResource[SmartGroupSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[SmartGroupSpec, SmartGroupRow]:
    """Match smart groups by name; migrations replace conditions that are not declared, also of unmanaged groups."""
    out = match_named(planning, declared, absent, SmartGroupRow, "smart group")
    active = {
        migration.row.id: migration
        for migration in planning.migrations.values()
        if migration.migration.all_groups and not migration.is_held
    }
    for at, match in enumerate(out.matches):
        conditions = match.row and _conditions_after_migration(planning, match.row, active)
        if conditions and match.declared.spec.conditions is None:
            spec = replace(match.declared.spec, conditions=conditions)
            out.matches[at] = replace(match, declared=replace(match.declared, spec=spec))
    undeclared, out.unmanaged = out.unmanaged, []
    for one in undeclared:
        row = cast(SmartGroupRow, one.row)
        conditions = _conditions_after_migration(planning, row, active)
        if conditions is None:
            out.unmanaged.append(one)
        else:
            planning.include(one.address)
            out.matches.append(Match(declared=_migrated(planning, one.address, row, conditions, active), row=row))
    return out


def _migrated(
    planning: PlanContext,
    address: Address,
    row: SmartGroupRow,
    conditions: tuple[DeclaredCondition, ...],
    active: Mapping[RemoteId, ActiveMigration],
) -> DesiredResource[SmartGroupSpec]:
    """Return an undeclared smart group as a declaration of its conditions on the new fields."""
    migration = next(active[one.field] for one in row.conditions or () if one.field in active)
    return DesiredResource(
        address=address,
        spec=SmartGroupSpec(conditions=conditions, managers=None),
        places=migration.migration.places,
        pins={planning.policy.workspace: row.id},
        reason=f"its conditions name {migration.address}, whose answers move to {migration.target}",
    )


def _conditions_after_migration(
    planning: PlanContext, row: SmartGroupRow, active: Mapping[RemoteId, ActiveMigration]
) -> tuple[DeclaredCondition, ...] | None:
    """Return the conditions on the new fields.

    None if no migration is about one, or one has no counterpart there, or names what is not known.
    """
    live = row.conditions or ()
    fields = {condition.field for condition in live}
    if active.keys().isdisjoint(fields) or any(planning.registry.name(CUSTOM_FIELD, id) is None for id in fields):
        return None
    new = [
        _condition_on_new_field(named, active[one.field]) if one.field in active else named
        for one, named in zip(live, live_conditions_as_declared(planning, live), strict=True)
    ]
    return None if None in new else cast("tuple[DeclaredCondition, ...]", tuple(new))


def _condition_on_new_field(condition: DeclaredCondition, active: ActiveMigration) -> DeclaredCondition | None:
    """Return a condition on the new field with the choices that the old ones become; None if none is left."""
    new = {active.migration.choices.get(choice, choice) for choice in condition.choices}
    choices = frozenset(choice for choice in new if choice is not None)
    if condition.choices and (not choices or active.target_type == "TEXT"):
        return None
    return condition._replace(field=active.target.name, choices=choices)


def diff_smart_group(planning: PlanContext, match: Match[SmartGroupSpec, SmartGroupRow]) -> BeforeAfter | None:
    """Compare the name, and conditions and managers where declared; None after a problem that rules it out.

    Conditions of a live group as they will be go to `planning.planned_conditions`.
    """
    declared, row, conditions = match.declared, match.row, match.declared.spec.conditions
    if conditions is None and row is None:
        report_missing_key(planning, declared, "conditions")
        return None
    if conditions is None:
        return compare_group(planning, match, {}, {})
    if not check_references(planning, declared, conditions):
        return None
    if row is None:
        report_unrenamed_choices(planning, declared, condition_refs(conditions))
    elif row.conditions is None:
        report_unread_list(planning, declared.address, "conditions", declared.places.at("conditions"))
        return None
    live = live_conditions_as_declared(planning, (row and row.conditions) or ())
    wanted = with_live_system_conditions(conditions, live)
    record_possible_choice_renames(planning, wanted, live)
    if row is not None and not planning.policy.additive:
        planning.planned_conditions[row.id] = wanted
    return compare_group(
        planning, match, {"conditions": sorted_conditions(live)}, {"conditions": sorted_conditions(wanted)}
    )


def why_undo_keeps_conditions(sides: BeforeAfter) -> str | None:
    """Return why undo cannot restore the conditions, None if it can."""
    # A manifest can set a system condition, and cannot remove one that a live condition has.
    before, after = (
        system_conditions_by_field_and_choices(conditions_in_request_order(side or {}))
        for side in (sides.before, sides.after)
    )
    gets_one = any(None in systems and any(after.get(content, ())) for content, systems in before.items())
    return "a condition without a system_condition keeps the one that it gets" if gets_one else None


def conditions_for_rename_detection(planning: PlanContext, form: Form) -> Similarity:
    """Compare smart groups by their conditions."""
    conditions = conditions_of(form)
    return Similarity(
        of="conditions",
        key=ConditionsRenameKey(conditions) if conditions else None,
        items=frozenset((one.field, choice) for one in conditions for choice in one.choices or (None,)),
    )


def _smart_group_creation(planning: PlanContext, at: Address, after: Form) -> Step:
    conditions = conditions_in_request_order(after)
    body: dict[str, object] = {"name": at.name, "conditions": conditions_to_request(planning, conditions)}
    if emails := included(after, "managers"):
        body["managers"] = [planning.people.id(email) for email in sorted(emails)]
    return Step(
        operation="smart-groups.create",
        body=planning.api_spec.body_to_wire("smart-groups.create", **body),
        makes=frozenset({Ref(at)}),
        uses=free_name_ref(at) | condition_refs(conditions) | people_dependencies(planning, emails, manages=True),
        people=tuple(sorted(emails)),
    )


def _replacement(planning: PlanContext, path: Mapping[str, str | Ref], before: Form, after: Form) -> Step:
    # The service discards all previous conditions, so all of them are sent each time.
    conditions = conditions_in_request_order(after)
    refs_after, refs_before = condition_refs(conditions), condition_refs(conditions_in_request_order(before))
    dropped, fields_before = refs_before - refs_after, {ref.address.name for ref in refs_before}
    return Step(
        operation="smart-groups.replace-conditions",
        path=path,
        body=planning.api_spec.body_to_wire(
            "smart-groups.replace-conditions", conditions=conditions_to_request(planning, conditions)
        ),
        # Calls that set answers to fields that only the new conditions ask for go first, so that nobody leaves
        # the group in between.
        uses=refs_after.union(
            answered_ref(Address.of(CUSTOM_FIELD, one.field), choice)
            for one in conditions
            if one.field not in fields_before
            for choice in one.choices or (None,)
        ),
        releases=dropped.union(answered_ref(ref.address, ref.part) for ref in dropped),
    )
