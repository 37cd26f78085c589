"""Manifest entries as kinds parse and describe them: as read, as exported from live rows, and what they refer to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import SourceMap

Trail: TypeAlias = tuple[str, ...]
"""A path from the root of a manifest."""
ANY: Final = "*"
"""Step of a path: each item of a list, or each value of a mapping."""
KEYS: Final = "(keys)"
"""Step of a path: each key of a mapping."""


class ManifestEntry(Struct, frozen=True, kw_only=True):
    """One item of a manifest section, valid against its kind's schema, with lists of people read from their files.

    `report` collects the problems that only a kind can detect; parsing continues, so that all are shown together.
    """

    body: Mapping[str, Json]
    places: SourceMap
    timezone: tzinfo | None
    report: Callable[[Problem], None]


class ExportedEntry(Struct, frozen=True, kw_only=True):
    """The manifest entry of one live row. notes: what it leaves out, and why."""

    address: Address
    id: str
    body: Mapping[str, Json]
    notes: tuple[str, ...] = ()


class UnexportableRow(Struct, frozen=True, kw_only=True):
    """A live row without a manifest entry, and the reason."""

    address: Address
    id: str
    reason: str


class EntryBody(NamedTuple):
    """The keys of an exported entry beside its name. notes: what it leaves out, and why."""

    keys: Mapping[str, Json]
    notes: tuple[str, ...] = ()


class EntryItems(NamedTuple):
    """How one entry declares several resources: one for each item of a list, which may override values of the entry.

    key: that of the list. noun: what an item is. subject: the key of what all of them have in common.
    """

    key: str
    noun: str
    subject: str


class PartReferences(NamedTuple):
    """Where manifests refer to parts of a resource, such as choices of a field.

    at: the path of the mapping that refers to both. owner: its key that names the resource; None if the key under which
    the parts are is its name. parts: the paths of the parts below the mapping; without an owner, below that key.
    """

    at: Trail
    owner: str | None
    parts: tuple[Trail, ...]
