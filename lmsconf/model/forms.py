"""Manifest forms: a resource as its manifest would declare it, in types that compare fast. Also keys explained, and
what is about one workspace.

A form maps a manifest key to a string, a boolean, None, a frozenset (an unordered list), or a value whose `to_json`
returns it as it is written in a manifest. Sets are sorted only when a form is printed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar, cast

from msgspec import Struct

from lmsconf.errors import Problem
from lmsconf.model.canonical_json import Json

Form: TypeAlias = "dict[str, object]"
Value = TypeVar("Value")


def form_to_json(value: object) -> Json:
    """Return a form, or a part of one, as JSON; sets become sorted lists. Raises TypeError for other types."""
    own = getattr(value, "to_json", None)
    if own is not None:
        return cast(Json, own())
    match value:
        case None | str() | bool() | int() | float():
            return value
        case frozenset():
            return sort_items(form_to_json(item) for item in value)
        case list() | tuple():
            return [form_to_json(item) for item in value]
        case Mapping():
            return {str(key): form_to_json(item) for key, item in value.items()}
    raise TypeError(f"{type(value).__name__} is not allowed in a manifest form")


def without_empty(values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the keys that have a value; None, False, and empty texts and lists are none."""
    return {key: value for key, value in values.items() if value}


def texts_in(value: object, *, keys: bool = True) -> Iterator[str]:
    """Yield every text in a value, in the fields of structs too, and in the keys of mappings unless `keys` is False."""
    parts: Iterable[object] = ()
    match value:
        case str():
            yield value
        case list() | tuple() | frozenset():
            parts = value
        case Mapping():
            parts = (*(value if keys else ()), *value.values())
        case Struct():
            parts = (getattr(value, name) for name in value.__struct_fields__)
    for part in parts:
        yield from texts_in(part, keys=keys)


def sort_items(items: object) -> list[Json]:
    """Sort the items of an unordered list: strings as they are, other values by their JSON."""
    return sorted(items, key=item_order)  # type: ignore[call-overload,no-any-return]  # items is an iterable of Json


def item_order(item: Json) -> str:
    """Return the key by which items of an unordered list are sorted."""
    return item if isinstance(item, str) else json.dumps(item, sort_keys=True, ensure_ascii=False)


class KeyedNames(Struct, frozen=True):
    """Names with an identity of their own: key → name, in display order."""

    names: Mapping[str, str]

    def to_json(self) -> Json:
        return list(self.names.values())


class ExplainedKey(Struct, frozen=True, kw_only=True):
    """One key below the explained one."""

    name: str
    type: str
    meaning: str
    needed: bool


class KeyExplanation(Struct, frozen=True, kw_only=True):
    """One position in a manifest: its path, type and meaning, and the keys below it."""

    path: str
    type: str
    meaning: str
    keys: tuple[ExplainedKey, ...]


class InWorkspaces(Struct, frozen=True, kw_only=True):
    """What a manifest says of some workspaces. only_in: which; None: all."""

    only_in: frozenset[str] | None = None

    def applies_in(self, workspace: str) -> bool:
        """Whether it applies in a workspace."""
        return self.only_in is None or workspace in self.only_in


class OfWorkspace(Struct, frozen=True, kw_only=True):
    """What is about one workspace. people: how many it reports; None if it did not."""

    workspace: str
    url: str
    people: int | None


class FromManifests(OfWorkspace, frozen=True, kw_only=True):
    """What was made from the manifests of a project, and when. timezone: the project's; None if it has none.

    base: the manifests that it was compared with, if any.
    """

    created_at: str
    manifests_digest: str
    manifests_files: tuple[str, ...]
    timezone: str | None
    problems: tuple[Problem, ...]
    base: str | None = None
