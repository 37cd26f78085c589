"""Lints: what is valid in manifests and probably not meant, of each kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, tzinfo
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.assignment.types import AssignmentSpec
from lmsconf.kinds.custom_field.types import MOST_FIELDS, DeclaredCondition
from lmsconf.kinds.group import FEWEST_MEMBERS, ManualGroupSpec
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, EVERYONE, GROUP, SMART_GROUP, USER, is_named
from lmsconf.kinds.shared.manifest_entry import PeopleList, format_time
from lmsconf.kinds.smart_group import MATCHED_BY_CHOICE, SmartGroupRow, SmartGroupSpec, sorted_conditions
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DesiredResource, Manifests
from lmsconf.model.guards import Policy
from lmsconf.model.lint_codes import LintLevel, apply_levels, lint_problem
from lmsconf.model.names import suspicion
from lmsconf.model.plan import Action

if TYPE_CHECKING:
    from lmsconf.planner.plan import PlanWithoutEffects


class LintContext(Struct, frozen=True, kw_only=True, dict=True):
    """What lints look at. manifests: what applies in the workspace.

    now: the time of the plan, or the beginning of the day. timezone: in which times are shown.
    archived: the e-mails of people known to be archived. field_types: by name. Both are as after the plan; where
    only the manifests are known, as declared.
    planned: the plan. rows: in a plan, the live row of each declared resource; None for a new one. sizes: how many
    people are in which audience after it, as far as that is known exactly.
    """

    manifests: Manifests
    now: datetime
    timezone: tzinfo | None
    archived: frozenset[str]
    field_types: Mapping[str, str | None]
    planned: PlanWithoutEffects | None = None
    rows: Mapping[Address, Any] = {}
    sizes: Mapping[Address, int] = {}

    def of(self, kind: str) -> Sequence[DesiredResource[Any]]:
        """Return the declarations of a kind by address: the order of files decides nothing."""
        return sorted(self.manifests.of_kind(kind)[0], key=lambda one: str(one.address))

    @cached_property
    def specs(self) -> Mapping[Address, Any]:
        """What is declared of each resource."""
        return {one.address: one.spec for one in self.manifests.declared}


def _suspicious_names(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about names that probably hold characters that nobody meant to write."""
    for declared in chain.from_iterable(context.of(kind.name) for kind in KINDS.values() if is_named(kind)):
        named = [("its name", declared.address.name, declared.source)]
        if declared.address.kind == CUSTOM_FIELD and declared.spec.choices is not None:
            named += [
                ("the name of a choice", one.name, declared.places.at(*one.at)) for one in declared.spec.choices.include
            ]
        yield from (
            lint_problem("lint/suspicious-name", f"{subject} {wrong}", source=source, address=declared.address)
            for subject, name, source in named
            if (wrong := suspicion(name)) is not None
        )


def _unused_fields(context: LintContext) -> Iterator[Problem]:
    """Yield a finding for each declared field that no smart group asks for, if there is no room for another field."""
    if context.planned is None:
        return
    fields, changes = context.planned.planning.snapshot.of(CUSTOM_FIELD), context.planned.plan.changes
    actions = Counter(change.action for change in changes if change.address.kind == CUSTOM_FIELD)
    after = len(fields.rows) + actions[Action.CREATE] - actions[Action.DELETE]
    if fields.incomplete is not None or after < MOST_FIELDS:
        return
    used = _fields_in_conditions(context.planned)
    yield from (
        lint_problem(
            "lint/unused-field",
            f"no smart group uses it, and all {MOST_FIELDS} custom fields are taken",
            source=declared.source,
            address=declared.address,
        )
        for declared in context.of(CUSTOM_FIELD)
        if used is not None and declared.address.name not in used
    )


def _fields_in_conditions(planned: PlanWithoutEffects) -> frozenset[str] | None:
    """Return the fields that smart groups ask for, before or after the plan; None if some conditions are not known."""
    deleted = {
        one.id for one in planned.plan.changes if one.address.kind == SMART_GROUP and one.action is Action.DELETE
    }
    listing = planned.planning.snapshot.of(SMART_GROUP)
    live = [row.conditions for row in listing.rows if row.id not in deleted]
    if listing.incomplete is not None or None in live:
        return None
    names = (planned.planning.registry.name(CUSTOM_FIELD, one.field) or "" for one in chain.from_iterable(live))
    specs = (match.declared.spec for match in planned.results[SMART_GROUP].matches)
    return frozenset((*names, *(one.field for spec in specs for one in spec.conditions or ())))


def lint_groups(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared groups."""
    by_members: dict[frozenset[str], DesiredResource[ManualGroupSpec]] = {}
    for declared in context.of(GROUP):
        yield from lint_managers(context, declared)
        members = declared.spec.members
        if members is not None and members.whole and len(members.include) >= FEWEST_MEMBERS:
            yield from _duplicate(declared, by_members.setdefault(members.include, declared), "members")


def lint_managers(context: LintContext, declared: DesiredResource[Any]) -> Iterator[Problem]:
    """Yield a finding for a group whose declared managers leave it without an active one."""
    managers = _managers(context, declared)
    if managers is not None and not managers - context.archived:
        yield lint_problem(
            "lint/no-active-manager",
            "all its managers are archived" if managers else "nobody manages it",
            source=declared.places.at("managers"),
            address=declared.address,
        )


def _managers(context: LintContext, declared: DesiredResource[Any]) -> frozenset[str] | None:
    """Return the managers after the plan; None if they are not declared, or not known."""
    people: PeopleList | None = declared.spec.managers
    if people is None or people.whole:
        return None if people is None else people.include
    row = context.rows.get(declared.address)
    live = frozenset[RemoteId]() if row is None else row.managers
    emails = {} if context.planned is None else context.planned.planning.people.emails
    if context.planned is None or live is None or not live <= emails.keys():
        return None
    return (frozenset(emails[id] for id in live) | people.include) - people.exclude


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


def lint_smart_groups(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared smart groups."""
    by_conditions: dict[tuple[DeclaredCondition, ...], DesiredResource[SmartGroupSpec]] = {}
    for declared in context.of(SMART_GROUP):
        yield from lint_managers(context, declared)
        if declared.spec.conditions is not None:
            yield from list(_impossible(context, declared)) or _size(context, declared)
            first = by_conditions.setdefault(sorted_conditions(declared.spec.conditions), declared)
            yield from _duplicate(declared, first, "conditions")


def _impossible(context: LintContext, declared: DesiredResource[SmartGroupSpec]) -> Iterator[Problem]:
    """Yield a finding for each single-choice field of which no choice meets all conditions."""
    row: SmartGroupRow | None = context.rows.get(declared.address)
    if row is not None and any(one.system_condition not in MATCHED_BY_CHOICE for one in row.conditions or ()):
        # A declared condition without a system condition keeps that of the live one.
        return
    common: dict[str, frozenset[str]] = {}
    for position, condition in enumerate(declared.spec.conditions or ()):
        is_single = context.field_types.get(condition.field) == "CHOICE"
        if not is_single or not condition.choices or condition.system_condition not in MATCHED_BY_CHOICE:
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
    size, everybody = context.sizes.get(declared.address), context.sizes.get(EVERYONE, 0)
    # In a workspace of one person every smart group has nobody or everybody.
    if everybody > 1 and size in (0, everybody):
        yield lint_problem(
            "lint/matches-everybody" if size else "lint/matches-nobody",
            f"all {size:,} active people meet its conditions" if size else "no active person meets its conditions",
            source=declared.places.at("conditions"),
            address=declared.address,
        )


def lint_assignments(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared assignments."""
    by_content: defaultdict[object, list[DesiredResource[AssignmentSpec]]] = defaultdict(list)
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
        audience = declared.spec.audience
        if audience.kind == USER and audience.name in context.archived:
            yield lint_problem(
                "lint/archived-assignee",
                f"{audience.name} is archived",
                source=declared.source,
                address=declared.address,
            )
        elif audience.kind != USER and declared.spec.mandatory and _is_empty(context, audience):
            yield lint_problem(
                "lint/empty-mandatory",
                "it is mandatory, and nobody who is active is in its audience",
                source=declared.source,
                address=declared.address,
            )
    yield from chain.from_iterable(_contradictions(context, same) for same in by_content.values())


def _contradictions(context: LintContext, assignments: Sequence[DesiredResource[AssignmentSpec]]) -> Iterator[Problem]:
    """Yield a finding for each assignment of one content that one to a larger audience overrules."""
    groups = (one for one in assignments if one.spec.audience.kind != USER)
    audiences = sorted(groups, key=lambda one: (one.spec.audience != EVERYONE, one.spec.audience.kind))
    for declared in assignments:
        for other in audiences:
            message = _contradiction(context, declared.spec, other.spec)
            if message is not None:
                yield lint_problem(
                    "lint/contradicting-assignments",
                    message,
                    source=declared.source,
                    address=declared.address,
                    remedy=f"See {other.source}. Remove one of the two, or make the larger audience smaller.",
                )
                break


def _is_empty(context: LintContext, audience: Address) -> bool:
    """Return whether it is known that nobody who is active is in an audience."""
    size = context.sizes.get(audience)
    if size is not None and audience != EVERYONE:
        return size == 0
    members = _members(context, audience)
    return members is not None and members.whole and members.include <= context.archived


def _members(context: LintContext, group: Address) -> PeopleList | None:
    """Return the declared members of a group; None for another audience."""
    spec = context.specs.get(group)
    return spec.members if isinstance(spec, ManualGroupSpec) else None


def _contains(context: LintContext, wide: Address, narrow: Address) -> bool:
    """Whether everybody in one audience is in another one, for certain."""
    if wide == EVERYONE:
        return True
    if narrow.kind == USER:
        members = _members(context, wide)
        return members is not None and narrow.name in members.include
    asked, met = (getattr(context.specs.get(one), "conditions", None) or () for one in (wide, narrow))
    return bool(asked) and all(any(_implies(one, other) for one in met) for other in asked)


def _implies(condition: DeclaredCondition, other: DeclaredCondition) -> bool:
    """Whether everybody who meets a condition meets another one."""
    same = (condition.field, condition.system_condition) == (other.field, other.system_condition)
    return same and other.system_condition in MATCHED_BY_CHOICE and frozenset() < condition.choices <= other.choices


def _contradiction(context: LintContext, narrow: AssignmentSpec, wide: AssignmentSpec) -> str | None:
    """Return what an assignment to a larger audience overrules; None for nothing, or no larger audience."""
    if wide.audience == narrow.audience or not _contains(context, wide.audience, narrow.audience):
        return None
    (start, end), (wide_start, wide_end) = _window(narrow), _window(wide)
    is_longer = (start, end) != (wide_start, wide_end) and wide_start <= start and end <= wide_end
    if wide.mandatory and not narrow.mandatory and start <= wide_end and wide_start <= end:
        return f"it is optional, and mandatory for {wide.audience}, which contains its audience"
    hides_nothing = f"its window hides nothing: that of {wide.audience}, which contains its audience, is open longer"
    return hides_nothing if is_longer and wide.mandatory == narrow.mandatory else None


def _window(spec: AssignmentSpec) -> tuple[datetime, datetime]:
    """Return when a window opens and closes; an open side is the first or the last time that there is."""
    always = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    return spec.visible_from or always[0], spec.visible_until or always[1]


def lint_manifests(manifests: Manifests, policy: Policy) -> list[Problem]:
    """Return the findings of lints that need no workspace."""
    here = manifests.in_workspace(policy.workspace)
    fields, people = (here.of_kind(kind)[0] for kind in (CUSTOM_FIELD, USER))
    context = LintContext(
        manifests=here,
        now=datetime.combine(policy.today, time(), tzinfo=policy.timezone or UTC),
        timezone=policy.timezone,
        archived=frozenset(one.address.name for one in people if one.spec.flags.get("archived")),
        field_types={one.address.name: one.spec.type for one in fields},
    )
    return sorted(_run(context, policy.lints), key=lambda one: (one.source or SourceLocation(""), one.code))


def lint_plan(planned: PlanWithoutEffects, sizes: Mapping[Address, int]) -> list[Problem]:
    """Return the findings of lints about what a plan looks at. sizes: as in LintContext."""
    context = LintContext(
        manifests=planned.manifests,
        now=datetime.fromisoformat(planned.plan.created_at),
        timezone=planned.planning.policy.timezone,
        archived=planned.planning.people.archived,
        field_types=planned.planning.field_types,
        planned=planned,
        rows={match.address: match.row for result in planned.results.values() for match in result.matches},
        sizes=sizes,
    )
    chosen = (
        one
        for one in _run(context, planned.lint_levels)
        if one.address and planned.planning.chosen(Address.parse(one.address))
    )
    # By address, not by place: a plan does not depend on the files that its declarations stand in.
    return sorted(chosen, key=lambda one: (one.address or "", one.code, one.message))


def _run(context: LintContext, levels: Mapping[str, LintLevel]) -> Iterator[Problem]:
    lints = (_suspicious_names, _unused_fields, lint_groups, lint_smart_groups, lint_assignments)
    return apply_levels(chain.from_iterable(lint(context) for lint in lints), levels)
