"""Names of live resources as manifests use them, and which of them no manifest can use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from lmsconf.model.address import Address
from lmsconf.model.names import casefold_name, is_valid_name, normalize_name
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import HasName
from lmsconf.planner.context import PlanContext
from lmsconf.planner.manifest_entries import EntryBody, ExportedEntry, UnexportableRow


class _Names:
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
        self._listings: dict[str, _Names] = {}

    def _of(self, listing: str) -> _Names:
        if listing not in self._listings:
            self._listings[listing] = _Names(self.snapshot.of(listing).rows)
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
