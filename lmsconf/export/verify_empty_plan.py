"""Verify by planning that exported entries change nothing.

The entries are planned on the snapshot that they come from. Whatever would change something, or cannot be planned, is
left out until the plan is empty. So an export declares only what the workspace has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Any, Final, NamedTuple, cast

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.export.rows import Saying, Unsaid
from lmsconf.kinds.shared.names import CONTENT_TARGET
from lmsconf.manifest.edit.yaml_text import is_sayable
from lmsconf.manifest.validation import cross
from lmsconf.manifest.validation.check import Shape
from lmsconf.model.values import Action, Change, DesiredResource, Json, Plan
from lmsconf.planner.kind import AnyKind, ManifestEntry
from lmsconf.planner.plan import OWNED, Manifests

_OURS: Final = "\0export"
_IDENTITY: Final = frozenset({"name", "email", "id", "content", "assign_to", "only_in"})
"""Keys that an entry cannot do without."""
_WHOLE: Final = ""
"""Key of a fault that concerns a whole entry."""


_UNSPEAKABLE: Final = "it holds characters that have no place in a manifest"


class RejectedRow(NamedTuple):
    """One key of an entry that must be left out, and why. number: the index of the entry."""

    number: int
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class _Spot:
    """SourceMap of an exported entry: locations have its index as line, and the key in the file name."""

    number: int

    def at(self, *path: str | int) -> SourceLocation:
        return SourceLocation(f"{_OURS}{path[0] if path else _WHOLE}", self.number)

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self.at(*path)


@dataclass(slots=True)
class Trial:
    """Entries to verify, together with the existing manifests.

    plan: plans manifests on the snapshot of the export. unsaid: the rows that were left out.
    """

    kinds: Mapping[str, AnyKind]
    existing: Manifests
    timezone: tzinfo | None
    plan: Callable[[Manifests], Plan]
    unsaid: list[Unsaid] = field(default_factory=list)
    _shapes: dict[str, Shape] = field(default_factory=dict)

    def passed(self, sayings: Iterable[Saying]) -> tuple[list[Saying], Plan]:
        """Return the entries that change nothing, and their plan; the others are added to `unsaid`."""
        left = list(sayings)
        while True:
            faults = list(self._unspeakable(left))
            if not faults:
                declared, faults = self._parsed(left)
            if not faults:
                made, faults = self._planned(left, declared)
                if not faults:
                    return left, cast(Plan, made)
            left = self._without(left, faults)

    def _unspeakable(self, sayings: Sequence[Saying]) -> Iterator[RejectedRow]:
        """Yield the keys whose value no manifest can contain, because of its characters or its schema."""
        for number, one in enumerate(sayings):
            unspeakable = [key for key, value in one.body.items() if not is_sayable(value)]
            yield from (RejectedRow(number, key, _UNSPEAKABLE) for key in unspeakable)
            if not unspeakable:
                for finding in self._shape(one.address.kind).findings(cast(Json, one.body)):
                    yield RejectedRow(number, str(finding.path[0]) if finding.path else _WHOLE, "it has another shape")

    def _shape(self, kind: str) -> Shape:
        return self._shapes.setdefault(kind, Shape(self.kinds[kind].schema))

    def _parsed(self, sayings: Sequence[Saying]) -> tuple[list[DesiredResource[Any]], list[RejectedRow]]:
        declared: list[DesiredResource[Any]] = []
        problems: list[Problem] = []
        for number, one in enumerate(sayings):
            entry = ManifestEntry(body=one.body, places=_Spot(number), timezone=self.timezone, report=problems.append)
            declared.extend(self.kinds[one.address.kind].parse(entry))
        every = [*self.existing.declared, *declared]
        problems.extend(cross.problems(every, self.existing.absent, self.kinds))
        return declared, list(_blamed(problems, sayings))

    def _planned(
        self, sayings: Sequence[Saying], declared: Sequence[DesiredResource[Any]]
    ) -> tuple[Plan | None, list[RejectedRow]]:
        """Return the plan, and what it would change. Raises ProblemsFound for errors that the entries do not cause."""
        manifests = replace(self.existing, declared=(*self.existing.declared, *declared))
        try:
            made = self.plan(manifests)
        except ProblemsFound as found:
            faults = list(_blamed(found.problems, sayings))
            if not faults:
                raise
            return None, faults
        return made, [*_changed(made), *_owned(made, sayings)]

    def _without(self, sayings: Sequence[Saying], faults: Iterable[RejectedRow]) -> list[Saying]:
        """Return the entries without their faulty keys; an entry with nothing left is moved to `unsaid`."""
        by_number: defaultdict[int, dict[str, str]] = defaultdict(dict)
        for fault in faults:
            by_number[fault.number].setdefault(fault.key, fault.why)
        left = []
        for number, one in enumerate(sayings):
            keys = by_number.get(number, {})
            if keys.keys() & (_IDENTITY | {_WHOLE}) or keys.keys() - one.body.keys() or _is_one_value(one, keys):
                self.unsaid.append(Unsaid(address=one.address, id=one.id, why=next(iter(keys.values()))))
            elif keys:
                body = {key: value for key, value in one.body.items() if key not in keys}
                notes = (*one.notes, *(f"{key} left out: {why}" for key, why in keys.items()))
                left.append(replace(one, body=body, notes=notes))
            else:
                left.append(one)
        return left


def _is_one_value(one: Saying, keys: Mapping[str, str]) -> bool:
    """Whether an entry can only be left out as a whole, as an assignment."""
    return bool(keys) and one.address.kind == CONTENT_TARGET


def _blamed(problems: Iterable[Problem], sayings: Sequence[Saying]) -> Iterator[RejectedRow]:
    """Yield the errors that concern the entries, each with the key."""
    numbers = {str(one.address): number for number, one in enumerate(sayings)}
    for problem in problems:
        if not problem.is_error:
            continue
        where, address = problem.source, problem.address or ""
        why = problem.message.removeprefix(f"{address}: ")
        if where is not None and where.file.startswith(_OURS):
            yield RejectedRow(where.line, where.file.removeprefix(_OURS), why)
        elif address in numbers:
            yield RejectedRow(numbers[address], _WHOLE, why)


def _changed(plan: Plan) -> Iterator[RejectedRow]:
    """Yield the keys that the plan would change, though the entries declare the live state."""
    for change in plan.changes:
        where = change.source
        if where is not None and where.file.startswith(_OURS):
            keys = {field.path.partition(".")[0] for field in change.fields} or {_WHOLE}
            yield from (RejectedRow(where.line, key, "a manifest would change it") for key in sorted(keys))


def _owned(plan: Plan, sayings: Sequence[Saying]) -> Iterator[RejectedRow]:
    """Yield the entries whose content has another live assignment that cannot be declared.

    Where the project owns the assignments of declared content, declaring one would make the plan delete the other.
    """
    going = [change.id for change in plan.changes if change.address.kind == CONTENT_TARGET and is_owned_loss(change)]
    for number, one in enumerate(sayings):
        content = one.id.partition("/")[0] if one.address.kind == CONTENT_TARGET else None
        if content is not None and any(id is not None and id.partition("/")[0] == content for id in going):
            yield RejectedRow(
                number, _WHOLE, "of the same content, an assignment that cannot be declared would be deleted"
            )


def is_owned_loss(change: Change) -> bool:
    """Whether a resource is deleted only because the project owns it and no manifest declares it."""
    return change.action is Action.DELETE and change.reason == OWNED
