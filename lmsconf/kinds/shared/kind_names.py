"""Names of kinds, and what there is to say about all resources of one kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from lmsconf.kinds.shared.manifest_entry import EntryItems, PartReferences, Trail
from lmsconf.model.address import EVERYBODY, Address, unescape
from lmsconf.model.calls import ListOperation
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name, quote_if_ambiguous

CUSTOM_FIELD: Final = "custom_field"
GROUP: Final = "group"
SMART_GROUP: Final = "smart_group"
CONTENT: Final = "content"
CONTENT_TARGET: Final = "content_target"
USER: Final = "user"
ADMIN: Final = "admin"
"""Not a kind: the listing of people with administrator rights, read when a plan may revoke some."""
HOLDERS: Final = "choice_holders"
"""Not a kind: the number of people who hold each choice, in whole snapshots."""
ANSWERS: Final = "answers"
"""Not a kind: the answers of all people, kept only if a field or a choice is deleted."""
UNNAMED_TARGETS: Final = "unnamed_targets"
"""Not a kind: assignments of undeclared content, read only as far as a guard needs their number."""
EDITS: Final = "target_edits"
"""Not a kind: last editor and time of each assignment. Kept apart from the rows because it is not compared."""

IN_PROGRESS: Final = "in_progress"
"""Not a kind: who is in progress on content that is replaced, by its assignment, read only before it is replaced."""

EVERYONE: Final = Address(EVERYBODY, "")
"""The audience of all people. It prints as `everyone`."""
_PARTS: Final = re.compile(r"((?:\\(?: -> |.)|(?! -> )[^\\])*) -> (.*)", re.DOTALL)
"""Content and audience of an address; either name may contain an escaped ` -> `."""


def choices_registry_kind(field: str) -> str:
    """Return the kind under which the NameRegistry holds the choices of a field."""
    return f"choice of {field}"


def split_address(address: Address) -> tuple[str, str] | None:
    """Return the content's name and the audience's address; None if the address is not that of an assignment."""
    parts = _PARTS.fullmatch(address.text) if address.kind == CONTENT_TARGET else None
    return (unescape(parts[1]), parts[2]) if parts else None


def resource_title(address: Address) -> str:
    """Return the display name of a resource: `group/Sales`, `assignment of GDPR basics to group/Sales`."""
    return f"assignment of {short_title(address)}" if split_address(address) else str(address)


def short_title(address: Address) -> str:
    """Return the display name without the kind, for use beside it: `Sales`, `GDPR basics to group/Sales`."""
    parts = split_address(address)
    return f"{quote_if_ambiguous(parts[0])} to {parts[1]}" if parts else quote_if_ambiguous(address.name)


def title_keys(address: Address) -> frozenset[str]:
    """Return the keys of a resource whose values its title contains."""
    return frozenset({"content", "assign_to"} if address.kind == CONTENT_TARGET else {"name"})


def spellings(address: Address, noun: str) -> Iterator[str]:
    """Yield the texts by which views name a resource: of an assignment, also the content, and as graphs label it."""
    short = short_title(address)
    yield from (address.name, short, resource_title(address), f"{noun} {short}", f"{address.name} ({noun})")
    if parts := split_address(address):
        yield from (parts[0], f"{parts[0]} ({CONTENT})")


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
    normalize_name: the form in which its names are compared.
    name_key: the key of an entry that holds its name. parts_key: that of the list of its parts, such as choices.
    default_keys: those whose values the service chooses where the entry of a creation lacks them.
    time_keys: keys that hold times → whether a bare date means the end of the day.
    entry_items: how one entry declares several resources; None if each entry declares one.
    references, part_references: kind → where manifests refer to its resources, and to their parts.
    operations: the API operations that read and change its resources; its manifests depend on their dialect keys.
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
    name_key: str = "name"
    normalize_name: Callable[[str], str] = normalize_name
    parts_key: str | None = None
    default_keys: tuple[str, ...] = ()
    time_keys: Mapping[str, bool] = {}
    entry_items: EntryItems | None = None
    references: Mapping[str, Sequence[Trail]] = {}
    part_references: Mapping[str, Sequence[PartReferences]] = {}


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
