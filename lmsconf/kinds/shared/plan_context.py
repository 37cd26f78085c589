"""The state that kinds share while a plan is made, and why a name that is referred to is not there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct, field

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import EVERYONE_ID
from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.assignment.types import Audiences, TargetRow, audiences_among
from lmsconf.kinds.custom_field.types import ActiveMigration, DeclaredCondition, FieldOrChoiceDeletion
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, GROUP, SMART_GROUP, USER, choices_registry_kind
from lmsconf.kinds.user.types import PeopleDirectory, PersonRow, PersonSpec
from lmsconf.model.address import Address, Ref, RemoteId, shell_quoted
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Spec_co
from lmsconf.model.forms import Form, KeyedNames
from lmsconf.model.guards import Policy
from lmsconf.model.names import did_you_mean, quote_name
from lmsconf.model.plan import GuardCount
from lmsconf.model.snapshot import HasName, Row_co, Snapshot
from lmsconf.model.time_formats import time_format_of

Spec = TypeVar("Spec")
Row = TypeVar("Row", bound=HasName)
Planned = TypeVar("Planned", bound="Match[Any, Any] | Deletion[Any] | FieldOrChoiceDeletion")
GRANTED: Final = "(granted)"
SLOT: Final = "(slot)"


class NameRegistry(Struct):
    """Names and ids as they will be after apply: the only mapping between the two.

    A resource to be created has a name and no id yet; `id_or_ref` returns a Ref for it.
    """

    _ids: defaultdict[str, dict[str, RemoteId | None]] = field(default_factory=lambda: defaultdict(dict))
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _shared: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def register(self, kind: str, name: str, id: RemoteId | None) -> None:
        """Map a name to an id; None: the resource is still to be created."""
        self._ids[kind][name] = id
        if id is not None:
            self._names[kind, id] = name

    def set_display_name(self, kind: str, name: str, id: RemoteId) -> None:
        """Set a name that shows a live row and cannot be referenced: the row is deleted, or its name a duplicate."""
        self._names[kind, id] = name

    def register_duplicate(self, kind: str, name: str, id: RemoteId) -> None:
        """Add another live row of a registered name; it is shown with its id."""
        holder = self._ids[kind][name]
        self._shared.setdefault((kind, name), [] if holder is None else [holder]).append(id)
        self.set_display_name(kind, f"{name} (id {id})", id)

    def duplicate_ids(self, kind: str, name: str) -> list[str]:
        """Return the ids of live rows that share a name and of which none is declared."""
        return self._shared.get((kind, name), [])

    def name(self, kind: str, id: str) -> str | None:
        """Return the name of a live row after apply, or None."""
        return self._names.get((kind, id))

    def has(self, kind: str, name: str) -> bool:
        """Whether the name will exist after apply."""
        return name in self._ids[kind]

    def id_or_ref(self, ref: Ref) -> RemoteId | Ref:
        """Return the id of a resource or a choice; `ref` if it will be created. Raises KeyError for others."""
        kind, name = ref.address.kind, ref.address.name
        if ref.part is not None:
            kind, name = choices_registry_kind(name), ref.part
        remote_id = self._ids[kind][name]
        return ref if remote_id is None else remote_id

    def names(self, kind: str) -> list[str]:
        """Return all names of the kind after apply."""
        return list(self._ids[kind])


class Match(Struct, Generic[Spec_co, Row_co], frozen=True, kw_only=True):
    """A declared resource and its live row; `row` is None if it is to be created.

    replaced_by: what takes its place. along: it is planned if that address is.
    """

    declared: DesiredResource[Spec_co]
    row: Row_co | None
    replaced_by: tuple[Address, ...] = ()
    along: Address | None = None

    @property
    def address(self) -> Address:
        return self.declared.address


class Deletion(Struct, Generic[Row_co], frozen=True, kw_only=True):
    """A live resource to be deleted: listed under `absent`, owned and undeclared, or deleted `with_` its group.

    reason: why, if an entry other than one under `absent` says so. replaced_by: what takes its place.
    """

    address: Address
    row: Row_co
    absent: DeleteEntry[Any] | None
    with_: Address | None = None
    reason: str | None = None
    replaced_by: tuple[Address, ...] = ()

    @property
    def source(self) -> SourceLocation | None:
        """The entry that deletes it; None if there is none."""
        return None if self.absent is None else self.absent.source


class UndeclaredResource(Struct, frozen=True):
    """A live resource that no manifest declares or deletes."""

    address: Address
    row: HasName


class MatchResult(Struct, Generic[Spec, Row], kw_only=True):
    """The result of matching declarations with live resources of one kind.

    left_alone: how many rows `leave_alone` ignores. live: how many rows were read, of people those who are active.
    """

    matches: list[Match[Spec, Row]] = field(default_factory=list)
    deletions: list[Deletion[Row]] = field(default_factory=list)
    unmanaged: list[UndeclaredResource] = field(default_factory=list)
    left_alone: int = 0
    live: int = 0


class BeforeAfter(Struct, frozen=True, kw_only=True):
    """The live and the declared state of a resource, as forms limited to the keys that the manifest declares.

    sizes: key → length of the live list, for the guards' shares; of people, those who are active.
    archived: key → the archived people in a live list, as in the form: they are in no share.
    is_archived: whether it is an archived person itself.
    """

    before: Form | None
    after: Form | None
    sizes: dict[str, int] = field(default_factory=dict)
    archived: dict[str, frozenset[str]] = field(default_factory=dict)
    is_archived: bool = False


class Similarity(Struct, frozen=True, kw_only=True):
    """The content of a resource in comparable form, to detect one that was renamed.

    of: the manifest key that is compared. key: equal for the same content; None if there is too little to compare.
    items: the parts of the content. type: only resources of equal type are compared.
    """

    of: str
    key: Hashable | None
    items: frozenset[Hashable] = frozenset()
    type: str = ""


class NewParts(Struct, frozen=True, kw_only=True):
    """The parts of a resource, choices of a field, that are created beside live, undeclared ones that stay.

    likely: new part → undeclared parts that live resources reference where their declarations reference the new one.
    """

    new: frozenset[str]
    undeclared: frozenset[str]
    likely: dict[str, set[str]] = field(default_factory=dict)


class SideEffect(Struct, frozen=True, kw_only=True):
    """A live resource that the service itself changes as a consequence of the change `with_`, without a call."""

    address: Address
    row: HasName
    with_: Address
    reason: str
    sides: BeforeAfter


class PlanContext:
    """The state of one planning run: inputs, facts that kinds record for each other, and problems.

    deleted         addresses to be deleted
    kept_refs       reference target → live resources that reference it both before and after apply
    changed_refs    (dropped, added) references of each live resource whose references change

    measures        guard measures that kinds take beyond what the changes show
    side_effects    changes that the service itself makes as a consequence of planned ones
    parts           live resource that has undeclared parts → these, and its new ones
    replaced        resource → live ones that it replaces on purpose, so that it is not one of them under a new name
    declared        the declarations of all kinds, as far as a plan has them
    included        resources beside the selection that a selected one needs, as `include` has found
    doubtful        declared addresses whose live row is unknown because of an error
    renamed         current address → new address
    unknown_names   how many unknown names hints were asked for
    temporary_names resources that take a temporary name first, one in each cycle of renames
    field_types     name of a field after the plan → its type, where that is known
    field_choices   field → its choices before and after the plan; both empty where no choices are declared
    migrations      address of an old field that is live → how its answers move
    losses          fields and choices that are deleted
    lost_answers    fields whose answers were read → of how many people they are; None if some could not be read
    freed_slots     field to be created → the deletion that frees its slot
    planned_people  e-mail → the match of people that the plan may change
    planned_conditions
                    id of a live smart group → its conditions after the plan
    added_refs
                    name of a field that smart groups cease to ask for → what they ask for instead
    shared_content  ids of contents that share a name
    closing         live assignments that are deleted or hidden because they are replaced
    """

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        api_spec: ApiSpec,
        chosen: Callable[[Address], bool],
        declared: Sequence[DesiredResource[Any]] = (),
        excludes: Callable[[Address], bool] | None = None,
    ) -> None:
        """Begin a run. chosen: whether the selection has an address. excludes: whether `--except` names it."""
        self.snapshot, self.policy, self.api_spec = snapshot, policy, api_spec
        self.declared = declared
        self._selected, self._excludes = chosen, excludes
        self.included: set[Address] = set()
        self.registry = NameRegistry()
        self.problems: list[Problem] = []
        self.deleted: set[Address] = set()
        self.kept_refs: defaultdict[Ref, list[Address]] = defaultdict(list)
        self.changed_refs: list[tuple[frozenset[Ref], frozenset[Ref]]] = []

        self.measures: list[GuardCount] = []
        self.side_effects: list[SideEffect] = []
        self.parts: dict[Address, NewParts] = {}
        self.replaced: defaultdict[Address, set[RemoteId]] = defaultdict(set)
        self.doubtful: set[Address] = set()
        self.renamed: dict[Address, Address] = {}
        self.unknown_names = 0
        self.temporary_names: set[Address] = set()
        self.field_types: Mapping[str, str] = {}
        self.field_choices: defaultdict[Address, tuple[KeyedNames, KeyedNames]] = defaultdict(
            lambda: (KeyedNames({}), KeyedNames({}))
        )
        self.migrations: dict[Address, ActiveMigration] = {}
        self.losses: list[FieldOrChoiceDeletion] = []
        self.lost_answers: dict[Address, int | None] = {}
        self.freed_slots: Mapping[Address, Address] = {}
        self.planned_people: Mapping[str, Match[PersonSpec, PersonRow]] = {}
        self.planned_conditions: dict[str, Sequence[DeclaredCondition]] = {}
        self.added_refs: dict[str, frozenset[Ref]] = {}
        self.shared_content: frozenset[str] = frozenset()
        self.closing: list[TargetRow] = []

    @cached_property
    def people(self) -> PeopleDirectory:
        """The directory of people; once they are matched, as it will be after the plan."""
        return PeopleDirectory.of(self.snapshot.rows(PersonRow))

    @cached_property
    def audiences(self) -> Audiences:
        """The audiences that the live targets may be for."""
        return audiences_among(
            {
                kind: [(row.id, row.name) for row in self.snapshot.of(kind).rows]
                for kind in (GROUP, SMART_GROUP, USER)
                if kind != USER or kind in self.snapshot.listings
            },
            self.snapshot.rows(TargetRow),
            self.api_spec.behaviour(EVERYONE_ID),
            incomplete=self.snapshot.of(GROUP).incomplete or self.snapshot.of(SMART_GROUP).incomplete,
        )

    @cached_property
    def archived_ids(self) -> frozenset[RemoteId]:
        """The ids of people who are archived before the plan."""
        return frozenset(row.id for row in self.snapshot.of(USER).rows if row.archived)

    @cached_property
    def live_time_formats(self) -> set[str]:
        """The formats of the times of live windows: iso, epoch-ms."""
        return {
            time_format_of(text)
            for row in self.snapshot.of(CONTENT_TARGET).rows
            for text in (row.start, row.finish)
            if text is not None
        }

    def chosen(self, address: Address) -> bool:
        """Whether an address is planned."""
        return address in self.included or self._selected(address)

    def planned(self, changes: Iterable[Planned]) -> list[Planned]:
        """Return those of matches, deletions or losses that the plan carries out; none under `--additive`."""
        return [] if self.policy.additive else [one for one in changes if self.chosen(one.address)]

    def include(self, address: Address) -> bool:
        """Plan a live resource that a planned one needs, unless it is excluded; return whether it is planned."""
        # The declarations of a selection show most of what it needs; this is what only the workspace shows.
        if self.policy.only and self._excludes is not None and not self._excludes(address):
            self.included.add(address)
        return self.chosen(address)

    def report(
        self,
        entry: DesiredResource[Any] | DeleteEntry[Any],
        code: str,
        text: str,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
        *,
        at: SourceLocation | None = None,
    ) -> None:
        """Record a problem of what an entry declares or deletes; its message begins with the address. at: the place."""
        self.problem(
            code, f"{entry.address}: {text}", hint=hint, at=at or entry.source, address=entry.address, severity=severity
        )

    def problem(
        self,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        at: SourceLocation | None = None,
        address: Address | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Record a problem; all are reported together."""
        self.problems.append(
            Problem(
                code=code,
                message=message,
                hint=hint,
                severity=severity,
                source=at,
                address=None if address is None else str(address),
            )
        )


MOST_COMPARED: Final = 50
"""Names are suggested for this many unknown ones only: to compare many with many takes long."""


def report_ambiguous_reference(
    planning: PlanContext, declared: DesiredResource[Any], named: Address, at: tuple[str | int, ...] = ()
) -> bool:
    """Whether a resource that a declaration names is ambiguous or has an error of its own.

    Records a problem, unless the resource's own error is reported anyway. at: the path of the name.
    """
    ids = planning.registry.duplicate_ids(named.kind, named.name)
    if named not in planning.doubtful and ids:
        planning.report(
            declared,
            "identity/live-twice",
            f'"{named.name}" is live more than once, with the ids {", ".join(sorted(ids))}',
            hint="Declare the right one, with its `id:`.",
            at=declared.places.at(*at),
        )
    elif named in planning.doubtful and not planning.chosen(named):
        planning.report(
            declared,
            "reference/in-doubt",
            f"it names {named}, and it is not yet known what of it is live",
            hint=f"Plan {shell_quoted(named)} too to see its error.",
            at=declared.places.at(*at),
        )
    return bool(ids) or named in planning.doubtful


def why_name_is_missing(planning: PlanContext, named: Address, near: str | None) -> tuple[str, str | None]:
    """Return why a referenced name will not exist (renamed, deleted, not live), and a hint. near: names a close one."""
    if new := planning.renamed.get(named):
        return f"{named} is being renamed to {new}", f"Write the new name: {quote_name(new.name)}."
    if named in planning.deleted:
        return (
            f"{named} will be deleted by this plan",
            "Remove the references to it. To keep it, declare it, and remove it from `absent`.",
        )
    return (
        f"{named} is neither declared nor live",
        hint_on_missing(planning, named.kind, near, "Correct the name, or declare it."),
    )


def suggest_name(
    planning: PlanContext,
    name: str,
    known: Iterable[str],
    nearest: Callable[[str, Iterable[str]], str | None] = did_you_mean,
) -> str | None:
    """Return the hint of `nearest` for one of the first unknown names of a plan; None for the others.

    Comparing thousands of unknown names with thousands of known ones takes minutes.
    """
    planning.unknown_names += 1
    return nearest(name, known) if planning.unknown_names <= MOST_COMPARED else None


def hint_on_missing(planning: PlanContext, kind: str, near: str | None, otherwise: str) -> str:
    """Return the hint for a name that is not live: that the listing is incomplete, or `near`, or else `otherwise`."""
    why = planning.snapshot.of(kind).incomplete
    return f"It may exist, because the list was not read completely: {why}" if why else near or otherwise


def report_missing_key(planning: PlanContext, declared: DesiredResource[Any], key: str) -> None:
    """Report that a resource to be created lacks a key that the service requires."""
    planning.report(
        declared,
        f"{declared.address.kind.replace('_', '-')}/{key}-needed",
        f"it is not live, and without `{key}` it cannot be created",
        hint=f"Set its `{key}`, or correct the name.",
    )


def report_unread_list(planning: PlanContext, address: Address, key: str, at: SourceLocation | None) -> None:
    """Report a list that the snapshot lacks: read as empty, it would hide removals or plan needless additions."""
    planning.problem(
        "read/missing",
        f"{address}: the snapshot does not contain its {key}",
        hint="Save a complete snapshot with `lmsconf snapshot FILE`.",
        at=at,
        address=address,
    )
