"""Lints: what is valid in manifests and probably not meant, of each kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, tzinfo
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.assignment.types import AssignmentSpec
from lmsconf.kinds.custom_field.types import MOST_FIELDS, DeclaredCondition
from lmsconf.kinds.group import FEWEST_MEMBERS, GroupRow, ManualGroupSpec
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, EVERYONE, GROUP, SMART_GROUP, USER, is_named
from lmsconf.kinds.shared.manifest_entry import PeopleList, format_time
from lmsconf.kinds.shared.plan_context import MatchResult
from lmsconf.kinds.smart_group import MATCHED_BY_CHOICE, SmartGroupRow, SmartGroupSpec, sorted_conditions
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DesiredResource, Manifests
from lmsconf.model.guards import Policy
from lmsconf.model.lint_codes import LintLevel, apply_levels, lint_problem
from lmsconf.model.names import suspicion

if TYPE_CHECKING:
    from lmsconf.planner.audience.people_sets import AudienceSize
    from lmsconf.planner.plan import DraftPlan


class LintContext(Struct, frozen=True, kw_only=True):
    """What lints look at. manifests: what applies in the workspace.

    now: the time of the plan, or the beginning of the day. timezone: in which times are shown. plan: None where only
    the manifests are known. sizes: how many people are in which audience after it, as far as that is known exactly.
    """

    manifests: Manifests
    now: datetime
    timezone: tzinfo | None
    plan: DraftPlan | None = None
    sizes: Mapping[Address, AudienceSize] = field(default_factory=dict)

    def of(self, kind: str) -> Sequence[DesiredResource[Any]]:
        """Return the declarations of a kind by address: the order of files decides nothing."""
        return sorted(self.manifests.of_kind(kind)[0], key=lambda one: str(one.address))


def archived_people(context: LintContext) -> frozenset[str]:
    """Return the e-mails of people known to be archived: in a plan those after it, else those declared to be."""
    if context.plan is not None:
        return context.plan.planning.people.archived
    return frozenset(one.address.name for one in context.of(USER) if one.spec.flags.get("archived"))


def lint_managers(
    context: LintContext, declared: DesiredResource[Any], row: GroupRow | SmartGroupRow | None
) -> Iterator[Problem]:
    """Yield a finding for a group whose declared managers leave it without an active one. row: None for a new group."""
    people: PeopleList | None = declared.spec.managers
    managers = None if people is None else _managers(context, people, row)
    if managers is not None and not managers - archived_people(context):
        yield lint_problem(
            "lint/no-active-manager",
            "all its managers are archived" if managers else "nobody manages it",
            source=declared.places.at("managers"),
            address=declared.address,
        )


def _managers(context: LintContext, people: PeopleList, row: GroupRow | SmartGroupRow | None) -> frozenset[str] | None:
    """Return the managers after the plan; None if they are not known."""
    if people.whole:
        return people.include
    live = frozenset[RemoteId]() if row is None else row.managers
    emails = {} if context.plan is None else context.plan.planning.people.emails
    if context.plan is None or live is None or not live <= emails.keys():
        return None
    return (frozenset(emails[id] for id in live) | people.include) - people.exclude


def _suspicious_choices(context: LintContext) -> Iterator[Problem]:
    for resource in context.of(CUSTOM_FIELD):
        for choice in () if resource.spec.choices is None else resource.spec.choices.include:
            yield from lint_name(resource.address, choice.name, resource.places.at(*choice.at), "the name of a choice")


def _unused_fields(context: LintContext) -> Iterator[Problem]:
    """Yield a finding for each declared field that no smart group asks for, if there is no room for another field."""
    plan = context.plan
    if plan is None or plan.planning.snapshot.of(CUSTOM_FIELD).incomplete is not None or _has_room(plan):
        return
    used = _fields_in_conditions(plan)
    for declared in context.of(CUSTOM_FIELD):
        if used is not None and declared.address.name not in used:
            yield lint_problem(
                "lint/unused-field",
                f"no smart group uses it, and all {MOST_FIELDS} custom fields are taken",
                source=declared.source,
                address=declared.address,
            )


def _has_room(plan: DraftPlan) -> bool:
    """Return whether the workspace can hold another field after the plan."""
    planning, matched = plan.planning, plan.results[CUSTOM_FIELD]
    created = sum(match.row is None and planning.chosen(match.address) for match in matched.matches)
    return len(planning.snapshot.of(CUSTOM_FIELD).rows) - len(_deleted(plan, matched)) + created < MOST_FIELDS


def _deleted(plan: DraftPlan, matched: MatchResult[Any, Any]) -> frozenset[str]:
    """Return the ids of the resources of one kind that the plan deletes."""
    if plan.planning.policy.additive:
        return frozenset()
    return frozenset(deletion.row.id for deletion in matched.deletions if plan.planning.chosen(deletion.address))


def _fields_in_conditions(plan: DraftPlan) -> frozenset[str] | None:
    """Return the fields that smart groups ask for, before or after the plan; None if some conditions are not known."""
    planning, matched = plan.planning, plan.results[SMART_GROUP]
    listing = planning.snapshot.of(SMART_GROUP)
    if listing.incomplete is not None:
        return None
    deleted = _deleted(plan, matched)
    fields = {condition.field for match in matched.matches for condition in match.declared.spec.conditions or ()}
    for conditions in (row.conditions for row in listing.rows if row.id not in deleted):
        if conditions is None:
            return None
        fields |= {planning.registry.name(CUSTOM_FIELD, condition.field) or "" for condition in conditions}
    return frozenset(fields)


def lint_groups(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared groups."""
    rows = _live_rows(context, GROUP)
    by_members: dict[frozenset[str], DesiredResource[ManualGroupSpec]] = {}
    for declared in context.of(GROUP):
        yield from lint_managers(context, declared, rows.get(declared.address))
        members = declared.spec.members
        if members is not None and members.whole and len(members.include) >= FEWEST_MEMBERS:
            yield from _duplicate(declared, by_members.setdefault(members.include, declared), "members")


def _duplicate(declared: DesiredResource[Any], first: DesiredResource[Any], key: str) -> Iterator[Problem]:
    """Yield a finding for a group that has the same value of a key as another one."""
    if first is not declared:
        yield lint_problem(
            "lint/duplicate-audience",
            f"it has the same {key} as {first.address}",
            source=declared.places.at(key),
            address=declared.address,
            remedy=f"See {first.source}. Keep one of the two, and assign to it.",
        )


def _live_rows(context: LintContext, kind: str) -> dict[Address, Any]:
    """Return the rows of the live resources of a kind that are declared."""
    matches = () if context.plan is None else context.plan.results[kind].matches
    return {match.address: match.row for match in matches}


def lint_smart_groups(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared smart groups."""
    named = {one.address.name: one.spec.type for one in context.of(CUSTOM_FIELD) if one.spec.type is not None}
    types = named if context.plan is None else context.plan.planning.field_types
    rows = _live_rows(context, SMART_GROUP)
    by_conditions: dict[tuple[DeclaredCondition, ...], DesiredResource[SmartGroupSpec]] = {}
    for declared in context.of(SMART_GROUP):
        row = rows.get(declared.address)
        yield from lint_managers(context, declared, row)
        if declared.spec.conditions is not None:
            yield from list(_impossible(declared, row, types)) or _size(context, declared)
            conditions = sorted_conditions(declared.spec.conditions)
            yield from _duplicate(declared, by_conditions.setdefault(conditions, declared), "conditions")


def _impossible(
    declared: DesiredResource[SmartGroupSpec], row: SmartGroupRow | None, types: Mapping[str, str]
) -> Iterator[Problem]:
    """Yield a finding for each single-choice field of which no choice meets all conditions."""
    if row is not None and any(one.system_condition not in MATCHED_BY_CHOICE for one in row.conditions or ()):
        # A declared condition without a system condition keeps that of the live one.
        return
    common: dict[str, frozenset[str]] = {}
    for position, condition in enumerate(declared.spec.conditions or ()):
        asks = condition.choices and condition.system_condition in MATCHED_BY_CHOICE
        if not asks or types.get(condition.field) != "CHOICE":
            continue
        before = common.get(condition.field, condition.choices)
        common[condition.field] = before & condition.choices
        if before and not common[condition.field]:
            yield lint_problem(
                "lint/impossible-conditions",
                f"nobody can meet all its conditions on {Address.of(CUSTOM_FIELD, condition.field)}: each person has "
                "one answer, and no choice is in all of them",
                source=declared.places.at("conditions", position),
                address=declared.address,
            )


def _size(context: LintContext, declared: DesiredResource[SmartGroupSpec]) -> Iterator[Problem]:
    """Yield a finding for a smart group without members, or with everybody."""
    size = context.sizes.get(declared.address)
    # In a workspace of one person every smart group has nobody or everybody.
    if size is not None and size.everybody > 1 and size.people in (0, size.everybody):
        code, message = "lint/matches-nobody", "no active person meets its conditions"
        if size.people:
            code, message = "lint/matches-everybody", f"all {size.people:,} active people meet its conditions"
        yield lint_problem(code, message, source=declared.places.at("conditions"), address=declared.address)


_Assignment: TypeAlias = DesiredResource[AssignmentSpec]
_Groups: TypeAlias = Mapping[Address, ManualGroupSpec]


def lint_assignments(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared assignments."""
    archived = archived_people(context)
    groups = {one.address: one.spec for one in context.of(GROUP)}
    by_content: defaultdict[object, list[_Assignment]] = defaultdict(list)
    for declared in context.of(CONTENT_TARGET):
        until = declared.spec.visible_until
        if until is not None and until < context.now:
            yield lint_problem(
                "lint/closed-window",
                f"its window closed at {format_time(until, context.timezone)}",
                source=declared.places.at("visible_until"),
                address=declared.address,
            )
            continue
        by_content[declared.spec.content, frozenset(declared.spec.content_pins.items())].append(declared)
        if declared.spec.audience.kind == USER:
            if declared.spec.audience.name in archived:
                yield lint_problem(
                    "lint/archived-assignee",
                    f"{declared.spec.audience.name} is archived",
                    source=declared.source,
                    address=declared.address,
                )
        elif declared.spec.mandatory and _is_empty(context, declared.spec.audience, groups, archived):
            yield lint_problem(
                "lint/empty-mandatory",
                "it is mandatory, and nobody who is active is in its audience",
                source=declared.source,
                address=declared.address,
            )
    conditions = {one.address: one.spec.conditions for one in context.of(SMART_GROUP) if one.spec.conditions}
    for assignments in by_content.values():
        audiences = [one for one in assignments if one.spec.audience.kind != USER]
        audiences.sort(key=lambda one: (one.spec.audience != EVERYONE, one.spec.audience.kind))
        for declared in assignments:
            own = declared.spec.audience
            others = (one for one in audiences if one.spec.audience != own)
            # One at a time: the first that overrules it is enough.
            around = (one for one in others if _contains(one.spec.audience, own, groups, conditions))
            yield from _overruled(declared, around)


def _is_empty(context: LintContext, audience: Address, groups: _Groups, archived: frozenset[str]) -> bool:
    """Return whether it is known that nobody who is active is in an audience."""
    size = context.sizes.get(audience)
    if size is not None:
        return size.people == 0
    spec = groups.get(audience)
    return spec is not None and spec.members is not None and spec.members.whole and spec.members.include <= archived


def _contains(
    wide: Address,
    narrow: Address,
    groups: _Groups,
    conditions: Mapping[Address, tuple[DeclaredCondition, ...]],
) -> bool:
    """Whether everybody in one audience is in another one, for certain."""
    if wide == EVERYONE:
        return True
    if narrow.kind == USER:
        spec = groups.get(wide)
        return spec is not None and spec.members is not None and narrow.name in spec.members.include
    asked, met = conditions.get(wide, ()), conditions.get(narrow, ())
    return bool(asked) and all(any(_implies(one, other) for one in met) for other in asked)


def _implies(condition: DeclaredCondition, other: DeclaredCondition) -> bool:
    same = (condition.field, condition.system_condition) == (other.field, other.system_condition)
    asks = other.system_condition in MATCHED_BY_CHOICE
    return same and asks and bool(condition.choices) and condition.choices <= other.choices


def _overruled(declared: _Assignment, around: Iterable[_Assignment]) -> Iterator[Problem]:
    """Yield a finding for the first assignment to a larger audience that leaves this one without effect."""
    for other in around:
        message = _contradiction(declared.spec, other.spec)
        if message is not None:
            yield lint_problem(
                "lint/contradicting-assignments",
                message,
                source=declared.source,
                address=declared.address,
                remedy=f"See {other.source}. Remove one of the two, or make the larger audience smaller.",
            )
            return


def _contradiction(narrow: AssignmentSpec, wide: AssignmentSpec) -> str | None:
    """Return what an assignment to a larger audience overrules; None for nothing."""
    (start, end), (wide_start, wide_end) = _window(narrow), _window(wide)
    if wide.mandatory and not narrow.mandatory and start <= wide_end and wide_start <= end:
        return f"it is optional, and mandatory for {wide.audience}, which contains its audience"
    is_longer = (start, end) != (wide_start, wide_end) and wide_start <= start and end <= wide_end
    if wide.mandatory == narrow.mandatory and is_longer:
        return f"its window hides nothing: that of {wide.audience}, which contains its audience, is open longer"
    return None


def _window(spec: AssignmentSpec) -> tuple[datetime, datetime]:
    """Return when a window opens and closes; an open side is the first or the last time that there is."""
    always = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    return spec.visible_from or always[0], spec.visible_until or always[1]


def lint_name(address: Address, name: str, source: SourceLocation, subject: str) -> Iterator[Problem]:
    """Yield a finding about a name that probably holds characters that nobody meant to write. subject: whose name."""
    wrong = suspicion(name)
    if wrong is not None:
        yield lint_problem("lint/suspicious-name", f"{subject} {wrong}", source=source, address=address)


def lint_manifests(manifests: Manifests, policy: Policy) -> list[Problem]:
    """Return the findings of lints that need no workspace."""
    now = datetime.combine(policy.today, time(), tzinfo=policy.timezone or UTC)
    context = LintContext(manifests=manifests.in_workspace(policy.workspace), now=now, timezone=policy.timezone)
    return sorted(_run(context, policy.lints), key=lambda one: (one.source or SourceLocation(""), one.code))


def lint_plan(draft: DraftPlan, sizes: Mapping[Address, AudienceSize]) -> list[Problem]:
    """Return the findings of lints about what a plan looks at. sizes: as in LintContext."""
    context = LintContext(
        manifests=draft.manifests,
        now=datetime.fromisoformat(draft.plan.created_at),
        timezone=draft.planning.policy.timezone,
        plan=draft,
        sizes=sizes,
    )
    findings = _run(context, draft.lint_levels)
    chosen = (one for one in findings if one.address and draft.planning.chosen(Address.parse(one.address)))
    # By address, not by place: a plan does not depend on the files that its declarations stand in.
    return sorted(chosen, key=lambda one: (one.address or "", one.code, one.message))


def _run(context: LintContext, levels: Mapping[str, LintLevel]) -> Iterator[Problem]:
    named = (one for kind in KINDS.values() if is_named(kind) for one in context.of(kind.name))
    names = (lint_name(one.address, one.address.name, one.source, "its name") for one in named)
    lints = (_suspicious_choices, _unused_fields, lint_groups, lint_smart_groups, lint_assignments)
    return apply_levels(chain(*(lint(context) for lint in lints), *names), levels)
