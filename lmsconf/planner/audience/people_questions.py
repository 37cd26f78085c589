"""Who is in which audience, and through what a person has which content; tests of manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from lmsconf.api.spec.dialect_candidates import EVERYONE_ID
from lmsconf.errors import LmsconfError, Problem
from lmsconf.kinds.assignment.target_ids import EVERYONE_KEY
from lmsconf.kinds.assignment.types import ContentRow, TargetRow, assignment_address, unresolved_audience_label
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, EVERYONE, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import format_time
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.access import (
    AccessClaim,
    AccessTest,
    AccessTestReport,
    AccessTestResult,
    ConditionResult,
    ReportHeader,
)
from lmsconf.model.address import Address, Ref, RemoteId, escape
from lmsconf.model.declarations import pin_in
from lmsconf.model.effects import count_people
from lmsconf.model.names import count_noun, did_you_mean, normalize_name
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
from lmsconf.planner.audience.people_sets import Audience, AudienceAssignment, AudienceKey, Bits
from lmsconf.planner.plan import DraftPlan
from lmsconf.planner.read.needed_listings import ReadContext


def read_access_state(draft: DraftPlan, reading: ReadContext | None, query: AccessQuery) -> WorkspaceAccess:
    """Return the answers to a query, reading what they rest on."""
    planning, now = draft.planning, int(datetime.fromisoformat(draft.plan.created_at).timestamp())
    scope = access_scope(planning, draft.items, now)
    facts = facts_for_plan(draft, reading, scope if reading is None else _asked(planning, scope, query), query)
    return WorkspaceAccess(facts, scope, query.fields, planning=planning, now=now)


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


class PlacedAssignment(Struct, frozen=True):
    """An assignment, with the addresses of itself and of its audience."""

    address: Address
    audience: Address
    assignment: AudienceAssignment


class WorkspaceAccess(Memberships):
    """Who has what and who is in which audience, before and after a plan, by name.

    now: the time of the plan, in epoch seconds. Reasons why answers are not known or estimates are added as questions
    are asked.
    """

    def __init__(
        self, facts: AccessFacts, scope: AccessScope, fields: Iterable[str], *, planning: PlanContext, now: int
    ) -> None:
        """fields: the names of those whose answers are counted."""
        self.facts, self.planning, self.now = facts, planning, now
        super().__init__(facts, scope, filter(None, map(self.field_id, fields)))

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
            return self.planning.registry.id_or_ref(Ref(Address.of(CUSTOM_FIELD, name)))
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


FAILED: Final = "test/failed"


class _Failure(Exception):
    """A test fails: the message says why."""


def query_of(tests: Sequence[AccessTest]) -> AccessQuery:
    """Return what must be read to judge tests."""
    return AccessQuery(
        contents=frozenset(test.content for test in tests if test.content is not None),
        audiences=frozenset(audience for test in tests for audience in test.audiences),
    )


def judge_tests(
    state: WorkspaceAccess, tests: Iterable[AccessTest], workspace: str, *, live: bool = False
) -> tuple[AccessTestResult, ...]:
    """Return the result of each test, after the plan or, with `live`, before it."""
    side = _Side(state, workspace, live=live)
    return tuple(AccessTestResult(test=test, reason=side.reason(test)) for test in tests)


def judge_report(
    state: WorkspaceAccess, header: ReportHeader, tests: Iterable[AccessTest], workspace: str, *, live: bool = False
) -> AccessTestReport:
    """Return the report of tests, judged as by `judge_tests`."""
    return AccessTestReport(
        workspace=header.workspace,
        url=header.url,
        people=header.people,
        created_at=header.created_at,
        live=live,
        results=judge_tests(state, tests, workspace, live=live),
    )


def failed_problems(results: Iterable[AccessTestResult]) -> Iterator[Problem]:
    """Yield the problem of each failed test, which stops apply."""
    for result in results:
        if result.reason is not None:
            message = f'test "{result.test.title}" fails: {result.reason}'
            yield Problem(
                code=FAILED, message=message, hint="Correct the manifests or the test.", source=result.test.source
            )


def not_judged_problems(tests: Sequence[AccessTest]) -> Iterator[Problem]:
    """Yield the problem of tests that a plan without effects does not judge; it stops apply."""
    if tests:
        number = count_noun(len(tests), "test of the manifests was", "tests of the manifests were")
        yield Problem(
            code="test/not-judged",
            message=f"{number} not run, because of --no-effects",
            hint="Plan without --no-effects, or run them with: lmsconf test",
            source=tests[0].source,
        )


class _Side:
    """One side of a plan: who is in which audience, and who has which content."""

    def __init__(self, state: WorkspaceAccess, workspace: str, *, live: bool) -> None:
        self._state, self._workspace, self._live = state, workspace, live

    def reason(self, test: AccessTest) -> str | None:
        """Return why a test fails; None if it passes."""
        try:
            if self._state.incomplete:
                raise _Failure(f"it is not known: {'; '.join(self._state.incomplete)}")
            self._check(test)
        except _Failure as failure:
            return str(failure)
        except LmsconfError as error:
            return error.message
        return None

    def _check(self, test: AccessTest) -> None:
        people, *others = [self._people(audience) for audience in test.audiences]
        match test.claim:
            case AccessClaim.SIZE:
                size = people.bit_count()
                if (test.least is not None and size < test.least) or (test.most is not None and size > test.most):
                    raise _Failure(f"it has {count_people(size)}")
            case AccessClaim.DISJOINT:
                [other] = others
                if both := (people & other).bit_count():
                    raise _Failure(f"{count_noun(both, 'person is', 'people are')} in both")
            case AccessClaim.ALL | AccessClaim.HAS:
                self._check_all(test, people)
            case AccessClaim.NONE | AccessClaim.HAS_NOT:
                if having := self._having(test)[0] & people:
                    raise _Failure("the person has it" if self._is_person(test) else f"{_share(having, people)} it")

    def _check_all(self, test: AccessTest, people: Bits) -> None:
        having, mandatory = self._having(test)
        if lacking := people & ~having:
            if self._is_person(test):
                raise _Failure("the person does not have it")
            raise _Failure(f"{_share(lacking, people, 'does not have', 'do not have')} it")
        if test.mandatory and (optional := people & ~mandatory):
            raise _Failure(f"{_share(optional, people)} it, but not as mandatory")

    def _is_person(self, test: AccessTest) -> bool:
        return all(audience.kind == USER for audience in test.audiences)

    def _people(self, address: Address) -> Bits:
        """Return the people in an audience. Raises _Failure if it is empty, or they are not known."""
        state = self._state
        audience = state.named_audience(address)
        if audience is None:
            near = did_you_mean(address.name, state.audience_names(address.kind))
            raise _Failure(f"{address} is neither live nor declared{f'. {near}' if near else ''}")
        people = audience.before if self._live else audience.after
        if people is None:
            raise _Failure(f"who is in {address} is not known{self._why(address)}")
        if not people:
            raise _Failure(f"{address} {'is archived' if address.kind == USER else 'is empty'}")
        return people

    def _why(self, about: Address) -> str:
        """Return the reasons that are about a resource, as the end of a sentence."""
        reasons = dict.fromkeys(reason for reason in self._state.reasons if reason.startswith(f"{about}:"))
        return f": {'; '.join(reasons)}" if reasons else ""

    def _having(self, test: AccessTest) -> tuple[Bits, Bits]:
        """Return who has the content of a test, and who must take it. Raises _Failure if it is not known."""
        state = self._state
        having = mandatory = 0
        for placement in state.assignments(self._content(test)):
            exists, terms, people = placement.assignment.sides[0 if self._live else 1]
            if not exists or (terms is not None and terms.window.is_over(state.now)):
                continue
            if terms is None or people is None:
                why = self._why(placement.audience)
                raise _Failure(f"who has it is not known, because of {placement.address}{why}")
            having |= people
            mandatory |= people if terms.mandatory else 0
        return having, mandatory

    def _content(self, test: AccessTest) -> RemoteId:
        """Return the id of the content of a test. Raises _Failure for an unknown name, or one that is there twice."""
        contents, pin = self._state.contents(), pin_in(test.content_pins, self._workspace)
        ids = [id for id, name in contents.items() if name == test.content and pin in (None, id)]
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise _Failure(
                f'"{test.content}" is in the catalog with the ids {", ".join(sorted(ids))}; select one with `id:`'
            )
        missing = f'the catalog has no content "{test.content}"'
        if named := sorted(id for id, name in contents.items() if name == test.content):
            raise _Failure(f'{missing} with the id "{pin}"; the id is {" or ".join(named)}')
        near = did_you_mean(str(test.content), contents.values())
        raise _Failure(f"{missing}. {near}" if near else missing)


def _share(some: Bits, people: Bits, one: str = "has", several: str = "have") -> str:
    """`1 of 3 people has`, `2 of 3 people have`."""
    number, total = some.bit_count(), people.bit_count()
    return f"{number:,} of {count_people(total)} {one if number == 1 else several}"
