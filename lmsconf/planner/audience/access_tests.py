"""Judge the `tests:` of manifests on the state before or after a plan. What is not known fails."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lmsconf.errors import LmsconfError, Problem
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.model.access import AccessClaim, AccessTest, AccessTestReport, AccessTestResult, ReportHeader
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import pin_in
from lmsconf.model.effects import count_people
from lmsconf.model.names import did_you_mean
from lmsconf.planner.audience.access_facts import AccessQuery
from lmsconf.planner.audience.people_questions import WorkspaceAccess
from lmsconf.planner.audience.people_sets import Bits

FAILED: Final = "test/failed"
NOT_JUDGED: Final = "test/not-judged"
_HINT: Final = "Correct the manifests or the test."


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
            yield Problem(code=FAILED, message=message, hint=_HINT, source=result.test.source)


def not_judged_problems(tests: Sequence[AccessTest]) -> Iterator[Problem]:
    """Yield the problem of tests that a plan without effects does not judge; it stops apply."""
    if tests:
        number = "1 test of the manifests was" if len(tests) == 1 else f"{len(tests):,} tests of the manifests were"
        yield Problem(
            code=NOT_JUDGED,
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
                    raise _Failure(f"{count_people(both)} {'is' if both == 1 else 'are'} in both")
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
