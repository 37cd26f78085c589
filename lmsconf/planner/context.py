"""What the kinds share while a plan is made: names and ids as they will be, and who leans on what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.forms import Form
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import HasName, Snapshot
from lmsconf.model.values import Action, DeleteEntry, DesiredResource, Json, Measure, Step, Undo

VACANT: Final = "(vacant name)"
GRANTED: Final = "(granted)"
SLOT: Final = "(slot)"


class Terms(Protocol):
    """The names and behaviours of the service, as kinds need them to write calls."""

    def body(self, operation: str, **values: object) -> dict[str, object]:
        """A request body, canonical names replaced by those on the wire."""
        ...

    def behaviour(self, key: str) -> str:
        """How the service behaves where its specification is silent."""
        ...

    def request(self, operation: str, path: Mapping[str, str | Ref]) -> tuple[str, str]:
        """Method and path of a call; an id to come stands in the path in braces."""
        ...


class NameRegistry:
    """Names and ids as they will be once the plan is carried out: the one bridge between the two.

    Things that will be created have a name and no id yet; `ref` gives a Ref for them.
    """

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str], RemoteId | None] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._shared: dict[tuple[str, str], list[str]] = {}

    def register(self, kind: str, name: str, id: RemoteId | None) -> None:
        """A thing goes by that name; without an id it is still to be created."""
        self._ids[kind, name] = id
        if id is not None:
            self._names[kind, id] = name

    def alias(self, kind: str, name: str, id: RemoteId) -> None:
        """A live thing shows as that name, which nothing can refer to: it leaves, or shares its name."""
        self._names[kind, id] = name

    def register_duplicate(self, kind: str, name: str, id: RemoteId) -> None:
        """One more live thing of a name that something has already: it shows with its id."""
        holder = self._ids[kind, name]
        self._shared.setdefault((kind, name), [] if holder is None else [holder]).append(id)
        self._names[kind, id] = f"{name} (id {id})"

    def shared(self, kind: str, name: str) -> list[str]:
        """The ids of the live things that share a name of which no declaration claims one."""
        return self._shared.get((kind, name), [])

    def name(self, kind: str, id: str) -> str | None:
        """What the live thing with that id will be called."""
        return self._names.get((kind, id))

    def has(self, kind: str, name: str) -> bool:
        """Whether something will go by that name."""
        return (kind, name) in self._ids

    def ref(self, kind: str, name: str, stand_in: Ref) -> RemoteId | Ref:
        """The id of the thing with that name, or what stands in for it until it is created."""
        found = self._ids[kind, name]
        return stand_in if found is None else found

    def names(self, kind: str) -> list[str]:
        """Every name that something of the kind will go by."""
        return [name for of, name in self._ids if of == kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A declaration and the live thing it speaks of; None: it is to be created."""

    declared: DesiredResource
    row: HasName | None

    @property
    def address(self) -> Address:
        return self.declared.address


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """A live thing that will be deleted: said under `absent`, owned and not declared, or gone `with_` its group."""

    address: Address
    row: HasName
    absent: DeleteEntry | None
    with_: Address | None = None


class Undeclared(NamedTuple):
    """A live resource that no manifest speaks of."""

    address: Address
    row: HasName


@dataclass(slots=True, kw_only=True)
class MatchResult:
    """What is what within one kind."""

    matches: list[Match] = field(default_factory=list)
    gone: list[Deletion] = field(default_factory=list)
    unmanaged: list[Undeclared] = field(default_factory=list)
    left_alone: int = 0
    live: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfter:
    """A resource seen from both sides, in forms that hold only what the manifest speaks of.

    sizes: how many the live list under each key holds, for the guards' shares.
    defaults: the keys of a creation that the service decides.
    taken: the keys whose single value is something that the resource loses; each counts as a removal.
    """

    before: Form | None
    after: Form | None
    sizes: Mapping[str, int] = field(default_factory=dict)
    defaults: tuple[str, ...] = ()
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Similarity:
    """By what one resource may be another under a new name: their content, in a form that compares.

    of: what is compared, in the words of the manifest. key: equal where the content is the same; None where there is
    too little to compare. items: what the content is made of. type: only resources of one type can be the same.
    """

    of: str
    key: Hashable | None
    items: frozenset[Hashable] = frozenset()
    type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewParts:
    """Parts of a resource that come, a field's choices, and those that stay though no manifest speaks of them.

    likely: a part that comes → those that live resources name where their declarations name it.
    """

    new: frozenset[str]
    undeclared: frozenset[str]
    likely: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A live thing that the service itself changes because of another change, `with_`; no call is about it."""

    address: Address
    row: HasName
    with_: Address
    reason: str
    sides: BeforeAfter


class PlanContext:
    """The state of one planning: inputs, what the kinds found out for each other, and problems on the way.

    gone      what will be deleted
    kept      for what something live leans on now and will lean on later: who
    shifts    for each live thing that leans elsewhere later: what it leaves, and what it turns to
    leaving   compared e-mails of people who leave some group
    measures  what kinds count for guards, beside what shows in changes
    effects   what the service itself changes because of the plan's own changes
    parts     for each live resource, the parts that come beside others that no manifest speaks of
    notes     a kind's own, under names of its own
    """

    def __init__(self, snapshot: Snapshot, policy: Policy, terms: Terms, chosen: Callable[[Address], bool]) -> None:
        self.snapshot, self.policy, self.terms, self.chosen = snapshot, policy, terms, chosen
        self.book = NameRegistry()
        self.problems: list[Problem] = []
        self.gone: set[Address] = set()
        self.kept: defaultdict[Ref, list[Address]] = defaultdict(list)
        self.shifts: list[tuple[frozenset[Ref], frozenset[Ref]]] = []
        self.leaving: set[str] = set()
        self.measures: list[Measure] = []
        self.effects: list[Effect] = []
        self.parts: dict[Address, NewParts] = {}
        self.notes: dict[str, object] = {}

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
        """Remembers a problem; all of them are told together."""
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


class Planner(Protocol):
    """What a kind adds to planning. All of it is pure but for what it notes in the Planning."""

    @property
    def noun(self) -> str:
        """What people call one of them."""
        ...

    @property
    def plural(self) -> str:
        """What people call several of them."""
        ...

    @property
    def is_relation(self) -> bool:
        """Whether it only ties others together, so that deleting one is a removal and not a deletion."""
        ...

    def identify(
        self, planning: PlanContext, declared: Sequence[DesiredResource], absent: Sequence[DeleteEntry]
    ) -> MatchResult:
        """Which declaration speaks of which live thing. Tells the book every name as it will be."""
        ...

    def compare(self, planning: PlanContext, match: Match) -> BeforeAfter | None:
        """Both sides of a declared resource; None when a problem was found that leaves nothing to compare."""
        ...

    def state_before_delete(self, planning: PlanContext, gone: Deletion) -> BeforeAfter:
        """What a resource that goes holds; `after` is None."""
        ...

    def finalize(self, planning: PlanContext, identified: MatchResult) -> None:
        """Called once when all kinds are compared: notes for other kinds what leans on what."""
        ...

    def action(self, planning: PlanContext, match: Match) -> Action:
        """What a difference between the sides of a live resource is: an update, or a replacement."""
        ...

    def steps(self, planning: PlanContext, match: Match, sides: BeforeAfter) -> list[Step]:
        """The calls that lead from `before` to `after`."""
        ...

    def plan_delete(self, planning: PlanContext, gone: Deletion) -> list[Step]:
        """The calls that delete it."""
        ...

    def dependencies(self, declared: DesiredResource) -> list[Address]:
        """What else must be there for it."""
        ...

    def lost_on(self, planning: PlanContext, subject: Match | Deletion | Effect, sides: BeforeAfter) -> Undo:
        """How much of the change a later plan can take back. Asked when every kind has concluded."""
        ...

    def ids_from_response(self, at: Address, operation: str, answer: Json) -> dict[Ref, str]:
        """The ids that the answer to a call teaches."""
        ...

    def live_form(self, planning: PlanContext, row: HasName) -> Form:
        """What a live resource holds, as far as it was read."""
        ...

    def similarity(self, planning: PlanContext, form: Form) -> Similarity | None:
        """By what a resource may be another one under a new name; None where a name cannot change unseen."""
        ...
