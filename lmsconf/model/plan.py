"""The values of a plan: changes, the counts and results of guards, and the plan itself.

FieldChange, Change     the difference between a declared and a live resource, for reviewers
GuardCount, GuardResult what the guards count, and whether a limit is exceeded
PlanScope               the part of the manifests that a plan covers
Rehearsal               what the plan's own calls did on a twin of the workspace in memory. A twin is not the service:
                        what it shows holds as far as the service behaves as the dialect assumes
Plan                    changes, calls, and everything else that a reviewer needs
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call, CallResult
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import EFFECTS_OFF, Basis, Effects
from lmsconf.model.forms import FromManifests


class RenameCandidate(Struct, frozen=True, kw_only=True):
    """A live resource that a creation may be under a new name.

    why: what they have in common. line: the manifest line that makes it a rename: `previously:` with its name, or `id:`
    where another live resource has the same name. is_earlier_name: whether it is `previously:`.
    """

    address: Address
    id: RemoteId
    why: str
    line: str
    is_earlier_name: bool


class PossibleRename(Struct, frozen=True, kw_only=True):
    """A creation that may be a rename of a live resource.

    alike: live resources with the same content. close: those with similar content or name, which does not prove it.
    Resources declared under `absent` are in neither.
    """

    address: Address
    alike: tuple[RenameCandidate, ...] = ()
    close: tuple[RenameCandidate, ...] = ()


class Action(StrEnum):
    """What a plan does with a resource."""

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"


class ChangeOrigin(StrEnum):
    """The cause of a change, in a plan compared with the base manifests that it is to replace."""

    THIS_CHANGE = "from this change"
    PENDING = "already pending"
    REPAIR = "repairs an edit by hand"


class UndoLevel(StrEnum):
    """How far a later plan can undo a change."""

    FULL = "full"
    PARTIAL = "partial"
    NONE = "none"


class Undo(Struct, frozen=True, kw_only=True):
    """How far a change can be undone. reason: what cannot be undone; None if everything can."""

    level: UndoLevel = UndoLevel.FULL
    reason: str | None = None


FULL_UNDO = Undo()


class FieldChange(Struct, frozen=True, kw_only=True):
    """One key that changes. A single value has before and after; an unordered list has added and removed.

    All values are JSON in manifest form: an e-mail address for a person, a name for everything else.
    """

    path: str
    before: Json = None
    after: Json = None
    added: tuple[Json, ...] = ()
    removed: tuple[Json, ...] = ()


class Change(Struct, frozen=True, kw_only=True):
    """What a plan does with one resource. `before` is None for a creation, `after` for a deletion.

    defaults: the keys of a creation that no manifest declares, so that the service decides them.
    reason: why it changes without an entry of its own: it is owned and not declared, or changes with `goes_with`.
    goes_with: the resource whose change causes this one.
    replaced_by: what takes its place: its calls are sent only once that is seen to exist.
    origin: its cause, in a plan compared with a base.
    undo: how far it can be undone.
    """

    address: Address
    action: Action
    id: RemoteId | None
    about: Mapping[str, Json] | None
    source: SourceLocation | None
    before: Json
    after: Json
    fields: tuple[FieldChange, ...]
    defaults: tuple[str, ...] = ()
    reason: str | None = None
    goes_with: Address | None = None
    replaced_by: tuple[Address, ...] = ()
    origin: ChangeOrigin | None = None
    undo: Undo = FULL_UNDO
    problems: tuple[Problem, ...] = ()

    @property
    def is_side_effect(self) -> bool:
        """Whether the service makes this update itself as a result of another change, so that it has no call."""
        return self.action is Action.UPDATE and self.goes_with is not None


class GuardResult(Struct, frozen=True, kw_only=True):
    """One guard evaluated for a plan. allow: the exact consent that lifts it, `removals=356`; None if within limits.

    total: None if not known, which exceeds any count limit. allowed_by: the reason of the consent given, or the place
    of one without a reason, or `--allow`.
    """

    name: str
    limit: Mapping[str, Json]
    total: int | None
    tripped: bool
    allow: str | None
    reason: str | None = None
    allowed_by: str | None = None


class GuardCount(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One count of a guard: `taken` of the `size` live items in `of`. taken: None if not known.

    counts: whether it adds to the total; else only its share is judged, because the same people count in several.
    """

    guard: str
    of: str
    taken: int | None
    size: int
    counts: bool = True


def total_taken(guard: str, measures: Iterable[GuardCount]) -> int | None:
    """Return the sum of what a guard counted; None if a part is unknown."""
    taken = [measure.taken for measure in measures if measure.guard == guard and measure.counts]
    return None if None in taken else sum(filter(None, taken))


class SettingChange(Struct, frozen=True, kw_only=True):
    """A setting that differs from the base's. weaker: it stops, keeps or asks for less than the base's."""

    path: str
    base: Json
    now: Json
    weaker: bool


class UnmanagedResources(Struct, frozen=True, kw_only=True):
    """The undeclared live resources of one kind. left_alone: how many more match `leave_alone`; they are not listed."""

    kind: str
    addresses: tuple[Address, ...]
    left_alone: int = 0


class NoLongerDeclared(Struct, frozen=True, kw_only=True):
    """A live resource that the base declared and the manifests no longer mention, so that it is kept.

    absent: the manifest line that would delete it.
    """

    address: Address
    absent: str


class UndoneRun(Struct, frozen=True, kw_only=True):
    """The run that a plan undoes: its name, and the digest of the plan that it applied."""

    run: str
    digest: str


class Assumption(Struct, frozen=True, kw_only=True):
    """A point that the API specification leaves open, by its dialect key, and how many calls of a plan rest on it.

    known: whether the project file states its value; any other value is assumed.
    """

    key: str
    value: str
    known: bool
    calls: int


class PlanSummary(Struct, frozen=True, kw_only=True):
    """The number of resources to create, update, replace and delete, and of calls."""

    create: int
    update: int
    replace: int
    delete: int
    calls: int


class RehearsalOutcome(StrEnum):
    """SUCCESS: every call was done, and the second plan is empty. REFUSED: the twin refused a call, or answered none.

    NOT_CONVERGED: every call was done, and the second plan still has changes or errors.
    """

    SUCCESS = "success"
    REFUSED = "refused"
    NOT_CONVERGED = "not_converged"


class RehearsalReceipt(Struct, frozen=True, kw_only=True):
    """Proof, inside a plan file, of what was rehearsed. at: when, in UTC.

    plan_digest: of the plan whose calls were sent. snapshot_digest: of the snapshot file that the twin was made of.
    """

    plan_digest: str
    snapshot_digest: str
    outcome: RehearsalOutcome
    at: str
    tool: str


class RehearsedAssumption(Struct, frozen=True, kw_only=True):
    """A dialect key that the plan's calls rely on, its value, and whether the project file declares it."""

    key: str
    value: str
    operations: tuple[str, ...]
    declared: bool


class RehearsedGroup(Struct, frozen=True, kw_only=True):
    """The active members of a group: predicted by the effects of the plan, and reached on the twin; None: not known."""

    address: Address
    before: int | None
    predicted: int | None
    reached: int | None
    basis: Basis


class RehearsalPace(Struct, frozen=True, kw_only=True):
    """How long an apply would take. requests: of the rehearsed apply, with its checks and reading back.

    rate: requests a second, None if not known. is_limit: it is `--max-rate`, and not a limit that the service showed.
    """

    requests: int
    rate: int | float | None = None
    is_limit: bool = False

    @property
    def seconds(self) -> float | None:
        """The time of the requests at this rate; None if the rate is not known."""
        return None if self.rate is None else self.requests / self.rate


class Rehearsal(Struct, frozen=True, kw_only=True):
    """A rehearsed plan.

    taken_at: when the workspace was read. calls: how many the plan has; done: how many were done on the twin.
    failed: the others. remaining: the changes of the second plan. problems: errors of the second plan, and where the
    twin is not as predicted.
    """

    receipt: RehearsalReceipt
    taken_at: str
    calls: int
    done: int
    failed: tuple[CallResult, ...]
    remaining: tuple[Change, ...]
    problems: tuple[Problem, ...]
    assumptions: tuple[RehearsedAssumption, ...]
    memberships: tuple[RehearsedGroup, ...]
    pace: RehearsalPace


class PlanScope(Struct, frozen=True, kw_only=True, rename={"excluded": "except"}):
    """The part of the manifests that a plan covers: patterns of `--only` and `--except`, and `--additive`."""

    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    additive: bool = False


class Plan(FromManifests, frozen=True, kw_only=True, dict=True):
    """Everything that apply would do.

    Equal inputs give equal plans, byte for byte, but for `created_at`, `expires_at` and the seal of the file.
    fingerprints: address → sha256 of the live form of each resource that the plan touches, as it was read.
    offline: made from a snapshot file, so it can be shown but not applied.
    selection: the part of the manifests that it covers.
    left_out: the resources with changes that `--additive` leaves out. measures: what the guards count.
    expires_at: until when it can be applied. policy: the settings that decided it, normalised, as JSON.
    no_longer_declared: resources that only the base declares.
    settings_changed: the differences between the project file and the base's.
    command: the command line that applies it; shown, not saved. renames: creations that may be renames; only their
    problems are saved.
    masked_digest: the digest of the original, in a copy with people masked, which cannot be applied; else None.
    effects: what it does to people. rehearsal: what its calls did on a twin of the workspace; None if it was not tried.
    undo_of: the run that it undoes; None for a plan of manifests.
    assumptions: what its calls rest on, by key. assumed_calls: how many calls rest on any of those that are not known.
    """

    offline: bool
    changes: tuple[Change, ...]
    calls: tuple[Call, ...]
    guards: tuple[GuardResult, ...]
    unmanaged: tuple[UnmanagedResources, ...]
    fingerprints: Mapping[str, str]
    expires_at: str
    policy: Mapping[str, Json]
    selection: PlanScope = PlanScope()
    left_out: tuple[Address, ...] = ()
    measures: tuple[GuardCount, ...] = ()
    no_longer_declared: tuple[NoLongerDeclared, ...] = field(default=(), name="let_go")
    settings_changed: tuple[SettingChange, ...] = ()
    command: str = "lmsconf apply"
    renames: tuple[PossibleRename, ...] = ()
    masked_digest: str | None = None
    effects: Effects = EFFECTS_OFF
    rehearsal: Rehearsal | None = None
    undo_of: UndoneRun | None = None
    assumptions: tuple[Assumption, ...] = ()
    assumed_calls: int = 0

    @property
    def partial(self) -> bool:
        """Whether it covers a selection of the resources only."""
        return bool(self.selection.only or self.selection.excluded)

    @property
    def summary(self) -> PlanSummary:
        counts = Counter(change.action for change in self.changes)
        return PlanSummary(
            create=counts[Action.CREATE],
            update=counts[Action.UPDATE],
            replace=counts[Action.REPLACE],
            delete=counts[Action.DELETE],
            calls=len(self.calls),
        )

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """The problems of the plan and of its changes."""
        return (*self.problems, *(problem for change in self.changes for problem in change.problems))
