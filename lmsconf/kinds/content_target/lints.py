"""Lints of assignments: to nobody, to somebody archived, with a window that is over, or overruled by another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, TypeAlias

from lmsconf.errors import Problem
from lmsconf.kinds.content_target.types import AssignmentSpec
from lmsconf.kinds.manual_group.types import ManualGroupSpec
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, EVERYONE, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.times import format_time
from lmsconf.kinds.smart_group.types import ASKING_FOR_CHOICES, DeclaredCondition
from lmsconf.kinds.user.manager_lints import archived_people
from lmsconf.model.address import Address
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.lints import lint_problem

if TYPE_CHECKING:
    from lmsconf.planner.lints import LintContext

_Assignment: TypeAlias = DesiredResource[AssignmentSpec]


def lint_assignments(context: LintContext) -> Iterator[Problem]:
    """Yield the findings about all declared assignments."""
    archived = archived_people(context)
    groups = {one.address: one.spec for one in context.of(GROUP)}
    by_content: defaultdict[object, list[_Assignment]] = defaultdict(list)
    for declared in context.of(CONTENT_TARGET):
        if _is_over(declared.spec, context.now):
            yield _closed(declared, context.timezone)
            continue
        by_content[declared.spec.content, frozenset(declared.spec.content_pins.items())].append(declared)
        if declared.spec.audience.kind == USER:
            yield from _archived(declared, archived)
        elif declared.spec.mandatory and _is_empty(context, declared.spec.audience, groups, archived):
            yield lint_problem(
                "lint/empty-mandatory",
                "it is mandatory, and nobody who is active is in its audience",
                source=declared.source,
                address=declared.address,
            )
    conditions = {one.address: one.spec.conditions for one in context.of(SMART_GROUP) if one.spec.conditions}
    for assignments in by_content.values():
        audiences = _Audiences(assignments, groups, conditions)
        for declared in assignments:
            yield from _overruled(declared, audiences.around(declared))


def _is_over(spec: AssignmentSpec, now: datetime) -> bool:
    return spec.visible_until is not None and spec.visible_until < now


def _closed(declared: _Assignment, zone: tzinfo | None) -> Problem:
    until = declared.spec.visible_until
    shown = "" if until is None else format_time(until, zone)
    return lint_problem(
        "lint/closed-window",
        f"its window closed at {shown}",
        source=declared.places.at("visible_until"),
        address=declared.address,
    )


def _archived(declared: _Assignment, archived: frozenset[str]) -> Iterator[Problem]:
    if declared.spec.audience.name in archived:
        message = f"{declared.spec.audience.name} is archived"
        yield lint_problem("lint/archived-assignee", message, source=declared.source, address=declared.address)


def _is_empty(
    context: LintContext, audience: Address, groups: dict[Address, ManualGroupSpec], archived: frozenset[str]
) -> bool:
    """Return whether it is known that nobody who is active is in an audience."""
    size = context.size(audience)
    if size is not None:
        return size.people == 0
    spec = groups.get(audience)
    return spec is not None and spec.members is not None and spec.members.whole and spec.members.include <= archived


class _Audiences:
    """The audiences of the assignments of one content, to find those that contain another one."""

    def __init__(
        self,
        assignments: Sequence[_Assignment],
        groups: dict[Address, ManualGroupSpec],
        conditions: dict[Address, tuple[DeclaredCondition, ...]],
    ) -> None:
        self._conditions = conditions
        self._everyone: list[_Assignment] = []
        self._by_member: defaultdict[str, list[_Assignment]] = defaultdict(list)
        self._by_choice: defaultdict[tuple[str, str], list[_Assignment]] = defaultdict(list)
        # Groups may have many members, and only those who have assignments of their own matter.
        people = frozenset(one.spec.audience.name for one in assignments if one.spec.audience.kind == USER)
        for assignment in assignments:
            audience = assignment.spec.audience
            spec = groups.get(audience)
            if audience == EVERYONE:
                self._everyone.append(assignment)
            elif spec is not None and spec.members is not None:
                for person in spec.members.include & people:
                    self._by_member[person].append(assignment)
            elif audience in conditions:
                # A smart group contains another one only if its first condition accepts all choices of some condition
                # there, the first one among them.
                first = conditions[audience][0]
                for choice in first.choices:
                    self._by_choice[first.field, choice].append(assignment)

    def around(self, declared: _Assignment) -> Iterator[_Assignment]:
        """Yield the assignments whose audience contains that of another one, and is not the same."""
        audience = declared.spec.audience
        if audience != EVERYONE:
            yield from self._everyone
        if audience.kind == USER:
            yield from self._by_member.get(audience.name, ())
        conditions = self._conditions.get(audience)
        if conditions is None:
            return
        keys = {(condition.field, min(condition.choices)) for condition in conditions if condition.choices}
        candidates = {one.address: one for key in sorted(keys) for one in self._by_choice.get(key, ())}
        for address, other in candidates.items():
            if address != declared.address and _contains(self._conditions[other.spec.audience], conditions):
                yield other


def _contains(wide: Iterable[DeclaredCondition], narrow: Iterable[DeclaredCondition]) -> bool:
    """Return whether everybody who meets all conditions of `narrow` meets all of `wide`, for certain."""
    return all(any(_implies(condition, other) for condition in narrow) for other in wide)


def _implies(condition: DeclaredCondition, other: DeclaredCondition) -> bool:
    same = (condition.field, condition.system_condition) == (other.field, other.system_condition)
    asks = other.system_condition in ASKING_FOR_CHOICES
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
    if wide.mandatory and not narrow.mandatory and _overlap(narrow, wide):
        return f"it is optional, and mandatory for {wide.audience}, which contains its audience"
    same = (narrow.visible_from, narrow.visible_until) == (wide.visible_from, wide.visible_until)
    if wide.mandatory == narrow.mandatory and not same and _lies_within(narrow, wide):
        return f"its window hides nothing: that of {wide.audience}, which contains its audience, is open longer"
    return None


def _overlap(one: AssignmentSpec, other: AssignmentSpec) -> bool:
    return _begins_by(one, other.visible_until) and _begins_by(other, one.visible_until)


def _begins_by(spec: AssignmentSpec, moment: datetime | None) -> bool:
    return moment is None or spec.visible_from is None or spec.visible_from <= moment


def _lies_within(narrow: AssignmentSpec, wide: AssignmentSpec) -> bool:
    begins = wide.visible_from is None or (narrow.visible_from is not None and narrow.visible_from >= wide.visible_from)
    ends = wide.visible_until is None or (
        narrow.visible_until is not None and narrow.visible_until <= wide.visible_until
    )
    return begins and ends
