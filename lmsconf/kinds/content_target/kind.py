"""Content targets: which content is assigned to which audience. Shown to users as assignments.

An assignment is one value: content, audience, `mandatory`, and the window in which the content is visible. The API has
no due date; `visible_until` hides the content (API specification, Content Targeting).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds.content_target.audiences import live_entry
from lmsconf.kinds.content_target.export import (
    REFERENCES,
)
from lmsconf.kinds.content_target.matching import match_assignments
from lmsconf.kinds.content_target.parse import (
    audience_from,
    parse_absent_assignments,
    parse_assignments,
)
from lmsconf.kinds.content_target.schema import ABSENT_SCHEMA, SCHEMA
from lmsconf.kinds.content_target.steps import (
    assignment_deletion,
    assignment_steps,
    assignment_verification,
    parse_live_window,
    update_action,
)
from lmsconf.kinds.content_target.types import (
    AUDIENCES,
    AssignmentSpec,
    ContentRow,
    TargetRow,
    declared_entry,
    is_window_declarable,
    people_named,
)
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, EDITS
from lmsconf.kinds.shared.manifest_entries import partial_undo
from lmsconf.model.address import Address
from lmsconf.model.api import Api
from lmsconf.model.calls import Call, Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.plan import FULL_UNDO, Action, Change, Undo, UndoLevel
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, SideEffect
from lmsconf.planner.grant_verification import GrantVerification
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.manifest_entries import EntryItems

if TYPE_CHECKING:
    from lmsconf.planner.reading import ReadContext


class ContentTargetKind(Kind[AssignmentSpec, TargetRow]):
    """The kind `content_target`."""

    name = CONTENT_TARGET
    section = "content_targets"
    noun = "assignment"
    plural = "assignments"
    is_relation = True
    rank = 4
    reports_people = True
    row_type = TargetRow
    ownership_schema: Mapping[str, Json] | None = {
        "enum": ["declared_content", "all"],
        "description": "All assignments of any content that an entry under content_targets names, or all there are; "
        "absent alone owns none.",
    }
    listing_nouns: Mapping[str, tuple[str, str]] = {
        CONTENT: ("content", "contents"),
        EDITS: ("assignment with its last edit", "assignments with their last edits"),
    }
    example = "content_target/GDPR basics -> everyone"
    operations = (
        "users.list",
        "users.extended-info",
        "manual-groups.list",
        "smart-groups.list",
        "content.list",
        "content-targets.list",
        "content-targets.create",
        "content-targets.delete",
    )
    row_types = (ContentRow, TargetRow)
    schema = SCHEMA
    absent_schema = ABSENT_SCHEMA

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[AssignmentSpec]]:
        """Yield one assignment for each content and audience of the entry; report bad times."""
        return parse_assignments(entry)

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the assignments that an `absent` entry deletes."""
        return parse_absent_assignments(entry)

    def check_declarations(
        self,
        declared: Sequence[DesiredResource[AssignmentSpec]],
        everything: Mapping[str, Sequence[DesiredResource[Any]]],
    ) -> Iterator[Problem]:
        """An assignment that is declared and replaced."""
        if not any(entry.spec.replaces for entry in declared):
            return iter(())
        from lmsconf.kinds.content_target.replacement_checks import check_replacements  # few manifests replace

        return check_replacements(declared)

    def dependencies(self, declared: DesiredResource[AssignmentSpec]) -> list[Address]:
        """Its audience."""
        return [declared.spec.audience]

    def match(
        self,
        planning: PlanContext,
        declared: Sequence[DesiredResource[AssignmentSpec]],
        absent: Sequence[DeleteEntry[Any]],
    ) -> MatchResult[AssignmentSpec, TargetRow]:
        """Match by content and audience."""
        return match_assignments(planning, declared, absent)

    def diff(self, planning: PlanContext, match: Match[AssignmentSpec, TargetRow]) -> BeforeAfter | None:
        """Compare `mandatory` and the window; an assignment is one value, so an omitted key means its default.

        None, with a problem, if a live time cannot be parsed.
        """
        row = match.row
        spec = match.declared.spec
        after = declared_entry(spec, planning.policy)
        if row is None:
            return BeforeAfter(before=None, after=after)
        window = parse_live_window(planning, row, match.declared)
        if window is None:
            return None
        if (row.mandatory, *window) == (spec.mandatory, spec.visible_from, spec.visible_until):
            return BeforeAfter(before=after, after=after)
        live = replace(spec, mandatory=row.mandatory, visible_from=window[0], visible_until=window[1])
        return BeforeAfter(before=declared_entry(live, planning.policy), after=after)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[TargetRow]) -> BeforeAfter:
        """The live assignment; a time that cannot be parsed is shown verbatim."""
        row = deletion.row
        form = live_entry(planning, row)
        spec = None if deletion.absent is None else deletion.absent.spec
        if spec is not None and spec.content_pins:
            form["content"] = {"name": spec.content, "id": row.content}
        return BeforeAfter(before=form, after=None)

    def plan_steps(
        self, planning: PlanContext, match: Match[AssignmentSpec, TargetRow], sides: BeforeAfter
    ) -> list[Step]:
        """One POST; a replacement sends a DELETE first, which interrupts access."""
        return assignment_steps(planning, match)

    def undo_extent(
        self,
        planning: PlanContext,
        subject: Match[AssignmentSpec, TargetRow] | Deletion[TargetRow] | SideEffect,
        sides: BeforeAfter,
    ) -> Undo:
        """An assignment that is deleted, even to be created again, loses its progress."""
        row = subject.row if isinstance(subject, Match | Deletion) else None
        if row is not None and not is_window_declarable(row):
            return Undo(level=UndoLevel.NONE, reason="no manifest can declare its window")
        stays = isinstance(subject, Match) and (subject.row is None or update_action(planning) is not Action.REPLACE)
        return FULL_UNDO if stays else partial_undo("the assignment comes back with another id and without progress")

    def plan_delete(self, planning: PlanContext, deletion: Deletion[TargetRow]) -> list[Step]:
        """One DELETE with a body."""
        return [assignment_deletion(planning, deletion)]

    def grant_verification(self, call: Call) -> GrantVerification | None:
        """Assignments to groups are verified by reading the assignments of the content."""
        return assignment_verification(call)

    def revokes_access(self, call: Call) -> bool:
        """Deletions."""
        return call.operation == "content-targets.delete"

    entry_items = EntryItems("assign_to", "audience", "content")
    time_keys = MappingProxyType({"visible_from": False, "visible_until": True})
    references = REFERENCES
    graph_shape = "note"

    def entry_team(self, body: Mapping[str, Json], field: str, teams: Mapping[Address, str]) -> str | None:
        """The team of the audience."""
        match body.get("assign_to"):
            case [audience, *_]:
                return teams.get(audience_from(audience))
        return None

    def required_listings(self, reading: ReadContext) -> frozenset[str]:
        """The audiences."""
        return frozenset(AUDIENCES.values())

    def read(self, reading: ReadContext) -> Listing[TargetRow] | None:
        """Read the catalog, and the targets of the named contents."""
        from lmsconf.kinds.content_target.read import read_assignments

        return read_assignments(self, reading)

    def can_reread(self, kept: Snapshot, changes: Sequence[Change]) -> bool:
        """Always: the targets of a content show all its assignments."""
        return True

    def reread(self, api: Api, kept: Snapshot, changes: Sequence[Change]) -> Listing[TargetRow]:
        """The targets of the touched contents."""
        from lmsconf.kinds.content_target.read import reread_assignments

        return reread_assignments(api, kept, changes)

    def named_emails(self, entry: DesiredResource[AssignmentSpec] | DeleteEntry[Any]) -> Iterator[str]:
        """Yield the e-mail of an audience that is a person."""
        return people_named(entry)


KIND: Final = ContentTargetKind()
