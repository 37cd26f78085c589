"""Manual groups: members and managers added by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from lmsconf.api.spec.listings import MANUAL_GROUPS
from lmsconf.errors import Problem
from lmsconf.kinds.manual_group import redact
from lmsconf.kinds.manual_group.read import read_groups
from lmsconf.kinds.manual_group.types import FEWEST_MEMBERS, LISTS, GroupRow, ManualGroupSpec, group_row
from lmsconf.kinds.shared.common import (
    ABSENT_NAMED,
    NAMED,
    entry_schema,
    named,
    named_absent,
    not_read,
    partial_undo,
)
from lmsconf.kinds.shared.names import CONTENT_TARGET, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.people_lists import People, parse_people, people_schema
from lmsconf.kinds.shared.renames import find_rename_cycles, freed_name_slot, name_slot, rename_steps
from lmsconf.kinds.user.directory import (
    addresses,
    check_people,
    directory,
    foretell_managers,
    note_unknown,
    shown_people,
)
from lmsconf.kinds.user.export import people_body, person_lists
from lmsconf.kinds.user.people_steps import entered, list_grant, people_steps
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.forms import Form
from lmsconf.model.names import LOCK_PREFIX, normal
from lmsconf.model.snapshot import HasName, ListedRow, Listing
from lmsconf.model.values import Call, DeleteEntry, DesiredResource, Json, Step, Undo
from lmsconf.planner.context import BeforeAfter, Deletion, Effect, Match, MatchResult, PlanContext, Similarity
from lmsconf.planner.entries import ANY, EntryBody
from lmsconf.planner.grants import GrantCheck
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.matching import match_named
from lmsconf.planner.reading import ReadContext
from lmsconf.planner.redaction import Entry, RedactionContext, Report, RestoreContext


class ManualGroupKind(Kind[ManualGroupSpec, GroupRow]):
    """The kind `group`."""

    name = GROUP
    section = "groups"
    noun = "group"
    plural = "groups"
    rank = 2
    reports_people = True
    row_type = GroupRow
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
            "members": people_schema("Who is in the group."),
            "managers": people_schema("Who manages the group."),
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
        spec = ManualGroupSpec(members=parse_people(entry, "members"), managers=parse_people(entry, "managers"))
        yield named(GROUP, entry, spec)

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the group that an `absent` entry deletes."""
        yield named_absent(GROUP, entry)

    def dependencies(self, declared: DesiredResource[ManualGroupSpec]) -> list[Address]:
        """Its members and managers; the plan may create them."""
        return [one for _, people in _lists(declared.spec) for one in addresses(people)]

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
        declared, row = match.declared, match.row
        before: Form = {} if row is None else {"name": normal(row.name)}
        after: Form = {"name": declared.address.name}
        sizes: dict[str, int] = {}
        for key, people in _lists(declared.spec):
            after[key] = wanted = check_people(planning, declared, key, people)
            if row is None:
                if key == "managers":
                    foretell_managers(planning, declared, wanted.include)
                continue
            ids = _ids(row, key)
            if ids is None:
                not_read(planning, declared.address, key, declared.places.at(key))
                return None
            note_unknown(planning, declared, key, ids)
            before[key] = live = directory(planning).comparable(ids, wanted)
            sizes[key] = len(ids)
            if key == "managers":
                foretell_managers(planning, declared, wanted.include - live.include)
            if key == "members":
                planning.removed_emails.update(live.include - wanted.include)
        if row is None:
            return BeforeAfter(before=None, after=after, defaults=tuple(key for key in LISTS if key not in after))
        return BeforeAfter(before=before, after=after, sizes=sizes)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[GroupRow]) -> BeforeAfter:
        """The live name, members and managers; record the members as leaving."""
        row = deletion.row
        form: Form = {"name": normal(row.name)}
        for key in LISTS:
            ids = _ids(row, key)
            if ids is None:
                not_read(planning, deletion.address, key, deletion.absent.source if deletion.absent else None)
                continue
            form[key] = people = People(shown_people(planning, ids))
            if key == "members":
                planning.removed_emails.update(people.include)
        return BeforeAfter(before=form, after=None, sizes={key: len(_ids(row, key) or ()) for key in LISTS})

    def finalize(self, planning: PlanContext, matched: MatchResult[ManualGroupSpec, GroupRow]) -> None:
        """Find rename cycles."""
        find_rename_cycles(planning, matched)

    def live_form(self, planning: PlanContext, row: GroupRow) -> Form:
        """Its name, and its members where they were read."""
        members = row.members
        form: Form = {"name": normal(row.name)}
        return form if members is None else {**form, "members": People(shown_people(planning, members))}

    def similarity(self, planning: PlanContext, form: Form) -> Similarity:
        """Compare groups by their active members; fewer than FEWEST_MEMBERS could be equal by chance."""
        value = form.get("members")
        members = value.include if isinstance(value, People) else frozenset()
        active = members - directory(planning).archived
        return Similarity(of="members", key=active if active and len(members) >= FEWEST_MEMBERS else None, items=active)

    def plan_steps(
        self, planning: PlanContext, match: Match[ManualGroupSpec, GroupRow], sides: BeforeAfter
    ) -> list[Step]:
        """Create or rename; then, for managers and for members, add people before removing any."""
        at, row = match.address, match.row
        me = Ref(at)
        id = me if row is None else row.id
        steps: list[Step] = []
        if row is None:
            body = planning.terms.body("manual-groups.create", name=at.name)
            steps.append(Step(operation="manual-groups.create", body=body, makes=frozenset({me}), uses=name_slot(at)))
        else:
            steps.extend(rename_steps(planning, "manual-groups.rename", {"groupId": row.id}, match, sides))
        for key, adds, removes in CALLS:
            after = (sides.after or {}).get(key)
            if isinstance(after, People):
                held = (sides.before or {}).get(key)
                before = held if isinstance(held, People) else None
                steps.extend(people_steps(planning, at, {"groupId": id}, adds, removes, before, after))
        return steps

    def lost_on(
        self,
        planning: PlanContext,
        subject: Match[ManualGroupSpec, GroupRow] | Deletion[GroupRow] | Effect,
        sides: BeforeAfter,
    ) -> Undo:
        """A deleted group that is created again has another id."""
        return partial_undo("the group comes back with another id") if isinstance(subject, Deletion) else Undo()

    def plan_delete(self, planning: PlanContext, deletion: Deletion[GroupRow]) -> list[Step]:
        """One DELETE, after its assignments are deleted and its members are added to their new groups."""
        members = shown_people(planning, deletion.row.members or ())
        return [
            Step(
                operation="manual-groups.delete",
                path={"groupId": deletion.row.id},
                makes=freed_name_slot(GROUP, deletion.row),
                uses=frozenset(map(entered, members)),
                ends=frozenset({Ref(deletion.address)}),
                revokes=True,
            )
        ]

    def grant_check(self, call: Call) -> GrantCheck | None:
        """Additions to a list are verified by reading the list."""
        return GRANTS.get(call.operation)

    def revokes(self, call: Call) -> bool:
        """Removals from a list, and deletions: members who move elsewhere must be seen there first."""
        return call.operation == "manual-groups.delete" or any(call.operation == removes for _, _, removes in CALLS)

    references = MappingProxyType({USER: person_lists(("groups", ANY, "members"), ("groups", ANY, "managers"))})

    def entry_body(self, live: LiveNames, row: GroupRow) -> EntryBody:
        """Its members, and its managers if there are any."""
        return people_body(live, {key: _ids(row, key) for key in LISTS})

    def needs(self, reading: ReadContext) -> frozenset[str]:
        """The people, where lists of them are declared; with a group, its assignments of any content are deleted."""
        if reading.may_delete(GROUP):
            return frozenset({CONTENT_TARGET, GROUP, SMART_GROUP, USER})
        declared = reading.declared_of(self)
        lists = any(one.spec.lists_people and reading.chosen(one.address) for one in declared)
        return frozenset({USER} if lists else ())

    def parse_row(self, data: Mapping[str, Json]) -> GroupRow:
        """Parse a row of the listing, which has neither members nor managers."""
        return group_row(data)

    def read(self, reading: ReadContext) -> Listing[GroupRow] | None:
        """Read the listing, and members and managers where they are compared."""
        return read_groups(self, reading)

    def redact(self, redaction: RedactionContext, row_type: type[ListedRow]) -> Iterable[HasName]:
        """Count the undeclared people in lists."""
        return redact.redacted(redaction)

    def restore(self, restoring: RestoreContext, row_type: type[ListedRow]) -> Iterable[HasName]:
        """Add placeholders for the people who are only counted in lists."""
        return redact.restored(restoring)

    def without_people(self, entry: Entry, new: frozenset[str], report: Report) -> Entry | None:
        """Leave out people that a redacted snapshot does not know."""
        return redact.without_people(entry, new, report)


CALLS: Final = (
    ("managers", "manual-groups.add-managers", "manual-groups.remove-manager"),
    ("members", "manual-groups.add-members", "manual-groups.remove-member"),
)
GRANTS: Final = {
    "manual-groups.add-members": list_grant("manual-groups.members", "userIds"),
    "manual-groups.add-managers": list_grant("manual-groups.managers", "userIds"),
}


def _lists(spec: ManualGroupSpec) -> Iterator[tuple[str, People]]:
    if spec.members is not None:
        yield "members", spec.members
    if spec.managers is not None:
        yield "managers", spec.managers


def _ids(row: GroupRow, key: str) -> frozenset[RemoteId] | None:
    return row.members if key == "members" else row.managers


KIND: Final = ManualGroupKind()
