"""The values that flow from manifests to calls. All are frozen; None means "not said", empty means empty.

Declared, Absent       what a manifest says of one resource
FieldChange, Change    how that differs from the workspace, for people
Step                   one API call as data, with names where ids will go
Call                   a Step with its place in the order
Plan                   changes + calls + all that a reviewer must know
Outcome                what became of one Call
ApplyReport            the outcomes, and whether the workspace now is as planned
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import Protocol, TypeAlias

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.candidates import PossibleRename
from lmsconf.model.scope import EVERYTHING, Selected, Verified

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class SourceMap(Protocol):
    """Where the parts of a manifest entry stand."""

    def at(self, *path: str | int) -> SourceLocation:
        """The place of the value at `path` below the entry, or the nearest one above it that has a place."""

    def find(self, text: str, *path: str | int) -> SourceLocation:
        """The place of the list item that reads `text` at or below `path`; of `path` itself if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """What a manifest says of one resource.

    `spec` is the kind's own frozen value. `pins` maps a workspace name to an id; the key "" holds for every workspace.
    """

    address: Address
    spec: object
    places: SourceMap
    pins: Mapping[str, str] = field(default_factory=dict)
    only_in: frozenset[str] | None = None

    @property
    def source(self) -> SourceLocation:
        return self.places.at()

    def applies_in(self, workspace: str) -> bool:
        """Whether it speaks of that workspace at all."""
        return self.only_in is None or workspace in self.only_in

    def pin(self, workspace: str) -> RemoteId | None:
        """The id that the resource is pinned to in that workspace."""
        return pin_in(self.pins, workspace)


def pin_in(pins: Mapping[str, str], workspace: str) -> RemoteId | None:
    """The id for a workspace: its own, or the one that holds for all."""
    found = pins.get(workspace, pins.get(""))
    return None if found is None else RemoteId(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredResource(_Entry):
    """One resource as a manifest declares it."""

    previously: tuple[str, ...] = ()
    about: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteEntry(_Entry):
    """One resource that a manifest wants gone. until: the last day on which the entry may be needed."""

    until: date | None = None


class Action(StrEnum):
    """What happens to a resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


class Origin(StrEnum):
    """Where a change comes from, when manifests are compared with those that they are to replace."""

    THIS_CHANGE = "from this change"
    PENDING = "already pending"
    REPAIR = "repairs an edit by hand"


class UndoLevel(StrEnum):
    """How much of a change a later plan can take back."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Undo:
    """How much of a change can be taken back, and what cannot; `reason` is None where all of it can."""

    level: UndoLevel = UndoLevel.FULL
    reason: str | None = None


FULL_UNDO = Undo()


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One key that changes. A single value has before and after; a list without order has what is added and removed.

    All values are JSON in manifest form: an address of e-mail for a person, a name for everything else.
    """

    path: str
    before: Json = None
    after: Json = None
    added: tuple[Json, ...] = ()
    removed: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happens to one resource. `before` is None for a creation, `after` for a deletion.

    defaults: the keys of a creation that no manifest speaks of, and that the service decides.
    reason: why it changes where no manifest says so by itself: it is owned, or goes with something else, `goes_with`.
    origin: where it comes from, in a plan that was compared with a base.
    undo: how much of it can be taken back.
    """

    address: Address
    action: Action
    id: RemoteId | None
    about: Mapping[str, Json] | None
    source: SourceLocation | None
    before: Json
    after: Json
    fields: tuple[FieldChange, ...]
    problems: tuple[Problem, ...] = ()
    defaults: tuple[str, ...] = ()
    reason: str | None = None
    goes_with: Address | None = None
    origin: Origin | None = None
    undo: Undo = FULL_UNDO

    @property
    def is_effect(self) -> bool:
        """Whether the service itself makes it because of another change, so that no call is about it."""
        return self.action is Action.UPDATE and self.goes_with is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call as data. Values of `path` and leaves of `body` may be Refs, where an id is not known yet.

    makes   what exists, or is free, once this call is done        → before everything that uses it
    uses    what must exist, or be free, before this call
    frees   what this call stops leaning on                        → before everything that ends it
    ends    what is gone once this call is done
    avoids  what should not be leaned on any more when this call is made. Where calls would wait for each other because
            of that alone, it is made anyway, and may be refused
    revokes what people had is taken away: among equals, such calls come last
    people  the e-mails of those whom the call puts into a list or takes out of one
    """

    operation: str
    path: Mapping[str, str | Ref] = field(default_factory=dict)
    query: Mapping[str, Json] = field(default_factory=dict)
    body: object = None
    makes: frozenset[Ref] = frozenset()
    uses: frozenset[Ref] = frozenset()
    releases: frozenset[Ref] = frozenset()
    ends: frozenset[Ref] = frozenset()
    avoids: frozenset[Ref] = frozenset()
    may_be_refused: bool = False
    revokes: bool = False
    people: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A Step in its place. `path` is filled in; `{group/New name}` in it, or a Ref in the body, is an id to come.

    Calls stand in the plan in an order in which they can be sent; `needs` names those that must be done before, and
    `people` by e-mail whom it puts into a list or takes out of one.
    """

    id: str
    address: Address
    operation: str
    method: str
    path: str
    query: Mapping[str, Json]
    body: object
    needs: tuple[str, ...] = ()
    may_be_refused: bool = False
    people: tuple[str, ...] = ()

    @property
    def creates(self) -> bool:
        """Whether it makes something new, which doing it twice would double."""
        return is_creation(self.operation)


def is_creation(operation: str) -> bool:
    """Whether an operation makes something new: `manual-groups.create`."""
    return operation.endswith(".create")


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One limit and how the plan stands to it. `allow` is the exact consent that would lift it: `removals=356`.

    total: None where it is not known, which stops the plan too.
    """

    name: str
    limit: Mapping[str, Json]
    total: int | None
    tripped: bool
    allow: str | None
    reason: str | None = None
    allowed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What one guard counts at one place: `taken` of the `size` that are live in `of`. taken: None if not known."""

    guard: str
    of: str
    taken: int | None
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingChange:
    """A setting that differs from the base's. weaker: less is stopped, kept or asked for than under the base."""

    path: str
    base: Json
    now: Json
    weaker: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmanaged:
    """What is live in one kind and no manifest speaks of; `left_alone` more are only counted."""

    kind: str
    addresses: tuple[Address, ...]
    left_alone: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Abandoned:
    """A live resource that the base declared and no manifest speaks of any more, so that it stays.

    absent: the line that would delete it.
    """

    address: Address
    absent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How many resources are created, updated, replaced and deleted, with how many calls."""

    create: int
    update: int
    replace: int
    delete: int
    calls: int

    @property
    def changes(self) -> int:
        return self.create + self.update + self.replace + self.delete


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What apply would do, whole. Equal inputs give equal plans, byte for byte (`created_at` and `seal` aside).

    people: how many the workspace has, None when it did not say.
    fingerprints: address → sha256 of the live form of each resource that the plan touches, as it was read.
    offline: made from a snapshot file, so it can be shown and not applied.
    selection: the part of the manifests that it is made of.
    left_out: what `--additive` would have changed otherwise. measures: what the guards count.
    expires_at: until when it can be applied. policy: the settings that decided it, normalised, as JSON.
    base: with which manifests it was compared, None where with none. let_go: what those declared and these do not.
    settings_changed: in what the project file differs from the base's.
    command: the words that would apply it, for whoever reads it here; no part of what is saved. renames: what may be
    renamed instead of created; its problems are saved.
    masked_digest: the digest of the plan that is shown here without people, which cannot be applied; else None.
    """

    workspace: str
    url: str
    people: int | None
    created_at: str
    manifests_digest: str
    manifests_files: tuple[str, ...]
    offline: bool
    timezone: str | None
    changes: tuple[Change, ...]
    calls: tuple[Call, ...]
    guards: tuple[Guard, ...]
    unmanaged: tuple[Unmanaged, ...]
    fingerprints: Mapping[str, str]
    problems: tuple[Problem, ...]
    expires_at: str
    policy: Mapping[str, Json]
    selection: Selected = EVERYTHING
    left_out: tuple[Address, ...] = ()
    measures: tuple[Measure, ...] = ()
    base: str | None = None
    let_go: tuple[Abandoned, ...] = ()
    settings_changed: tuple[SettingChange, ...] = ()
    command: str = "lmsconf apply"
    renames: tuple[PossibleRename, ...] = field(default=(), compare=False)
    masked_digest: str | None = None

    @property
    def partial(self) -> bool:
        """Whether it looks at some of the resources only."""
        return self.selection.partial

    @property
    def summary(self) -> Summary:
        counts = dict.fromkeys(Action, 0)
        for change in self.changes:
            counts[change.action] += 1
        return Summary(
            create=counts[Action.CREATE],
            update=counts[Action.UPDATE],
            replace=counts[Action.REPLACE],
            delete=counts[Action.DELETE],
            calls=len(self.calls),
        )

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """The plan's own problems and those of its changes."""
        return (*self.problems, *(problem for change in self.changes for problem in change.problems))


class Status(StrEnum):
    """What became of a call. `blocked`: something it needs failed. `not_attempted`: the run stopped before it."""

    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"
    NOT_ATTEMPTED = "not_attempted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one call, with the reason when it was not done.

    id: what the service called the new resource. people: as in the call. unsure: it failed in so far as nobody can tell
    whether it was done.
    """

    call: str
    address: Address
    operation: str
    status: Status
    reason: str | None = None
    hint: str | None = None
    id: str | None = None
    people: tuple[str, ...] = ()
    unsure: bool = False

    @property
    def creates(self) -> bool:
        """Whether the call makes something new, which doing it twice would double."""
        return is_creation(self.operation)


def is_unseen(change: Change, outcomes: Iterable[Outcome]) -> bool:
    """Whether what a fresh plan still wants was accepted already: by all calls about it, or by the one that makes it.

    What was made and does not show would be there twice if it were made again, whatever failed beside it.
    """
    mine = [outcome for outcome in outcomes if outcome.address == change.address]
    if all(outcome.status is Status.DONE for outcome in mine):
        return True
    return change.action is Action.CREATE and any(one.creates and one.status is Status.DONE for one in mine)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyReport:
    """The end of a run: one outcome a call in the order of the plan, and what a look at the workspace has shown.

    converged: whether that is as planned; None when the run did not look. residue: what a fresh plan still wants.
    """

    plan_digest: str
    workspace: str
    url: str
    people: int | None
    started_at: str
    finished_at: str
    outcomes: tuple[Outcome, ...]
    verified: Verified
    converged: bool | None
    residue: tuple[Change, ...]
    problems: tuple[Problem, ...]
    meta: Mapping[str, str]
    exit: int

    @property
    def left(self) -> tuple[Change, ...]:
        """What a fresh plan still wants of the resources of this one."""
        return tuple(change for change in self.residue if change.address in self._touched)

    @property
    def others(self) -> tuple[Change, ...]:
        """What it wants of other resources: somebody else changed them, or this run did without meaning to."""
        return tuple(change for change in self.residue if change.address not in self._touched)

    @property
    def _touched(self) -> set[Address]:
        return {outcome.address for outcome in self.outcomes}

    @property
    def seen(self) -> bool:
        """Whether a look at the workspace has shown all that was done."""
        if self.converged is not False:
            return self.converged is True
        told = bool(self.residue) and not any(problem.is_error for problem in self.problems)
        return told and not any(is_unseen(change, self.outcomes) for change in self.left)

    def count(self, status: Status) -> int:
        return sum(outcome.status is status for outcome in self.outcomes)
