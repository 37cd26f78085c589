"""Answers to questions about people: who is in which audience, through what a person has which content, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple, cast

from msgspec import Struct

from lmsconf.kinds.assignment.target_ids import EVERYONE_KEY
from lmsconf.kinds.assignment.types import ContentRow, TargetRow, assignment_address, unresolved_audience_label
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, EVERYONE, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.times import format_time
from lmsconf.model.access import ConditionResult
from lmsconf.model.address import Address, Ref, RemoteId, escape
from lmsconf.model.effects import Basis
from lmsconf.model.names import normalize_name
from lmsconf.planner.audience.access_facts import (
    AccessFacts,
    facts_from_snapshot,
    read_access_facts,
)
from lmsconf.planner.audience.affected import AccessScope, AudienceKey, Condition, access_scope
from lmsconf.planner.audience.choice_holders import FieldHolders
from lmsconf.planner.audience.membership import Memberships, assignments_of, content_name
from lmsconf.planner.audience.people_sets import Audience, Bits, Terms
from lmsconf.planner.audience.question import AccessQuery, find_key
from lmsconf.planner.plan import DraftPlan
from lmsconf.planner.read.needed_listings import ReadContext

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read_access_state(draft: DraftPlan, reading: ReadContext | None, query: AccessQuery) -> WorkspaceAccess:
    """Return the answers to a query, reading what they rest on."""
    planning = draft.planning
    now = int(datetime.fromisoformat(draft.plan.created_at).timestamp())
    scope = access_scope(planning, draft.items, now)
    facts = facts_for_plan(draft, reading, scope if reading is None else _asked(planning, scope, query), query)
    return WorkspaceAccess(facts, scope, query, planning, now)


def facts_for_plan(
    draft: DraftPlan, reading: ReadContext | None, scope: AccessScope, query: AccessQuery
) -> AccessFacts:
    """Return what the effects of these changes and a query rest on: read, or as far as a snapshot file holds it."""
    planning = draft.planning
    if reading is not None:
        return read_access_facts(reading, planning, scope, query)
    everyone = planning.api_spec.behaviour("content-targets.everyone")
    return facts_from_snapshot(planning.snapshot, scope, everyone)


def _asked(planning: PlanContext, scope: AccessScope, query: AccessQuery) -> AccessScope:
    """Return the changes whose audiences must be read although no live target names them."""
    names = {row.id: row.name for row in planning.snapshot.rows(ContentRow)}
    assignments = [one for one in scope.assignments if query.wants_content(names.get(one.content, ""))]
    return AccessScope(assignments=assignments)


class PlacedSide(NamedTuple):
    """Whether an assignment is there on one side of a plan, what it says, and its people; None if not known."""

    exists: bool
    terms: Terms | None
    people: Bits | None


class PlacedAssignment(Struct, frozen=True, kw_only=True):
    """An assignment with the addresses of itself and of its audience. basis: of who is in that."""

    address: Address
    audience: Address
    basis: Basis
    before: PlacedSide
    after: PlacedSide


class FieldAnswers(Struct, frozen=True, kw_only=True):
    """Who picked which choice of a field on one side of a plan. unreadable: people whose answer is not known."""

    choices: Mapping[str, Bits]
    unreadable: Bits


class NamedField(Struct, frozen=True, kw_only=True):
    """The answers to a field before and after a plan. has_choices: False for a text."""

    has_choices: bool
    before: FieldAnswers
    after: FieldAnswers


class WorkspaceAccess:
    """Who has what and who is in which audience, before and after a plan, from what was read and its changes.

    now: the time of the plan, in epoch seconds. emails: by position. active: people who are not archived, before and
    after; live: people who are there before the plan. incomplete: why something that all answers rest on may be
    missing. reasons: why answers are not known or estimates; they are added as questions are asked.
    """

    def __init__(
        self, facts: AccessFacts, scope: AccessScope, query: AccessQuery, planning: PlanContext, now: int
    ) -> None:
        self.now, self.incomplete = now, facts.incomplete
        self._facts, self._scope, self._planning = facts, scope, planning
        self._registry = planning.registry
        self._fields = {row.id: row for row in facts.fields}
        wanted = {id for name in query.fields if (id := self._field_id(name)) is not None}
        self._memberships = Memberships.of(facts, scope, wanted)
        self.reasons = self._memberships.reasons
        self.emails = self._memberships.emails
        self.active_before, self.active_after = self._memberships.active_before, self._memberships.active_after
        self._keys: dict[Address, AudienceKey] = {}
        self.live = (1 << len(facts.people.people)) - 1

    def format_time(self, seconds: int) -> str:
        """Return epoch seconds as ISO 8601, in the project's time zone."""
        return format_time(_EPOCH + timedelta(seconds=seconds), self._planning.policy.timezone)

    def person(self, email: str) -> int | None:
        """Return the position of a person, also under an e-mail that the plan changes; None for an unknown one."""
        return self._memberships.position(email)

    def audience(self, address: Address) -> Audience | None:
        """Return an audience; None if it is neither live nor planned. Raises LmsconfError for a name that is twice."""
        if address == EVERYONE:
            return self._memberships.audience(EVERYONE_KEY)
        if address.kind == USER:
            position = self.person(address.name)
            return None if position is None else self._memberships.person_audience(position)
        key = find_key(self._planning, self._facts, address)
        return None if key is None else self._memberships.audience(key)

    def audience_names(self, kind: str) -> Sequence[str]:
        """Return the names of all audiences of a kind, for suggestions."""
        if kind == USER:
            return self.emails
        rows = self._facts.groups if kind == GROUP else self._facts.smart_groups if kind == SMART_GROUP else {}
        live = [normalize_name(row.name) for row in rows.values()]
        return [*self._registry.names(kind), *live]

    def exists(self, address: Address) -> tuple[bool, bool]:
        """Return whether an audience that `audience` returns exists before and after the plan."""
        if address == EVERYONE:
            return True, True
        if address.kind == USER:
            position = self.person(address.name)
            return position is not None and position < len(self._facts.people.people), True
        _, id = cast("AudienceKey", find_key(self._planning, self._facts, address))
        group, smart = self._scope.groups.get(id), self._scope.smart_groups.get(id)
        if address.kind == GROUP:
            return isinstance(id, str), group is None or not group.deleted
        return isinstance(id, str), smart is None or smart.conditions is not None

    def contents(self) -> Mapping[RemoteId, str]:
        """Return the names of all contents by id."""
        return {id: content_name(self._facts, id) for id in self._facts.contents}

    def assignments(self, content: RemoteId) -> Sequence[PlacedAssignment]:
        """Return the assignments of a content that was asked for."""
        name = content_name(self._facts, content)
        placed = []
        for row, change, assignment in assignments_of(self._memberships, content):
            key: AudienceKey | None = None if change is None else change.audience
            if row is not None:
                key = self._facts.target_audiences.of(row)
            audience = self._audience_address(key, row)
            if key is not None:
                self._keys[audience] = key
            address = assignment_address(name, audience) if change is None else change.address
            stays = change is None or change.terms is not None
            people = assignment.audience
            placed.append(
                PlacedAssignment(
                    address=address,
                    audience=audience,
                    basis=people.basis,
                    before=PlacedSide(row is not None, assignment.before, people.before),
                    after=PlacedSide(stays, assignment.after, people.after),
                )
            )
        return sorted(placed, key=lambda placement: placement.address)

    def _audience_address(self, key: AudienceKey | None, row: TargetRow | None) -> Address:
        """Return the address of an audience, by its name after the plan or else its live one."""
        if key == EVERYONE_KEY:
            return EVERYONE
        if key is None:
            return Address("" if row is None else escape(unresolved_audience_label(row)), "")
        kind, id = key
        if isinstance(id, Ref):
            return id.address
        name = self._registry.name(kind, id) or self._live_name(kind, id)
        return Address.of(kind, name) if name else Address(f"{kind} id {id}", "")

    def _live_name(self, kind: str, id: RemoteId) -> str | None:
        if kind == USER:
            position = self._facts.people.positions.get(id)
            return None if position is None else self.emails[position]
        row = self._facts.groups.get(id) if kind == GROUP else self._facts.smart_groups.get(id)
        return None if row is None else normalize_name(row.name)

    def conditions(self, audience: Address, person: int) -> tuple[Sequence[ConditionResult], Sequence[ConditionResult]]:
        """Return the conditions of a smart group of `assignments` before and after the plan, and a person's answers."""
        key = self._keys.get(audience)
        if key is None or key[0] != SMART_GROUP:
            return (), ()
        before, after = self._memberships.conditions(key[1])
        answers = self._memberships.answers
        return (
            self._results(before, answers.before, person),
            self._results(after, answers.after, person),
        )

    def _results(
        self, conditions: Sequence[Condition], answers: Mapping[RemoteId | Ref, FieldHolders], person: int
    ) -> list[ConditionResult]:
        """Return the results of conditions, whose order means nothing, sorted by field."""
        results = (self._result(condition, answers.get(condition.field), person) for condition in conditions)
        return sorted(results, key=lambda one: (one.field, one.choices, one.system_condition or ""))

    def _result(self, condition: Condition, held: FieldHolders | None, person: int) -> ConditionResult:
        """Return how one person's answer meets a condition; not known where membership does not follow from answers."""
        row = None if isinstance(condition.field, Ref) else self._fields.get(condition.field)
        takes_choices = isinstance(condition.field, Ref) if row is None else row.type != "TEXT"
        held = held or FieldHolders()
        readable = takes_choices and not held.unreadable >> person & 1
        picked = {choice for choice, people in held.choices.items() if people >> person & 1}
        return ConditionResult(
            field=self._field_name(condition.field),
            choices=tuple(sorted(self._choice_name(row, choice) for choice in condition.choices)),
            system_condition=condition.system_condition,
            answer=tuple(sorted(self._choice_name(row, choice) for choice in picked)) if readable else None,
            met=self._memberships.is_met(condition, held, person) if readable else None,
        )

    def _field_name(self, id: RemoteId | Ref) -> str:
        if isinstance(id, Ref):
            return id.address.name
        row = self._fields.get(id)
        return self._registry.name(CUSTOM_FIELD, id) or (f"field id {id}" if row is None else normalize_name(row.name))

    @staticmethod
    def _choice_name(row: FieldRow | None, id: RemoteId | Ref) -> str:
        if isinstance(id, Ref):
            return id.part or ""
        names = {} if row is None else {choice.id: normalize_name(choice.name) for choice in row.choices}
        return names.get(id, f"choice id {id}")

    def _field_id(self, name: str) -> RemoteId | Ref | None:
        """Return the id of a field by its name after the plan, or else by its live one."""
        if self._registry.has(CUSTOM_FIELD, name):
            return self._registry.id_or_ref(CUSTOM_FIELD, name, Ref(Address.of(CUSTOM_FIELD, name)))
        return next((row.id for row in self._facts.fields if normalize_name(row.name) == name), None)

    def field(self, name: str) -> NamedField | None:
        """Return a field that was asked for; None if it is neither live nor planned."""
        id = self._field_id(name)
        if id is None:
            return None
        row = None if isinstance(id, Ref) else self._fields.get(id)
        before, after = (
            answers.get(id) for answers in (self._memberships.answers.before, self._memberships.answers.after)
        )
        return NamedField(
            has_choices=row is None or row.type != "TEXT",
            before=self._answers(row, before),
            after=self._answers(row, after),
        )

    def _answers(self, row: FieldRow | None, held: FieldHolders | None) -> FieldAnswers:
        if held is None:
            return FieldAnswers(choices={}, unreadable=0)
        choices: dict[str, Bits] = {self._choice_name(row, id): people for id, people in held.choices.items()}
        return FieldAnswers(choices=choices, unreadable=held.unreadable)

    def field_names(self) -> Sequence[str]:
        """Return the names of all fields, for suggestions."""
        return [*self._registry.names(CUSTOM_FIELD), *(normalize_name(row.name) for row in self._facts.fields)]
