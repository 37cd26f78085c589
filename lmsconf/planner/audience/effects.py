"""A plan and what was read → its effects on people, the rows of `--people`, and what guards count."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Problem, Rejected, Severity
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Api
from lmsconf.model.effects import (
    EFFECTS_OFF,
    NO_EFFECTS,
    AccessCounts,
    Basis,
    Calibration,
    CauseCount,
    ContentEffects,
    Effects,
    GroupEffects,
    PersonEffect,
    UnknownPeople,
    count_people,
    members_digest,
)
from lmsconf.model.names import count_noun, grouped
from lmsconf.model.plan import GuardCount, Plan
from lmsconf.planner.audience.access_facts import affected_contents, facts_from_snapshot, read_access_facts
from lmsconf.planner.audience.affected import AccessScope, access_scope
from lmsconf.planner.audience.membership import Memberships
from lmsconf.planner.audience.people_questions import (
    WorkspaceAccess,
    failed_problems,
    judge_tests,
    not_judged_problem,
    query_of,
)
from lmsconf.planner.audience.people_sets import (
    Audience,
    AudienceAssignment,
    Bits,
    ContentAccess,
    change_between,
    compare_access,
    count_of,
    positions_of,
    to_bits,
    weakest_basis,
)
from lmsconf.planner.check_guards import evaluate_guards, find_protected_losses
from lmsconf.planner.lint_rules import lint_plan
from lmsconf.planner.plan import PlanWithoutEffects
from lmsconf.planner.read.learner_progress import with_progress
from lmsconf.planner.read.needed_listings import ReadContext


class PredictedEffects(Struct, frozen=True, kw_only=True):
    """The effects of a plan, what the guards count in them, and the tests that fail.

    sizes: of audiences that are known exactly, after the plan. left: smart group → how many leave it and are not
    archived.
    """

    effects: Effects
    measures: tuple[GuardCount, ...] = ()
    problems: tuple[Problem, ...] = ()
    sizes: Mapping[Address, int] = field(default_factory=dict)
    left: Mapping[Address, int] = field(default_factory=dict)


def _warnings(scope: AccessScope, archived_soon: int = 0) -> Iterator[Problem]:
    """Yield warnings about people who are in no number, or who are counted although their windows do not change."""
    if archived_soon:
        yield Problem(
            code="people/archived-soon",
            message=count_noun(archived_soon, "person who has content is", "people who have content are")
            + " archived within 30 days, at dates that this plan sets; the guard people counts them",
            severity=Severity.WARNING,
            hint="Until then nothing changes for them.",
        )
    if scope.unarchived:
        yield Problem(
            code="people/unarchived",
            message=f"this plan unarchives {count_people(scope.unarchived)}; archived now, they are not in its numbers "
            "of people",
            severity=Severity.WARNING,
            hint="After the apply, `lmsconf access` shows what one of them has.",
        )


def with_effects(planned: PlanWithoutEffects, reading: ReadContext | None) -> Plan:
    """Return the plan with its effects on people, the guards that count them, the tests that fail, and its lints.

    reading: reads what these rest on and the plan itself did not need; None: the snapshot holds all that is known.
    """
    plan, policy, predicted = planned.plan, planned.planning.policy, _predict_effects_of_plan(planned, reading)
    measures = (*plan.measures, *predicted.measures)
    refused = {problem.address for problem in plan.all_problems if problem.code == "refusal/protected"}
    losses = find_protected_losses(
        {address: leave for address, leave in predicted.left.items() if address not in refused},
        (*policy.guards.protect, *planned.protect),
    )
    return replace(
        plan,
        effects=replace(predicted.effects, requests=0 if reading is None else reading.api.requests),
        measures=measures,
        guards=evaluate_guards(measures, policy.guards, policy.consents),
        # Lints look at what the plan and its effects have read.
        problems=(*plan.problems, *predicted.problems, *losses, *lint_plan(planned, predicted.sizes)),
    )


def _predict_effects_of_plan(planned: PlanWithoutEffects, reading: ReadContext | None) -> PredictedEffects:
    """Return what a plan does to people and which tests fail, reading what both rest on."""
    planning, tests = planned.planning, planned.manifests.tests
    policy, now = planning.policy, int(datetime.fromisoformat(planned.plan.created_at).timestamp())
    scope = access_scope(planning, planned.items, now)
    if not policy.effects:
        return PredictedEffects(
            effects=EFFECTS_OFF,
            measures=_by_guard(harmed=None if scope.takes else 0, bound=0),
            problems=(not_judged_problem(tests),) if tests else (),
        )
    predicted = PredictedEffects(
        effects=replace(NO_EFFECTS, rows=() if policy.people else None), problems=tuple(_warnings(scope))
    )
    if scope.is_empty and not tests:
        return predicted
    try:
        facts = (
            facts_from_snapshot(planning)
            if reading is None
            else read_access_facts(reading, planning, scope, query_of(tests))
        )
    except (Rejected, InvalidResponse) as error:
        if tests:
            raise
        # The plan itself rests on none of this; its guards stop it where somebody may lose access.
        return _unknown_effects((f"who has what was not read: {error.message}",), scope)
    if facts.incomplete and not scope.is_empty:
        predicted = _unknown_effects(facts.incomplete, scope)
    elif not scope.is_empty:
        predicted = predict_effects(
            Memberships(facts.of_plan(), scope, planning, now), None if reading is None else reading.api
        )
    if tests:
        results = judge_tests(WorkspaceAccess(facts, scope, planning, now), tests)
        predicted = replace(predicted, problems=(*predicted.problems, *failed_problems(results)))
    return predicted


def _unknown_effects(reasons: Sequence[str], scope: AccessScope) -> PredictedEffects:
    """Return effects of which nothing is known but what the changes rule out: a plan that only adds takes nothing."""
    return PredictedEffects(
        effects=Effects(
            basis=Basis.UNKNOWN,
            reasons=tuple(reasons),
            people=_unknown_counts(scope),
            unknown=(UnknownPeople(audience=None, contents=(), reason="; ".join(reasons)),),
        ),
        measures=_by_guard(harmed=None if scope.takes else 0, bound=None if scope.requires else 0),
    )


def predict_effects(model: Memberships, api: Api | None) -> PredictedEffects:
    """Return the effects of a plan, with rows of people if its policy says so. api: to read progress with."""
    rows = model.planning.policy.people
    affected = {(model.facts.content_name(id), id) for id in affected_contents(model.scope, model.facts)}
    assigned = {(name, id): model.assignments(id) for name, id in sorted(affected)}
    audiences = list(model.group_audiences())
    contents: list[ContentEffects] = []
    people: list[PersonEffect] = []
    losses: dict[RemoteId, Sequence[RemoteId]] = {}
    totals: Counter[str] = Counter()
    for content, access in _changed_contents(model, assigned, totals):
        contents.append(content)
        if access is not None:
            losses[content.id] = _known_ids(model, access.sets["lose"])
            people.extend(_person_rows(model, content, access) if rows else ())
    people.sort(key=lambda row: (row.content, row.content_id, row.email.casefold()))
    groups = [
        _group(model, group.address, group)
        for group in audiences
        if group.address is not None and not (group.is_known and group.before == group.after)
    ]
    unknown = any(content.before is None for content in contents)
    effects = Effects(
        basis=weakest_basis([*(content.basis for content in contents), *(group.basis for group in groups)]),
        reasons=tuple(dict.fromkeys(model.reasons)),
        people=_unknown_counts(model.scope) if unknown else _counts(totals),
        contents=tuple(contents),
        groups=tuple(sorted(groups, key=lambda group: group.address)),
        calibration=Calibration(groups=len(model.compared), exact=sum(model.compared)),
        rows=tuple(people) if rows else None,
        unknown=tuple(_unknown_people(assigned)),
    )
    return PredictedEffects(
        effects=effects if api is None else with_progress(api, effects, losses, model.now),
        measures=_measures(model, contents, totals, unknown=unknown),
        problems=tuple(_warnings(model.scope, totals["archived_soon"].bit_count())),
        sizes=model.sizes(),
        left=_leaving(model, audiences),
    )


def _changed_contents(
    model: Memberships,
    assigned: Mapping[tuple[str, RemoteId], Sequence[AudienceAssignment]],
    totals: Counter[str],
) -> Iterator[tuple[ContentEffects, ContentAccess | None]]:
    """Yield each content that changes, with its sets, or that is not known; add all sets to `totals`."""
    at = grouped(model.changed_people, lambda position: model.changed_people[position].ends)
    ends = {end: to_bits(positions, len(model.ids)) for end, positions in at.items() if end is not None}
    for (name, id), assignments in assigned.items():
        if not all(assignment.audience.is_known for assignment in assignments):
            yield _unknown_content(model.scope, id, name, assignments), None
            continue
        access = compare_access(assignments, model.now, ends)
        for counted in (*AccessCounts.__struct_fields__, "archived_soon", "bound"):
            totals[counted] |= access.sets[counted]
        if access.sets["changed"] | access.sets["shortened"]:
            yield _content(model, id, name, access, assignments), access


def _measures(
    model: Memberships, contents: Iterable[ContentEffects], totals: Mapping[str, Bits], *, unknown: bool
) -> tuple[GuardCount, ...]:
    """Return what the guards count of distinct people, and how many lose each content. unknown: if one is.

    Of a content the share alone is judged, as the same people may lose others.
    """
    harmed = totals["lose"] | totals["shortened"] | totals["archived_soon"]
    return _by_guard(
        harmed=None if unknown and model.scope.takes else harmed.bit_count(),
        bound=None if unknown and model.scope.requires else totals["bound"].bit_count(),
        everybody=model.active_before.bit_count(),
        shares=[
            GuardCount(
                guard="people", of=f"content {one.content}", taken=one.counts.lose, size=one.before, counts=False
            )
            for one in contents
            if one.before is not None
        ],
    )


def _by_guard(
    *, harmed: int | None, bound: int | None, everybody: int = 0, shares: Iterable[GuardCount] = ()
) -> tuple[GuardCount, ...]:
    """Return the counts of the guards `people` and `mandatory`, with those of contents; none of nobody."""
    counts = (
        GuardCount(guard="people", of="all people", taken=harmed, size=0),
        *shares,
        GuardCount(guard="mandatory", of="all people", taken=bound, size=everybody),
    )
    return tuple(one for one in counts if one.taken != 0 or not one.counts)


def _unknown_counts(scope: AccessScope) -> AccessCounts:
    """Return the numbers of people where they are not known: a plan that can only add takes nothing."""
    return AccessCounts() if scope.takes else AccessCounts(lose=0, shortened=0)


def _counts(sets: Mapping[str, Bits]) -> AccessCounts:
    return AccessCounts(**{name: sets[name].bit_count() for name in AccessCounts.__struct_fields__})


def _unknown_content(
    scope: AccessScope, id: RemoteId, name: str, assignments: Sequence[AudienceAssignment]
) -> ContentEffects:
    """Return a content some of whose audiences are not known."""
    return ContentEffects(
        content=name,
        id=id,
        before=None,
        after=None,
        keep=None,
        counts=_unknown_counts(scope),
        basis=Basis.UNKNOWN,
        causes=tuple(
            CauseCount(address=cause, gain=None, lose=None)
            for cause in sorted({cause for one in assignments for cause in one.causes})
        ),
    )


def _unknown_people(assigned: Mapping[tuple[str, RemoteId], Sequence[AudienceAssignment]]) -> Iterator[UnknownPeople]:
    """Yield each audience that is not known, with the contents assigned to it. assigned: by content."""
    unknown = grouped(
        (
            (content, one.audience)
            for content, placed in assigned.items()
            for one in placed
            if not one.audience.is_known
        ),
        lambda pair: (str(pair[1].address or ""), pair[1].reason),
    )
    return (
        UnknownPeople(
            audience=pairs[0][1].address,
            contents=tuple(dict.fromkeys(content for content, _ in pairs)),
            reason=reason,
        )
        for (_, reason), pairs in sorted(unknown.items(), key=itemgetter(0))
    )


def _content(
    model: Memberships, id: RemoteId, name: str, access: ContentAccess, assignments: Sequence[AudienceAssignment]
) -> ContentEffects:
    sets = access.sets
    changed = sets["changed"] | sets["shortened"]
    causes = [
        (-(people & sets["lose"]).bit_count(), -(people & sets["gain"]).bit_count(), cause)
        for cause, people in access.causes
        if people & changed
    ]
    # And the people whose account or answers the plan changes.
    people = changed & to_bits(model.changed_people, len(model.ids))
    gain, lose = (frozenset(positions_of(people & sets[change])) for change in ("gain", "lose"))
    causes.extend((-int(at in lose), -int(at in gain), model.changed_people[at].address) for at in positions_of(people))
    return ContentEffects(
        content=name,
        id=id,
        before=sets["before"].bit_count(),
        after=sets["after"].bit_count(),
        keep=sets["keep"].bit_count(),
        counts=_counts(sets),
        basis=weakest_basis(assignment.audience.basis for assignment in assignments),
        # By most losses, then by most gains: both are negative here.
        causes=tuple(CauseCount(address=cause, gain=-gained, lose=-lost) for lost, gained, cause in sorted(causes)),
    )


def _group(model: Memberships, address: Address, group: Audience) -> GroupEffects:
    """Return the change of a group's membership."""
    members = _known_ids(model, group.after or 0)
    return GroupEffects(
        address=address,
        before=count_of(group.before),
        after=count_of(group.after),
        join=count_of(group.joins),
        leave=count_of(group.leaves),
        basis=group.basis,
        members=members_digest(members) if group.is_known and len(members) == count_of(group.after) else None,
    )


def _leaving(model: Memberships, audiences: Iterable[Audience]) -> Mapping[Address, int]:
    """Return smart group → how many leave it and are not archived."""
    return {
        group.address: leave
        for group in audiences
        if group.address is not None and group.address.kind == SMART_GROUP
        if (leave := ((group.leaves or 0) & model.active_after).bit_count())
    }


def _known_ids(model: Memberships, people: Bits) -> list[RemoteId]:
    """Return the ids of people; those of new accounts are not known."""
    return [id for id in (model.ids[position] for position in positions_of(people)) if id is not None]


def _person_rows(model: Memberships, content: ContentEffects, access: ContentAccess) -> Iterator[PersonEffect]:
    """Yield a row for each person whose access to a content changes."""
    changed = access.sets["changed"]
    own = positions_of(changed & to_bits(model.changed_people, len(model.ids)))
    because = defaultdict(list, {position: [str(model.changed_people[position].address)] for position in own})
    for cause, people in access.causes:
        for position in positions_of(people & changed):
            because[position].append(str(cause))
    short = frozenset(positions_of(access.sets["shortened"]))
    for (before, after), people in access.held.items():
        for position in positions_of(people & changed):
            yield PersonEffect(
                email=model.emails[position],
                content=content.content,
                content_id=content.id,
                change=change_between(before, after),
                before=before.word,
                after=after.word,
                from_before=before.start,
                until_before=before.finish,
                from_after=after.start,
                until_after=after.finish,
                shortened=position in short,
                causes=tuple(sorted(because[position])),
            )
