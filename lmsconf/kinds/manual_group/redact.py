"""Manual groups in redacted snapshots: their lists hold the people who are shown, and only count the others."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from lmsconf.kinds.manual_group.types import GroupRow, ManualGroupSpec
from lmsconf.kinds.shared.kind_names import GROUP
from lmsconf.kinds.shared.people_lists import drop_unknown_from_list
from lmsconf.planner.redaction import Entry, RedactionContext, Report, RestoreContext


def redact_rows(redaction: RedactionContext) -> Iterator[GroupRow]:
    """Yield the groups without undeclared people, who are counted."""
    for row in redaction.planning.snapshot.rows(GroupRow):
        yield replace(
            redaction.redact_row(row),
            members=redaction.redact_people(GROUP, row.id, "members", row.members),
            managers=redaction.redact_people(GROUP, row.id, "managers", row.managers),
        )


def restore_rows(restoring: RestoreContext) -> Iterator[GroupRow]:
    """Yield the groups with a placeholder for each counted person."""
    for row in restoring.snapshot.rows(GroupRow):
        yield replace(
            row,
            members=restoring.restore_people(GROUP, row.id, "members", row.members),
            managers=restoring.restore_people(GROUP, row.id, "managers", row.managers),
        )


def drop_unknown_people(entry: Entry, new: frozenset[str], report: Report) -> Entry:
    """Return an entry without people that a redacted snapshot does not know."""
    spec = entry.spec
    if not isinstance(spec, ManualGroupSpec):
        return entry
    members = drop_unknown_from_list(entry, "members", spec.members, new, report)
    managers = drop_unknown_from_list(entry, "managers", spec.managers, new, report)
    return replace(entry, spec=ManualGroupSpec(members=members, managers=managers))
