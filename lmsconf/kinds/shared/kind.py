"""Kind, what there is to say about all resources of one kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from lmsconf.kinds.shared.manifest_entry import EntryItems, PartReferences, Trail
from lmsconf.model.calls import ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name

BOX: Final = "box"
"""The usual shape of a node in a graph."""


class Kind(Struct, frozen=True, kw_only=True, eq=False):
    """What there is to say about all resources of one kind.

    name: the first part of its addresses. section: the manifest key of its entries. noun, plural: its display names.
    is_relation: it only links other resources, so that deleting one counts as a removal, not a deletion.
    row_types: those that snapshot files hold for this kind, one per listing, in their order there.
    list_operation: the operation that lists its resources; None if there is no listing of them all.
    is_person: its resources are people: their names are e-mails, their values personal data; they are never deleted,
    so never owned.
    listing_nouns: further listings that it reads → their display names, singular and plural.
    example: an address that hints show; a name without a kind is taken for one of the first kind that has an example.
    reports_people: its job reports the people in the rows that it compares, so that not all people need to be listed.
    normalize_name: the form in which its names are compared.
    name_key: the key of an entry that holds its name. parts_key: that of the list of its parts, such as choices.
    time_keys: keys that hold times → whether a bare date means the end of the day.
    entry_items: how one entry declares several resources; None if each entry declares one.
    references, part_references: kind → where manifests refer to its resources, and to their parts.
    graph_shape: how graphs show its resources, in the words of DOT.
    operations: the API operations that read and change its resources; its manifests depend on their dialect keys.
    limit: the most resources that a workspace can hold; None if there is no limit.
    """

    name: str
    section: str
    noun: str
    plural: str
    row_types: tuple[type[Any], ...]
    operations: Sequence[str]
    is_relation: bool = False
    list_operation: ListOperation | None = None
    is_person: bool = False
    listing_nouns: Mapping[str, tuple[str, str]] = {}
    example: str = ""
    reports_people: bool = False
    name_key: str = "name"
    normalize_name: Callable[[str], str] = normalize_name
    parts_key: str | None = None
    time_keys: Mapping[str, bool] = {}
    entry_items: EntryItems | None = None
    references: Mapping[str, Sequence[Trail]] = {}
    part_references: Mapping[str, Sequence[PartReferences]] = {}
    graph_shape: str = BOX
    limit: int | None = None


def row_type_of(kind: Kind) -> type[Any]:
    """Return the row type of a kind's resources."""
    return next(row_type for row_type in kind.row_types if row_type.listing == kind.name)


def in_snapshot_order(kinds: Iterable[Kind]) -> list[Kind]:
    """Return kinds in the order of snapshot files: those of people first, which the lists of the others refer to."""
    return sorted(kinds, key=lambda kind: not kind.is_person)


def listed_name(kind: Kind, row: Mapping[str, Json]) -> str:
    """Return the name in the address of a row of `list_operation`; empty if the row has none."""
    return kind.normalize_name(str(row.get(kind.name_key) or ""))


def required_keys(kind: Kind) -> frozenset[str]:
    """Return the keys that every entry has: they identify its resource."""
    items = kind.entry_items
    return frozenset([kind.name_key] if items is None else [items.subject, items.key])


def is_named(kind: Kind) -> bool:
    """Return whether resources are created with names that tell them apart: no relations, and no people."""
    return not kind.is_relation and not kind.is_person
