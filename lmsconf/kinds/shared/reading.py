"""Read a workspace: only what manifests and ownership need, concurrently, with the cheaper requests of two options.

Listings are read page by page, then the details of their rows in parallel. Listings that other jobs wait for start at
once, and each job waits only for those it needs: details of groups wait for the listing of groups, not of people.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from lmsconf.kinds.content_target.catalog import ContentRow, content_row
from lmsconf.kinds.content_target.read import Found, Known, count_on, read_again, read_targets
from lmsconf.kinds.content_target.values import Assignment
from lmsconf.kinds.custom_field.lost_answers import answers_go, answers_row, limits_choices
from lmsconf.kinds.custom_field.values import field_row
from lmsconf.kinds.manual_group.read import read_details
from lmsconf.kinds.manual_group.values import GroupRow, ManualGroupSpec, has_members_to_compare
from lmsconf.kinds.shared.answers import label, text
from lmsconf.kinds.shared.contradictions import contradictions
from lmsconf.kinds.shared.edits import edit_rows
from lmsconf.kinds.shared.listings import LISTINGS, only, sorted_listing
from lmsconf.kinds.shared.names import (
    ADMIN,
    ANSWERS,
    CONTENT,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    EDITS,
    GROUP,
    HOLDERS,
    SMART_GROUP,
    UNNAMED_TARGETS,
    USER,
)
from lmsconf.kinds.shared.said import Said, lists_people
from lmsconf.kinds.smart_group.values import SmartGroupSpec, SmartRow, smart_row
from lmsconf.kinds.user.directory import WHO_CAN_MANAGE
from lmsconf.kinds.user.extended import ExtendedInfo
from lmsconf.kinds.user.read import holders, read_declared, read_everybody, read_manager_rights, read_singly
from lmsconf.kinds.user.values import Person, person_row
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api, Rows
from lmsconf.model.names import LOCK_PREFIX, email, normal
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import HasName, Listing, Snapshot
from lmsconf.model.values import DeleteEntry, DesiredResource, Json
from lmsconf.planner.context import BeforeAfter, MatchResult, PlanContext, Terms
from lmsconf.planner.guards import SMALL, enough_live, has_share, many_may_change
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.renames import comparable
from lmsconf.planner.selection import Selection, sought


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read of a workspace.

    everything: also what is neither declared nor owned. edits: also the last editor of each assignment. beside: the
    declarations of a base, which are planned separately on the same snapshot.
    """

    declared: tuple[DesiredResource[Any], ...] = ()
    absent: tuple[DeleteEntry[Any], ...] = ()
    policy: Policy
    everything: bool = False
    edits: bool = False
    beside: Said | None = None


def read_workspace(
    api: Api, kinds: Mapping[str, AnyKind], wanted: Wanted, terms: Terms, *, url: str, taken_at: str
) -> Snapshot:
    """Return a snapshot of what is wanted. Raises ApiError, also for a response that is not a listing.

    url, taken_at: recorded in the snapshot as given.
    """
    return _Reading(api, kinds, wanted, terms).run(url, taken_at)


class _Reading:
    def __init__(self, api: Api, kinds: Mapping[str, AnyKind], wanted: Wanted, terms: Terms) -> None:
        self.api, self.kinds, self.terms = api, kinds, terms
        policy = wanted.policy
        self.policy, self.everything, self.edits = policy, wanted.everything, wanted.edits
        mine = Said(wanted.declared, wanted.absent).within(policy.workspace)
        # A resource declared in one version and deleted in the other must be read for both.
        self.versions = [mine] if wanted.beside is None else [mine, wanted.beside.within(policy.workspace)]
        self.said = mine if wanted.beside is None else mine.joined(self.versions[1])
        self.declared, self.absent = self.said
        self.chosen = Selection(kinds, self.declared, policy)
        self.sought = sought(policy, (one.address for one in self._entries()), kinds)
        # Number of people (None if not counted) and rows of the first page, set once that page has arrived.
        self.total: Future[tuple[int | None, int]] = Future()
        self.people: int | None = None
        self.listed: dict[str, Future[Listing[Any]]] = {}
        self.aside: dict[str, Listing[Any]] = {}
        self.extended = ExtendedInfo(api, lambda: self._manual)

    def run(self, url: str, taken_at: str) -> Snapshot:
        jobs: dict[str, Callable[[], object]] = {USER: self._people}
        for kind, job in (
            (CUSTOM_FIELD, self._fields),
            (GROUP, self._groups),
            (SMART_GROUP, self._smart_groups),
            (CONTENT_TARGET, self._targets),
        ):
            if self._needs(kind):
                self.listed[kind] = Future()
                jobs[kind] = job
        if CONTENT_TARGET in jobs:
            self.listed[CONTENT] = Future()
            jobs[CONTENT] = self._contents
        self.listed[USER] = Future()
        self.jobs = frozenset(jobs)
        found = self.api.together({name: self._guarded(name, job) for name, job in jobs.items()})
        listings = {kind: cast(Listing[Any], listing) for kind, listing in found.items() if listing is not None}
        listings |= self.aside
        doubts = contradictions(listings)
        listings |= {kind: replace(listings[kind], incomplete=reason) for kind, reason in doubts.items()}
        name = self.policy.workspace
        return Snapshot(workspace=name, url=url, taken_at=taken_at, people=self.people, listings=listings)

    def _guarded(self, name: str, job: Callable[[], object]) -> Callable[[], object]:
        """Wrap a job so that its failure also fails the jobs that wait for its listing."""

        def run() -> object:
            try:
                return job()
            except BaseException as error:
                waiting: list[Future[Listing[Any]] | Future[tuple[int | None, int]]] = [self.listed[name]]
                if name == USER:
                    waiting.append(self.total)
                for future in waiting:
                    if not future.done():
                        future.set_exception(error)
                raise

        return run

    def _entries(self) -> list[DesiredResource[Any] | DeleteEntry[Any]]:
        return [*self.declared, *self.absent]

    def _speaks(self, kind: str) -> bool:
        """Return whether manifests, ownership or the selection cover a kind."""
        if self.everything or kind in self.sought or (self.policy.ownership.get(kind) and not self.policy.only):
            return True
        mine = (one.address for one in self._entries() if one.address.kind == kind)
        return any(self.chosen(address) for address in mine)

    def _deletes_groups(self) -> bool:
        """Return whether a group may be deleted, and with it assignments of any content."""
        gone = any(one.address.kind in (GROUP, SMART_GROUP) and self.chosen(one.address) for one in self.absent)
        owned = self.policy.ownership
        return gone or (not self.policy.only and bool(owned.get(GROUP) or owned.get(SMART_GROUP)))

    def _needs(self, kind: str) -> bool:
        """Return whether the listing of a kind is needed, for itself or for resources that reference it."""
        if self._speaks(kind):
            return True
        targets = self._speaks(CONTENT_TARGET) or self._deletes_groups()
        match kind:
            case "custom_field":
                return self._speaks(SMART_GROUP) or self._answers()
            case "group":
                return targets
            case "smart_group":
                return targets or self._speaks(CUSTOM_FIELD)
            case _:
                return targets

    def _answers(self) -> bool:
        """Return whether the manifests declare a person's answers to custom fields."""
        specs = (one.spec for one in self.declared if self.chosen(one.address))
        return any(isinstance(spec, Person) and bool(spec.answers) for spec in specs)

    def _needs_people(self) -> bool:
        """Return whether e-mails matter: for people, lists of people, assignments, or the deletion of groups."""
        if self._needs(CONTENT_TARGET) or self._deletes_groups() or self._speaks(USER):
            return True
        return any(lists_people(one.spec) and self.chosen(one.address) for one in self.declared)

    def _identified(self, kind: str, listing: Listing[Any], said: Said) -> tuple[PlanContext, MatchResult[Any, Any]]:
        """Match declarations with the rows of a listing. Problems are dropped: the planner reports them."""
        snapshot = Snapshot(workspace="", url="", taken_at="", people=None, listings={kind: listing})
        planning = PlanContext(snapshot, self.policy, self.terms, self.chosen)
        return planning, self.kinds[kind].match(planning, *said.of(kind))

    def _each(self, kind: str, listing: Listing[Any] | None = None) -> list[tuple[PlanContext, MatchResult[Any, Any]]]:
        """Match each version of the manifests with the listing of a kind, by default the one being read."""
        rows = self.listed[kind].result() if listing is None else listing
        return [self._identified(kind, rows, said) for said in self.versions]

    def _people(self) -> Listing[Any] | None:
        if not self._needs_people():
            answer = cast("dict[str, Json]", self.api.get("users.list", query={"skip": 0, "limit": 1}))
            total = answer.get("matchCount")
            self.people = total if isinstance(total, int) else None
            self.total.set_result((self.people, 0))
            if not self._answers_go:
                return None
        rows = self.api.rows(LISTINGS[USER], on_first=self._first_people, keep=self._kept_people())
        if not self.total.done():
            self.total.set_result((rows.total, len(rows.rows)))
        # Without a total in the response, a listing read to its end gives the number.
        self.people = len(rows.rows) if rows.total is None and rows.incomplete is None else rows.total
        listing = self._list(USER, rows, person_row)
        if self._answers_go:
            self.aside[ANSWERS] = sorted_listing(map(answers_row, rows.rows), rows.incomplete)
        if self.everything:
            self.aside[HOLDERS] = Listing(rows=holders(rows.rows), incomplete=rows.incomplete)
            listing, self.aside[ADMIN] = read_everybody(listing, rows, self.extended.rows())
            return read_singly(self.api, self._identified(USER, listing, self.said)[1], listing)
        if self.terms.behaviour(WHO_CAN_MANAGE) == "with-right":
            chosen = [one for one in self.declared if self.chosen(one.address)]
            listing = read_manager_rights(listing, chosen, self.policy.workspace, self.extended)
        if not self._speaks(USER):
            return listing if self._needs_people() else None
        planning, found = self._identified(USER, listing, self.said)
        listing, admins = read_declared(self.api, planning, found, listing, rows, self.total.result()[1], self.extended)
        if admins is not None:
            self.aside[ADMIN] = admins
        return listing

    @cached_property
    def _answers_go(self) -> bool:
        """Whether a field is deleted or loses a choice, so that the answers of all people are needed."""
        if not self._speaks(CUSTOM_FIELD) or self.policy.additive:
            return False
        gone = any(one.address.kind == CUSTOM_FIELD for one in self.absent) or self.policy.ownership.get(CUSTOM_FIELD)
        if not gone and not any(limits_choices(one.spec) for one in self.declared):
            return False
        return any(answers_go(*one) for one in self._each(CUSTOM_FIELD))

    def _kept_people(self) -> Callable[[dict[str, Json]], dict[str, Json]]:
        """Return the filter of user rows: whole rows only for declared people, to bound memory with 200,000 people."""
        if self.everything:
            return lambda row: row
        people = [one for one in self.declared if one.address.kind == USER]
        emails = {name for one in people for name in (one.address.name, *one.previously)}
        pinned = {one.pin(self.policy.workspace) for one in people}
        answers = ["customFields"] if self._speaks(CUSTOM_FIELD) else []
        few = only("userId", "email", "archivedAt", *answers)
        return lambda row: row if row["userId"] in pinned or email(str(row.get("email"))) in emails else few(row)

    @cached_property
    def _manual(self) -> frozenset[str]:
        """The ids of the manual groups, waiting for their listing; empty if it is not read."""
        rows = self.listed[GROUP].result().rows if GROUP in self.jobs else ()
        return frozenset(row.id for row in rows)

    def _first_people(self, total: int | None, rows: int) -> None:
        if not self.total.done():
            self.total.set_result((total, rows))

    def _list(self, kind: str, rows: Rows, row: Callable[[Mapping[str, Json]], HasName]) -> Listing[Any]:
        """Return rows as a sorted listing, and release the jobs that wait for it."""
        listing = sorted_listing(map(row, rows.rows), rows.incomplete)
        self.listed[kind].set_result(listing)
        return listing

    def _fields(self) -> Listing[Any]:
        rows = self.api.rows(LISTINGS[CUSTOM_FIELD])
        if self._fields_come(rows):
            # The response carries no total, so a short one looks complete: read it again before creating a field.
            again = self.api.rows(LISTINGS[CUSTOM_FIELD])
            if {row["customFieldId"] for row in again.rows} != {row["customFieldId"] for row in rows.rows}:
                rows = replace(again, incomplete=again.incomplete or "it was read twice, and other fields came")
        return self._list(CUSTOM_FIELD, rows, field_row)

    def _fields_come(self, rows: Rows) -> bool:
        """Return whether a field would be created according to this listing."""
        listing = sorted_listing(map(field_row, rows.rows), rows.incomplete)
        found = (match for _, one in self._each(CUSTOM_FIELD, listing) for match in one.matches)
        return any(match.row is None and self.chosen(match.address) for match in found)

    def _groups(self) -> Listing[Any]:
        rows = self.api.rows(LISTINGS[GROUP], keep=only("groupId", "name"))
        # The lock of a run is not a resource: never listed, owned or exported.
        groups = tuple(row for row in rows.rows if not str(row.get("name")).startswith(LOCK_PREFIX))
        listing = self._list(GROUP, replace(rows, rows=groups), _group_stub)
        wanted, compared = self._wanted_groups(listing)
        total, page = self.total.result()
        people = self.listed[USER].result
        details = read_details(self.api, wanted, compared, total, page, people, self.extended)
        return sorted_listing((details.get(row.id, cast(GroupRow, row)) for row in listing.rows), listing.incomplete)

    def _wanted_groups(self, listing: Listing[Any]) -> tuple[list[GroupRow], list[GroupRow]]:
        """Return the groups to read with members and managers, and those whose members are compared with new groups."""
        if self.everything:
            return list(cast("tuple[GroupRow, ...]", listing.rows)), []
        wanted: dict[RemoteId, HasName] = {}
        compared: dict[RemoteId, HasName] = {}
        for _, found in self._each(GROUP, listing):
            wanted |= {gone.row.id: gone.row for gone in found.gone}
            for match in found.matches:
                spec = cast(ManualGroupSpec, match.declared.spec)
                managed = spec.members is not None or spec.managers is not None
                if match.row and self.chosen(match.address) and (managed or match.row.name != match.address.name):
                    wanted[match.row.id] = match.row
            rows = self._compared(found, lambda spec: has_members_to_compare(cast(ManualGroupSpec, spec)))
            compared |= {row.id: row for row in rows}
        return cast("list[GroupRow]", [*wanted.values()]), cast(
            "list[GroupRow]", [row for id, row in compared.items() if id not in wanted]
        )

    def _compared(self, found: MatchResult[Any, Any], has_content: Callable[[object], bool]) -> list[HasName]:
        """Return undeclared rows that may be a resource to be created, under another name."""
        created = (one.declared.spec for one in found.matches if one.row is None and self.chosen(one.address))
        return [one.row for one in comparable(found.unmanaged, self.policy)] if any(map(has_content, created)) else []

    def _smart_groups(self) -> Listing[Any]:
        rows = self.api.rows(LISTINGS[SMART_GROUP], keep=only("smartGroupId", "name"))
        listing = self._list(SMART_GROUP, rows, _smart_stub)
        wanted = self._wanted_smart_groups(listing)
        answers = self.api.each("smart-groups.get", [({"smartGroupId": row.id}, {}) for row in wanted])
        details = {row.id: smart_row(row, answer) for row, answer in zip(wanted, answers, strict=True)}
        return sorted_listing((details.get(row.id, row) for row in listing.rows), listing.incomplete)

    def _wanted_smart_groups(self, listing: Listing[Any]) -> list[HasName]:
        """Return the declared, deleted and compared rows; all, if a field changes, since any may reference it."""
        if self.everything or self._fields_change():
            return list(listing.rows)
        wanted: dict[RemoteId, HasName] = {}
        for _, found in self._each(SMART_GROUP, listing):
            chosen = [match.row for match in found.matches if match.row and self.chosen(match.address)]
            compared = self._compared(found, lambda spec: cast(SmartGroupSpec, spec).conditions is not None)
            wanted |= {row.id: row for row in (*chosen, *(gone.row for gone in found.gone), *compared)}
        return list(wanted.values())

    def _fields_change(self) -> bool:
        if not self._speaks(CUSTOM_FIELD):
            return False
        compare = self.kinds[CUSTOM_FIELD].diff
        return any(
            found.gone or any(match.row and _differs(compare(planning, match)) for match in found.matches)
            for planning, found in self._each(CUSTOM_FIELD)
        )

    def _contents(self) -> Listing[Any]:
        rows = self.api.rows(LISTINGS[CONTENT], keep=only("courseId", "name", "contentType"))
        return self._list(CONTENT, rows, content_row)

    def _targets(self) -> Listing[Any] | None:
        contents = self.listed[CONTENT].result()
        wanted = self._wanted_contents(cast("tuple[ContentRow, ...]", contents.rows))
        found = read_targets(self.api, wanted)
        live = read_again(self.api, wanted, found, self._lacking(wanted, found))
        incomplete = contents.incomplete or live.incomplete
        if self.edits:
            edits = (row for id, answer in live.answers.items() for row in edit_rows(id, answer))
            self.aside[EDITS] = sorted_listing(edits, incomplete)
        listing = sorted_listing(live.rows, incomplete)
        self._count_others(contents, {row.id for row in wanted}, listing)
        return listing

    def _count_others(self, contents: Listing[Any], named: set[RemoteId], listing: Listing[Any]) -> None:
        """Read assignments of further contents while the share that changes exceeds a guard.

        The share is of all live assignments, so each further one can only lower it.
        """
        others = [row for row in cast("tuple[ContentRow, ...]", contents.rows) if row.id not in named]
        guards, live = self.policy.guards, len(listing.rows)
        said = sum(one.address.kind == CONTENT_TARGET for one in self.declared)
        absent = any(one.address.kind == CONTENT_TARGET for one in self.absent)
        may_go = absent or self._recreates or bool(self.policy.ownership.get(CONTENT_TARGET))
        may_matter = (may_go and has_share(guards.removals)) or many_may_change(guards.updates, said, live)
        if not others or self.policy.additive or not may_matter:
            return
        both = [self._assignments_change(listing, said) for said in self.versions]
        going, changing = (max(numbers) for numbers in zip(*both, strict=True))
        enough = max(enough_live(going, guards.removals), enough_live(changing, guards.updates, least=SMALL))
        if enough > live:
            self.aside[UNNAMED_TARGETS] = Listing(rows=count_on(self.api, others, enough - live))

    @property
    def _recreates(self) -> bool:
        """Whether an assignment is changed by deleting and recreating it."""
        return self.terms.behaviour("content-targets.on-existing") == "recreate"

    def _assignments_change(self, listing: Listing[Any], said: Said) -> tuple[int, int]:
        """Return how many live assignments would be deleted and how many updated in place, according to listings."""
        kinds = (USER, CUSTOM_FIELD, GROUP, SMART_GROUP, CONTENT)
        listings = {kind: self.listed[kind].result() for kind in kinds if kind in self.listed}
        snapshot = Snapshot(
            workspace="", url="", taken_at="", people=None, listings={**listings, CONTENT_TARGET: listing}
        )
        planning = PlanContext(snapshot, self.policy, self.terms, self.chosen)
        for name, kind in self.kinds.items():
            found = kind.match(planning, *said.of(name))
            if name == CONTENT_TARGET:
                gone = sum(self.chosen(one.address) for one in found.gone)
                live = [match for match in found.matches if match.row and self.chosen(match.address)]
                changed = sum(_differs(kind.diff(planning, match)) for match in live)
                return (gone + changed, 0) if self._recreates else (gone, changed)
        return 0, 0

    def _lacking(self, contents: list[ContentRow], found: Found) -> set[RemoteId]:
        """Return the contents for which an assignment would be created, according to their responses."""
        wanted = [
            cast(Assignment, one.spec)
            for one in self.declared
            if one.address.kind == CONTENT_TARGET and self.chosen(one.address)
        ]
        if not wanted:
            return set()
        kinds: tuple[str, ...] = (GROUP, SMART_GROUP, USER)
        listings = {kind: self.listed[kind].result() for kind in kinds if kind in self.listed}
        everyone = self.terms.behaviour("content-targets.everyone")
        return Known(listings, everyone).lacking(wanted, contents, found)

    def _wanted_contents(self, rows: tuple[ContentRow, ...]) -> list[ContentRow]:
        """Return the contents that the manifests name; the whole catalog if all is owned or a group is deleted."""
        owned = () if self.policy.only else self.policy.ownership.get(CONTENT_TARGET, ())
        everything = self.everything or CONTENT_TARGET in self.sought or "all" in owned
        if everything or (self._deletes_groups() and self._groups_go()):
            return list(rows)
        names: set[str] = set()
        ids: set[str] = set()
        for one in self._entries():
            if one.address.kind == CONTENT_TARGET and self.chosen(one.address):
                spec = cast(Assignment, one.spec)
                names.add(spec.content)
                ids.update(spec.content_pins.values())
        return [row for row in rows if row.id in ids or normal(row.name) in names]

    def _groups_go(self) -> bool:
        """Return whether a live group will be deleted."""
        for kind in (GROUP, SMART_GROUP):
            if any(self.chosen(gone.address) for _, found in self._each(kind) for gone in found.gone):
                return True
        return False


def _differs(sides: BeforeAfter | None) -> bool:
    return sides is not None and sides.before != sides.after


def _group_stub(data: Mapping[str, Json]) -> GroupRow:
    return GroupRow(RemoteId(text(data, "groupId")), label(data, "name"))


def _smart_stub(data: Mapping[str, Json]) -> SmartRow:
    return SmartRow(RemoteId(text(data, "smartGroupId")), label(data, "name"))
