"""The assignments of a content before and after a plan."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from lmsconf.kinds.content_target.effects.facts import AccessFacts
from lmsconf.kinds.content_target.effects.membership import Memberships
from lmsconf.kinds.content_target.effects.scope import AudienceKey, ChangedAssignment, live_terms
from lmsconf.kinds.content_target.types import TargetRow, unresolved_audience_label
from lmsconf.model.address import RemoteId
from lmsconf.model.effects import Basis
from lmsconf.model.names import normalize_name
from lmsconf.planner.audiences import Audience, AudienceAssignment, Terms


def content_name(facts: AccessFacts, id: RemoteId) -> str:
    """Return the name of a content, as in addresses."""
    return normalize_name(facts.contents.get(id, "")) or f"content id {id}"


def assignments_of(
    memberships: Memberships, content: RemoteId
) -> Iterator[tuple[TargetRow | None, ChangedAssignment | None, AudienceAssignment]]:
    """Yield the assignments of one content before and after the plan, each with its live target and its change."""
    changes = [change for change in memberships.scope.assignments if change.content == content]
    by_row = {change.row.id: change for change in changes if change.row is not None}
    for row in memberships.facts.targets.get(content, ()):
        change = by_row.get(row.id)
        yield row, change, _live(memberships, row, change)
    for change in changes:
        if change.row is None and change.audience is not None:
            audience = memberships.audience(change.audience)
            created = AudienceAssignment(audience=audience, before=None, after=change.terms, cause=change.address)
            yield None, change, created


def _live(memberships: Memberships, row: TargetRow, change: ChangedAssignment | None) -> AudienceAssignment:
    """Return a live assignment; one whose audience or window is not known has an audience that is not."""
    key: AudienceKey | None = memberships.facts.audience_of(row)
    cause = None if change is None else change.address
    if key is None:
        lists = "several lists" if memberships.facts.target_audiences.candidates(row) else "no list"
        reason = f"an assignment is for {unresolved_audience_label(row)}, which is in {lists}"
        memberships.reasons.append(reason)
        audience = Audience(before=None, after=None, basis=Basis.UNKNOWN, reason=reason)
    else:
        audience = memberships.audience(key)
    try:
        before: Terms | None = live_terms(row)
    except ValueError as error:
        reason = f"a window of an assignment cannot be read: {error}"
        memberships.reasons.append(reason)
        audience, before = replace(audience, before=None, after=None, basis=Basis.UNKNOWN, reason=reason), None
    return AudienceAssignment(
        audience=audience, before=before, after=before if change is None else change.terms, cause=cause
    )
