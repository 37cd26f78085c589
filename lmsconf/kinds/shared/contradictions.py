"""Detect incomplete listings: another listing references an id that they do not contain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from lmsconf.kinds.content_target.values import TargetRow, kind_of
from lmsconf.kinds.shared.names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP
from lmsconf.kinds.smart_group.values import SmartRow
from lmsconf.model.snapshot import Listing


def contradictions(listings: Mapping[str, Listing[Any]]) -> dict[str, str]:
    """Return, by kind, why a listing that looks complete is not; listings already marked incomplete are left out."""
    found = (*_fields(listings), *_groups(listings))
    return {kind: reason for kind, reason in found if listings[kind].incomplete is None}


def _fields(listings: Mapping[str, Listing[Any]]) -> Iterator[tuple[str, str]]:
    """Find a condition on an unlisted field: a field in use cannot be deleted (API specification, Custom Fields)."""
    if CUSTOM_FIELD not in listings or SMART_GROUP not in listings:
        return
    known = {row.id for row in listings[CUSTOM_FIELD].rows}
    for row in cast("tuple[SmartRow, ...]", listings[SMART_GROUP].rows):
        for condition in row.conditions or ():
            if condition.field and condition.field not in known:
                yield CUSTOM_FIELD, f"smart group {row.name} names field id {condition.field}, which is not among them"
                return


def _groups(listings: Mapping[str, Listing[Any]]) -> Iterator[tuple[str, str]]:
    """Find an empty listing of groups to which content is assigned.

    A single missing group is no contradiction: it may have been deleted by hand.
    """
    rows = cast("tuple[TargetRow, ...]", listings[CONTENT_TARGET].rows) if CONTENT_TARGET in listings else ()
    for kind in (GROUP, SMART_GROUP):
        if kind in listings and not listings[kind].rows:
            named = next((row for row in rows if kind_of(row.type) == kind), None)
            if named:
                yield kind, f"none came, and content {named.content} is assigned to id {named.target} of them"
