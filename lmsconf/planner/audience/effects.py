"""A plan and what was read → its effects on people, the rows of `--people`, and what guards count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import InvalidResponse, Problem, Rejected, Severity
from lmsconf.kinds.shared.kind_names import SMART_GROUP
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.effects import (
    EFFECTS_OFF,
    NO_EFFECTS,
    AccessChange,
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
from lmsconf.model.names import count_noun
from lmsconf.model.plan import GuardCount
from lmsconf.planner.audience.access_facts import AccessFacts
from lmsconf.planner.audience.affected import AccessScope, access_scope
from lmsconf.planner.audience.learner_progress import with_progress
from lmsconf.planner.audience.membership import Memberships, assignments_of, content_name
from lmsconf.planner.audience.people_questions import (
    WorkspaceAccess,
    facts_for_plan,
    failed_problems,
    judge_tests,
    not_judged_problems,
    query_of,
)
from lmsconf.planner.audience.people_sets import (
    KEEP,
    Audience,
    AudienceAssignment,
    AudienceSize,
    Bits,
    ContentAccess,
    compare_access,
    positions_of,
    to_bits,
    weakest_basis,
)
from lmsconf.planner.plan import DraftPlan
from lmsconf.planner.read.needed_listings import ReadContext


class PredictedEffects(Struct, frozen=True, kw_only=True):
    """The effects of a plan, what the guards count in them, who loses which content, and the tests that fail.

    losses: content → who loses it, to ask for their progress. sizes: of audiences that are known exactly, after the
    plan. left: smart group → how many leave it and are not archived.
    """

    effects: Effects
    measures: tuple[GuardCount, ...]
    losses: Mapping[RemoteId, Sequence[RemoteId]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    sizes: Mapping[Address, AudienceSize] = field(default_factory=dict)
    left: Mapping[Address, int] = field(default_factory=dict)


_COUNTED: Final = (*AccessChange, "shortened", "archived_soon", "bound")
"""What is counted of distinct people over all contents."""


def _archived_soon(totals: Mapping[str, Bits]) -> Iterator[Problem]:
    """Yield a warning about people that the guard `people` counts although their windows do not change."""
    if number := totals["archived_soon"].bit_count():
        people = count_noun(number, "person who has content is", "people who have content are")
        yield Problem(
            code="people/archived-soon",
            message=f"{people} archived within 30 days, at dates that this plan sets; the guard people counts them",
            severity=Severity.WARNING,
            hint="Until then nothing changes for them.",
        )


def unarchived_problems(scope: AccessScope) -> Iterator[Problem]:
    """Yield a warning about people that the plan unarchives: they count in no number."""
    if scope.unarchived:
        yield Problem(
            code="people/unarchived",
            message=f"this plan unarchives {count_people(scope.unarchived)}; archived now, they are not in its numbers "
            "of people",
            severity=Severity.WARNING,
            hint="After the apply, `lmsconf access` shows what one of them has.",
        )


def predict_effects(model: Memberships, now: int, *, rows: bool) -> PredictedEffects:
    """Return the effects of a plan. now: its time, in epoch seconds. rows: whether to return the people, too."""
    can_take, can_require = model.scope.takes, model.scope.requires
    affected = {*model.facts.affected, *(change.content for change in model.scope.assignments)}
    assigned = [(content_name(model.facts, id), id, list(assignments_of(model, id))) for id in sorted(affected)]
    assigned.sort(key=lambda content: content[:2])
    audiences, ends = list(model.group_audiences()), model.ends()
    contents: list[ContentEffects] = []
    people: list[PersonEffect] = []
    losses: dict[RemoteId, Sequence[RemoteId]] = {}
    totals: dict[str, Bits] = dict.fromkeys(_COUNTED, 0)
    for name, id, assignments in assigned:
        if not all(assignment.audience.is_known for assignment in assignments):
            contents.append(_unknown_content(id, name, assignments, can_take=can_take))
            continue
        access = compare_access(assignments, now, ends)
        totals = {counted: total | access.of(counted) for counted, total in totals.items()}
        if access.changed | access.of("shortened"):
            contents.append(_content(model, id, name, access, assignments))
            losses[id] = _known_ids(model, access.of("lose"))
            people.extend(person_rows(model, id, name, access) if rows else ())
    people.sort(key=lambda row: (row.content, row.content_id, row.email.casefold()))
    groups = tuple(one for group in audiences for one in _group(model, group))
    bases = [*(content.basis for content in contents), *(group.basis for group in groups)]
    unknown = any(content.before is None for content in contents)
    known = AccessCounts(**{name: totals[name].bit_count() for name in (*AccessChange, "shortened")})
    harmed = totals["lose"] | totals["shortened"] | totals["archived_soon"]
    effects = Effects(
        basis=weakest_basis(bases),
        reasons=tuple(dict.fromkeys(model.reasons)),
        people=unknown_counts(can_take=can_take) if unknown else known,
        contents=tuple(contents),
        groups=tuple(sorted(groups, key=lambda group: group.address)),
        calibration=Calibration(groups=len(model.compared), exact=sum(model.compared)),
        rows=tuple(people) if rows else None,
        unknown=tuple(_unknown_people(assigned)),
    )
    return PredictedEffects(
        effects=effects,
        measures=(
            *_counted("people", None if unknown and can_take else harmed.bit_count(), 0),
            *(_content_count(content) for content in contents if content.before is not None),
            *_counted(
                "mandatory",
                None if unknown and can_require else totals["bound"].bit_count(),
                model.active_before.bit_count(),
            ),
        ),
        losses={id: ids for id, ids in losses.items() if ids},
        problems=(*_archived_soon(totals), *unarchived_problems(model.scope)),
        sizes=model.sizes(),
        left=dict(_left(model, audiences)),
    )


def unknown_measures(*, can_take: bool, can_require: bool) -> tuple[GuardCount, ...]:
    """Return what the guards count where effects are not known: a plan that can only add takes nothing."""
    return (*_counted("people", None if can_take else 0, 0), *_counted("mandatory", None if can_require else 0, 0))


def _counted(guard: str, taken: int | None, size: int) -> tuple[GuardCount, ...]:
    return () if taken == 0 else (GuardCount(guard=guard, of="all people", taken=taken, size=size),)


def _content_count(content: ContentEffects) -> GuardCount:
    """Return how many lose one content: its share alone is judged, as the same people may lose others."""
    size, of = content.before or 0, f"content {content.content}"
    return GuardCount(guard="people", of=of, taken=content.counts.lose, size=size, counts=False)


def unknown_counts(*, can_take: bool) -> AccessCounts:
    """Return the numbers of people where they are not known: a plan that can only add takes nothing."""
    return AccessCounts() if can_take else AccessCounts(lose=0, shortened=0)


def _unknown_content(
    id: RemoteId, name: str, assignments: Sequence[AudienceAssignment], *, can_take: bool
) -> ContentEffects:
    """Return a content some of whose audiences are not known."""
    causes = {cause for one in assignments for cause in (*one.audience.causes, *([one.cause] if one.cause else []))}
    none_known = tuple(CauseCount(address=cause, gain=None, lose=None) for cause in sorted(causes))
    return ContentEffects(
        content=name,
        id=id,
        before=None,
        after=None,
        keep=None,
        counts=unknown_counts(can_take=can_take),
        basis=Basis.UNKNOWN,
        causes=none_known,
    )


def _unknown_people(
    assigned: Iterable[tuple[str, RemoteId, Sequence[AudienceAssignment]]],
) -> Iterator[UnknownPeople]:
    """Yield each audience that is not known, with the contents assigned to it. assigned: names, ids, assignments."""
    contents: defaultdict[tuple[str, str], dict[tuple[str, RemoteId], Address | None]] = defaultdict(dict)
    for name, id, assignments in assigned:
        for audience in (one.audience for one in assignments if not one.audience.is_known):
            contents[str(audience.address or ""), audience.reason][name, id] = audience.address
    for (_, reason), found in sorted(contents.items()):
        yield UnknownPeople(audience=next(iter(found.values())), contents=tuple(found), reason=reason)


def _content(
    model: Memberships, id: RemoteId, name: str, access: ContentAccess, assignments: Sequence[AudienceAssignment]
) -> ContentEffects:
    numbers = {change.value: access.of(change).bit_count() for change in AccessChange}
    changed = access.changed | access.of("shortened")
    causes = [
        (-(people & access.of("lose")).bit_count(), -(people & access.of("gain")).bit_count(), cause)
        for cause, people in access.causes
        if people & changed
    ]
    causes.extend(_person_causes(model, access))
    return ContentEffects(
        content=name,
        id=id,
        before=access.of("before").bit_count(),
        after=access.of("after").bit_count(),
        keep=access.of(KEEP).bit_count(),
        counts=AccessCounts(**numbers, shortened=access.of("shortened").bit_count()),
        basis=weakest_basis(assignment.audience.basis for assignment in assignments),
        # By most losses, then by most gains: both are negative here.
        causes=tuple(CauseCount(address=cause, gain=-gain, lose=-lose) for lose, gain, cause in sorted(causes)),
    )


def _person_causes(model: Memberships, access: ContentAccess) -> Iterator[tuple[int, int, Address]]:
    """Yield each person whose account or answers the plan changes, and whose access to a content changes.

    As negative numbers: whether the person loses it, and gains it.
    """
    changed = to_bits(model.changed_people, len(model.ids))
    gain, lose = (frozenset(positions_of(people & changed)) for people in (access.of("gain"), access.of("lose")))
    for position in positions_of((access.changed | access.of("shortened")) & changed):
        yield -int(position in lose), -int(position in gain), model.changed_people[position].address


def _group(model: Memberships, group: Audience) -> Iterator[GroupEffects]:
    """Yield the change of a group's membership, if it changes or is not known."""
    before, after = group.before, group.after
    if group.address is None or (before is not None and before == after):
        return
    both = None if before is None or after is None else (before, after)
    yield GroupEffects(
        address=group.address,
        before=None if before is None else before.bit_count(),
        after=None if after is None else after.bit_count(),
        join=None if both is None else (both[1] & ~both[0]).bit_count(),
        leave=None if both is None else (both[0] & ~both[1]).bit_count(),
        basis=Basis.UNKNOWN if both is None else group.basis,
        members=None if both is None else _members_digest(model, both[1]),
    )


def _left(model: Memberships, audiences: Iterable[Audience]) -> Iterator[tuple[Address, int]]:
    for group in audiences:
        if group.before is None or group.after is None or group.address is None or group.address.kind != SMART_GROUP:
            continue
        if leave := (group.before & ~group.after & model.active_after).bit_count():
            yield group.address, leave


def _members_digest(model: Memberships, members: Bits) -> str | None:
    known = _known_ids(model, members)
    return members_digest(known) if len(known) == members.bit_count() else None


def _known_ids(model: Memberships, people: Bits) -> list[RemoteId]:
    """Return the ids of people; those of new accounts are not known."""
    return [id for id in (model.ids[position] for position in positions_of(people)) if id is not None]


def person_rows(model: Memberships, id: RemoteId, name: str, access: ContentAccess) -> Iterator[PersonEffect]:
    """Yield a row for each person whose access to a content changes."""
    changed = access.changed
    held = {one: sides for sides, people in access.held.items() for one in positions_of(people & changed)}
    because: defaultdict[int, list[str]] = defaultdict(list)
    for cause, people in access.causes:
        for position in positions_of(people & changed):
            because[position].append(str(cause))
    short = frozenset(positions_of(access.of("shortened")))
    for change in AccessChange:
        for position in positions_of(access.of(change)):
            before, after = held[position]
            if position in model.changed_people:
                because[position].append(str(model.changed_people[position].address))
            yield PersonEffect(
                email=model.emails[position],
                content=name,
                content_id=id,
                change=change,
                before=before.word,
                after=after.word,
                from_before=before.start,
                until_before=before.finish,
                from_after=after.start,
                until_after=after.finish,
                shortened=position in short,
                causes=tuple(sorted(because[position])),
            )


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
        predicted = replace(predicted, effects=with_progress(reading.api, predicted.effects, predicted.losses, now))
    if not draft.manifests.tests:
        return predicted
    state = WorkspaceAccess(facts, scope, query.fields, planning=planning, now=now)
    failed = failed_problems(judge_tests(state, draft.manifests.tests, policy.workspace))
    return replace(predicted, problems=(*predicted.problems, *failed))


def predict_access(facts: AccessFacts, scope: AccessScope, now: int, *, rows: bool) -> PredictedEffects:
    """Return the effects of a plan. now: its time, in epoch seconds. rows: whether to return the people, too."""
    if facts.incomplete:
        return unknown_effects(facts.incomplete, scope)
    return predict_effects(Memberships(facts, scope), now, rows=rows)


def unknown_effects(reasons: Sequence[str], scope: AccessScope) -> PredictedEffects:
    """Return effects of which nothing is known but what the changes rule out: a plan that only adds takes nothing."""
    people = unknown_counts(can_take=scope.takes)
    nobody = UnknownPeople(audience=None, contents=(), reason="; ".join(reasons))
    effects = Effects(basis=Basis.UNKNOWN, reasons=tuple(reasons), people=people, unknown=(nobody,))
    measures = unknown_measures(can_take=scope.takes, can_require=scope.requires)
    return PredictedEffects(effects=effects, measures=measures)
