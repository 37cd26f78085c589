"""Read custom fields and groups of both kinds.

Custom fields: one listing, which has all details. Smart groups: a listing, a request for each whose
conditions or managers are needed, and their members. Manual groups: two requests per group, one if only its
members are needed, or one per page of people: whichever is fewer. Only the responses per group are always
reliable, so the extended listing is used only if it has the same people as the listing of people.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import ADD_MODE
from lmsconf.api.spec.operations import USERS
from lmsconf.errors import ApiError, InvalidResponse, Problem, Severity
from lmsconf.kinds.assignment.types import TargetRow, kind_from_target_type
from lmsconf.kinds.custom_field.lost_answers import record_deletions
from lmsconf.kinds.custom_field.types import FieldRow, Migration, has_migration
from lmsconf.kinds.group import GroupRow, ManualGroupSpec, has_members_to_compare
from lmsconf.kinds.kind_functions import diff
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import LISTS, declared_lists, included
from lmsconf.kinds.shared.plan_context import Match
from lmsconf.kinds.shared.responses import id_set, require_object
from lmsconf.kinds.smart_group import SmartGroupRow, parse_detail_row
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Api, ListedRows, ReadArguments
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import GroupEffects, members_digest
from lmsconf.model.names import count_noun, normalize_name
from lmsconf.model.plan import Action, Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.read.needed_listings import ReadContext, keep_keys, read_listing, sorted_listing
from lmsconf.planner.read.people_listings import read_shown_people


def read_fields(reading: ReadContext) -> Iterator[None]:
    """Read the fields, in the first phase.

    The response carries no total, so a short one looks complete: it is read again before a field is created.
    """
    listing = read_listing(reading.api, CUSTOM_FIELD)
    matches = (
        one
        for version in reading.versions
        for one in reading.match(CUSTOM_FIELD, {CUSTOM_FIELD: listing}, version)[1].matches
    )
    if any(match.row is None and reading.chosen(match.address) for match in matches):
        again = read_listing(reading.api, CUSTOM_FIELD)
        if {row.id for row in again.rows} != {row.id for row in listing.rows}:
            listing = replace(again, incomplete=again.incomplete or "it was read twice, with different results")
    reading.listings[CUSTOM_FIELD] = reading.found[CUSTOM_FIELD] = listing
    yield


def may_delete_fields(reading: ReadContext) -> bool:
    """Return whether a field may be deleted or replaced, according to the manifests alone."""
    return reading.covers(CUSTOM_FIELD) and (reading.may_delete(CUSTOM_FIELD) or may_copy_answers(reading))


def loses_answers(reading: ReadContext) -> bool:
    """Return whether a field is deleted or loses a choice, so that the answers of all people are needed."""
    return reading.covers(CUSTOM_FIELD) and any(record_deletions(*matched) for matched in reading.matches(CUSTOM_FIELD))


def may_copy_answers(reading: ReadContext) -> bool:
    """Return whether answers may move to another field, according to the manifests alone."""
    return any(has_migration(*version.of_kind(CUSTOM_FIELD)) for version in reading.versions)


def copies_answers(reading: ReadContext) -> bool:
    """Return whether answers move to another field, so that all people and their answers are needed."""
    return may_copy_answers(reading) and any(
        deletion.absent is not None and isinstance(deletion.absent.spec, Migration)
        for _, matched in reading.matches(CUSTOM_FIELD)
        for deletion in matched.deletions
    )


_PAGE: Final = 100
"""How many people a page has at least (API specification, Users: `limit`)."""


def read_groups(reading: ReadContext) -> Iterator[None]:
    """Read the groups, with members and managers where they are compared: by group, or by person.

    By person, the listing of people is compared with the extended one, so all of it is read, in the third phase.
    """
    listing = reading.listings[GROUP] = read_listing(reading.api, GROUP)
    yield
    wanted, compared = reading.rows_to_read(GROUP, listing, _is_compared, has_members_to_compare)
    # A list that calls replace must be known as a whole, and the extended listing may lack archived people.
    replaces = reading.api_spec.behaviour(ADD_MODE) == "replace"
    pages = -(-(reading.people or 0) // max(1, reading.page))
    if not replaces and reading.page and 0 < pages < 2 * len(wanted) + len(compared):
        reading.needs_all_people = True
        extended = _extended_rows(reading)
        yield
        yield
        people = reading.listings[USER]
        # Two listings that lack the same people agree, too.
        ids = set() if people.incomplete else {row.id for row in people.rows}
        details = _from_people(reading, extended, [*wanted, *compared], ids) or _from_groups(
            reading.api, wanted, compared
        )
    else:
        details = _from_groups(reading.api, wanted, compared)
        reading.people_in_lists.update(_people_in(details.values()))
        if replaces:
            yield
            yield
            details = _with_archived(reading, details)
    reading.found[GROUP] = sorted_listing((details.get(row.id, row) for row in listing.rows), listing.incomplete)


def _people_in(groups: Iterable[GroupRow]) -> frozenset[RemoteId]:
    return frozenset[RemoteId]().union(*(ids or () for row in groups for ids in (row.members, row.managers)))


def _is_compared(match: Match[ManualGroupSpec, GroupRow]) -> bool:
    """Return whether a group declares lists, or is renamed."""
    is_renamed = match.row is not None and match.row.name != match.address.name
    return is_renamed or any(declared_lists(match.declared.spec))


def _with_archived(reading: ReadContext, groups: Mapping[RemoteId, GroupRow]) -> dict[RemoteId, GroupRow]:
    """Return groups with the archived people that only the extended listing shows in them.

    A call that replaces a list removes the people that it does not name. The API specification does not say
    whether the lists of groups have archived people (Manual Groups): where one is in a list, they do.
    """
    people = reading.listings[USER]
    archived = {row.id for row in people.rows if row.archived}
    listed = _people_in(groups.values())
    if archived & listed or not _adds_people(reading, groups):
        return dict(groups)
    reading.extended_rows()
    members, managers = reading.extended_info.members, reading.extended_info.managers
    others = set[RemoteId]().union(*(ids[id] for ids in (members, managers) for id in groups)) - listed
    unlisted = sorted(others - {row.id for row in people.rows})
    shown = read_shown_people(reading.api, unlisted)
    # The service may refuse to show those who are archived.
    archived.update(id for id in unlisted if id not in shown or shown[id].get("archivedAt"))

    def whole(ids: frozenset[RemoteId] | None, others: set[RemoteId]) -> frozenset[RemoteId] | None:
        return None if ids is None else ids | (others & archived)

    return {
        id: GroupRow(id, row.name, whole(row.members, members[id]), whole(row.managers, managers[id]))
        for id, row in groups.items()
    }


def _adds_people(reading: ReadContext, groups: Mapping[RemoteId, GroupRow]) -> bool:
    """Return whether people are added to a live group, according to these rows."""
    listings = {GROUP: sorted_listing(groups.values(), None), USER: reading.listings[USER]}
    planning, matched = reading.match(GROUP, listings, reading.manifests)
    both = (sides for match in matched.matches if match.row and (sides := diff(planning, match)))
    return any(included(sides.after or {}, key) - included(sides.before or {}, key) for sides in both for key in LISTS)


def read_group_members(
    reading: ReadContext, groups: Sequence[GroupRow], people: Collection[RemoteId]
) -> dict[RemoteId, frozenset[RemoteId]]:
    """Return the members of groups by id: as read already, or by whichever way takes fewer requests.

    people: the ids of all people.
    """
    known = {row.id: row.members for row in groups if row.members is not None}
    rest = [row for row in groups if row.id not in known]
    # The extended listing keeps only groups that the plan's own reading has listed.
    few = GROUP in reading.needed and -(-len(people) // _PAGE) < len(rest)
    if few and (details := _from_people(reading, _extended_rows(reading), rest, people)) is not None:
        return known | {id: row.members or frozenset() for id, row in details.items()}
    return known | _read_lists(reading.api, "manual-groups.members", rest)


def _from_groups(api: Api, wanted: Sequence[GroupRow], compared: Sequence[GroupRow]) -> dict[RemoteId, GroupRow]:
    """Return groups with their lists, by id; those that are only compared without managers."""
    groups = (*wanted, *compared)
    lists = api.together(
        {
            "members": lambda: _read_lists(api, "manual-groups.members", groups),
            "managers": lambda: _read_lists(api, "manual-groups.managers", wanted),
        }
    )
    return {
        row.id: GroupRow(row.id, row.name, lists["members"][row.id], lists["managers"].get(row.id)) for row in groups
    }


def _read_lists(api: Api, operation: str, groups: Sequence[GroupRow]) -> dict[RemoteId, frozenset[RemoteId]]:
    answers = api.each(operation, [({"groupId": row.id}, {}) for row in groups])
    return {row.id: parse_user_ids(answer) for row, answer in zip(groups, answers, strict=True)}


def parse_user_ids(answer: Json) -> frozenset[RemoteId]:
    """The `userIds` of a response. Raises InvalidResponse if the key is missing, which would read as an empty group."""
    if not isinstance(answer, dict) or answer.get("userIds") is None:
        raise InvalidResponse("a response is missing its list of userIds")
    return id_set(answer, "userIds")


def _extended_rows(reading: ReadContext) -> ListedRows | None:
    """The extended listing; None if it fails: it is only an optimization, and requests per group decide."""
    try:
        return reading.extended_rows()
    except ApiError:
        return None


def _from_people(
    reading: ReadContext, rows: ListedRows | None, wanted: Sequence[GroupRow], people: Collection[RemoteId]
) -> dict[RemoteId, GroupRow] | None:
    """The same from the groups of each person; None if the extended listing failed or does not match the others.

    people: the ids of all people.
    """
    listed = reading.extended_info
    if (
        rows is None
        or rows.incomplete
        or not listed.is_clear
        or listed.read != len(rows.rows)
        or {str(row["userId"]) for row in rows.rows} != set(people)
        # A smart group may share the id; only the name distinguishes it, since `groupType` values are not documented.
        or any(listed.names[row.id] - {row.name, ""} for row in wanted)
    ):
        return None
    return {
        row.id: GroupRow(row.id, row.name, frozenset(listed.members[row.id]), frozenset(listed.managers[row.id]))
        for row in wanted
    }


def read_smart_groups(reading: ReadContext) -> Iterator[None]:
    """Read the smart groups, with conditions and managers, in the second phase, where they are compared."""
    listing = reading.listings[SMART_GROUP] = read_listing(reading.api, SMART_GROUP)
    yield
    wanted = listing.rows
    # Where a field changes, all are needed, since any may have a condition on it.
    if not (reading.covers(CUSTOM_FIELD) and reading.has_changes(CUSTOM_FIELD)):
        lists = reading.rows_to_read(SMART_GROUP, listing, lambda _: True, lambda spec: spec.conditions is not None)
        wanted = tuple(chain(*lists))
    answers = reading.api.each("smart-groups.get", [({"smartGroupId": row.id}, {}) for row in wanted])
    details = {row.id: parse_detail_row(row, answer) for row, answer in zip(wanted, answers, strict=True)}
    reading.people_in_lists.update(*(row.managers or () for row in details.values()))
    reading.found[SMART_GROUP] = sorted_listing((details.get(row.id, row) for row in listing.rows), listing.incomplete)


def find_contradicted_listings(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Find a listing of fields or groups that another one contradicts; yield it, and why.

    A condition on an unlisted field: a field in use cannot be deleted (API specification, Custom Fields). An empty
    listing of groups to which content is assigned; a single missing group may have been deleted by hand.
    """
    known = {row.id for row in snapshot.rows(FieldRow)}
    conditions = ((row.name, one.field) for row in snapshot.rows(SmartGroupRow) for one in row.conditions or ())
    unlisted = next(((name, id) for name, id in conditions if id and id not in known), None)
    if CUSTOM_FIELD in snapshot.listings and unlisted:
        yield CUSTOM_FIELD, f"smart group {unlisted[0]} names field id {unlisted[1]}, which is not among them"
    named = {kind_from_target_type(row.type): row for row in reversed(snapshot.rows(TargetRow))}
    for kind in (GROUP, SMART_GROUP):
        if kind in snapshot.listings and not snapshot.of(kind).rows and (row := named.get(kind)):
            yield kind, f"none returned, but content {row.content} is assigned to id {row.target} of them"


def compare_members(api: Api, plan: Plan, created: Mapping[Address, RemoteId]) -> Iterator[Problem]:
    """Yield a warning for each smart group whose members are not the predicted ones. Raises ApiError.

    created: the ids of new smart groups. A request for each smart group whose membership the plan changes, and the
    listing of people where members differ: a service may list archived people among the members (API specification,
    Smart Groups), and accounts that it lists nowhere else; the prediction counts neither. A plan holds the digest of
    the members, or, where one of them has no account before the plan, only their number.
    """
    deleted = {change.address for change in plan.changes if change.action is Action.DELETE}
    groups = {
        group.address: group
        for group in plan.effects.groups
        if group.address.kind == SMART_GROUP and group.after is not None and group.address not in deleted
    }
    ids = {**{change.address: change.id for change in plan.changes if change.id is not None}, **created}
    ids |= smart_group_ids(api, groups.keys() - ids.keys())
    wanted = [address for address in groups if address in ids]
    listed = zip(wanted, read_members(api, [ids[address] for address in wanted]), strict=True)
    unlike = [
        (groups[address], members)
        for address, members in listed
        if members is not None and not _is_predicted(groups[address], members)
    ]
    active = _active_people(api, plan) if unlike else frozenset()
    yield from (
        _not_as_predicted(group, len(members & active))
        for group, members in unlike
        if not _is_predicted(group, members & active)
    )


def _active_people(api: Api, plan: Plan) -> frozenset[RemoteId]:
    """Return the people who are archived neither now nor before the plan: others were not counted either."""
    unarchived = {one.id for one in plan.changes for field in one.fields if field.path == "archived"}
    rows = api.rows(USERS, keep=keep_keys("userId", "archivedAt")).rows
    return frozenset(RemoteId(str(row["userId"])) for row in rows if not row.get("archivedAt")) - unarchived


def _not_as_predicted(group: GroupEffects, listed: int) -> Problem:
    number = count_noun(group.after or 0, "member was", "members were")
    return Problem(
        code="effects/not-as-predicted",
        message=f"{group.address}: {number} predicted, and the service lists {listed:,}"
        if listed != group.after
        else f"{group.address}: the service lists as many members as predicted ({listed:,}), but not the same people",
        hint="The service may still be computing its members; check again with: lmsconf plan.",
        severity=Severity.WARNING,
        address=str(group.address),
    )


def _is_predicted(group: GroupEffects, members: frozenset[RemoteId]) -> bool:
    return len(members) == group.after and group.members in (None, members_digest(members))


def read_members(api: Api, ids: Iterable[RemoteId]) -> Iterator[frozenset[RemoteId] | None]:
    """Yield the members of smart groups; None if the service does not list them."""
    return (members for _, members in read_with_members(api, ids))


def read_with_members(api: Api, ids: Iterable[RemoteId]) -> Iterator[tuple[Json, frozenset[RemoteId] | None]]:
    """Yield the responses for smart groups, each with the members; None if the service does not list them."""
    requests: list[ReadArguments] = [({"smartGroupId": id}, {"includeMembers": True}) for id in ids]
    # Some at a time: their lists of members may be long.
    for answer in chain.from_iterable(
        api.each("smart-groups.get", requests[at : at + _PAGE]) for at in range(0, len(requests), _PAGE)
    ):
        data = require_object(answer, "a smart group")
        yield answer, None if data.get("members") is None else id_set(data, "members")


def smart_group_ids(api: Api, addresses: Collection[Address]) -> dict[Address, RemoteId]:
    """Return the ids of smart groups by their names; those that are not listed, or listed twice, are left out."""
    ids: dict[Address, set[RemoteId]] = {one: set() for one in addresses}
    # Few are looked up one by one; the whole listing takes a request per hundred.
    queries = [{"filter": one.name} for one in addresses] if len(addresses) <= 3 else [{}]
    for row in (row for query in queries for row in read_listing(api, SMART_GROUP, query).rows):
        ids.get(Address.of(SMART_GROUP, normalize_name(row.name)), set()).add(row.id)
    return {address: id for address, found in ids.items() if len(found) == 1 for id in found}
