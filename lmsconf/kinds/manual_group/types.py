"""Values of manual groups: live rows and declared specs, and how entries declare these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from lmsconf.kinds.shared.entry_keys import PeopleList, desired_resource_by_name, parse_people_list
from lmsconf.kinds.shared.kind_names import GROUP
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.kinds.shared.responses import optional_text, require_text
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.names import LOCK_PREFIX
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
