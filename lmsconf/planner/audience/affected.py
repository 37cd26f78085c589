"""Which contents, audiences, answers and accounts the changes of a plan affect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias, cast

from msgspec import Struct, field

from lmsconf.kinds.assignment.target_ids import ContentResolver
from lmsconf.kinds.assignment.types import EVERYONE_KEY, WINDOW_KEYS, AssignmentSpec, TargetRow, is_shorter
from lmsconf.kinds.custom_field.types import FieldOrChoiceDeletion
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import included
from lmsconf.kinds.shared.plan_context import Deletion, Match, PlanContext
from lmsconf.kinds.smart_group import ConditionRow, conditions_in_request_order
from lmsconf.kinds.user.types import ARCHIVE_DATE, Answer, PersonRow, PersonSpec, picked_choices
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import grouped
from lmsconf.model.plan import FieldChange
from lmsconf.model.time_formats import parse_response_time
from lmsconf.planner.audience.people_sets import HORIZON, AudienceKey, Terms
from lmsconf.planner.planned_resources import PlannedResource


class PlannedCondition(Struct, frozen=True):
    """A condition of a smart group, by ids; Refs for what the plan creates."""

    field: RemoteId | Ref
    choices: frozenset[RemoteId | Ref]
    system_condition: str | None


Condition: TypeAlias = ConditionRow | PlannedCondition
"""A live condition, or one of the plan."""


class ChangedGroup(Struct, frozen=True, kw_only=True):
    """A manual group whose members change: normalized e-mails that join and leave. deleted: nobody is left."""

    joins: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()
    deleted: bool = False


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
    """An assignment that the plan creates, changes or deletes. row: the live target.

    audience, terms: as declared; None if it is deleted. narrows: whether its window is cut short.
    """

    address: Address
    content: RemoteId
    audience: AudienceKey | None = None
    row: TargetRow | None = None
    terms: Terms | None = None
    narrows: bool = True


class AccessScope(Struct, frozen=True, kw_only=True):
    """The changes of a plan that decide who has what.

    groups: whose members change. smart_groups: whose conditions change → these; None after a deletion. addresses:
    after the plan, of all that it changes in any way: lists may name people by an e-mail that the plan gives them.
    dates: whether somebody who is live gets another archive date. unarchived: how many accounts the plan unarchives;
    they are archived now, and count in no number.
    """

    assignments: Sequence[ChangedAssignment] = ()
    groups: Mapping[RemoteId | Ref, ChangedGroup] = {}
    smart_groups: Mapping[RemoteId | Ref, tuple[Condition, ...] | None] = {}
    people: Sequence[ChangedPerson] = ()
    losses: Sequence[FieldOrChoiceDeletion] = ()
    addresses: Mapping[AudienceKey, Address] = {}
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
            or any(change.narrows for change in self.assignments)
        )

    @property
    def requires(self) -> bool:
        """Whether the changes can make content mandatory for anybody."""
        return (
            any(group.joins and not isinstance(id, Ref) for id, group in self.groups.items())
            or any(conditions is not None and not isinstance(id, Ref) for id, conditions in self.smart_groups.items())
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
    def fields(self) -> frozenset[RemoteId | Ref]:
        """The fields whose answers change, or of which choices are deleted."""
        return frozenset(
            [*(loss.field.id for loss in self.losses), *(id for person in self.people for id in person.answers)]
        )


def access_scope(planning: PlanContext, items: Sequence[PlannedResource], now: int) -> AccessScope:
    """Return the changes of a plan that decide who has what. now: the time of the plan, in epoch seconds."""
    of_kind = defaultdict(list, grouped(items, lambda item: item.address.kind))
    changed_fields = {item.address for item in of_kind[CUSTOM_FIELD]}
    live_people = [item for item in of_kind[USER] if item.subject.row is not None]
    people = [_changed_person(planning, now, item) for item in of_kind[USER]]
    groups = {_key(item): _changed_group(item) for item in of_kind[GROUP]}
    contents = ContentResolver(planning)
    return AccessScope(
        assignments=list(
            filter(None, (_changed_assignment(planning, contents, item) for item in of_kind[CONTENT_TARGET]))
        ),
        groups={
            key: one for key, one in groups.items() if one.joins or one.leaves or one.deleted or isinstance(key, Ref)
        },
        smart_groups={
            _key(item): _planned_conditions(planning, item)
            for item in of_kind[SMART_GROUP]
            if item.sides.after is None or _changed_value(item, "conditions") is not None
        },
        people=[one for one in people if one.id is None or one.answers or one.leaves],
        losses=[loss for loss in planning.losses if loss.address in changed_fields],
        addresses={(item.address.kind, _key(item)): item.address for item in items},
        dates=any(_changed_value(item, ARCHIVE_DATE) is not None for item in live_people),
        unarchived=sum(
            bool((item.sides.before or {}).get("archived")) and _changed_value(item, "archived") is False
            for item in live_people
        ),
    )


def _key(item: PlannedResource) -> RemoteId | Ref:
    """Return the id of a resource; a Ref for one that the plan creates."""
    row = item.subject.row
    return Ref(item.address) if row is None else RemoteId(row.id)


def _changed_value(item: PlannedResource, key: str) -> object:
    """Return the value that a resource gets for a key; None if it stays as it is, or is cleared."""
    before, after = item.sides.before or {}, item.sides.after or {}
    return None if before.get(key) == after.get(key) else after.get(key)


def _changed_group(item: PlannedResource) -> ChangedGroup:
    before, after = (included(form or {}, "members") for form in (item.sides.before, item.sides.after))
    return ChangedGroup(joins=after - before, leaves=before - after, deleted=isinstance(item.subject, Deletion))


def _planned_conditions(planning: PlanContext, item: PlannedResource) -> tuple[Condition, ...] | None:
    """Return the conditions of a smart group after the plan, by ids; None if it is deleted."""
    if item.sides.after is None:
        return None
    return tuple(
        PlannedCondition(*_by_ids(planning, one.field, one.choices), one.system_condition)
        for one in conditions_in_request_order(item.sides.after)
    )


def _by_ids(
    planning: PlanContext, field: str, choices: Iterable[str]
) -> tuple[RemoteId | Ref, frozenset[RemoteId | Ref]]:
    """Return the id of a field and those of choices of it, by their names."""
    at, id_of = Address.of(CUSTOM_FIELD, field), planning.registry.id_or_ref
    return id_of(Ref(at)), frozenset(id_of(Ref(at, name)) for name in choices)


def _changed_person(planning: PlanContext, now: int, item: PlannedResource) -> ChangedPerson:
    before, after = item.sides.before or {}, item.sides.after or {}
    match = cast("Match[PersonSpec, PersonRow]", item.subject)
    row, spec = match.row, match.declared.spec
    old, new = (cast("dict[str, Answer]", form.get("answers", {})) for form in (before, after))
    changed = {name: answer for name, answer in new.items() if (old.get(name) or None) != (answer or None)}
    date = spec.archive_date if _changed_value(item, ARCHIVE_DATE) is not None else None
    is_over = date is not None and date.timestamp() <= now
    archived = is_over or (bool(after.get("archived")) and not before.get("archived"))
    return ChangedPerson(
        address=item.address,
        id=None if row is None else row.id,
        answers=dict(_answer(planning, name, answer) for name, answer in changed.items()),
        archived=archived,
        ends=None if row is None or archived or row.archived else _sooner_end(row, date, now),
    )


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


def _changed_assignment(
    planning: PlanContext, contents: ContentResolver, item: PlannedResource
) -> ChangedAssignment | None:
    """Return how an assignment changes; None if its content is not known."""
    if isinstance(item.subject, Deletion):
        row: TargetRow = item.subject.row
        return ChangedAssignment(address=item.address, content=row.content, row=row)
    match = cast("Match[AssignmentSpec, TargetRow]", item.subject)
    spec, content = match.declared.spec, contents.find_id(match.declared)
    if content is None:
        return None
    to, bounds = spec.audience, (spec.visible_from, spec.visible_until)
    before, after = (cast("dict[str, Json]", form or {}) for form in (item.sides.before, item.sides.after))
    windows = (FieldChange(path=key, before=before.get(key), after=after.get(key)) for key in WINDOW_KEYS)
    return ChangedAssignment(
        address=item.address,
        content=content,
        audience=(to.kind, planning.registry.id_or_ref(Ref(to))) if to.text else EVERYONE_KEY,
        row=match.row,
        terms=Terms(spec.mandatory, *(None if bound is None else int(bound.timestamp()) for bound in bounds)),
        narrows=match.row is not None and any(one.before != one.after and is_shorter(one) for one in windows),
    )


def live_terms(row: TargetRow) -> Terms:
    """Return what a live target says. Raises ValueError for a time that cannot be parsed."""
    return Terms(
        row.mandatory,
        *(None if text is None else int(parse_response_time(text).timestamp()) for text in (row.start, row.finish)),
    )
