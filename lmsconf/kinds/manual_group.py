"""Manual groups: live rows and declared specs, which live group each declaration means, what differs, and the calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.shared.kind_names import GROUP
from lmsconf.kinds.shared.managed_resources import match_named
from lmsconf.kinds.shared.manifest_entry import (
    LISTS,
    ManifestEntry,
    PeopleList,
    desired_resource_by_name,
    parse_people_list,
    report_unread_list,
)
from lmsconf.kinds.shared.plan_context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, Similarity
from lmsconf.kinds.shared.responses import optional_text, require_text
from lmsconf.kinds.shared.steps import free_name_ref, freed_name_ref, joined_group_ref, list_steps, rename_steps
from lmsconf.kinds.user.people_directory import (
    PeopleSides,
    add_live_list,
    compare_lists,
    people_directory,
    people_display_names,
    sides_by_name,
)
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import LOCK_PREFIX, normalize_name
from lmsconf.model.snapshot import SnapshotRow

FEWEST_MEMBERS: Final = 2
"""Groups with fewer members are not compared by them."""


class GroupRow(SnapshotRow, frozen=True):
    """A live manual group. `members` and `managers` are user ids, None where they were not read."""

    listing = GROUP

    id: RemoteId
    name: str
    members: frozenset[RemoteId] | None = None
    managers: frozenset[RemoteId] | None = None


class ManualGroupSpec(Struct, frozen=True):
    """A declared manual group; None for an undeclared list."""

    members: PeopleList | None
    managers: PeopleList | None


def parse_group_row(data: Mapping[str, Json]) -> GroupRow:
    """Parse a row of the listing, which has neither members nor managers."""
    return GroupRow(RemoteId(require_text(data, "groupId")), optional_text(data, "name"))


def has_members_to_compare(spec: ManualGroupSpec) -> bool:
    """Whether a group to be created declares enough members to be compared by them."""
    return spec.members is not None and len(spec.members.include) >= FEWEST_MEMBERS


def parse_group(entry: ManifestEntry) -> DesiredResource[ManualGroupSpec]:
    """Parse the members and managers of an entry; report a reserved name."""
    if str(entry.body["name"]).startswith(LOCK_PREFIX):
        entry.problem(
            "manifest/reserved",
            f'a group cannot be called "{entry.body["name"]}"',
            "name",
            hint=f'Names that begin with "{LOCK_PREFIX}" are for the lock that `lock:` asks for. Choose another.',
        )
    spec = ManualGroupSpec(members=parse_people_list(entry, "members"), managers=parse_people_list(entry, "managers"))
    return desired_resource_by_name(GROUP, entry, spec)


def match_groups(
    planning: PlanContext, declared: Sequence[DesiredResource[ManualGroupSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[ManualGroupSpec, GroupRow]:
    """Match groups by name."""
    return match_named(planning, GroupRow, "group", declared, absent)


def diff_group(planning: PlanContext, match: Match[ManualGroupSpec, GroupRow]) -> BeforeAfter | None:
    """Compare name, and members and managers where declared; record people who leave a group."""
    sides = sides_by_name(match)
    return compare_lists(planning, match, LISTS, sides)


def with_listed_people(planning: PlanContext, row: GroupRow) -> GroupRow:
    """Return a row without the members and managers who are archived or in no list of people.

    A service may list only active people, and yet show an archived person whose id is requested.
    """
    listed = people_directory(planning).ids - planning.archived_ids
    members, managers = (None if ids is None else ids & listed for ids in (row.members, row.managers))
    return replace(row, members=members, managers=managers)


def group_before_deletion(planning: PlanContext, deletion: Deletion[GroupRow]) -> BeforeAfter:
    """Return the live name, members and managers of a group to be deleted; record the members as leaving."""
    sides = PeopleSides({"name": normalize_name(deletion.row.name)}, {})
    for key in LISTS:
        ids = getattr(deletion.row, key)
        if ids is None:
            report_unread_list(planning, deletion.address, key, deletion.absent.source if deletion.absent else None)
        else:
            add_live_list(planning, key, ids, sides)
    return sides.compared(deletion.row)


def live_group_form(planning: PlanContext, row: GroupRow) -> Form:
    """Return the name, and the members where they were read."""
    members = row.members
    form: Form = {"name": normalize_name(row.name)}
    return form if members is None else {**form, "members": PeopleList(people_display_names(planning, members))}


def similar_members(planning: PlanContext, form: Form) -> Similarity:
    """Compare groups by their active members; fewer than FEWEST_MEMBERS could be equal by chance."""
    value = form.get("members")
    members = value.include if isinstance(value, PeopleList) else frozenset()
    active = members - people_directory(planning).archived
    return Similarity(of="members", key=active if active and len(members) >= FEWEST_MEMBERS else None, items=active)


def group_steps(planning: PlanContext, match: Match[ManualGroupSpec, GroupRow], sides: BeforeAfter) -> list[Step]:
    """Create or rename; then, for managers and for members, add people before removing any."""
    at, row = match.address, match.row
    path = {"groupId": Ref(at) if row is None else row.id}
    return [
        *([_creation(planning, at)] if row is None else ()),
        *rename_steps(planning, "manual-groups.rename", path, match, sides),
        *list_steps(planning, match, path, sides),
    ]


def _creation(planning: PlanContext, at: Address) -> Step:
    return Step(
        operation="manual-groups.create",
        body=planning.api_spec.body_to_wire("manual-groups.create", name=at.name),
        makes=frozenset({Ref(at)}),
        uses=free_name_ref(at),
    )


def group_deletion(planning: PlanContext, deletion: Deletion[GroupRow]) -> list[Step]:
    """Return the DELETE, after its assignments are deleted and its members are added to their new groups."""
    return [
        Step(
            operation="manual-groups.delete",
            path={"groupId": deletion.row.id},
            makes=freed_name_ref(GROUP, deletion.row),
            uses=frozenset(map(joined_group_ref, people_display_names(planning, deletion.row.members or ()))),
            ends=frozenset({Ref(deletion.address)}),
            revokes=True,
        )
    ]
