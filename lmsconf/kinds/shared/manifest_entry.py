"""Manifest entries: as kinds parse them, as exported from live rows, and what they refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import tzinfo
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import SourceMap
from lmsconf.model.names import casefold_name, is_valid_name, normalize_name
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import HasName

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

    def problem(
        self,
        code: str,
        message: str,
        *path: str | int,
        hint: str | None,
        source: SourceLocation | None = None,
        address: Address | None = None,
    ) -> None:
        """Report a problem, located at `source` or at `path` below the entry."""
        self.report(
            Problem(
                code=code,
                message=message,
                hint=hint,
                source=source or self.places.at(*path),
                address=None if address is None else str(address),
            )
        )


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


class NameCounts:
    """The names of one listing: how often each is there, exactly and to a reader, and the first row that has it."""

    def __init__(self, rows: Iterable[HasName]) -> None:
        self.looks: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        for row in rows:
            name = normalize_name(row.name)
            self.looks[casefold_name(name)] += 1
            self.names[name] += 1
            self.first.setdefault(name, row.id)


class LiveNames:
    """The names of a live workspace. policy: that of the export.

    planning: a PlanContext of the snapshot in which every kind has matched its rows, with nothing declared.
    """

    def __init__(self, planning: PlanContext, policy: Policy) -> None:
        self.planning, self.policy = planning, policy
        self.snapshot, self.timezone = planning.snapshot, policy.timezone
        self._listings: dict[str, NameCounts] = {}

    def _of(self, listing: str) -> NameCounts:
        if listing not in self._listings:
            self._listings[listing] = NameCounts(self.snapshot.of(listing).rows)
        return self._listings[listing]

    def is_resolved_by_name(self, listing: str, row: HasName) -> bool:
        """Whether the name of a row resolves to it: of several rows with one name, only to the first."""
        return self._of(listing).first[normalize_name(row.name)] == row.id

    def needs_id(self, listing: str, row: HasName) -> bool:
        """Whether another row of the listing has the same name, or one that looks the same to a reader."""
        return self._of(listing).looks[casefold_name(row.name)] > 1

    def is_duplicate(self, listing: str, row: HasName) -> bool:
        """Whether another row of the listing has exactly the same name."""
        return self._of(listing).names[normalize_name(row.name)] > 1

    def exported_entry(self, kind: str, row: HasName, body: EntryBody) -> ExportedEntry | UnexportableRow:
        """Return the entry of a named row, with its id where the name is ambiguous."""
        name = normalize_name(row.name)
        address = Address.of(kind, name)
        if not is_valid_name(name):
            reason = "its name contains characters that a manifest must not contain" if name else "it has no name"
            return UnexportableRow(address=address, id=row.id, reason=reason)
        if not self.is_resolved_by_name(kind, row):
            reason = "another resource has its name, and is declared"
            return UnexportableRow(address=address, id=row.id, reason=reason)
        pin = {"id": row.id} if self.needs_id(kind, row) else {}
        return ExportedEntry(address=address, id=row.id, body={"name": name, **pin, **body.keys}, notes=body.notes)
