"""Which contents, audiences, answers and accounts the changes of a plan affect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import cast

from msgspec import Struct, field

from lmsconf.kinds.assignment.target_ids import EVERYONE_KEY, ContentResolver
from lmsconf.kinds.assignment.types import AssignmentSpec, TargetRow
from lmsconf.kinds.custom_field.lost_answers import FieldOrChoiceDeletion
from lmsconf.kinds.shared.kind_names import (
    CONTENT_TARGET,
    CUSTOM_FIELD,
    GROUP,
    SMART_GROUP,
    USER,
)
from lmsconf.kinds.shared.manifest_entry import included
from lmsconf.kinds.shared.plan_context import Deletion, Match, PlanContext
from lmsconf.kinds.smart_group import sorted_for_request
from lmsconf.kinds.user.types import Answer, PersonRow, PersonSpec, picked_choices
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.time_formats import parse_response_time
from lmsconf.planner.audience.people_sets import HORIZON, AudienceKey, Terms, Window
from lmsconf.planner.planned_resources import PlannedResource


class Condition(Struct, frozen=True):
    """A condition of a smart group, by ids; Refs for what the plan creates."""

    field: RemoteId | Ref
    choices: frozenset[RemoteId | Ref]
    system_condition: str | None


class ChangedGroup(Struct, frozen=True, kw_only=True):
    """A manual group whose members change: normalized e-mails that join and leave. deleted: nobody is left."""

    address: Address
    joins: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()
    deleted: bool = False


class ChangedSmartGroup(Struct, frozen=True, kw_only=True):
    """A smart group whose conditions change; None after its deletion."""

    address: Address
    conditions: tuple[Condition, ...] | None


class ChangedPerson(Struct, frozen=True, kw_only=True):
    """A person whose account or answers the plan changes. id: None for a new account.

    answers: field → the choices that are answered; None: a text. archived: whether the plan archives the account.
    ends: when the account will be archived, in epoch seconds, where the plan sets a date that cuts windows short.
    """

    address: Address
    id: RemoteId | None
    answers: dict[RemoteId | Ref, frozenset[RemoteId | Ref] | None] = field(default_factory=dict)
    archived: bool = False
    ends: int | None = None

    @property
    def leaves(self) -> bool:
        """Whether the account is archived, by the plan or within the time in which shortened windows are counted."""
        return self.archived or self.ends is not None


class ChangedAssignment(Struct, frozen=True, kw_only=True):
    """An assignment that the plan creates, changes or deletes. row: the live target; terms: None if it is deleted."""

    address: Address
    content: RemoteId
    audience: AudienceKey | None
    row: TargetRow | None
    terms: Terms | None


class AccessScope(Struct, kw_only=True):
    """The changes of a plan that decide who has what.

    addresses: those of all changed groups of either kind, also of ones that are only renamed. emails: e-mail after the
    plan → id, for live people that it changes in any way: lists may name them by an e-mail that the plan gives them.
    dates: whether somebody who is live gets another archive date. unarchived: how many accounts the plan unarchives;
    they are archived now, and count in no number.
    """

    assignments: list[ChangedAssignment] = field(default_factory=list)
    groups: dict[RemoteId | Ref, ChangedGroup] = field(default_factory=dict)
    smart_groups: dict[RemoteId | Ref, ChangedSmartGroup] = field(default_factory=dict)
    people: list[ChangedPerson] = field(default_factory=list)
    losses: Sequence[FieldOrChoiceDeletion] = ()
    addresses: dict[AudienceKey, Address] = field(default_factory=dict)
    emails: dict[str, RemoteId] = field(default_factory=dict)
    dates: bool = False
    unarchived: int = 0

    @property
    def takes(self) -> bool:
        """Whether the changes can take access from anybody."""
        return (
            bool(self.losses)
            # At a later date access ends, too: that is no loss now, but no mere addition either.
            or self.dates
            or any(group.deleted or group.leaves for group in self.groups.values())
            or any(not isinstance(id, Ref) for id in self.smart_groups)
            or any(person.id is not None and (person.answers or person.archived) for person in self.people)
            or any(map(_may_narrow, self.assignments))
        )

    @property
    def requires(self) -> bool:
        """Whether the changes can make content mandatory for anybody."""
        return (
            any(group.joins and not isinstance(id, Ref) for id, group in self.groups.items())
            or any(group.conditions is not None and not isinstance(id, Ref) for id, group in self.smart_groups.items())
            or any(person.id is None or person.answers for person in self.people)
            or any(change.terms is not None and change.terms.mandatory for change in self.assignments)
        )

    @property
    def is_empty(self) -> bool:
        return not (self.assignments or self.groups or self.smart_groups or self.people or self.losses)

    @property
    def changes_accounts(self) -> bool:
        """Whether accounts are created or archived, now or soon."""
        return any(person.id is None or person.leaves for person in self.people)

    @property
    def leaving(self) -> list[RemoteId]:
        """The ids of the people whose accounts are archived, now or soon."""
        return [person.id for person in self.people if person.leaves and person.id is not None]

    @property
    def changes_answers(self) -> bool:
        return bool(self.losses) or any(person.answers for person in self.people)

    @property
    def fields(self) -> frozenset[RemoteId | Ref]:
        """The fields whose answers change, or of which choices are deleted."""
        return frozenset(
            [*(loss.field.id for loss in self.losses), *(id for person in self.people for id in person.answers)]
        )


def access_scope(planning: PlanContext, items: Sequence[PlannedResource], now: int) -> AccessScope:
    """Return the changes of a plan that decide who has what. now: the time of the plan, in epoch seconds."""
    changed_fields = {item.address for item in items if item.address.kind == CUSTOM_FIELD}
    losses = [loss for loss in planning.losses if loss.address in changed_fields]
    scope = AccessScope(losses=losses)
    contents = ContentResolver(planning)
    for item in items:
        kind = item.address.kind
        if kind in (GROUP, SMART_GROUP):
            scope.addresses[kind, _key(item)] = item.address
        if kind == GROUP:
            _add_group(scope, item)
        elif kind == SMART_GROUP:
            _add_smart_group(planning, scope, item)
        elif kind == USER:
            _add_person(planning, scope, item, now)
        elif kind == CONTENT_TARGET:
            _add_assignment(planning, scope, item, contents)
    return scope


def _key(item: PlannedResource) -> RemoteId | Ref:
    return Ref(item.address) if item.subject.row is None else RemoteId(item.subject.row.id)


def _add_group(scope: AccessScope, item: PlannedResource) -> None:
    if isinstance(item.subject, Deletion):
        scope.groups[_key(item)] = ChangedGroup(address=item.address, deleted=True)
        return
    before, after = (included(form or {}, "members") for form in (item.sides.before, item.sides.after))
    joins, leaves = after - before, before - after
    if joins or leaves or item.subject.row is None:
        scope.groups[_key(item)] = ChangedGroup(address=item.address, joins=joins, leaves=leaves)


def _add_smart_group(planning: PlanContext, scope: AccessScope, item: PlannedResource) -> None:
    before, after = item.sides.before or {}, item.sides.after
    if after is None:
        scope.smart_groups[_key(item)] = ChangedSmartGroup(address=item.address, conditions=None)
    elif "conditions" in after and before.get("conditions") != after["conditions"]:
        conditions = tuple(
            Condition(*_by_ids(planning, one.field, one.choices), one.system_condition)
            for one in sorted_for_request(after)
        )
        scope.smart_groups[_key(item)] = ChangedSmartGroup(address=item.address, conditions=conditions)


def _by_ids(
    planning: PlanContext, field: str, choices: Iterable[str]
) -> tuple[RemoteId | Ref, frozenset[RemoteId | Ref]]:
    """Return the id of a field and those of choices of it, by their names."""
    at, id_of = Address.of(CUSTOM_FIELD, field), planning.registry.id_or_ref
    return id_of(Ref(at)), frozenset(id_of(Ref(at, name)) for name in choices)


def _add_person(planning: PlanContext, scope: AccessScope, item: PlannedResource, now: int) -> None:
    before, after = item.sides.before or {}, item.sides.after or {}
    match = cast("Match[PersonSpec, PersonRow]", item.subject)
    row, spec = match.row, match.declared.spec
    if row is not None:
        scope.emails[item.address.name] = RemoteId(row.id)
    old, new = (cast("dict[str, Answer]", form.get("answers", {})) for form in (before, after))
    changed = {name: answer for name, answer in new.items() if (old.get(name) or None) != (answer or None)}
    answers = dict(_answer(planning, name, answer) for name, answer in changed.items())
    date = spec.archive_date if before.get("custom_archive_date") != after.get("custom_archive_date") else None
    over = date is not None and date.timestamp() <= now
    scope.unarchived += bool(before.get("archived")) and after.get("archived") is False
    archived = (bool(after.get("archived")) and not before.get("archived")) or over
    ends = None if row is None or archived or row.archived else _sooner_end(row, date, now)
    if row is None or answers or archived or ends is not None:
        id = None if row is None else RemoteId(row.id)
        person = ChangedPerson(address=item.address, id=id, answers=answers, archived=archived, ends=ends)
        scope.people.append(person)
    scope.dates = scope.dates or (row is not None and date is not None)


def _sooner_end(row: PersonRow, date: datetime | None, now: int) -> int | None:
    """Return the archive date that a person gets, if it comes within the next 30 days and before the one they have."""
    if date is None or date.timestamp() > now + HORIZON:
        return None
    ends = int(date.timestamp())
    return ends if row.archive_date is None or ends < row.archive_date // 1000 else None


def _answer(
    planning: PlanContext, name: str, answer: Answer
) -> tuple[RemoteId | Ref, frozenset[RemoteId | Ref] | None]:
    """Return a declared answer by ids: the field, and its choices, None if it takes a text."""
    is_text = planning.field_types.get(name) == "TEXT"
    field_id, choices = _by_ids(planning, name, () if is_text else picked_choices(answer))
    return field_id, None if is_text else choices


def _add_assignment(
    planning: PlanContext, scope: AccessScope, item: PlannedResource, contents: ContentResolver
) -> None:
    subject = item.subject
    if isinstance(subject, Deletion):
        row: TargetRow = subject.row
        change = ChangedAssignment(address=item.address, content=row.content, audience=None, row=row, terms=None)
    else:
        match = cast("Match[AssignmentSpec, TargetRow]", subject)
        declared, spec = match.declared, match.declared.spec
        content = contents.find_id(declared)
        if content is None:
            return
        bounds = (spec.visible_from, spec.visible_until)
        start, finish = (None if bound is None else int(bound.timestamp()) for bound in bounds)
        terms = Terms(spec.mandatory, Window(start, finish))
        change = ChangedAssignment(
            address=item.address,
            content=content,
            audience=_audience(planning, spec.audience),
            row=match.row,
            terms=terms,
        )
    scope.assignments.append(change)


def _audience(planning: PlanContext, audience: Address) -> AudienceKey:
    if not audience.text:
        return EVERYONE_KEY
    return audience.kind, planning.registry.id_or_ref(Ref(audience))


def live_terms(row: TargetRow) -> Terms:
    """Return what a live target says. Raises ValueError for a time that cannot be parsed."""
    start, finish = (
        None if text is None else int(parse_response_time(text).timestamp()) for text in (row.start, row.finish)
    )
    return Terms(row.mandatory, Window(start, finish))


def _may_narrow(change: ChangedAssignment) -> bool:
    """Return whether a changed assignment no longer covers all of its window."""
    if change.row is None or change.terms is None:
        return change.row is not None
    try:
        old, new = live_terms(change.row).window, change.terms.window
    except ValueError:
        return True
    starts_later = new.start is not None and (old.start is None or new.start > old.start)
    ends_earlier = new.finish is not None and (old.finish is None or new.finish < old.finish)
    return starts_later or ends_earlier
