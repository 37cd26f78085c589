"""References in manifest entries ⇄ ids, as the workspace was, as the run made it, and as it is now.

Entries of three times meet in an undo. Between any two of them a resource may have been renamed, and its old name given
to another. Therefore all are compared with ids in the place of names, and names are written again for what will be
there after the undo.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from lmsconf.kinds.custom_field.types import parts_of
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Change
from lmsconf.planner.context import PlanContext
from lmsconf.planner.kind import Kind, row_type_of
from lmsconf.planner.manifest_entries import ANY, KEYS, PartReferences
from lmsconf.planner.undo.run import RunToUndo

_MARK: Final = "\x00"
"""Before an id that stands for a name: no name of a manifest contains it."""
_DELETED: Final = "\x01"
Rename: TypeAlias = Callable[[str, str], str]
"""(kind, name) → the new name."""
RenamePart: TypeAlias = Callable[[str, str, str], str]
"""(kind, name of the resource, name of its part) → the new name of the part."""


def marked(id: str) -> str:
    """Return the text that stands for a resource, or a part, in the place of its name."""
    return _MARK + id


def deleted_id(id: str) -> str:
    """Return what stands for the id of a resource that the run deleted: the service may give the id to another."""
    return id + _DELETED


def plain_id(id: str) -> str:
    """Return the id itself, also of a deleted resource."""
    return id.removesuffix(_DELETED)


def marked_id(text: str) -> str | None:
    """Return the id in a marked text; None for a name."""
    return text[1:] if text.startswith(_MARK) else None


def map_references(kind: Kind, body: Mapping[str, Json], rename: Rename, rename_part: RenamePart) -> dict[str, Json]:
    """Return an entry with every reference in it replaced: parts first, since they are found by their resource."""
    value: Json = dict(body)
    for owner_kind, shapes in kind.part_references.items():
        for shape in shapes:
            if shape.at[:1] == (kind.section,):
                value = _map(value, shape.at[2:], partial(_with_parts, shape, partial(rename_part, owner_kind)))
    for other, trails in kind.references.items():
        for trail in trails:
            if trail[:1] == (kind.section,):
                value = _map(value, trail[2:], partial(_renamed, partial(rename, other)))
    return value if isinstance(value, dict) else {}


def _map(value: Json, trail: Sequence[str], change: Callable[[Json], Json]) -> Json:
    """Return a value in which what stands at the end of a trail is changed."""
    if not trail:
        return change(value)
    step, rest = trail[0], trail[1:]
    if step == KEYS:
        return {str(change(key)): item for key, item in value.items()} if isinstance(value, dict) else value
    if step == ANY:
        if isinstance(value, list):
            return [_map(item, rest, change) for item in value]
        return {key: _map(item, rest, change) for key, item in value.items()} if isinstance(value, dict) else value
    return {**value, step: _map(value[step], rest, change)} if isinstance(value, dict) and step in value else value


def _renamed(rename: Callable[[str], str], value: Json) -> Json:
    return rename(value) if isinstance(value, str) else value


def _with_parts(shape: PartReferences, rename: Callable[[str, str], str], value: Json) -> Json:
    """Return a mapping that refers to a resource, or whose keys do, with the parts replaced."""
    if not isinstance(value, dict):
        return value
    if shape.owner is None:
        return {key: _parts_of(item, shape.parts, partial(rename, key)) for key, item in value.items()}
    return _parts_of(value, shape.parts, partial(rename, str(value.get(shape.owner))))


def _parts_of(value: Json, parts: Sequence[Sequence[str]], rename: Callable[[str], str]) -> Json:
    for trail in parts:
        value = _map(value, trail, partial(_renamed, rename))
    return value


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
            yield from ((kind, row) for row in planning.snapshot.rows(row_type_of(kind)))


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
