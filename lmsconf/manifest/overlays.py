"""Overlays: manifests of a later folder that add to those of earlier folders, and change the entries that they name.

An entry of an overlay that names a resource of an earlier folder changes the keys that it has and leaves the others.
Entries that declare several resources, such as assignments, replace the declaration of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from lmsconf.kinds.assignment.parse import item_addresses
from lmsconf.manifest.nodes import KeyPath
from lmsconf.manifest.whole_schema import Section, identifying_key
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource

_ONLY_IN = "only_in"
EntryKey: TypeAlias = "tuple[KeyPath, str]"
"""The section of an entry, and the name of what it declares as names are compared."""
WrittenEntry: TypeAlias = "tuple[Section, Json, list[DesiredResource[Any]]]"
"""An entry after its expansion: its section, its body, and what it declares."""


def entry_key(section: Section, body: Json) -> EntryKey | None:
    """Return what an entry is found by; None if its declarations are compared one by one.

    Entries limited to some workspaces are alternatives of one name, so that none of them is the one to change.
    """
    if not section.is_declared or section.kind.entry_items is not None or not isinstance(body, dict):
        return None
    name = body.get(identifying_key(section.kind) or section.kind.name_key)
    return (section.path, section.kind.normalize_name(name)) if isinstance(name, str) and _ONLY_IN not in body else None


def without_replaced(declared: Sequence[DesiredResource[Any]], layers: Sequence[int]) -> list[DesiredResource[Any]]:
    """Return the declarations without those that a later folder declares again, for the same workspaces.

    layers: the index of the folder of each.
    """
    last: dict[tuple[Address, frozenset[str] | None], int] = {}
    for resource, layer in zip(declared, layers, strict=True):
        key = resource.address, resource.only_in
        last[key] = max(layer, last.get(key, 0))
    return [
        resource
        for resource, layer in zip(declared, layers, strict=True)
        if layer == last[resource.address, resource.only_in]
    ]


def without_replaced_items(
    entries: Iterable[WrittenEntry], declared: Iterable[DesiredResource[Any]]
) -> Iterator[WrittenEntry]:
    """Yield the entries without the items whose declarations a later folder replaces.

    declared: what `without_replaced` has left.
    """
    left = {id(resource) for resource in declared}
    for section, body, resources in entries:
        items, kept = section.kind.entry_items, [resource for resource in resources if id(resource) in left]
        if items is None or len(kept) == len(resources) or not isinstance(body, dict):
            yield section, body, resources
            continue
        addresses = {resource.address for resource in kept}
        subjects = body[items.subject]
        for subject in subjects if isinstance(subjects, list) else [subjects]:
            one = {**body, items.subject: subject}
            listed = [
                item
                for item in cast("list[Json]", body[items.key])
                if not addresses.isdisjoint(item_addresses(one, item))
            ]
            if listed:
                yield section, {**one, items.key: listed}, kept
