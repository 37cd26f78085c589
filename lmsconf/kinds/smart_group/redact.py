"""Smart groups in redacted snapshots: their managers are the people who are shown, and the others are only counted."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.kinds.shared.people_lists import drop_unknown_from_list
from lmsconf.kinds.smart_group.types import SmartGroupRow, SmartGroupSpec
from lmsconf.planner.redaction import Entry, RedactionContext, Report, RestoreContext


def redact_rows(redaction: RedactionContext) -> Iterator[SmartGroupRow]:
    """Yield the smart groups without undeclared managers, who are counted."""
    for row in redaction.planning.snapshot.rows(SmartGroupRow):
        managers = redaction.redact_people(SMART_GROUP, row.id, "managers", row.managers)
        yield replace(redaction.redact_row(row), managers=managers)


def restore_rows(restoring: RestoreContext) -> Iterator[SmartGroupRow]:
    """Yield the smart groups with a placeholder for each counted manager."""
    for row in restoring.snapshot.rows(SmartGroupRow):
        yield replace(row, managers=restoring.restore_people(SMART_GROUP, row.id, "managers", row.managers))


def drop_unknown_people(entry: Entry, new: frozenset[str], report: Report) -> Entry:
    """Return an entry without managers that a redacted snapshot does not know."""
    spec = entry.spec
    if not isinstance(spec, SmartGroupSpec):
        return entry
    return replace(
        entry, spec=replace(spec, managers=drop_unknown_from_list(entry, "managers", spec.managers, new, report))
    )
