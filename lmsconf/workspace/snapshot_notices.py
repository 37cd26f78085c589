"""Notices for reviewers of a plan made from a snapshot file: its age and completeness."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind import in_snapshot_order, row_type_of
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot

_OLD: Final = timedelta(days=2)
"""Age from which it is a warning: most workspaces change every night."""


def add_snapshot_notices(plan: Plan, snapshot: Snapshot, workspace: str, now: datetime) -> Plan:
    """The plan with the notices of its snapshot before all other problems."""
    return replace(plan, problems=(*_notices(snapshot, workspace, now), *plan.problems))


def _notices(snapshot: Snapshot, workspace: str, now: datetime) -> Iterator[Problem]:
    age = now - datetime.fromisoformat(snapshot.taken_at)
    nouns = _nouns()
    numbers = {listing: len(snapshot.of(listing).rows) for listing in nouns if listing in snapshot.listings}
    held = [f"{number:,} {nouns[listing][number != 1]}" for listing, number in numbers.items()]
    again = "Save a new one with `lmsconf snapshot FILE`: later changes are not in this plan."
    yield Problem(
        code="snapshot/age",
        message=f"the snapshot was taken {_format_age(age)}, {snapshot.taken_at}, and holds {', '.join(held)}",
        hint=again if age > _OLD else None,
        severity=Severity.WARNING if age > _OLD else Severity.NOTE,
    )
    for listing, (_, plural) in nouns.items():
        if (why := snapshot.of(listing).incomplete) is not None:
            message = f"the snapshot does not contain all {plural}: {why}"
            yield Problem(code="snapshot/incomplete", message=message, severity=Severity.WARNING)
    if snapshot.redaction is not None:
        message = (
            "the snapshot is redacted: it only counts people who were not in the manifests when it was saved, "
            'and shows them as "unnamed person 1" and so on; several labels may be the same person'
        )
        yield Problem(code="snapshot/redacted", message=message, severity=Severity.NOTE)
    if snapshot.workspace != workspace:
        message = f"the snapshot is of workspace {snapshot.workspace}, and the plan is for workspace {workspace}"
        yield Problem(
            code="snapshot/other-workspace",
            message=message,
            hint=f"Pass --workspace {snapshot.workspace}, if this is intended.",
            severity=Severity.WARNING,
        )


def _nouns() -> dict[str, tuple[str, str]]:
    """Return the singular and plural of the rows of each listing that is counted for users."""
    nouns: dict[str, tuple[str, str]] = {}
    for kind in in_snapshot_order(KINDS.values()):
        if kind.name == CONTENT_TARGET:
            nouns[CONTENT] = kind.listing_nouns[CONTENT]
        nouns[row_type_of(kind).listing] = kind.noun, kind.plural
    return nouns


def _format_age(age: timedelta) -> str:
    """An age in its largest whole unit: `3 days ago`."""
    seconds = max(0, int(age.total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            number = seconds // size
            return f"{number:,} {unit if number == 1 else unit + 's'} ago"
    return "just now"
