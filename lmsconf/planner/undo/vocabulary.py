"""The names of resources and parts at one time, as ids: as the workspace was, as the run made it, as it is now."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

from lmsconf.kinds.custom_field.types import parts_of
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Change
from lmsconf.planner.context import PlanContext
from lmsconf.planner.kind import Kind
from lmsconf.planner.undo.names import deleted_id, map_references, marked
from lmsconf.planner.undo.run import RunToUndo

Kinds = Mapping[str, Kind]


class Vocabulary:
    """Name → id, by kind, and the names of parts by the id of their resource.

    otherwise: where a name is looked up that this one lacks.
    """

    def __init__(self, kinds: Kinds, otherwise: Vocabulary | None = None) -> None:
        self._kinds, self._otherwise = kinds, otherwise
        self._ids: dict[tuple[str, str], str] = {}
        self._parts: dict[tuple[str, str], str] = {}

    @staticmethod
    def of_snapshot(
        kinds: Kinds, planning: PlanContext, deleted: Container[tuple[str, str]] = frozenset()
    ) -> Vocabulary:
        """Return the names of a snapshot, as plans show them. deleted: kind and id of what the run has deleted."""
        made = Vocabulary(kinds)
        for kind, row in _rows(kinds, planning):
            own = deleted_id if (kind.name, row.id) in deleted else str
            made.add(kind, shown_name(kind, planning, row), own(row.id))
            for part in parts_of(row):
                made.add_part(own(row.id), part.name, own(part.id))
        return made

    @staticmethod
    def of_run(kinds: Kinds, run: RunToUndo, before: PlanContext, live: PlanContext) -> Vocabulary:
        """Return the names that a run has left: those of before with its renames and creations."""
        made = Vocabulary(kinds, Vocabulary.of_snapshot(kinds, live))
        changes = {(change.address.kind, change.id): change for change in run.plan.changes if change.id is not None}
        for kind, row in _rows(kinds, before):
            change = changes.get((kind.name, row.id))
            if change is not None and change.action is Action.DELETE:
                continue
            made.add(kind, renamed_to(kind, change) or shown_name(kind, before, row), row.id)
            renames = dict(renamed_parts(kind, change))
            for part in parts_of(row):
                name = normalize_name(part.name)
                made.add_part(row.id, renames.get(name, name), part.id)
        for change in run.plan.changes:
            id = run.created_id(change) if change.action is Action.CREATE else None
            if id is not None:
                made.add(kinds[change.address.kind], change.address.name, id)
        return made

    def add(self, kind: Kind, name: str, id: str) -> None:
        self._ids[kind.name, kind.normalize_name(name)] = id

    def add_part(self, owner: str, name: str, id: str) -> None:
        self._parts[owner, normalize_name(name)] = id

    def mark(self, kind: Kind, body: Mapping[str, Json]) -> dict[str, Json]:
        """Return an entry with ids in the place of the names that are known."""
        return map_references(kind, body, self._marked, self._marked_part)

    def id(self, kind: str, name: str) -> str | None:
        known = self._ids.get((kind, self._kinds[kind].normalize_name(name)))
        return known or (None if self._otherwise is None else self._otherwise.id(kind, name))

    def part_id(self, owner: str, name: str) -> str | None:
        known = self._parts.get((owner, normalize_name(name)))
        return known or (None if self._otherwise is None else self._otherwise.part_id(owner, name))

    def _marked(self, kind: str, name: str) -> str:
        id = self.id(kind, name)
        return name if id is None else marked(id)

    def _marked_part(self, kind: str, owner: str, name: str) -> str:
        owner_id = self.id(kind, owner)
        id = None if owner_id is None else self.part_id(owner_id, name)
        return name if id is None else marked(id)


def _rows(kinds: Kinds, planning: PlanContext) -> Iterator[tuple[Kind, Any]]:
    for kind in kinds.values():
        if not kind.is_relation:
            yield from ((kind, row) for row in planning.snapshot.rows(kind.row_type))


def shown_name(kind: Kind, planning: PlanContext, row: Any) -> str:
    """Return the name under which plans on a snapshot show a live resource: with its id, if another has the name."""
    return planning.registry.name(kind.name, row.id) or kind.normalize_name(row.name)


def renamed_to(kind: Kind, change: Change | None) -> str | None:
    """Return the name that an update gives a resource; None if it keeps its own."""
    before, after = (change.before, change.after) if change is not None else (None, None)
    if not isinstance(before, dict) or not isinstance(after, dict):
        return None
    name = after.get(kind.name_key)
    return str(name) if name is not None and name != before.get(kind.name_key) else None


def renamed_parts(kind: Kind, change: Change | None) -> Iterator[tuple[str, str]]:
    """Yield the old and the new name of each part that an update renames."""
    for field in () if change is None else change.fields:
        if field.path.startswith(f"{kind.parts_key}.") and isinstance(field.before, str):
            yield normalize_name(field.before), normalize_name(str(field.after))
