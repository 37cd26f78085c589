"""Manual groups: members and managers added by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from lmsconf.api.spec.listings import MANUAL_GROUPS
from lmsconf.errors import Problem
from lmsconf.kinds.manual_group.diff import diff_group, state_before_deletion
from lmsconf.kinds.manual_group.steps import ADDITION_CHECKS, LIST_OPERATIONS, group_deletion, group_steps
from lmsconf.kinds.manual_group.types import (
    FEWEST_MEMBERS,
    LISTS,
    GroupRow,
    ManualGroupSpec,
    declared_lists,
    list_ids,
    parse_group_row,
)
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entries import (
    ABSENT_NAMED,
    NAMED,
    delete_entry_by_name,
    desired_resource_by_name,
    entry_schema,
    partial_undo,
)
from lmsconf.kinds.shared.people_lists import PeopleList, parse_people_list, people_list_schema
from lmsconf.kinds.shared.renames import find_rename_cycles
from lmsconf.kinds.user.export import people_list_trails, people_lists_body, team_of_people
from lmsconf.kinds.user.people_directory import people_addresses, people_directory, people_display_names
from lmsconf.model.address import Address
from lmsconf.model.api import Api
from lmsconf.model.calls import Call, Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import LOCK_PREFIX, normalize_name
from lmsconf.model.plan import FULL_UNDO, Change, Undo
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, SideEffect, Similarity
from lmsconf.planner.grant_verification import GrantVerification
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import ANY, EntryBody
from lmsconf.planner.matching import match_named

if TYPE_CHECKING:
    from lmsconf.planner.reading import ReadContext


class ManualGroupKind(Kind[ManualGroupSpec, GroupRow]):
    """The kind `group`."""

    name = GROUP
    section = "groups"
    noun = "group"
    plural = "groups"
    rank = 2
    reports_people = True
    row_type = GroupRow
    row_types = (GroupRow,)
    example = "group/Sales"
    list_operation = MANUAL_GROUPS
    operations = (
        "users.list",
        "users.extended-info",
        "manual-groups.list",
        "manual-groups.create",
        "manual-groups.delete",
        "manual-groups.rename",
        "manual-groups.members",
        "manual-groups.add-members",
        "manual-groups.remove-member",
        "manual-groups.managers",
        "manual-groups.add-managers",
        "manual-groups.remove-manager",
        "content.list",
        "content-targets.list",
        "content-targets.delete",
    )
    schema = entry_schema(
        {
            **NAMED,
            "members": people_list_schema("The members of the group."),
            "managers": people_list_schema("The managers of the group."),
        },
        ["name"],
        "A manual group: people added by hand.",
    )
    absent_schema = ABSENT_NAMED

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[ManualGroupSpec]]:
        """Yield the group of one manifest entry; report a reserved name."""
        if str(entry.body["name"]).startswith(LOCK_PREFIX):
            entry.report(
                Problem(
                    code="manifest/reserved",
                    message=f'a group cannot be called "{entry.body["name"]}"',
                    hint=f'Names that begin with "{LOCK_PREFIX}" are for the lock that `lock:` asks for. '
                    "Choose another.",
                    source=entry.places.at("name"),
                )
            )
        spec = ManualGroupSpec(
            members=parse_people_list(entry, "members"), managers=parse_people_list(entry, "managers")
        )
        yield desired_resource_by_name(GROUP, entry, spec)

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the group that an `absent` entry deletes."""
        yield delete_entry_by_name(GROUP, entry)

    def dependencies(self, declared: DesiredResource[ManualGroupSpec]) -> list[Address]:
        """Its members and managers; the plan may create them."""
        return [address for _, people in declared_lists(declared.spec) for address in people_addresses(people)]

    def named_emails(self, entry: DesiredResource[ManualGroupSpec] | DeleteEntry[Any]) -> Iterable[str]:
        """Return its members and managers."""
        if not isinstance(entry, DesiredResource):
            return ()
        return frozenset[str]().union(*(people.named_emails for _, people in declared_lists(entry.spec)))

    def match(
        self,
        planning: PlanContext,
        declared: Sequence[DesiredResource[ManualGroupSpec]],
        absent: Sequence[DeleteEntry[Any]],
    ) -> MatchResult[ManualGroupSpec, GroupRow]:
        """Match by name."""
        return match_named(planning, GroupRow, self.noun, declared, absent)

    def diff(self, planning: PlanContext, match: Match[ManualGroupSpec, GroupRow]) -> BeforeAfter | None:
        """Compare name, and members and managers where declared; record people who leave a group."""
        return diff_group(planning, match)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[GroupRow]) -> BeforeAfter:
        """The live name, members and managers; record the members as leaving."""
        return state_before_deletion(planning, deletion)

    def finalize(self, planning: PlanContext, matched: MatchResult[ManualGroupSpec, GroupRow]) -> None:
        """Find rename cycles."""
        find_rename_cycles(planning, matched)

    def live_form(self, planning: PlanContext, row: GroupRow) -> Form:
        """Its name, and its members where they were read."""
        members = row.members
        form: Form = {"name": normalize_name(row.name)}
        return form if members is None else {**form, "members": PeopleList(people_display_names(planning, members))}

    def similarity(self, planning: PlanContext, form: Form) -> Similarity:
        """Compare groups by their active members; fewer than FEWEST_MEMBERS could be equal by chance."""
        value = form.get("members")
        members = value.include if isinstance(value, PeopleList) else frozenset()
        active = members - people_directory(planning).archived
        return Similarity(of="members", key=active if active and len(members) >= FEWEST_MEMBERS else None, items=active)

    def plan_steps(
        self, planning: PlanContext, match: Match[ManualGroupSpec, GroupRow], sides: BeforeAfter
    ) -> list[Step]:
        """Create or rename; then, for managers and for members, add people before removing any."""
        return group_steps(planning, match, sides)

    def undo_extent(
        self,
        planning: PlanContext,
        subject: Match[ManualGroupSpec, GroupRow] | Deletion[GroupRow] | SideEffect,
        sides: BeforeAfter,
    ) -> Undo:
        """A deleted group that is created again has another id."""
        return partial_undo("the group comes back with another id") if isinstance(subject, Deletion) else FULL_UNDO

    def plan_delete(self, planning: PlanContext, deletion: Deletion[GroupRow]) -> list[Step]:
        """One DELETE, after its assignments are deleted and its members are added to their new groups."""
        return [group_deletion(planning, deletion)]

    def grant_verification(self, call: Call) -> GrantVerification | None:
        """Additions to a list are verified by reading the list."""
        return ADDITION_CHECKS.get(call.operation)

    def revokes_access(self, call: Call) -> bool:
        """Removals from a list, and deletions: members who move elsewhere must be seen there first."""
        return call.operation == "manual-groups.delete" or any(
            call.operation == removes for _, _, removes in LIST_OPERATIONS
        )

    references = MappingProxyType({USER: people_list_trails(("groups", ANY, "members"), ("groups", ANY, "managers"))})

    def entry_team(self, body: Mapping[str, Json], field: str, teams: Mapping[Address, str]) -> str | None:
        """The one team of all members."""
        return team_of_people(body.get("members"), teams)

    def entry_body(self, live: LiveNames, row: GroupRow) -> EntryBody:
        """Its members, and its managers if there are any."""
        return people_lists_body(live, {key: list_ids(row, key) for key in LISTS})

    def required_listings(self, reading: ReadContext) -> frozenset[str]:
        """The people, where lists of them are declared; with a group, its assignments of any content are deleted."""
        if reading.may_delete(GROUP):
            return frozenset({CONTENT_TARGET, GROUP, SMART_GROUP, USER})
        declared = reading.declared_of(self)
        lists = any(resource.spec.declares_people and reading.chosen(resource.address) for resource in declared)
        return frozenset({USER} if lists else ())

    def parse_row(self, data: Mapping[str, Json]) -> GroupRow:
        """Parse a row of the listing, which has neither members nor managers."""
        return parse_group_row(data)

    def read(self, reading: ReadContext) -> Listing[GroupRow] | None:
        """Read the listing, and members and managers where they are compared."""
        from lmsconf.kinds.manual_group.read import read_groups

        return read_groups(self, reading)

    def can_reread(self, kept: Snapshot, changes: Sequence[Change]) -> bool:
        """Unless a group is deleted, or they are many."""
        from lmsconf.kinds.manual_group.read import can_reread_groups

        return can_reread_groups(kept, changes)

    def reread(self, api: Api, kept: Snapshot, changes: Sequence[Change]) -> Listing[GroupRow]:
        """Members and managers of the touched groups, and the listing where a name is given."""
        from lmsconf.kinds.manual_group.read import reread_groups

        return reread_groups(api, kept, changes)


KIND: Final = ManualGroupKind()
