"""Manifest entries: as kinds parse them, as exported from live rows, and what they refer to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, Ref
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
    """The manifest entry of one live row. notes: what it leaves out, and why.

    reason: why a manifest cannot declare the row, which then has no body; None if it can.
    """

    address: Address
    id: str
    body: Mapping[str, Json] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reason: str | None = None


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


class LiveNames:
    """The names of a live workspace. policy: that of the export.

    planning: a PlanContext of the snapshot in which every kind has matched its rows, with nothing declared.
    """

    def __init__(self, planning: PlanContext, policy: Policy) -> None:
        self.planning, self.policy = planning, policy
        self.snapshot, self.timezone = planning.snapshot, policy.timezone
        self._looks: dict[str, Counter[str]] = {}

    def is_resolved_by_name(self, kind: str, row: HasName) -> bool:
        """Whether the name of a row resolves to it: of several rows with one name, only to the first."""
        name = normalize_name(row.name)
        return self.planning.registry.id_or_ref(kind, name, Ref(Address.of(kind, name))) == row.id

    def needs_id(self, kind: str, row: HasName) -> bool:
        """Whether another row of the kind has the same name, or one that looks the same to a reader."""
        if kind not in self._looks:
            self._looks[kind] = Counter(casefold_name(one.name) for one in self.snapshot.of(kind).rows)
        return self._looks[kind][casefold_name(row.name)] > 1

    def exported_entry(self, kind: str, row: HasName, body: EntryBody) -> ExportedEntry:
        """Return the entry of a named row, with its id where the name is ambiguous."""
        name = normalize_name(row.name)
        address = Address.of(kind, name)
        if not is_valid_name(name):
            reason = "its name contains characters that a manifest must not contain" if name else "it has no name"
            return ExportedEntry(address=address, id=row.id, reason=reason)
        if not self.is_resolved_by_name(kind, row):
            reason = "another resource has its name, and is declared"
            return ExportedEntry(address=address, id=row.id, reason=reason)
        pin = {"id": row.id} if self.needs_id(kind, row) else {}
        return ExportedEntry(address=address, id=row.id, body={"name": name, **pin, **body.keys}, notes=body.notes)
