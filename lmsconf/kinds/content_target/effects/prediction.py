"""The changes of a plan and what was read → its effects on people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from lmsconf.kinds.content_target.effects.facts import AccessFacts, facts_from_snapshot, read_access_facts
from lmsconf.kinds.content_target.effects.membership import Memberships
from lmsconf.kinds.content_target.effects.results import read_loss_details
from lmsconf.kinds.content_target.effects.scope import (
    AccessScope,
    AudienceKey,
    ChangedAssignment,
    access_scope,
    live_terms,
)
from lmsconf.kinds.content_target.types import TargetRow, unresolved_audience_label
from lmsconf.model.address import RemoteId
from lmsconf.model.effects import EFFECTS_OFF, NO_EFFECTS, AccessCounts, Basis, Effects
from lmsconf.model.names import normalize_name
from lmsconf.planner.audiences import Assignment, Audience, AudienceModel, Terms
from lmsconf.planner.effects import PredictedEffects, predict_effects, unknown_measures, with_progress
from lmsconf.planner.plan import DraftPlan
from lmsconf.planner.reading import ReadContext


def predict_effects_of_plan(draft: DraftPlan, reading: ReadContext | None) -> PredictedEffects:
    """Return what a plan does to people, reading what that rests on; as `Kind.predict_effects`."""
    policy, snapshot = draft.planning.policy, draft.planning.snapshot
    now = int(datetime.fromisoformat(draft.plan.created_at).timestamp())
    scope = access_scope(draft.planning, draft.items, now)
    if not policy.effects:
        measures = unknown_measures(can_take=scope.takes, can_require=False)
        return PredictedEffects(effects=EFFECTS_OFF, measures=measures)
    if scope.is_empty:
        return PredictedEffects(effects=replace(NO_EFFECTS, rows=() if policy.people else None), measures=())
    if reading is None:
        everyone = draft.planning.call_templates.behaviour("content-targets.everyone")
        return predict_access(facts_from_snapshot(snapshot, scope, everyone), scope, now, rows=policy.people)
    facts = read_access_facts(reading, snapshot, scope)
    predicted = predict_access(facts, scope, now, rows=policy.people)
    details, reasons = read_loss_details(reading.api, predicted.losses, now)
    return replace(predicted, effects=with_progress(predicted.effects, details, reasons))


def predict_access(facts: AccessFacts, scope: AccessScope, now: int, *, rows: bool) -> PredictedEffects:
    """Return the effects of a plan. now: its time, in epoch seconds. rows: whether to return the people, too."""
    if facts.incomplete:
        return unknown_effects(facts.incomplete, scope)
    model = access_model(facts, scope, now)
    return predict_effects(model, can_take=scope.takes, can_require=scope.requires, rows=rows)


def unknown_effects(reasons: Sequence[str], scope: AccessScope) -> PredictedEffects:
    """Return effects of which nothing is known but what the changes rule out: a plan that only adds takes nothing."""
    people = AccessCounts() if scope.takes else AccessCounts(lose=0, shortened=0)
    effects = Effects(basis=Basis.UNKNOWN, reasons=tuple(reasons), people=people)
    measures = unknown_measures(can_take=scope.takes, can_require=scope.requires)
    return PredictedEffects(effects=effects, measures=measures)


def access_model(facts: AccessFacts, scope: AccessScope, now: int) -> AudienceModel:
    """Return the audiences and assignments that decide who has what, before and after a plan."""
    memberships = Memberships.of(facts, scope)
    contents = {
        id: (content_name(facts, id), [one for _, _, one in assignments_of(memberships, id)])
        for id in sorted({*facts.affected, *(change.content for change in scope.assignments)})
    }
    groups = list(memberships.changing_groups())
    return AudienceModel(
        now=now,
        ids=memberships.ids,
        emails=memberships.emails,
        active=memberships.active_after,
        contents=contents,
        groups=groups,
        changed_people={position: person.address for position, person in memberships.changed_people.items()},
        reasons=memberships.reasons,
        groups_compared=memberships.groups_compared,
        groups_equal=memberships.groups_equal,
    )


def content_name(facts: AccessFacts, id: RemoteId) -> str:
    """Return the name of a content, as in addresses."""
    return normalize_name(facts.contents.get(id, "")) or f"content id {id}"


def assignments_of(
    memberships: Memberships, content: RemoteId
) -> Iterator[tuple[TargetRow | None, ChangedAssignment | None, Assignment]]:
    """Yield the assignments of one content before and after the plan, each with its live target and its change."""
    changes = [change for change in memberships.scope.assignments if change.content == content]
    by_row = {change.row.id: change for change in changes if change.row is not None}
    for row in memberships.facts.targets.get(content, ()):
        change = by_row.get(row.id)
        yield row, change, _live(memberships, row, change)
    for change in changes:
        if change.row is None and change.audience is not None:
            audience = memberships.audience(change.audience)
            created = Assignment(audience=audience, before=None, after=change.terms, cause=change.address)
            yield None, change, created


def _live(memberships: Memberships, row: TargetRow, change: ChangedAssignment | None) -> Assignment:
    """Return a live assignment; one whose audience or window is not known has an audience that is not."""
    key: AudienceKey | None = memberships.facts.audience_of(row)
    cause = None if change is None else change.address
    if key is None:
        memberships.reasons.append(f"an assignment is for {unresolved_audience_label(row)}, which no listing explains")
    audience = Audience(before=None, after=None, basis=Basis.UNKNOWN) if key is None else memberships.audience(key)
    try:
        before: Terms | None = live_terms(row)
    except ValueError as error:
        memberships.reasons.append(f"a window of an assignment cannot be read: {error}")
        audience, before = replace(audience, before=None, after=None, basis=Basis.UNKNOWN), None
    return Assignment(audience=audience, before=before, after=before if change is None else change.terms, cause=cause)
