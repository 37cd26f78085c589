"""Verify by planning that exported entries change nothing.

The entries are planned on the snapshot that they come from. Whatever would change something, or cannot be planned, is
left out until the plan is empty. So an export declares only what the workspace has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import tzinfo
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation
from lmsconf.kinds.exported_entries import content_id_of_target
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.parsing import parse
from lmsconf.kinds.shared.kind import required_keys
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET
from lmsconf.kinds.shared.manifest_entry import ExportedEntry, ManifestEntry
from lmsconf.manifest.nodes import escaped_texts
from lmsconf.manifest.problems import find_conflicts
from lmsconf.manifest.whole_schema import declared_section
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource, Manifests
from lmsconf.model.names import is_representable
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.planner.planned_resources import OWNED

_OURS: Final = "\0export"
_IDENTITY: Final = frozenset({"id", "only_in"})
"""Keys that an entry that has them cannot do without, beside the required ones."""
_WHOLE: Final = ""
"""Key of a fault that concerns a whole entry."""
_CONFLICT: Final = "of the same content, an assignment that cannot be declared would be deleted"


_UNREPRESENTABLE: Final = "it contains characters that a manifest must not contain"


RejectedKey: TypeAlias = "tuple[int, str, str]"
"""One key of an entry that must be left out: the index of the entry, the key, and why."""


class _Spot(Struct, frozen=True):
    """SourceMap of an exported entry: locations have its index as line, and the key in the file name."""

    number: int

    def at(self, *path: str | int) -> SourceLocation:
        return SourceLocation(f"{_OURS}{path[0] if path else _WHOLE}", self.number)

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self.at(*path)


class EmptyPlanCheck(Struct):
    """Entries to verify, together with the existing manifests.

    plan: plans manifests on the snapshot of the export. skipped: the rows that were left out.
    """

    existing: Manifests
    timezone: tzinfo | None
    plan: Callable[[Manifests], Plan]
    skipped: list[ExportedEntry] = field(default_factory=list)

    def keep_unchanged(self, entries: Iterable[ExportedEntry]) -> tuple[list[ExportedEntry], Plan]:
        """Return the entries that change nothing, and their plan; the others are added to `skipped`."""
        left = list(entries)
        while True:
            faults = list(self._unrepresentable(left))
            if not faults:
                try:
                    declared = (*self.existing.declared, *self._parsed(left))
                    made = self.plan(replace(self.existing, declared=declared))
                    faults = [*_changed(made), *self._owned(made, left)]
                    if not faults:
                        return left, made
                except ProblemsFound as error:
                    faults = list(_blamed(error.problems, left))
                    if not faults:
                        raise
            left = self._without(left, faults)

    def _unrepresentable(self, entries: Sequence[ExportedEntry]) -> Iterator[RejectedKey]:
        """Yield the keys whose value no manifest can contain, because of its characters or its schema."""
        for number, entry in enumerate(entries):
            unrepresentable = [key for key, value in entry.body.items() if not is_representable(value)]
            yield from ((number, key, _UNREPRESENTABLE) for key in unrepresentable)
            if not unrepresentable:
                shape = declared_section(KINDS[entry.address.kind]).shape
                for finding in shape.validate(escaped_texts(cast(Json, entry.body))):
                    yield (number, str(finding.path[0]) if finding.path else _WHOLE, "it has another shape")

    def _parsed(self, entries: Sequence[ExportedEntry]) -> list[DesiredResource[Any]]:
        """Return what the entries declare. Raises ProblemsFound for errors that they cause."""
        declared: list[DesiredResource[Any]] = []
        problems: list[Problem] = []
        for number, entry in enumerate(entries):
            manifest_entry = ManifestEntry(
                body=entry.body, places=_Spot(number), timezone=self.timezone, report=problems.append
            )
            declared.extend(parse(entry.address.kind, manifest_entry))
        problems.extend(find_conflicts([*self.existing.declared, *declared], self.existing.absent))
        if any(_blamed(problems, entries)):
            raise ProblemsFound(problems)
        return declared

    def _owned(self, plan: Plan, entries: Sequence[ExportedEntry]) -> Iterator[RejectedKey]:
        """Yield the entries that, declared, make the plan delete owned live rows that cannot be declared."""
        contents = {
            content_id_of_target(change.id)
            for change in plan.changes
            if change.address.kind == CONTENT_TARGET and change.id is not None and deletes_undeclared(change)
        }
        for number, entry in enumerate(entries):
            if entry.address.kind == CONTENT_TARGET and content_id_of_target(entry.id) in contents:
                yield (number, _WHOLE, _CONFLICT)

    def _without(self, entries: Sequence[ExportedEntry], faults: Iterable[RejectedKey]) -> list[ExportedEntry]:
        """Return the entries without their faulty keys; an entry with nothing left is moved to `skipped`."""
        by_number: defaultdict[int, dict[str, str]] = defaultdict(dict)
        for number, key, why in faults:
            by_number[number].setdefault(key, why)
        left = []
        for number, entry in enumerate(entries):
            keys = by_number.get(number, {})
            kind = KINDS[entry.address.kind]
            needed = required_keys(kind) | _IDENTITY | {_WHOLE}
            is_whole = bool(keys) and kind.name == CONTENT_TARGET
            if is_whole or keys.keys() & needed or keys.keys() - entry.body.keys():
                self.skipped.append(ExportedEntry(address=entry.address, id=entry.id, reason=next(iter(keys.values()))))
            elif keys:
                body = {key: value for key, value in entry.body.items() if key not in keys}
                notes = (*entry.notes, *(f"{key} left out: {why}" for key, why in keys.items()))
                left.append(replace(entry, body=body, notes=notes))
            else:
                left.append(entry)
        return left


def _blamed(problems: Iterable[Problem], entries: Sequence[ExportedEntry]) -> Iterator[RejectedKey]:
    """Yield the errors that concern the entries, each with the key."""
    numbers = {str(entry.address): number for number, entry in enumerate(entries)}
    for problem in problems:
        if not problem.is_error:
            continue
        where, address = problem.source, problem.address or ""
        why = problem.message.removeprefix(f"{address}: ")
        if where is not None and where.file.startswith(_OURS):
            yield (where.line, where.file.removeprefix(_OURS), why)
        elif address in numbers:
            yield (numbers[address], _WHOLE, why)


def _changed(plan: Plan) -> Iterator[RejectedKey]:
    """Yield the keys that the plan would change, though the entries declare the live state."""
    for change in plan.changes:
        where = change.source
        if where is not None and where.file.startswith(_OURS):
            keys = {field.path.partition(".")[0] for field in change.fields} or {_WHOLE}
            yield from ((where.line, key, "a manifest would change it") for key in sorted(keys))


def deletes_undeclared(change: Change) -> bool:
    """Whether a resource is deleted only because the project owns it and no manifest declares it."""
    return change.action is Action.DELETE and change.reason == OWNED
