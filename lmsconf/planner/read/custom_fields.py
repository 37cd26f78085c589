"""Read custom fields: one listing, which has all details."""

from __future__ import annotations

from msgspec.structs import replace

from lmsconf.api.spec.operations import CUSTOM_FIELDS
from lmsconf.kinds.custom_field.lost_answers import record_deletions
from lmsconf.kinds.custom_field.parse import has_migration
from lmsconf.kinds.custom_field.types import FieldRow, Migration, parse_field_row
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD
from lmsconf.model.api_protocol import ListedRows
from lmsconf.model.snapshot import Listing
from lmsconf.planner.read.needed_listings import ReadContext, sorted_listing


def read_fields(reading: ReadContext) -> Listing[FieldRow] | None:
    """Return the fields; None if they are not needed.

    The response carries no total, so a short one looks complete: it is read again before a field is created.
    """
    if not reading.is_needed(CUSTOM_FIELD):
        return None
    rows = reading.api.rows(CUSTOM_FIELDS)
    if _creates(reading, rows):
        again = reading.api.rows(CUSTOM_FIELDS)
        if {row["customFieldId"] for row in again.rows} != {row["customFieldId"] for row in rows.rows}:
            rows = replace(again, incomplete=again.incomplete or "it was read twice, with different results")
    return reading.publish_listing(CUSTOM_FIELD, _parsed(rows))


def may_delete_fields(reading: ReadContext) -> bool:
    """Return whether a field may be deleted or replaced, according to the manifests alone: nothing is waited for."""
    migrates = any(resource.spec.migrate for resource in reading.declared_of(CUSTOM_FIELD))
    return reading.covers(CUSTOM_FIELD) and (reading.may_delete(CUSTOM_FIELD) or migrates)


def may_lose_answers(reading: ReadContext) -> bool:
    """Return whether a field is deleted or loses a choice, so that the answers of all people are needed."""
    if not reading.covers(CUSTOM_FIELD):
        return False
    deletes = reading.absent_of(CUSTOM_FIELD) or reading.policy.ownership.get(CUSTOM_FIELD)
    declared = reading.declared_of(CUSTOM_FIELD)
    # A field may lose choices where they are listed in full, or some are excluded.
    choices = (one.spec.choices for one in declared if one.spec.choices is not None)
    if not deletes and not any(one.spec.migrate for one in declared) and not any(c.whole or c.exclude for c in choices):
        return False
    return any(record_deletions(*matched) for matched in reading.matches(CUSTOM_FIELD))


def copies_answers(reading: ReadContext) -> bool:
    """Return whether answers may move to another field, so that all people and their answers are needed."""
    versions = [version.of_kind(CUSTOM_FIELD) for version in reading.versions]
    if not any(has_migration(*version) for version in versions):
        return False
    deletions = (deletion for _, matched in reading.matches(CUSTOM_FIELD) for deletion in matched.deletions)
    return any(deletion.absent is not None and isinstance(deletion.absent.spec, Migration) for deletion in deletions)


def _creates(reading: ReadContext, rows: ListedRows) -> bool:
    """Return whether a field would be created according to this listing."""
    listing = _parsed(rows)
    versions = (reading.match(CUSTOM_FIELD, listing, version)[1] for version in reading.versions)
    matches = (match for matched in versions for match in matched.matches)
    return any(match.row is None and reading.chosen(match.address) for match in matches)


def _parsed(rows: ListedRows) -> Listing[FieldRow]:
    return sorted_listing(map(parse_field_row, rows.rows), rows.incomplete)
