"""Custom fields: questions about each person, and their choices.

PUT replaces the whole field: a choice keeps its id only if the request carries it, and a choice left out is deleted
with the answers that picked it. A workspace holds at most ten fields, and the service may refuse to change a field in
use (API specification, Custom Fields).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from lmsconf.api.spec.listings import CUSTOM_FIELDS
from lmsconf.errors import Problem
from lmsconf.kinds.custom_field.choices import register_choices
from lmsconf.kinds.custom_field.diff import diff_field, live_field_form
from lmsconf.kinds.custom_field.export import field_entry_body
from lmsconf.kinds.custom_field.lost_answers import field_undo, record_deletions
from lmsconf.kinds.custom_field.migration import (
    MIGRATE,
    active_migrations,
    find_bad_migrations,
    has_migration,
    migration_to_json,
    parse_replayed_deletion,
)
from lmsconf.kinds.custom_field.parse import parse_field
from lmsconf.kinds.custom_field.schema import SCHEMA
from lmsconf.kinds.custom_field.steps import (
    count_slots,
    field_deletion,
    field_steps,
)
from lmsconf.kinds.custom_field.types import MOST_FIELDS, CustomFieldSpec, FieldRow, parse_field_row
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, SMART_GROUP
from lmsconf.kinds.shared.manifest_entries import ABSENT_NAMED, desired_resource_by_name
from lmsconf.kinds.shared.renames import find_rename_cycles
from lmsconf.model.address import Address
from lmsconf.model.api import Api
from lmsconf.model.calls import Call, Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.plan import Change, Undo
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, SideEffect, Similarity
from lmsconf.planner.diff import KeyedNames
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import EntryBody
from lmsconf.planner.matching import match_named

if TYPE_CHECKING:
    from lmsconf.planner.reading import ReadContext


class CustomFieldKind(Kind[CustomFieldSpec, FieldRow]):
    """The kind `custom_field`."""

    name = CUSTOM_FIELD
    section = "custom_fields"
    noun = "custom field"
    plural = "custom fields"
    rank = 0
    row_type = FieldRow
    row_types = (FieldRow,)
    list_operation = CUSTOM_FIELDS
    limit = MOST_FIELDS
    operations = (
        "custom-fields.list",
        "custom-fields.create",
        "custom-fields.replace",
        "custom-fields.delete",
        "smart-groups.list",
        "smart-groups.get",
    )
    schema = SCHEMA
    absent_schema = ABSENT_NAMED

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[CustomFieldSpec]]:
        """Yield the field of one manifest entry; report bad choices."""
        yield desired_resource_by_name(CUSTOM_FIELD, entry, parse_field(entry))

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the field that an `absent` entry deletes."""
        yield parse_replayed_deletion(entry)

    def check_declarations(
        self,
        declared: Sequence[DesiredResource[CustomFieldSpec]],
        everything: Mapping[str, Sequence[DesiredResource[CustomFieldSpec]]],
    ) -> Iterator[Problem]:
        """Yield a problem for each field beyond MOST_FIELDS of a workspace, and those of migrations."""
        yield from find_bad_migrations(declared)
        reported: set[Address] = set()
        # "" is a workspace that no `only_in` names.
        for workspace in ("", *sorted({name for resource in declared for name in resource.only_in or ()})):
            in_workspace = {resource.address: resource for resource in declared if resource.applies_in(workspace)}
            for extra in [one for one in list(in_workspace.values())[MOST_FIELDS:] if one.address not in reported]:
                reported.add(extra.address)
                where = f" for {workspace}" if workspace else ""
                yield Problem(
                    code="custom-field/too-many",
                    message=f"{extra.address}: too many custom fields: a workspace has at most {MOST_FIELDS}",
                    hint=f"{len(in_workspace)} are declared{where}. Remove {len(in_workspace) - MOST_FIELDS}.",
                    source=extra.source,
                    address=str(extra.address),
                )

    def match(
        self,
        planning: PlanContext,
        declared: Sequence[DesiredResource[CustomFieldSpec]],
        absent: Sequence[DeleteEntry[Any]],
    ) -> MatchResult[CustomFieldSpec, FieldRow]:
        """Match fields by name, then the choices of each field by name, then the answers that migrations copy."""
        if has_migration(declared, absent):
            from lmsconf.kinds.custom_field.planned_migration import deletions_by_migration

            absent = [*absent, *deletions_by_migration(planning, declared, absent)]
        matched = match_named(planning, FieldRow, self.noun, declared, absent)
        register_choices(planning, matched)
        if has_migration((), absent):
            from lmsconf.kinds.custom_field.planned_migration import plan_migrations

            plan_migrations(planning, matched)
        return matched

    def diff(self, planning: PlanContext, match: Match[CustomFieldSpec, FieldRow]) -> BeforeAfter | None:
        """Compare the declared keys. None, with a problem, for a changed type or a creation without a required key."""
        return diff_field(planning, match)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[FieldRow]) -> BeforeAfter:
        """The live name, type, choices and description, and where its answers move; `after` is None."""
        form = live_field_form(deletion.row)
        migration = active_migrations(planning).get(deletion.address)
        if migration is not None:
            form[MIGRATE] = migration_to_json(migration.migration)
        return BeforeAfter(before=form, after=None)

    def live_form(self, planning: PlanContext, row: FieldRow) -> Form:
        """Its name, type, choices and description."""
        return live_field_form(row)

    def finalize(self, planning: PlanContext, matched: MatchResult[CustomFieldSpec, FieldRow]) -> None:
        """Find rename cycles, check the limit of ten fields, and record the deleted fields and choices."""
        find_rename_cycles(planning, matched)
        count_slots(planning, matched)
        record_deletions(planning, matched)

    def similarity(self, planning: PlanContext, form: Form) -> Similarity:
        """Compare fields of one type by their choices; a TEXT field has nothing to compare."""
        choices = form.get("choices")
        names = frozenset(choices.names.values()) if isinstance(choices, KeyedNames) else frozenset()
        return Similarity(of="choices", key=names or None, items=names, type=str(form["type"]))

    def plan_steps(
        self, planning: PlanContext, match: Match[CustomFieldSpec, FieldRow], sides: BeforeAfter
    ) -> list[Step]:
        """One create, or one or more replaces; see `field_steps`."""
        return field_steps(planning, match, sides)

    def undo_extent(
        self,
        planning: PlanContext,
        subject: Match[CustomFieldSpec, FieldRow] | Deletion[FieldRow] | SideEffect,
        sides: BeforeAfter,
    ) -> Undo:
        """A field or choice that is created again has another id and no answers."""
        return field_undo(planning, subject.address)

    def plan_delete(self, planning: PlanContext, deletion: Deletion[FieldRow]) -> list[Step]:
        """One DELETE, after the last smart group stops referencing the field."""
        return field_deletion(planning, deletion)

    def revokes_access(self, call: Call) -> bool:
        """Deletions of a field: the copies of its answers, if there are any, are verified before."""
        return call.operation == "custom-fields.delete"

    parts_key = "choices"
    graph_shape = "parallelogram"

    def entry_body(self, live: LiveNames, row: FieldRow) -> EntryBody:
        """Its type, choices in live order, description and flags."""
        return field_entry_body(row)

    def required_listings(self, reading: ReadContext) -> frozenset[str]:
        """The smart groups, whose conditions reference fields."""
        return frozenset({SMART_GROUP})

    def parse_row(self, data: Mapping[str, Json]) -> FieldRow:
        """Parse a field of a response."""
        return parse_field_row(data)

    def read(self, reading: ReadContext) -> Listing[FieldRow] | None:
        """Read the listing, twice before a field is created."""
        from lmsconf.kinds.custom_field.read import read_fields

        return read_fields(self, reading)

    def can_reread(self, kept: Snapshot, changes: Sequence[Change]) -> bool:
        """Unless a field or a choice is deleted, and answers with it."""
        from lmsconf.kinds.custom_field.read import can_reread_fields

        return can_reread_fields(changes)

    def reread(self, api: Api, kept: Snapshot, changes: Sequence[Change]) -> Listing[FieldRow]:
        """The listing, which has all details."""
        from lmsconf.kinds.custom_field.read import reread_fields

        return reread_fields(api, kept, changes)


KIND: Final = CustomFieldKind()
