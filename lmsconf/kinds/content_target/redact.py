"""Assignments in redacted snapshots: those to undeclared people are only counted, for each content."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from lmsconf.kinds.content_target.audiences import audience_candidates, resolve_audience
from lmsconf.kinds.content_target.types import TargetRow, people_named
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, GROUP, SMART_GROUP, USER
from lmsconf.model.address import RemoteId
from lmsconf.planner.redaction import Entry, RedactionContext, Report, RestoreContext, not_compared_warning

_UNCLEAR: Final = "an assignment is for an id that is both a person's and a group's"


def redact_rows(redaction: RedactionContext) -> Iterator[TargetRow]:
    """Yield assignments to groups and to people who are shown, and count the others of each content."""
    planning = redaction.planning
    names: dict[str, dict[str, str]] = {}
    for kind in (GROUP, SMART_GROUP, USER):
        names[kind] = {row.id: row.name for row in planning.snapshot.of(kind).rows}
        for id, name in names[kind].items():
            planning.registry.set_display_name(kind, name, RemoteId(id))
    for row in planning.snapshot.rows(TargetRow):
        audience = resolve_audience(planning, row)
        kinds = {one.kind for one in audience_candidates(planning, row)} if audience is None else {audience.kind}
        # The `name` of a target is that of its audience, which may be a person.
        groups = {names[kind].get(row.target) for kind in (GROUP, SMART_GROUP)}
        if kinds and USER not in kinds:
            yield replace(row, label=redaction.redact_text(row.label) if row.label in groups else "")
        elif audience is not None and redaction.is_shown(row.target):
            yield replace(row, label="")
        else:
            if kinds and audience is None:
                redaction.incomplete[CONTENT_TARGET] = _UNCLEAR
            redaction.count_person(CONTENT_TARGET, row.content, row.type, row.target)


def restore_rows(restoring: RestoreContext) -> Iterator[TargetRow]:
    """Yield the assignments, and one without settings and times for each that is only counted."""
    yield from restoring.snapshot.rows(TargetRow)
    for content, type in restoring.counted_lists(CONTENT_TARGET):
        for id in restoring.placeholder_ids(CONTENT_TARGET, content, type):
            yield TargetRow(RemoteId(content), id, type)


def drop_unknown_people(entry: Entry, new: frozenset[str], report: Report) -> Entry | None:
    """Return the entry; None, reported, if it assigns to a person that a redacted snapshot does not know."""
    for person in people_named(entry):
        if person in new:
            report(not_compared_warning(entry.address, person, entry.source))
            return None
    return entry
