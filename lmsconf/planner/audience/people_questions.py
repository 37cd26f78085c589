"""Answers to questions about people: who is in which audience, through what a person has which content, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from lmsconf.api.spec.dialect_keys import EVERYONE_ID
from lmsconf.kinds.assignment.target_ids import EVERYONE_KEY
from lmsconf.kinds.assignment.types import ContentRow, TargetRow, assignment_address, unresolved_audience_label
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, EVERYONE, SMART_GROUP, USER
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.times import format_time
from lmsconf.model.access import ConditionResult
from lmsconf.model.address import Address, Ref, RemoteId, escape
from lmsconf.model.names import normalize_name
from lmsconf.model.time_formats import from_epoch
from lmsconf.planner.audience.access_facts import (
    AccessFacts,
    AccessQuery,
    facts_from_snapshot,
    find_key,
    read_access_facts,
)
from lmsconf.planner.audience.affected import AccessScope, Condition, access_scope
from lmsconf.planner.audience.choice_holders import FieldHolders
from lmsconf.planner.audience.membership import Memberships, assignments_of, content_name
from lmsconf.planner.audience.people_sets import Audience, AudienceAssignment, AudienceKey
from lmsconf.planner.plan import DraftPlan
from lmsconf.planner.read.needed_listings import ReadContext


def read_access_state(draft: DraftPlan, reading: ReadContext | None, query: AccessQuery) -> WorkspaceAccess:
    """Return the answers to a query, reading what they rest on."""
    planning = draft.planning
    now = int(datetime.fromisoformat(draft.plan.created_at).timestamp())
    scope = access_scope(planning, draft.items, now)
    facts = facts_for_plan(draft, reading, scope if reading is None else _asked(planning, scope, query), query)
    return access_state(facts, scope, query, planning, now)


def facts_for_plan(
    draft: DraftPlan, reading: ReadContext | None, scope: AccessScope, query: AccessQuery
) -> AccessFacts:
    """Return what the effects of these changes and a query rest on: read, or as far as a snapshot file holds it."""
    planning = draft.planning
    if reading is not None:
        return read_access_facts(reading, planning, scope, query)
    everyone = planning.api_spec.behaviour(EVERYONE_ID)
    return facts_from_snapshot(planning.snapshot, scope, everyone)


def _asked(planning: PlanContext, scope: AccessScope, query: AccessQuery) -> AccessScope:
    """Return the changes whose audiences must be read although no live target names them."""
    names = {row.id: row.name for row in planning.snapshot.rows(ContentRow)}
    assignments = [one for one in scope.assignments if query.wants_content(names.get(one.content, ""))]
    return AccessScope(assignments=assignments)


def access_state(
    facts: AccessFacts, scope: AccessScope, query: AccessQuery, planning: PlanContext, now: int
) -> WorkspaceAccess:
    """Return the answers to a query from what was read. now: the time of the plan, in epoch seconds."""
    state = WorkspaceAccess(facts, scope, planning=planning, now=now)
    return state.with_answers(id for name in query.fields if (id := state.field_id(name)) is not None)


class PlacedAssignment(Struct, frozen=True):
    """An assignment, with the addresses of itself and of its audience."""

    address: Address
    audience: Address
    assignment: AudienceAssignment


class WorkspaceAccess(Memberships, kw_only=True):
    """Who has what and who is in which audience, before and after a plan, by name.

    now: the time of the plan, in epoch seconds. Reasons why answers are not known or estimates are added as questions
    are asked.
    """

    planning: PlanContext
    now: int

    @property
    def incomplete(self) -> Sequence[str]:
        """Why something that all answers rest on may be missing."""
        return self.facts.incomplete

    def format_time(self, seconds: int) -> str:
        """Return epoch seconds as ISO 8601, in the project's time zone."""
        return format_time(from_epoch(seconds), self.planning.policy.timezone)

    def named_audience(self, address: Address) -> Audience | None:
        """Return an audience; None if it is neither live nor planned. Raises LmsconfError for a name that is twice."""
        if address == EVERYONE:
            return self.audience(EVERYONE_KEY)
        if address.kind == USER:
            position = self.position(address.name)
            return None if position is None else self.person_audience(position)
        key = find_key(self.planning, self.facts, address)
        return None if key is None else self.audience(key)

    def audience_names(self, kind: str) -> Sequence[str]:
        """Return the names of all audiences of a kind, for suggestions."""
        if kind == USER:
            return self.emails
        live = (normalize_name(row.name) for row in self.facts.audiences(kind).values())
        return [*self.planning.registry.names(kind), *live]

    def contents(self) -> Mapping[RemoteId, str]:
        """Return the names of all contents by id."""
        return {id: content_name(self.facts, id) for id in self.facts.contents}

    def assignments(self, content: RemoteId) -> Sequence[PlacedAssignment]:
        """Return the assignments of a content that was asked for, by address."""
        name, placed = content_name(self.facts, content), []
        for one in assignments_of(self, content):
            audience = self._audience_address(one.key, one.row)
            placed.append(PlacedAssignment(one.cause or assignment_address(name, audience), audience, one))
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
        name = self.planning.registry.name(kind, id) or self._live_name(kind, id)
        return Address.of(kind, name) if name else Address(f"{kind} id {id}", "")

    def _live_name(self, kind: str, id: RemoteId) -> str | None:
        if kind == USER:
            position = self.facts.people.positions.get(id)
            return None if position is None else self.emails[position]
        row = self.facts.audiences(kind).get(id)
        return None if row is None else normalize_name(row.name)

    def condition_results(
        self, key: AudienceKey | None, person: int
    ) -> tuple[Sequence[ConditionResult], Sequence[ConditionResult]]:
        """Return the conditions of a smart group before and after the plan, and a person's answers; else none."""
        if key is None or key[0] != SMART_GROUP:
            return (), ()
        before, after = self.conditions(key[1])
        return self._results(before, self.answers.before, person), self._results(after, self.answers.after, person)

    def _results(
        self, conditions: Sequence[Condition], answers: Mapping[RemoteId | Ref, FieldHolders], person: int
    ) -> list[ConditionResult]:
        """Return the results of conditions, whose order means nothing, sorted by field."""
        results = (self._result(condition, answers.get(condition.field), person) for condition in conditions)
        return sorted(results, key=lambda one: (one.field, one.choices, one.system_condition or ""))

    def _result(self, condition: Condition, held: FieldHolders | None, person: int) -> ConditionResult:
        """Return how one person's answer meets a condition; not known where membership does not follow from answers."""
        row = self.field_row(condition.field)
        takes_choices = isinstance(condition.field, Ref) if row is None else row.type != "TEXT"
        held = held or FieldHolders()
        readable = takes_choices and not held.unreadable >> person & 1
        picked = {choice for choice, people in held.choices.items() if people >> person & 1}
        return ConditionResult(
            field=self._field_name(condition.field),
            choices=tuple(sorted(choice_name(row, choice) for choice in condition.choices)),
            system_condition=condition.system_condition,
            answer=tuple(sorted(choice_name(row, choice) for choice in picked)) if readable else None,
            met=self.is_met(condition, held, person) if readable else None,
        )

    def _field_name(self, id: RemoteId | Ref) -> str:
        if isinstance(id, Ref):
            return id.address.name
        row, name = self.field_row(id), self.planning.registry.name(CUSTOM_FIELD, id)
        return name or (f"field id {id}" if row is None else normalize_name(row.name))

    def field_id(self, name: str) -> RemoteId | Ref | None:
        """Return the id of a field by its name after the plan, or else by its live one."""
        if self.planning.registry.has(CUSTOM_FIELD, name):
            return self.planning.registry.id_or_ref(CUSTOM_FIELD, name, Ref(Address.of(CUSTOM_FIELD, name)))
        return next((row.id for row in self.facts.fields if normalize_name(row.name) == name), None)

    def field_row(self, id: RemoteId | Ref) -> FieldRow | None:
        """Return a live field."""
        return next((row for row in self.facts.fields if row.id == id), None)

    def field_names(self) -> Sequence[str]:
        """Return the names of all fields, for suggestions."""
        return [*self.planning.registry.names(CUSTOM_FIELD), *(normalize_name(row.name) for row in self.facts.fields)]


def choice_name(row: FieldRow | None, id: RemoteId | Ref) -> str:
    """Return the name of a choice of a field; None: of one that the plan creates."""
    if isinstance(id, Ref):
        return id.part or ""
    names = {} if row is None else {choice.id: normalize_name(choice.name) for choice in row.choices}
    return names.get(id, f"choice id {id}")
