"""The changes of a plan and what was read → its effects on people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.model.effects import EFFECTS_OFF, NO_EFFECTS, Basis, Effects, UnknownPeople
from lmsconf.planner.audience.access_facts import AccessFacts
from lmsconf.planner.audience.access_tests import failed_problems, judge_tests, not_judged_problems, query_of
from lmsconf.planner.audience.affected import AccessScope, access_scope
from lmsconf.planner.audience.effects import (
    PredictedEffects,
    predict_effects,
    unarchived_problems,
    unknown_counts,
    unknown_measures,
)
from lmsconf.planner.audience.learner_progress import with_progress
from lmsconf.planner.audience.membership import Memberships
from lmsconf.planner.audience.people_questions import access_state, facts_for_plan
from lmsconf.planner.plan import DraftPlan
from lmsconf.planner.read.needed_listings import ReadContext


def predict_effects_of_plan(draft: DraftPlan, reading: ReadContext | None) -> PredictedEffects:
    """Return what a plan does to people and which tests fail, reading what both rest on."""
    policy, planning = draft.planning.policy, draft.planning
    now = int(datetime.fromisoformat(draft.plan.created_at).timestamp())
    scope = access_scope(planning, draft.items, now)
    if not policy.effects:
        return PredictedEffects(
            effects=EFFECTS_OFF,
            measures=unknown_measures(can_take=scope.takes, can_require=False),
            problems=tuple(not_judged_problems(draft.manifests.tests)),
        )
    nothing = replace(NO_EFFECTS, rows=() if policy.people else None)
    unchanged = PredictedEffects(effects=nothing, measures=(), problems=tuple(unarchived_problems(scope)))
    if scope.is_empty and not draft.manifests.tests:
        return unchanged
    query = query_of(draft.manifests.tests)
    try:
        facts = facts_for_plan(draft, reading, scope, query)
    except (Rejected, InvalidResponse) as error:
        if draft.manifests.tests:
            raise
        # The plan itself rests on none of this; its guards stop it where somebody may lose access.
        return unknown_effects((f"who has what was not read: {error.message}",), scope)
    predicted = unchanged if scope.is_empty else predict_access(facts.of_plan(), scope, now, rows=policy.people)
    if reading is not None:
        predicted = replace(predicted, effects=with_progress(reading.api, predicted, now))
    if not draft.manifests.tests:
        return predicted
    state = access_state(facts, scope, query, planning, now)
    failed = failed_problems(judge_tests(state, draft.manifests.tests, policy.workspace))
    return replace(predicted, problems=(*predicted.problems, *failed))


def predict_access(facts: AccessFacts, scope: AccessScope, now: int, *, rows: bool) -> PredictedEffects:
    """Return the effects of a plan. now: its time, in epoch seconds. rows: whether to return the people, too."""
    if facts.incomplete:
        return unknown_effects(facts.incomplete, scope)
    return predict_effects(Memberships(facts, scope).with_answers(), now, rows=rows)


def unknown_effects(reasons: Sequence[str], scope: AccessScope) -> PredictedEffects:
    """Return effects of which nothing is known but what the changes rule out: a plan that only adds takes nothing."""
    people = unknown_counts(can_take=scope.takes)
    nobody = UnknownPeople(audience=None, contents=(), reason="; ".join(reasons))
    effects = Effects(basis=Basis.UNKNOWN, reasons=tuple(reasons), people=people, unknown=(nobody,))
    measures = unknown_measures(can_take=scope.takes, can_require=scope.requires)
    return PredictedEffects(effects=effects, measures=measures)
