"""Reading a workspace: only what manifests and ownership need, side by side, the cheaper way where there are two.

Listings are short chains of pages; what they name is then read in a fan-out. A chain that others wait for is started
at once, and nobody waits for more than he needs: details of groups wait for the listing of groups, not of people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

from lmsconf.kinds.content_target.catalog import ContentRow, content_row
from lmsconf.kinds.content_target.read import Found, Known, count_on, read_again, read_targets
from lmsconf.kinds.content_target.values import Assignment
from lmsconf.kinds.custom_field.lost_answers import answers_go, answers_row, limits_choices
from lmsconf.kinds.custom_field.values import field_row
from lmsconf.kinds.manual_group.kind import GroupRow, ManualGroup, has_members_to_compare
from lmsconf.kinds.manual_group.read import read_details
from lmsconf.kinds.shared.answers import label, text
from lmsconf.kinds.shared.contradictions import contradictions
from lmsconf.kinds.shared.edits import edit_rows
from lmsconf.kinds.shared.listings import LISTINGS, only
from lmsconf.kinds.shared.names import (
    ADMIN,
    ANSWERS,
    CONTENT,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    EDITS,
    GROUP,
    HOLDERS,
    RESERVED,
    SMART_GROUP,
    UNNAMED_TARGETS,
    USER,
)
from lmsconf.kinds.shared.roster import WHO_CAN_MANAGE
from lmsconf.kinds.shared.said import Said, lists_people
from lmsconf.kinds.smart_group.values import SmartGroup, SmartRow, smart_row
from lmsconf.kinds.user.extended import ExtendedInfo
from lmsconf.kinds.user.read import holders, read_declared, read_everybody, read_manager_rights, read_singly
from lmsconf.kinds.user.values import Person, person_row
from lmsconf.model.address import RemoteId
from lmsconf.model.api import Api, Rows
from lmsconf.model.names import email, normal
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import HasName, Listing, Snapshot
from lmsconf.model.values import DeleteEntry, DesiredResource, Json
from lmsconf.planner.context import BeforeAfter, MatchResult, PlanContext, Terms
from lmsconf.planner.guards import SMALL, enough_live, has_share, many_may_change
from lmsconf.planner.kind import Kind
from lmsconf.planner.renames import comparable
from lmsconf.planner.selection import Selection, sought


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """For whom a workspace is read. `everything`: for everybody, also for those who declare nothing of it.

    edits: also who changed what last. beside: the part of it that is planned by itself, for a base, on what is read.
    """

    declared: tuple[DesiredResource, ...] = ()
    absent: tuple[DeleteEntry, ...] = ()
    policy: Policy
    everything: bool = False
    edits: bool = False
    beside: Said | None = None


def read_workspace(
    api: Api, kinds: Mapping[str, Kind], wanted: Wanted, terms: Terms, *, url: str, taken_at: str
) -> Snapshot:
    """What the workspace holds of what is wanted. Raises ApiError where an answer is no listing."""
    return _Reading(api, kinds, wanted, terms).run(url, taken_at)


class _Reading:
    def __init__(self, api: Api, kinds: Mapping[str, Kind], wanted: Wanted, terms: Terms) -> None:
        self.api, self.kinds, self.terms = api, kinds, terms
        policy = wanted.policy
        self.policy, self.everything, self.edits = policy, wanted.everything, wanted.edits
        mine = Said(wanted.declared, wanted.absent).within(policy.workspace)
        # What is declared here and deleted there must be read for both.
        self.versions = [mine] if wanted.beside is None else [mine, wanted.beside.within(policy.workspace)]
        self.said = mine if wanted.beside is None else mine.joined(self.versions[1])
        self.declared, self.absent = self.said
        self.chosen = Selection(kinds, self.declared, policy)
        self.sought = sought(policy, (one.address for one in self._entries()), kinds)
        # What others wait for is the service's count and the size of a page, as soon as the first page is here.
        self.total: Future[tuple[int | None, int]] = Future()
        self.people: int | None = None
        self.listed: dict[str, Future[Listing]] = {}
        self.aside: dict[str, Listing] = {}
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
        listings = {kind: cast(Listing, listing) for kind, listing in found.items() if listing is not None}
        listings |= self.aside
        doubts = contradictions(listings)
        listings |= {kind: replace(listings[kind], incomplete=reason) for kind, reason in doubts.items()}
        name = self.policy.workspace
        return Snapshot(workspace=name, url=url, taken_at=taken_at, people=self.people, listings=listings)

    def _guarded(self, name: str, job: Callable[[], object]) -> Callable[[], object]:
        """A job whose failure is also told to those that wait for its listing."""

        def run() -> object:
            try:
                return job()
            except BaseException as error:
                waiting: list[Future[Listing] | Future[tuple[int | None, int]]] = [self.listed[name]]
                if name == USER:
                    waiting.append(self.total)
                for future in waiting:
                    if not future.done():
                        future.set_exception(error)
                raise

        return run

    def _entries(self) -> list[DesiredResource | DeleteEntry]:
        return [*self.declared, *self.absent]

    def _speaks(self, kind: str) -> bool:
        """Whether the manifests or the ownership speak of a kind."""
        if self.everything or kind in self.sought or (self.policy.ownership.get(kind) and not self.policy.only):
            return True
        mine = (one.address for one in self._entries() if one.address.kind == kind)
        return any(self.chosen(address) for address in mine)

    def _deletes_groups(self) -> bool:
        """Whether a group may go, and with it assignments anywhere in the catalog."""
        gone = any(one.address.kind in (GROUP, SMART_GROUP) and self.chosen(one.address) for one in self.absent)
        owned = self.policy.ownership
        return gone or (not self.policy.only and bool(owned.get(GROUP) or owned.get(SMART_GROUP)))

    def _needs(self, kind: str) -> bool:
        """Whether the listing of a kind is needed, for itself or for what names it."""
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
        """Whether the manifests answer custom fields for anybody."""
        specs = (one.spec for one in self.declared if self.chosen(one.address))
        return any(isinstance(spec, Person) and bool(spec.answers) for spec in specs)

    def _needs_people(self) -> bool:
        """Whether anybody's e-mail decides anything: in lists of people, in assignments, in what goes with a group."""
        if self._needs(CONTENT_TARGET) or self._deletes_groups() or self._speaks(USER):
            return True
        return any(lists_people(one.spec) and self.chosen(one.address) for one in self.declared)

    def _identified(self, kind: str, listing: Listing, said: Said) -> tuple[PlanContext, MatchResult]:
        """What is what within a kind, as far as its listing tells. Problems are the planner's to tell."""
        snapshot = Snapshot(workspace="", url="", taken_at="", people=None, listings={kind: listing})
        planning = PlanContext(snapshot, self.policy, self.terms, self.chosen)
        return planning, self.kinds[kind].identify(planning, *said.of(kind))

    def _each(self, kind: str, listing: Listing | None = None) -> list[tuple[PlanContext, MatchResult]]:
        """The same for each of the manifests that are planned on what is read."""
        rows = self.listed[kind].result() if listing is None else listing
        return [self._identified(kind, rows, said) for said in self.versions]

    def _people(self) -> Listing | None:
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
        # A service that does not count is counted for it, where the list was read to its end.
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
        """Whether a field goes, or one that stays loses a choice, so that everybody's answers have to be known."""
        if not self._speaks(CUSTOM_FIELD) or self.policy.additive:
            return False
        gone = any(one.address.kind == CUSTOM_FIELD for one in self.absent) or self.policy.ownership.get(CUSTOM_FIELD)
        if not gone and not any(limits_choices(one.spec) for one in self.declared):
            return False
        return any(answers_go(*one) for one in self._each(CUSTOM_FIELD))

    def _kept_people(self) -> Callable[[dict[str, Json]], dict[str, Json]]:
        """What of each person is held on to: of 200,000 of them most matter by their e-mail alone."""
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
        """The ids of the manual groups, once they are listed; none where nobody needs them."""
        rows = self.listed[GROUP].result().rows if GROUP in self.jobs else ()
        return frozenset(row.id for row in rows)

    def _first_people(self, total: int | None, rows: int) -> None:
        if not self.total.done():
            self.total.set_result((total, rows))

    def _list(self, kind: str, rows: Rows, row: Callable[[Mapping[str, Json]], HasName]) -> Listing:
        """A listing as it is kept: by id, so that the order of reading does not show."""
        listing = sorted_listing(map(row, rows.rows), rows.incomplete)
        self.listed[kind].set_result(listing)
        return listing

    def _fields(self) -> Listing:
        rows = self.api.rows(LISTINGS[CUSTOM_FIELD])
        if self._fields_come(rows):
            # One answer that nothing counts: before a field is made on its word, it must say the same again.
            again = self.api.rows(LISTINGS[CUSTOM_FIELD])
            if {row["customFieldId"] for row in again.rows} != {row["customFieldId"] for row in rows.rows}:
                rows = replace(again, incomplete=again.incomplete or "it was read twice, and other fields came")
        return self._list(CUSTOM_FIELD, rows, field_row)

    def _fields_come(self, rows: Rows) -> bool:
        """Whether a field would be created, as far as its listing tells."""
        listing = sorted_listing(map(field_row, rows.rows), rows.incomplete)
        found = (match for _, one in self._each(CUSTOM_FIELD, listing) for match in one.matches)
        return any(match.row is None and self.chosen(match.address) for match in found)

    def _groups(self) -> Listing:
        rows = self.api.rows(LISTINGS[GROUP], keep=only("groupId", "name"))
        # A lock of some run is no resource: never listed, owned or exported.
        groups = tuple(row for row in rows.rows if not str(row.get("name")).startswith(RESERVED))
        listing = self._list(GROUP, replace(rows, rows=groups), _group_stub)
        wanted, compared = self._wanted_groups(listing)
        total, page = self.total.result()
        people = self.listed[USER].result
        details = read_details(self.api, wanted, compared, total, page, people, self.extended)
        return sorted_listing((details.get(row.id, cast(GroupRow, row)) for row in listing.rows), listing.incomplete)

    def _wanted_groups(self, listing: Listing) -> tuple[list[GroupRow], list[GroupRow]]:
        """Those of which everybody counts, and those whose members are compared with groups that would be created."""
        if self.everything:
            return list(cast("tuple[GroupRow, ...]", listing.rows)), []
        wanted: dict[RemoteId, HasName] = {}
        compared: dict[RemoteId, HasName] = {}
        for _, found in self._each(GROUP, listing):
            wanted |= {gone.row.id: gone.row for gone in found.gone}
            for match in found.matches:
                spec = cast(ManualGroup, match.declared.spec)
                managed = spec.members is not None or spec.managers is not None
                if match.row and self.chosen(match.address) and (managed or match.row.name != match.address.name):
                    wanted[match.row.id] = match.row
            rows = self._compared(found, lambda spec: has_members_to_compare(cast(ManualGroup, spec)))
            compared |= {row.id: row for row in rows}
        return cast("list[GroupRow]", [*wanted.values()]), cast(
            "list[GroupRow]", [row for id, row in compared.items() if id not in wanted]
        )

    def _compared(self, found: MatchResult, has_content: Callable[[object], bool]) -> list[HasName]:
        """What no manifest speaks of and may be what would be created, under another name."""
        created = (one.declared.spec for one in found.matches if one.row is None and self.chosen(one.address))
        return [one.row for one in comparable(found.unmanaged, self.policy)] if any(map(has_content, created)) else []

    def _smart_groups(self) -> Listing:
        rows = self.api.rows(LISTINGS[SMART_GROUP], keep=only("smartGroupId", "name"))
        listing = self._list(SMART_GROUP, rows, _smart_stub)
        wanted = self._wanted_smart_groups(listing)
        answers = self.api.each("smart-groups.get", [({"smartGroupId": row.id}, {}) for row in wanted])
        details = {row.id: smart_row(row, answer) for row, answer in zip(wanted, answers, strict=True)}
        return sorted_listing((details.get(row.id, row) for row in listing.rows), listing.incomplete)

    def _wanted_smart_groups(self, listing: Listing) -> list[HasName]:
        """Those that the manifests speak of; all, when a field changes that any of them may name."""
        if self.everything or self._fields_change():
            return list(listing.rows)
        wanted: dict[RemoteId, HasName] = {}
        for _, found in self._each(SMART_GROUP, listing):
            chosen = [match.row for match in found.matches if match.row and self.chosen(match.address)]
            compared = self._compared(found, lambda spec: cast(SmartGroup, spec).conditions is not None)
            wanted |= {row.id: row for row in (*chosen, *(gone.row for gone in found.gone), *compared)}
        return list(wanted.values())

    def _fields_change(self) -> bool:
        if not self._speaks(CUSTOM_FIELD):
            return False
        compare = self.kinds[CUSTOM_FIELD].compare
        return any(
            found.gone or any(match.row and _differs(compare(planning, match)) for match in found.matches)
            for planning, found in self._each(CUSTOM_FIELD)
        )

    def _contents(self) -> Listing:
        rows = self.api.rows(LISTINGS[CONTENT], keep=only("courseId", "name", "contentType"))
        return self._list(CONTENT, rows, content_row)

    def _targets(self) -> Listing | None:
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

    def _count_others(self, contents: Listing, named: set[RemoteId], listing: Listing) -> None:
        """Goes on counting assignments while those that change are a larger share of them than a guard lets pass.

        A share is of all that are live, and what is left can only make it smaller.
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
        """Whether an assignment is changed by deleting it first."""
        return self.terms.behaviour("content-targets.on-existing") == "recreate"

    def _assignments_change(self, listing: Listing, said: Said) -> tuple[int, int]:
        """How many live assignments would be deleted, and how many changed in place, as far as the listings tell."""
        kinds = (USER, CUSTOM_FIELD, GROUP, SMART_GROUP, CONTENT)
        listings = {kind: self.listed[kind].result() for kind in kinds if kind in self.listed}
        snapshot = Snapshot(
            workspace="", url="", taken_at="", people=None, listings={**listings, CONTENT_TARGET: listing}
        )
        planning = PlanContext(snapshot, self.policy, self.terms, self.chosen)
        for name, kind in self.kinds.items():
            found = kind.identify(planning, *said.of(name))
            if name == CONTENT_TARGET:
                gone = sum(self.chosen(one.address) for one in found.gone)
                live = [match for match in found.matches if match.row and self.chosen(match.address)]
                changed = sum(_differs(kind.compare(planning, match)) for match in live)
                return (gone + changed, 0) if self._recreates else (gone, changed)
        return 0, 0

    def _lacking(self, contents: list[ContentRow], found: Found) -> set[RemoteId]:
        """The contents of which an assignment would be created, as far as their answers tell."""
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
        """The contents that the manifests name; all of the catalog, when it is owned or a group goes."""
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
        """Whether a live group will be deleted."""
        for kind in (GROUP, SMART_GROUP):
            if any(self.chosen(gone.address) for _, found in self._each(kind) for gone in found.gone):
                return True
        return False


def _differs(sides: BeforeAfter | None) -> bool:
    return sides is not None and sides.before != sides.after


def sorted_listing(rows: Iterable[HasName], incomplete: str | None) -> Listing:
    """Rows by id: whatever order they were read in, the snapshot is the same."""
    return Listing(rows=tuple(sorted(rows, key=lambda row: row.id)), incomplete=incomplete)


def _group_stub(data: Mapping[str, Json]) -> GroupRow:
    return GroupRow(RemoteId(text(data, "groupId")), label(data, "name"))


def _smart_stub(data: Mapping[str, Json]) -> SmartRow:
    return SmartRow(RemoteId(text(data, "smartGroupId")), label(data, "name"))
