"""References in manifest entries ⇄ ids.

Entries of three times meet in an undo: as the workspace was, as the run made it, and as it is now. Between any two of
them a resource may have been renamed, and its old name given to another. Therefore all are compared with ids in the
place of names, and names are written again for what will be there after the undo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from lmsconf.model.canonical_json import Json
from lmsconf.planner.kind import Kind
from lmsconf.planner.manifest_entries import ANY, KEYS

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
                value = _map_parts(value, shape.at[2:], owner_kind, shape.owner, shape.parts, rename_part)
    for other, trails in kind.references.items():
        for trail in trails:
            if trail[:1] == (kind.section,):
                value = _map(value, trail[2:], partial(rename, other))
    return value if isinstance(value, dict) else {}


def _map(value: Json, trail: Sequence[str], replace: Callable[[str], str]) -> Json:
    """Return a value with the texts at the end of a trail replaced."""
    if not trail:
        return replace(value) if isinstance(value, str) else value
    step, rest = trail[0], trail[1:]
    if step == KEYS:
        return {replace(key): item for key, item in value.items()} if isinstance(value, dict) else value
    if step == ANY:
        if isinstance(value, list):
            return [_map(item, rest, replace) for item in value]
        return {key: _map(item, rest, replace) for key, item in value.items()} if isinstance(value, dict) else value
    return {**value, step: _map(value[step], rest, replace)} if isinstance(value, dict) and step in value else value


def _map_parts(
    value: Json,
    trail: Sequence[str],
    kind: str,
    owner: str | None,
    parts: Sequence[Sequence[str]],
    rename_part: RenamePart,
) -> Json:
    """Return a value with the parts replaced in each mapping at the end of a trail that refers to a resource."""
    if trail:
        step, rest = trail[0], trail[1:]
        if isinstance(value, list) and step == ANY:
            return [_map_parts(item, rest, kind, owner, parts, rename_part) for item in value]
        if isinstance(value, dict) and step in value:
            return {**value, step: _map_parts(value[step], rest, kind, owner, parts, rename_part)}
        return value
    if not isinstance(value, dict):
        return value
    if owner is None:
        return {key: _parts_of(item, parts, kind, key, rename_part) for key, item in value.items()}
    return _parts_of(value, parts, kind, str(value.get(owner)), rename_part)


def _parts_of(value: Json, parts: Sequence[Sequence[str]], kind: str, owner: str, rename_part: RenamePart) -> Json:
    for trail in parts:
        value = _map(value, trail, lambda part: rename_part(kind, owner, part))
    return value
