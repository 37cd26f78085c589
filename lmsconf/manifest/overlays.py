"""Overlays: manifests of a later folder that add to those of earlier folders, and change the entries that they name.

An entry of an overlay that names a resource of an earlier folder changes the keys that it has and leaves the others.
Entries that declare several resources, such as assignments, replace the declaration of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from lmsconf.kinds.assignment.parse import item_addresses
from lmsconf.kinds.shared.manifest_entry import EntryItems
from lmsconf.manifest.expand.for_each import Entry
from lmsconf.manifest.nodes import KeyPath
from lmsconf.manifest.whole_schema import Section
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource

_ONLY_IN = "only_in"
EntryKey: TypeAlias = "tuple[KeyPath, str]"
"""The section of an entry, and the name of what it declares as names are compared."""
ParsedEntry: TypeAlias = "tuple[Entry, list[DesiredResource[Any]]]"
"""An entry after its expansion, and what it declares."""


def entry_key(section: Section, body: Json) -> EntryKey | None:
    """Return what an entry is found by; None if its declarations are compared one by one.

    Entries limited to some workspaces are alternatives of one name, so that none of them is the one to change.
    """
    if not section.is_declared or section.kind.entry_items is not None or not isinstance(body, dict):
        return None
    name = body.get(section.kind.name_key)
    return (section.path, section.kind.normalize_name(name)) if isinstance(name, str) and _ONLY_IN not in body else None


def without_replaced(parsed: Sequence[ParsedEntry]) -> Iterator[ParsedEntry]:
    """Yield the entries without what a later folder declares again, for the same workspaces."""
    last: dict[tuple[Address, frozenset[str] | None], int] = {}
    for entry, resources in parsed:
        for resource in () if entry.is_part else resources:
            key = resource.address, resource.only_in
            last[key] = max(entry.layer, last.get(key, 0))
    for entry, resources in parsed:
        left = [one for one in resources if entry.is_part or last[one.address, one.only_in] == entry.layer]
        is_whole = entry.section.kind.entry_items is None or len(left) == len(resources)
        for one in (entry,) if is_whole else _with_items(entry, left):
            yield one, left
            left = []


def _with_items(entry: Entry, left: Iterable[DesiredResource[Any]]) -> Iterator[Entry]:
    """Yield an entry for each of its contents, with the items that declare what is left, if there are any."""
    items, addresses = cast(EntryItems, entry.section.kind.entry_items), {resource.address for resource in left}
    body = cast("dict[str, Json]", entry.body)
    subjects = body[items.subject]
    for subject in subjects if isinstance(subjects, list) else [subjects]:
        one = {**body, items.subject: subject}
        listed = [
            item for item in cast("list[Json]", body[items.key]) if not addresses.isdisjoint(item_addresses(one, item))
        ]
        if listed:
            yield replace(entry, body={**one, items.key: listed})
