"""Who is in which audience, and through what a person has which content; tests of manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from lmsconf.errors import LmsconfError, Problem
from lmsconf.kinds.assignment.types import EVERYONE_KEY
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CONTENT, CUSTOM_FIELD, EVERYONE, USER
from lmsconf.kinds.shared.manifest_entry import format_time
from lmsconf.model.access import AccessClaim, AccessTest, AccessTestResult, ConditionResult
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.declarations import pin_in
from lmsconf.model.effects import count_people
from lmsconf.model.names import count_noun, did_you_mean, normalize_email, normalize_name
from lmsconf.model.time_formats import from_epoch
from lmsconf.planner.audience.access_facts import AccessQuery, find_key, read_access_facts
from lmsconf.planner.audience.affected import AccessScope, Condition, access_scope
from lmsconf.planner.audience.choice_holders import FieldHolders, Holders
from lmsconf.planner.audience.membership import Memberships
from lmsconf.planner.audience.people_sets import Audience, Bits
from lmsconf.planner.plan import PlanWithoutEffects
from lmsconf.planner.read.needed_listings import ReadContext


def read_access_state(planned: PlanWithoutEffects, reading: ReadContext, query: AccessQuery) -> WorkspaceAccess:
    """Return the answers to a query, reading what they rest on."""
    planning, now = planned.planning, int(datetime.fromisoformat(planned.plan.created_at).timestamp())
    scope = access_scope(planning, planned.items, now)
    # Only of what is asked the audiences are read that no live target names.
    asked = [
        one for one in scope.assignments if query.wants_content(planning.registry.name(CONTENT, one.content) or "")
    ]
    facts = read_access_facts(reading, planning, AccessScope(assignments=asked), query)
    return WorkspaceAccess(facts, scope, planning, now, query.fields)


class WorkspaceAccess(Memberships):
    """Who has what and who is in which audience, before and after a plan, by name."""

    def format_time(self, seconds: int) -> str:
        """Return epoch seconds as ISO 8601, in the project's time zone."""
        return format_time(from_epoch(seconds), self.planning.policy.timezone)

    def named_audience(self, address: Address) -> Audience | None:
        """Return an audience; None if it is neither live nor planned. Raises LmsconfError for a name that is twice."""
        position = self.by_email.get(normalize_email(address.name)) if address.kind == USER else None
        if position is not None:
            return self.audience((USER, self.ids[position] or Ref(Address.of(USER, self.emails[position]))))
        key = EVERYONE_KEY if address == EVERYONE else find_key(self.planning, self.facts, address)
        return None if key is None else self.audience(key)

    def names(self, kind: str) -> Sequence[str]:
        """Return the names of all audiences of a kind, or of all fields, for suggestions."""
        if kind == USER:
            return self.emails
        rows = {**self.facts.rows, CUSTOM_FIELD: self.facts.fields}.get(kind, {})
        return [*self.planning.registry.names(kind), *(normalize_name(row.name) for row in rows.values())]

    def condition_results(
        self, conditions: Iterable[Condition], answers: Holders, person: int
    ) -> tuple[ConditionResult, ...]:
        """Return how one person's answers meet conditions, whose order means nothing, sorted by field."""
        return tuple(
            sorted(
                (self._result(condition, answers, person) for condition in conditions),
                key=lambda one: (one.field, one.choices, one.system_condition or ""),
            )
        )

    def _result(self, condition: Condition, answers: Holders, person: int) -> ConditionResult:
        """Return how one person's answer meets a condition; not known where membership does not follow from answers."""
        id, held = condition.field, answers.get(condition.field) or FieldHolders()
        row = self.facts.fields.get(id)
        takes_choices = isinstance(id, Ref) if row is None else row.type != "TEXT"
        readable = takes_choices and not held.unreadable >> person & 1
        met, _ = self._derived(EVERYONE, [condition], answers, 1 << person)
        picked = (choice for choice, people in held.choices.items() if people >> person & 1)
        live = f"field id {id}" if row is None else normalize_name(row.name)
        return ConditionResult(
            field=id.address.name if isinstance(id, Ref) else self.planning.registry.name(CUSTOM_FIELD, id) or live,
            choices=tuple(sorted(choice_name(row, choice) for choice in condition.choices)),
            system_condition=condition.system_condition,
            answer=tuple(sorted(choice_name(row, choice) for choice in picked)) if readable else None,
            met=None if met is None else bool(met),
        )


def choice_name(row: FieldRow | None, id: RemoteId | Ref) -> str:
    """Return the name of a choice of a field; None: of one that the plan creates."""
    if isinstance(id, Ref):
        return id.part or ""
    choices = () if row is None else row.choices
    # Of choices with the same id, the last one counts everywhere.
    return next((normalize_name(choice.name) for choice in reversed(choices) if choice.id == id), f"choice id {id}")


def query_of(tests: Sequence[AccessTest]) -> AccessQuery:
    """Return what must be read to judge tests."""
    return AccessQuery(
        contents=frozenset(test.content for test in tests if test.content is not None),
        audiences=frozenset(audience for test in tests for audience in test.audiences),
    )


def judge_tests(
    state: WorkspaceAccess, tests: Iterable[AccessTest], *, live: bool = False
) -> tuple[AccessTestResult, ...]:
    """Return the result of each test, after the plan or, with `live`, before it."""
    return tuple(AccessTestResult(test=test, reason=_why_it_fails(state, test, live=live)) for test in tests)


def failed_problems(results: Iterable[AccessTestResult]) -> Iterator[Problem]:
    """Yield the problem of each failed test, which stops apply."""
    return (
        Problem(
            code="test/failed",
            message=f'test "{result.test.title}" fails: {result.reason}',
            hint="Correct the manifests or the test.",
            source=result.test.source,
        )
        for result in results
        if not result.passed
    )


def not_judged_problem(tests: Sequence[AccessTest]) -> Problem:
    """Return the problem of tests that a plan without effects does not judge; it stops apply."""
    return Problem(
        code="test/not-judged",
        message=count_noun(len(tests), "test of the manifests was", "tests of the manifests were")
        + " not run, because of --no-effects",
        hint="Plan without --no-effects, or run them with: lmsconf test",
        source=tests[0].source,
    )


def _why_it_fails(state: WorkspaceAccess, test: AccessTest, *, live: bool) -> str | None:
    """Return why a test fails; None if it passes."""
    try:
        if state.facts.incomplete:
            raise LmsconfError(f"it is not known: {'; '.join(state.facts.incomplete)}")
        people, *others = [_people_in(state, audience, live=live) for audience in test.audiences]
        match test.claim:
            case AccessClaim.SIZE:
                size = people.bit_count()
                is_outside = size < (test.least or 0) or (test.most is not None and size > test.most)
                return f"it has {count_people(size)}" if is_outside else None
            case AccessClaim.DISJOINT:
                both = (people & others[0]).bit_count()
                return f"{count_noun(both, 'person is', 'people are')} in both" if both else None
        return _wrong_content(test, people, *_having(state, test, live=live))
    except LmsconfError as error:
        return error.message


def _wrong_content(test: AccessTest, people: Bits, having: Bits, mandatory: Bits) -> str | None:
    """Return who of these people has the content of a test and must not, or the reverse; None if the test passes.

    having, mandatory: who has it, and who must take it.
    """
    is_person = all(audience.kind == USER for audience in test.audiences)
    has, lacking = people & having, people & ~having
    if test.claim in (AccessClaim.NONE, AccessClaim.HAS_NOT):
        return None if not has else "the person has it" if is_person else f"{_share(has, people)} it"
    if lacking:
        return (
            "the person does not have it"
            if is_person
            else f"{_share(lacking, people, 'does not have', 'do not have')} it"
        )
    optional = people & ~mandatory
    return f"{_share(optional, people)} it, but not as mandatory" if test.mandatory and optional else None


def _people_in(state: WorkspaceAccess, address: Address, *, live: bool) -> Bits:
    """Return the people in an audience. Raises LmsconfError if it is empty, or they are not known."""
    audience = state.named_audience(address)
    if audience is None:
        near = did_you_mean(address.name, state.names(address.kind))
        raise LmsconfError(f"{address} is neither live nor declared{f'. {near}' if near else ''}")
    people = audience.before if live else audience.after
    if people is None:
        raise LmsconfError(f"who is in {address} is not known{_reasons_about(state, address)}")
    if not people:
        raise LmsconfError(f"{address} {'is archived' if address.kind == USER else 'is empty'}")
    return people


def _reasons_about(state: WorkspaceAccess, about: Address) -> str:
    """Return the reasons that are about a resource, as the end of a sentence."""
    reasons = dict.fromkeys(reason for reason in state.reasons if reason.startswith(f"{about}:"))
    return f": {'; '.join(reasons)}" if reasons else ""


def _having(state: WorkspaceAccess, test: AccessTest, *, live: bool) -> tuple[Bits, Bits]:
    """Return who has the content of a test, and who must take it. Raises LmsconfError if it is not known."""
    having = mandatory = 0
    for assignment in state.assignments(_content_of(state, test)):
        terms, people = assignment.current(state.now, live=live)
        if people is None:
            raise LmsconfError(
                f"who has it is not known, because of {assignment.address}{_reasons_about(state, assignment.to)}"
            )
        having |= people
        mandatory |= people if terms and terms.mandatory else 0
    return having, mandatory


def _content_of(state: WorkspaceAccess, test: AccessTest) -> RemoteId:
    """Return the id of the content of a test. Raises LmsconfError for an unknown name, or one that is there twice."""
    pin = pin_in(test.content_pins, state.planning.policy.workspace)
    named = sorted(id for id in state.facts.contents if state.facts.content_name(id) == test.content)
    ids = [id for id in named if pin in (None, id)]
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise LmsconfError(f'"{test.content}" is in the catalog with the ids {", ".join(ids)}; select one with `id:`')
    missing = f'the catalog has no content "{test.content}"'
    if named:
        raise LmsconfError(f'{missing} with the id "{pin}"; the id is {" or ".join(named)}')
    near = did_you_mean(str(test.content), map(state.facts.content_name, state.facts.contents))
    raise LmsconfError(f"{missing}. {near}" if near else missing)


def _share(some: Bits, people: Bits, one: str = "has", several: str = "have") -> str:
    """`1 of 3 people has`, `2 of 3 people have`."""
    number, total = some.bit_count(), people.bit_count()
    return f"{number:,} of {count_people(total)} {one if number == 1 else several}"
