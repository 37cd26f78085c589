"""Smart groups: membership computed from custom-field conditions.

Conditions are replaced as a whole, never patched, and at least one is required. Members cannot be set (API
specification, Smart Groups).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from lmsconf.api.spec.listings import SMART_GROUPS
from lmsconf.errors import Problem
from lmsconf.kinds.custom_field.migration import active_migrations
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entries import (
    ABSENT_NAMED,
    delete_entry_by_name,
    desired_resource_by_name,
    partial_undo,
)
from lmsconf.kinds.shared.people_lists import NOBODY
from lmsconf.kinds.shared.renames import find_rename_cycles
from lmsconf.kinds.smart_group.condition_losses import plan_condition_losses
from lmsconf.kinds.smart_group.conditions import (
    NumberedCondition,
    SimilarConditions,
    condition_set,
    conditions_by_name,
    record_references,
)
from lmsconf.kinds.smart_group.diff import diff_smart_group, kept_system_condition, state_before_deletion
from lmsconf.kinds.smart_group.export import PART_REFERENCES, REFERENCES, only_choice, smart_group_entry_body
from lmsconf.kinds.smart_group.parse import find_unknown_choices, parse_smart_group
from lmsconf.kinds.smart_group.schema import SCHEMA
from lmsconf.kinds.smart_group.steps import smart_group_deletion, smart_group_steps
from lmsconf.kinds.smart_group.types import SmartGroupRow, SmartGroupSpec, parse_listed_row
from lmsconf.kinds.user.people_directory import people_addresses
from lmsconf.kinds.user.people_list_steps import list_additions_verification
from lmsconf.model.address import Address
from lmsconf.model.api import Api
from lmsconf.model.calls import Call, Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import FULL_UNDO, Change, Undo
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, SideEffect, Similarity
from lmsconf.planner.grant_verification import GrantVerification
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import EntryBody
from lmsconf.planner.matching import match_named

if TYPE_CHECKING:
    from lmsconf.planner.reading import ReadContext


class SmartGroupKind(Kind[SmartGroupSpec, SmartGroupRow]):
    """The kind `smart_group`."""

    name = SMART_GROUP
    section = "smart_groups"
    noun = "smart group"
    plural = "smart groups"
    rank = 3
    reports_people = True
    row_type = SmartGroupRow
    row_types = (SmartGroupRow,)
    list_operation = SMART_GROUPS
    operations = (
        "users.list",
        "users.extended-info",
        "custom-fields.list",
        "smart-groups.list",
        "smart-groups.get",
        "smart-groups.create",
        "smart-groups.delete",
        "smart-groups.rename",
        "smart-groups.replace-conditions",
        "smart-groups.managers",
        "smart-groups.add-managers",
        "smart-groups.remove-manager",
        "content.list",
        "content-targets.list",
        "content-targets.delete",
    )
    schema = SCHEMA
    absent_schema = ABSENT_NAMED

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[SmartGroupSpec]]:
        """Yield the smart group of one manifest entry."""
        yield desired_resource_by_name(SMART_GROUP, entry, parse_smart_group(entry))

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the smart group that an `absent` entry deletes."""
        yield delete_entry_by_name(SMART_GROUP, entry)

    def check_declarations(
        self,
        declared: Sequence[DesiredResource[SmartGroupSpec]],
        everything: Mapping[str, Sequence[DesiredResource[SmartGroupSpec]]],
    ) -> Iterator[Problem]:
        """Yield a problem for choices of a TEXT field, and for choices missing from a field's declared whole list."""
        return find_unknown_choices(declared, everything)

    def dependencies(self, declared: DesiredResource[SmartGroupSpec]) -> list[Address]:
        """The fields in its conditions, and its managers; the plan may create them."""
        spec = declared.spec
        fields = [Address.of(CUSTOM_FIELD, condition.field) for condition in spec.conditions or ()]
        return [*fields, *people_addresses(spec.managers or NOBODY)]

    def named_emails(self, entry: DesiredResource[SmartGroupSpec] | DeleteEntry[Any]) -> Iterable[str]:
        """Return its managers."""
        return (entry.spec.managers or NOBODY).named_emails if isinstance(entry, DesiredResource) else ()

    def match(
        self,
        planning: PlanContext,
        declared: Sequence[DesiredResource[SmartGroupSpec]],
        absent: Sequence[DeleteEntry[Any]],
    ) -> MatchResult[SmartGroupSpec, SmartGroupRow]:
        """Match by name, with the conditions that migrations of fields replace."""
        if not active_migrations(planning):
            return match_named(planning, SmartGroupRow, self.noun, declared, absent)
        from lmsconf.kinds.smart_group.replaced_conditions import add_replaced_conditions, give_reasons

        wanted = add_replaced_conditions(planning, declared, absent)
        matched = match_named(planning, SmartGroupRow, self.noun, wanted, absent)
        give_reasons(planning, matched)
        return matched

    def diff(self, planning: PlanContext, match: Match[SmartGroupSpec, SmartGroupRow]) -> BeforeAfter | None:
        """Compare name, and conditions and managers where declared."""
        return diff_smart_group(planning, match)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[SmartGroupRow]) -> BeforeAfter:
        """The live name, conditions and managers; members are computed, so they are no part of it."""
        return state_before_deletion(planning, deletion)

    def finalize(self, planning: PlanContext, matched: MatchResult[SmartGroupSpec, SmartGroupRow]) -> None:
        """Find rename cycles, and record which fields and choices each live smart group keeps and drops."""
        find_rename_cycles(planning, matched)
        deletions = () if planning.policy.additive else matched.deletions
        deleted = frozenset(deletion.row.id for deletion in deletions if planning.chosen(deletion.address))
        record_references(planning, deleted)
        plan_condition_losses(planning, matched, deleted)

    def live_form(self, planning: PlanContext, row: SmartGroupRow) -> Form:
        """Its name, and its conditions where they were read."""
        form: Form = {"name": normalize_name(row.name)}
        if row.conditions is not None:
            form["conditions"] = condition_set(conditions_by_name(planning, row.conditions))
        return form

    def similarity(self, planning: PlanContext, form: Form) -> Similarity:
        """Compare smart groups by their conditions."""
        conditions = cast("frozenset[NumberedCondition]", form.get("conditions", frozenset()))
        unnumbered = (condition for condition, _ in conditions)
        items = {(condition.field, choice) for condition in unnumbered for choice in condition.choices or (None,)}
        return Similarity(
            of="conditions", key=SimilarConditions(conditions) if conditions else None, items=frozenset(items)
        )

    def plan_steps(
        self, planning: PlanContext, match: Match[SmartGroupSpec, SmartGroupRow], sides: BeforeAfter
    ) -> list[Step]:
        """One create, or rename, replace the conditions, add managers, then remove managers."""
        return smart_group_steps(planning, match, sides)

    def undo_extent(
        self,
        planning: PlanContext,
        subject: Match[SmartGroupSpec, SmartGroupRow] | Deletion[SmartGroupRow] | SideEffect,
        sides: BeforeAfter,
    ) -> Undo:
        """A smart group, or a field in a condition, that is created again has another id."""
        if isinstance(subject, SideEffect):
            return partial_undo("its conditions come back, with the new id of what they name")
        if isinstance(subject, Deletion):
            return partial_undo("the smart group comes back with another id")
        reason = kept_system_condition(sides)
        return FULL_UNDO if reason is None else partial_undo(reason)

    def plan_delete(self, planning: PlanContext, deletion: Deletion[SmartGroupRow]) -> list[Step]:
        """One DELETE, after the assignments of the group are deleted."""
        return [smart_group_deletion(planning, deletion)]

    def grant_verification(self, call: Call) -> GrantVerification | None:
        """Additions of managers are verified by reading the smart group."""
        return (
            list_additions_verification("smart-groups.get", "managers")
            if call.operation == "smart-groups.add-managers"
            else None
        )

    def revokes_access(self, call: Call) -> bool:
        """Removals of managers, and deletions."""
        return call.operation in ("smart-groups.remove-manager", "smart-groups.delete")

    references = REFERENCES
    part_references = PART_REFERENCES
    graph_shape = "ellipse"

    def entry_team(self, body: Mapping[str, Json], field: str, teams: Mapping[Address, str]) -> str | None:
        """The one choice of the field in its conditions."""
        return only_choice(body.get("conditions"), field)

    def entry_body(self, live: LiveNames, row: SmartGroupRow) -> EntryBody:
        """Its conditions, and its managers if there are any."""
        return smart_group_entry_body(live, row)

    def required_listings(self, reading: ReadContext) -> frozenset[str]:
        """The fields of conditions, and people as for manual groups."""
        if reading.may_delete(SMART_GROUP):
            return frozenset({CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER})
        declared = reading.declared_of(self)
        lists = any(resource.spec.managers is not None and reading.chosen(resource.address) for resource in declared)
        return frozenset({CUSTOM_FIELD, USER} if lists else {CUSTOM_FIELD})

    def parse_row(self, data: Mapping[str, Json]) -> SmartGroupRow:
        """Parse a row of the listing, which has neither conditions nor managers."""
        return parse_listed_row(data)

    def read(self, reading: ReadContext) -> Listing[SmartGroupRow] | None:
        """Read the listing, and conditions and managers where they are compared."""
        from lmsconf.kinds.smart_group.read import read_smart_groups

        return read_smart_groups(self, reading)

    def can_reread(self, kept: Snapshot, changes: Sequence[Change]) -> bool:
        """Unless a smart group is deleted, or loses a condition with a field."""
        from lmsconf.kinds.smart_group.read import can_reread_smart_groups

        return can_reread_smart_groups(changes)

    def reread(self, api: Api, kept: Snapshot, changes: Sequence[Change]) -> Listing[SmartGroupRow]:
        """The touched smart groups, and the listing where a name is given."""
        from lmsconf.kinds.smart_group.read import reread_smart_groups

        return reread_smart_groups(api, kept, changes)


KIND: Final = SmartGroupKind()
