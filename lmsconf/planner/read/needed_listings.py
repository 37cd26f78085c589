"""Which listings are needed, and what the jobs that read them share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial, reduce
from itertools import chain
from threading import Lock
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import CATALOG, CUSTOM_FIELDS, EXTENDED_INFO, MANUAL_GROUPS, SMART_GROUPS
from lmsconf.kinds.assignment.types import AUDIENCES, TargetRow, parse_content_row
from lmsconf.kinds.custom_field.types import parse_field_row
from lmsconf.kinds.group import GroupRow
from lmsconf.kinds.kind_functions import diff, match_kind
from lmsconf.kinds.kind_table import KINDS, named_emails
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, EDITS, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import declared_lists
from lmsconf.kinds.shared.plan_context import BeforeAfter, Match, MatchResult, PlanContext
from lmsconf.kinds.shared.responses import parse_id_and_name
from lmsconf.kinds.smart_group import SmartGroupRow
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Api, ListedRows, ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.model.guards import Policy
from lmsconf.model.names import LOCK_PREFIX
from lmsconf.model.snapshot import Listed, Listing, Row, Snapshot
from lmsconf.planner.read.people_listings import ExtendedInfoListing, PeopleWithAnswers
from lmsconf.planner.rename_detection import rename_candidates
from lmsconf.planner.selection import Selection


def merge_manifests(manifests: Manifests, others: Manifests) -> Manifests:
    """Return the manifests, plus everything that the others declare; of a person, only what these do.

    An earlier name is an address too: otherwise the others' entry would match the resource that this one renames.
    """
    declared_once = {
        address
        for one in manifests.declared
        if KINDS[one.address.kind].is_person
        for address in (one.address, *(Address.of(one.address.kind, name) for name in one.previously))
    }
    return replace(
        manifests,
        declared=(*manifests.declared, *(one for one in others.declared if one.address not in declared_once)),
        absent=(*manifests.absent, *others.absent),
    )


class ReadScope(Struct, frozen=True):
    """What to read of a workspace.

    everything: also what is neither declared nor owned. edits: also the last editor of each resource, where the service
    returns it. beside: the manifests of a base, which are planned separately on the same snapshot. people: ids that
    people in the declarations had when a plan was made, to look them up instead of all people.
    """

    manifests: Manifests
    policy: Policy
    everything: bool = False
    edits: bool = False
    beside: Manifests | None = None
    people: frozenset[RemoteId] = frozenset()


class EditRow(Struct, frozen=True):
    """The last edit of the target with that id, as the service writes it: `updatedBy` and `updatedAt`."""

    listing = EDITS

    id: RemoteId
    by: str | None
    at: str | None


def _needed_listings(kind: str, reading: ReadContext) -> frozenset[str]:
    """Return the kinds whose listings must be read if manifests, ownership or the selection cover a kind.

    With a group, its assignments of any content are deleted.
    """
    if kind in (CUSTOM_FIELD, CONTENT_TARGET):
        return frozenset({SMART_GROUP} if kind == CUSTOM_FIELD else AUDIENCES.values())
    chosen = [one.spec for one in reading.declared_of(kind) if reading.chosen(one.address)]
    if kind == USER:
        return frozenset({CUSTOM_FIELD} if any(spec.answers for spec in chosen) else ())
    needed = {CUSTOM_FIELD} if kind == SMART_GROUP else set[str]()
    if reading.may_delete(kind):
        needed |= {CONTENT_TARGET, GROUP, SMART_GROUP, USER}
    elif any(lists for spec in chosen for lists in declared_lists(spec)):
        needed.add(USER)
    return frozenset(needed)


Matched: TypeAlias = tuple[PlanContext, MatchResult[Any, Any]]


class ReadContext:
    """One reading of a workspace, shared by the jobs of all kinds.

    manifests: what these and those of a base say, for this workspace. versions: the same, each by itself,
    since a resource that one declares and the other deletes must be read for both.
    chosen: whether an address is planned. needed: the kinds whose listings are needed, for themselves or for a kind
    that is covered. people: the number of people in the workspace, None until it is read.
    effects: whether the effects of the plan on people are read afterwards, so that what they need is kept.

    Set by the first phase: `listings`, without details, incomplete for a kind that is not read; and `page`: how many
    people the first page has, 0 if people are not listed.
    By the second: people_in_lists: the ids of all people in the rows that are compared, and those that named people
    had when a plan was made. needs_all_people: whether these are not known, so that all people are listed.
    targets: the targets of the contents that were read, by content. last_edits: those of targets, by id, for a drift
    report; some may be by no people of the workspace.
    found: the listings of the snapshot.
    """

    def __init__(self, api: Api, wanted: ReadScope, api_spec: ApiSpec, *, effects: bool = False) -> None:
        self.api, self.api_spec = api, api_spec
        policy = wanted.policy
        self.policy, self.everything, self.edits = policy, wanted.everything, wanted.edits
        self.effects = effects
        self.versions = [
            manifests.in_workspace(policy.workspace)
            for manifests in (wanted.manifests, wanted.beside)
            if manifests is not None
        ]
        self.manifests = reduce(merge_manifests, self.versions)
        self.chosen = Selection(self.manifests.declared, policy, absent=self.manifests.absent)
        self.people: int | None = None
        self.targets: dict[RemoteId, tuple[TargetRow, ...]] = {}
        self.last_edits: dict[RemoteId, EditRow] = {}
        self.named_people = wanted.people
        self.people_in_lists: set[RemoteId] = {*wanted.people}
        self.needs_all_people = False
        self.extended_info, self.answers = ExtendedInfoListing(), PeopleWithAnswers()
        self._extended: ListedRows | None = None
        self._lock = Lock()
        self.listings: dict[str, Listing[Any]] = dict.fromkeys(KINDS, Listing(incomplete="it was not read"))
        self.found: dict[str, Listing[Any]] = {}
        self._matches: dict[str, list[Matched]] = {}
        self.page = 0
        needs = {name: _needed_listings(name, self) for name in KINDS if self.covers(name)}
        self.needed = frozenset(needs).union(*needs.values())

    def covers(self, kind: str) -> bool:
        """Return whether manifests, ownership or the selection cover a kind."""
        return (
            self.everything
            or kind in self.chosen.sought_kinds()
            or (not self.policy.only and bool(self.policy.ownership.get(kind)))
            or any(self.chosen(one.address) for one in chain(*self.manifests.of_kind(kind)))
        )

    def may_delete(self, kind: str) -> bool:
        """Return whether a resource of a kind may be deleted: one is listed under `absent`, or some are owned."""
        return any(self.chosen(entry.address) for entry in self.manifests.of_kind(kind)[1]) or (
            not self.policy.only and bool(self.policy.ownership.get(kind))
        )

    def declared_of(self, kind: str) -> list[DesiredResource[Any]]:
        """Return the declarations of a kind."""
        return self.manifests.of_kind(kind)[0]

    def extended_rows(self) -> ListedRows:
        """Return the ids and rights of all people, read on first use. Raises ApiError."""
        with self._lock:
            if self._extended is None:
                manual = frozenset(row.id for row in self.listings[GROUP].rows)
                self._extended = self.api.rows(EXTENDED_INFO, keep=partial(self.extended_info.collect, manual))
            return self._extended

    def named_emails(self) -> frozenset[str]:
        """Return the e-mails of the people that the chosen declarations, and the entries under `absent`, name."""
        entries = chain[DesiredResource[Any] | DeleteEntry[Any]](self.manifests.declared, self.manifests.absent)
        return emails_of(entry for entry in entries if self.chosen(entry.address))

    def match(
        self, kind: str, listings: Mapping[str, Listing[Any]], manifests: Manifests, after: Iterable[str] = ()
    ) -> Matched:
        """Match declarations of a kind with listings. Problems are dropped: the planner reports them.

        after: the kinds to match before it, whose names its declarations use.
        """
        # There is no snapshot before the end of the reading.
        so_far = Snapshot(workspace="", url="", taken_at="", people=None, listings=listings)
        planning = PlanContext(so_far, self.policy, self.api_spec, self.chosen)
        for other in after:
            match_kind(planning, other, *manifests.of_kind(other))
        return planning, match_kind(planning, kind, *manifests.of_kind(kind))

    def matches(self, kind: str) -> list[Matched]:
        """Match each version of the manifests with the listing of a kind, once it is read."""
        if kind not in self._matches:
            self._matches[kind] = [self.match(kind, {kind: self.listings[kind]}, version) for version in self.versions]
        return self._matches[kind]

    def has_changes(self, kind: str) -> bool:
        """Return whether a resource of a kind is deleted or changed, according to its listing."""
        return any(
            matched.deletions or any(match.row and has_difference(diff(planning, match)) for match in matched.matches)
            for planning, matched in self.matches(kind)
        )

    def rows_to_read(
        self,
        kind: str,
        listing: Listing[Row],
        is_compared: Callable[[Match[Any, Row]], bool],
        has_content: Callable[[Any], bool],
    ) -> tuple[list[Row], list[Row]]:
        """Return the rows to read in detail, and others that may be a resource to be created.

        is_compared: whether a declared resource differs from its row, or may do so, in more than what a listing shows.
        has_content: whether a new resource declares enough to be compared with undeclared rows.
        """
        if self.everything:
            return list(listing.rows), []
        wanted: set[RemoteId] = set()
        candidates: set[RemoteId] = set()
        for _, matched in self.matches(kind):
            wanted.update(deletion.row.id for deletion in matched.deletions)
            chosen = [match for match in matched.matches if self.chosen(match.address)]
            wanted.update(match.row.id for match in chosen if match.row and is_compared(match))
            if any(match.row is None and has_content(match.declared.spec) for match in chosen):
                candidates.update(one.row.id for one in rename_candidates(matched.unmanaged, self.policy))
        others = [row for row in listing.rows if row.id in candidates and row.id not in wanted]
        return [row for row in listing.rows if row.id in wanted], others


def emails_of(entries: Iterable[DesiredResource[Any] | DeleteEntry[Any]]) -> frozenset[str]:
    """Return the e-mails of all people that entries are about or name, earlier e-mails included."""
    return frozenset(chain.from_iterable(map(named_emails, entries)))


def has_difference(sides: BeforeAfter | None) -> bool:
    """Return whether a comparison found a difference."""
    return sides is not None and sides.before != sides.after


def keep_keys(*keys: str) -> Callable[[dict[str, Json]], dict[str, Json]]:
    """Return a filter that keeps only these keys of a row; missing ones are skipped."""
    return lambda row: {key: row[key] for key in keys if key in row}


_LISTINGS: Final[Mapping[str, tuple[ListOperation, Callable[[dict[str, Json]], Any], tuple[str, ...]]]] = {
    CONTENT: (CATALOG, parse_content_row, ("courseId", "name", "contentType")),
    CUSTOM_FIELD: (CUSTOM_FIELDS, parse_field_row, ()),
    GROUP: (MANUAL_GROUPS, partial(parse_id_and_name, GroupRow, "groupId"), ("groupId", "name")),
    SMART_GROUP: (SMART_GROUPS, partial(parse_id_and_name, SmartGroupRow, "smartGroupId"), ("smartGroupId", "name")),
}
"""Listing → its operation, how a row is parsed, and the keys that are kept of it; without keys, all are."""


def read_listing(api: Api, name: str, query: Mapping[str, Json] | None = None) -> Listing[Any]:
    """Read the catalog, or the listing of a kind but people: of groups ids and names, of fields all."""
    operation, parse, keys = _LISTINGS[name]
    rows = api.rows(operation, query=query, keep=keep_keys(*keys) if keys else None)
    # The lock of a run is not a resource: never listed, owned or exported.
    read = (row for row in rows.rows if not (name == GROUP and str(row.get("name")).startswith(LOCK_PREFIX)))
    return sorted_listing(map(parse, read), rows.incomplete)


def sorted_listing(rows: Iterable[Listed], incomplete: str | None) -> Listing[Listed]:
    """Return rows sorted by id, so that the snapshot does not depend on the order of reading."""
    return Listing(rows=tuple(sorted(rows, key=lambda row: row.id)), incomplete=incomplete)
