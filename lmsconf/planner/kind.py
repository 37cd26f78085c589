"""Kind, the base class of every kind of resource, and ManifestEntry, which a kind parses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias

from msgspec import Struct

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.api import Api, ListOperation
from lmsconf.model.calls import Call, Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, SourceMap
from lmsconf.model.forms import Form, form_to_json
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import FULL_UNDO, Change, Undo
from lmsconf.model.snapshot import ListedRow, Listing, Row, Snapshot
from lmsconf.planner.context import (
    BeforeAfter,
    Deletion,
    Match,
    MatchResult,
    PlanContext,
    SideEffect,
    Similarity,
    Spec,
)
from lmsconf.planner.grant_verification import GrantVerification
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import (
    EntryBody,
    EntryItems,
    PartReferences,
    Trail,
)

BOX: Final = "box"
"""The usual shape of a node in a graph."""

if TYPE_CHECKING:
    from lmsconf.planner.reading import ReadContext


class ManifestEntry(Struct, frozen=True, kw_only=True):
    """One item of a manifest section, valid against its kind's schema, with lists of people read from their files.

    `report` collects the problems that only a kind can detect; parsing continues, so that all are shown together.
    """

    body: Mapping[str, Json]
    places: SourceMap
    timezone: tzinfo | None
    report: Callable[[Problem], None]


class Kind(ABC, Generic[Spec, Row]):
    """A kind of resource, with all code specific to it. Spec: what an entry declares. Row: a live resource as read.

    name: the first part of its addresses. section: the manifest key of its entries. noun, plural: its display names.
    rank: kinds of a lower rank are planned first, because others reference them.
    is_relation: it only links other resources, so that deleting one counts as a removal, not a deletion.
    schema, absent_schema: the JSON Schema of an entry in its section, and under `absent`.
    row_types: those that snapshot files hold for this kind, one per listing, in their order there.
    list_operation: the operation that lists its resources; None if there is no listing of them all.
    ownership_schema: the JSON Schema of its section under `ownership`; None: they are never deleted, so never owned.
    is_person: its resources are people: their names are e-mails, and their values personal data.
    listing_nouns: further listings that it reads → their display names, singular and plural.
    example: an address that hints show; a name without a kind is taken for one of the first kind that has an example.
    reports_people: its job reports the people in the rows that it compares, so that not all people need to be listed.
    normalize_name: the form in which its names are compared.
    name_key: the key of an entry that holds its name. parts_key: that of the list of its parts, such as choices.
    time_keys: keys that hold times → whether a bare date means the end of the day.
    entry_items: how one entry declares several resources; None if each entry declares one.
    references, part_references: kind → where manifests refer to its resources, and to their parts.
    graph_shape: how graphs show its resources, in the words of DOT.
    operations: the API operations that read and change its resources; its manifests depend on their dialect keys.
    limit: the most resources that a workspace can hold; None if there is no limit.

    All methods are pure, except that those of planning record facts in the PlanContext. A kind overrides what it needs:
    the defaults fit resources without relations that are updated in place.
    """

    name: str
    section: str
    noun: str
    plural: str
    rank: int
    is_relation: bool = False
    schema: Mapping[str, Json]
    absent_schema: Mapping[str, Json]
    row_type: type[Row]
    row_types: tuple[type[ListedRow], ...]
    list_operation: ListOperation | None = None
    ownership_schema: Mapping[str, Json] | None = {"$ref": "#/$defs/owned"}
    is_person: bool = False
    listing_nouns: Mapping[str, tuple[str, str]] = {}
    example: str = ""
    reports_people: bool = False
    name_key: str = "name"
    normalize_name: Callable[[str], str] = staticmethod(normalize_name)
    parts_key: str | None = None
    time_keys: Mapping[str, bool] = {}
    entry_items: EntryItems | None = None
    references: Mapping[str, Sequence[Trail]] = {}
    part_references: Mapping[str, Sequence[PartReferences]] = {}
    graph_shape: str = BOX
    operations: Sequence[str] = ()
    limit: int | None = None

    @abstractmethod
    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[Spec]]:
        """Yield the resources that one manifest entry declares."""

    @abstractmethod
    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the resources that one entry under `absent` declares to be deleted."""

    def check_declarations(
        self, declared: Sequence[DesiredResource[Spec]], everything: Mapping[str, Sequence[DesiredResource[Any]]]
    ) -> Iterator[Problem]:
        """Yield problems between declarations, found without a snapshot; `everything` maps kind to declarations."""
        return iter(())

    def dependencies(self, declared: DesiredResource[Spec]) -> list[Address]:
        """Return the resources that the declaration depends on."""
        return []

    @abstractmethod
    def match(
        self, planning: PlanContext, declared: Sequence[DesiredResource[Spec]], absent: Sequence[DeleteEntry[Any]]
    ) -> MatchResult[Spec, Row]:
        """Match declarations with live resources, and register every name as it will be after apply."""

    @abstractmethod
    def diff(self, planning: PlanContext, match: Match[Spec, Row]) -> BeforeAfter | None:
        """Return the live and declared state of a resource; None after a problem that rules out a comparison."""

    @abstractmethod
    def state_before_delete(self, planning: PlanContext, deletion: Deletion[Row]) -> BeforeAfter:
        """Return the live state of a resource to be deleted; `after` is None."""

    def finalize(self, planning: PlanContext, matched: MatchResult[Spec, Row]) -> None:
        """Record facts for other kinds, and check the kind as a whole. Called once, when all kinds are compared."""
        return

    @abstractmethod
    def plan_steps(self, planning: PlanContext, match: Match[Spec, Row], sides: BeforeAfter) -> list[Step]:
        """Return the calls that change the resource from `before` to `after`."""

    @abstractmethod
    def plan_delete(self, planning: PlanContext, deletion: Deletion[Row]) -> list[Step]:
        """Return the calls that delete the resource."""

    def grant_verification(self, call: Call) -> GrantVerification | None:
        """Return how the effect of a call that grants access is verified; None for any other call."""
        return None

    def revokes_access(self, call: Call) -> bool:
        """Return whether a call takes away access, so that the grants it depends on are verified before it is sent."""
        return False

    def undo_extent(
        self, planning: PlanContext, subject: Match[Spec, Row] | Deletion[Row] | SideEffect, sides: BeforeAfter
    ) -> Undo:
        """Return how much of a change a later plan can undo. Called after `finalize` of every kind."""
        return FULL_UNDO

    def live_form(self, planning: PlanContext, row: Row) -> Form:
        """Return the state of a live resource, as far as it was read, to detect renames."""
        return {}

    def similarity(self, planning: PlanContext, form: Form) -> Similarity | None:
        """Return the content by which a renamed resource is detected; None if renames need no detection."""
        return None

    def entry_body(self, live: LiveNames, row: Row) -> EntryBody:
        """Return the keys of a row's entry beside name and id, without default values."""
        form = self.live_form(live.planning, row)
        return EntryBody(
            {key: form_to_json(form[key]) for key in form if key != self.name_key and form[key] is not None}
        )

    def entry_team(self, body: Mapping[str, Json], field: str, teams: Mapping[Address, str]) -> str | None:
        """Return the one value of a custom field that an exported entry is about. teams: those of other entries."""
        return None

    def required_listings(self, reading: ReadContext) -> frozenset[str]:
        """Return the kinds whose listings must be read if manifests, ownership or the selection cover this kind."""
        return frozenset()

    def parse_row(self, data: Mapping[str, Json]) -> Row:
        """Return the live resource in a row of the listing; needed if there is a `list_operation`."""
        raise NotImplementedError

    def read(self, reading: ReadContext) -> Listing[Row] | None:
        """Read the live resources; None if they are not needed. Called for every kind, concurrently.

        The default fits a kind whose listing has everything.
        """
        if self.list_operation is None or not reading.is_needed(self.name):
            return None
        return reading.publish_listing(self, reading.api.rows(self.list_operation))

    def can_reread(self, kept: Snapshot, changes: Sequence[Change]) -> bool:
        """Return whether `reread` shows the resources of these changes as a whole reading would, and is as fast.

        Otherwise, which is the default, all that they are compared with is read as for a plan: so for a deletion that
        takes along, or whose guards count, what the resource itself does not show.
        """
        return not changes

    def reread(self, api: Api, kept: Snapshot, changes: Sequence[Change]) -> Listing[Row]:
        """Return the kept listing with the rows that changes touch, of any kind, as they are now.

        Rows are read by id. All names are read where a name is given, since only the listing tells whether it is taken.
        Raises Rejected for a row that is not live any more.
        """
        return kept.of(self.name)

    def named_emails(self, entry: DesiredResource[Spec] | DeleteEntry[Any]) -> Iterable[str]:
        """Return the e-mails that an entry names, in no order, beyond the name of a person that it declares."""
        return ()


AnyKind: TypeAlias = "Kind[Any, Any]"


def in_snapshot_order(kinds: Iterable[AnyKind]) -> list[AnyKind]:
    """Return kinds in the order of snapshot files: those of people first, which the lists of the others refer to."""
    return sorted(kinds, key=lambda kind: not kind.is_person)


def listed_name(kind: AnyKind, row: Mapping[str, Json]) -> str:
    """Return the name in the address of a row of `list_operation`; empty if the row has none."""
    return kind.normalize_name(str(row.get(kind.name_key) or ""))


def required_keys(kind: AnyKind) -> frozenset[str]:
    """Return the keys that every entry has: they identify its resource."""
    required = kind.schema["required"]
    return frozenset(map(str, required)) if isinstance(required, list) else frozenset()


def is_named(kind: AnyKind) -> bool:
    """Return whether resources are created with names that tell them apart: no relations, and no people."""
    return not kind.is_relation and not kind.is_person
