"""Carrying a plan out: in which order, how many at a time, and what a failure keeps from being done."""

import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import date
from threading import Event, Timer, get_ident
from typing import Any

import pytest
from msgspec.structs import replace
from views.document_samples import EMPTY
from waiting import HANGS

from lmsconf.api.spec import ApiSpec
from lmsconf.apply.scheduler import CallCounter, CallRun, Learnt, RunResult
from lmsconf.errors import DuplicateResource, LmsconfError, Rejected, Unauthorized, Unreachable
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Call, CallStatus, RateLimit, RunProgress, Step
from lmsconf.model.guards import Policy
from lmsconf.model.outcomes import CallOutcome
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.call_order import order_calls, step_dependencies
from lmsconf.support.interrupts import Interrupts


def call(id: str, *needs: str, may_be_refused: bool = False) -> Call:
    return Call(
        id=id,
        address=Address.of("group", id),
        operation="manual-groups.create",
        method="POST",
        path="/groups",
        query={},
        body={},
        needs=needs,
        may_be_refused=may_be_refused,
    )


def plan(*calls: Call) -> Plan:
    return replace(EMPTY, calls=calls)


Reply = Exception | Callable[[], object]


@dataclass
class Service:
    """Answers each call at once, after what the reply to it does, and remembers which ids were known by then."""

    replies: Mapping[str, Reply] = field(default_factory=dict)
    sent: list[str] = field(default_factory=list)
    known: dict[str, set[Ref]] = field(default_factory=dict)

    def submit(self, call: Call, ids: Learnt) -> Future[Learnt]:
        self.sent.append(call.id)
        self.known[call.id] = set(ids)
        future: Future[Learnt] = Future()
        reply = self.replies.get(call.id)
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            if reply is not None:
                reply()
            future.set_result({Ref(call.address): f"id of {call.id}"})
        return future


def carried_out(
    calls: list[Call], replies: Mapping[str, Reply] | None = None, *, width: int = 1, **more: Any
) -> tuple[RunResult, Service]:
    """What a run came to, and the service that it was carried out on."""
    service = Service(replies or {})
    return CallRun(plan(*calls), service.submit, width=width, **more).run(Interrupts()), service


def statuses(done: RunResult) -> dict[str, str]:
    return {outcome.call: outcome.status.value for outcome in done.outcomes}


def test_what_a_call_needs_is_done_before_and_its_id_is_known() -> None:
    """Each call goes when all that it needs is done, with the ids that were learnt; outcomes stand as in the plan."""
    done, service = carried_out([call("a"), call("d", "b", "c"), call("b", "a"), call("c")])
    assert service.sent == ["a", "c", "b", "d"]
    assert service.known["d"] == {Ref(Address.of("group", one)) for one in "abc"}
    assert [outcome.call for outcome in done.outcomes] == ["a", "d", "b", "c"]
    assert [outcome.id for outcome in done.outcomes] == ["id of a", "id of d", "id of b", "id of c"]
    assert (done.may_have_written, done.errors, done.stopped_by) == (True, [], None)


def test_no_more_go_at_a_time_than_the_crew_is_wide() -> None:
    """As many as it is wide, and not one more, are under way while nothing is answered."""
    sent: list[tuple[Call, Future[Learnt]]] = []
    most = 0

    def submit(one: Call, ids: Learnt) -> Future[Learnt]:
        nonlocal most
        sent.append((one, Future()))
        open = [future for _, future in sent if not future.done()]
        most = max(most, len(open))
        if len(open) == 3:
            Timer(0.02, lambda: [future.set_result({}) for future in open]).start()
        return sent[-1][1]

    done = CallRun(plan(*(call(f"c{n}") for n in range(9))), submit, width=3).run(Interrupts())
    assert set(statuses(done).values()) == {"done"}
    assert most == 3


def test_what_may_be_refused_goes_first_and_alone() -> None:
    """Nothing else is sent before it is settled, wherever it stands in the plan; what needs it comes after it."""
    calls = [call("a"), call("b"), call("risky", may_be_refused=True), call("c", "risky"), call("d", "a")]
    _, service = carried_out(calls, width=4)
    assert service.sent[0] == "risky"
    assert service.known["a"] >= {Ref(Address.of("group", "risky"))}
    assert sorted(service.sent) == ["a", "b", "c", "d", "risky"]


def test_a_refusal_keeps_back_only_what_needs_it() -> None:
    """Directly or not; the reason names the call that failed, and everything else is done."""
    calls = [call("a"), call("b", "a"), call("c", "b", "x"), call("x"), call("y", "x")]
    done, service = carried_out(calls, {"a": Rejected("no", hint="Look.")})
    assert statuses(done) == {"a": "failed", "b": "blocked", "c": "blocked", "x": "done", "y": "done"}
    assert sorted(service.sent) == ["a", "x", "y"]
    found = {outcome.call: outcome for outcome in done.outcomes}
    assert (found["a"].reason, found["a"].hint) == ("no", "Look.")
    assert found["b"].reason == "it needs a (group/a), which was not done"
    assert found["c"].reason == "it needs b (group/b), which was not done"
    assert (done.may_have_written, done.stopped_by) == (True, None)


@pytest.mark.parametrize("width", [1, 8])
@pytest.mark.parametrize("error", [Unauthorized("who?"), Unreachable("gone"), DuplicateResource("two")])
def test_what_concerns_all_stops_all(error: LmsconfError, width: int) -> None:
    """A refused credential, a service that is gone, and twins: nothing more is begun, and each call says why.

    What has ended is recorded before another call begins: a service in this process answers at once.
    """
    done, service = carried_out([call("a"), call("b", "a"), call("c")], {"a": error}, width=width)
    assert service.sent == ["a"]
    assert statuses(done) == {"a": "failed", "b": "blocked", "c": "not_attempted"}
    assert done.outcomes[2].reason == f"the run stopped before it: {error.message}"
    assert done.stopped_by is error
    assert done.errors == [error]


def test_the_first_reason_to_stop_is_the_one_that_is_told() -> None:
    """Of several that come while calls are under way, the first counts."""
    first, under_way = Unreachable("gone"), [Future[Learnt](), Future[Learnt]()]
    answers = iter(under_way)

    def submit(one: Call, ids: Learnt) -> Future[Learnt]:
        answer = next(answers)
        if answer is under_way[-1]:
            under_way[0].set_exception(first)
            under_way[1].set_exception(Unauthorized("who?"))
        return answer

    done = CallRun(plan(call("a"), call("b"), call("c")), submit, width=2).run(Interrupts())
    assert done.stopped_by is first
    assert statuses(done) == {"a": "failed", "b": "failed", "c": "not_attempted"}


def test_a_call_that_must_not_begin_is_not_sent() -> None:
    """Who hears of calls before they go can stop the run: what is under way is finished, and nothing else begins."""
    wrong = LmsconfError("the disk is full")

    def begin(one: Call) -> None:
        if one.id in "bc":
            raise wrong if one.id == "b" else LmsconfError("later")

    done, service = carried_out([call("a"), call("b"), call("c")], begin=begin, width=3)
    assert service.sent == ["a"]
    assert statuses(done) == {"a": "done", "b": "not_attempted", "c": "not_attempted"}
    assert done.stopped_by is wrong


@pytest.fixture
def listening() -> Iterator[None]:
    """A process that hears Ctrl-C, as one that a shell started in the background does not."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


@pytest.mark.usefixtures("listening")
def test_an_interruption_lets_finish_what_is_under_way() -> None:
    """Ctrl-C is heard of, nothing more begins, and each call that was not sent says why."""
    hurried: list[bool] = []
    done, _ = carried_out([call("a"), call("b")], {"a": interrupt}, stop_waiting=lambda: hurried.append(True))
    assert statuses(done) == {"a": "done", "b": "not_attempted"}
    assert done.outcomes[1].reason == "the run was interrupted before it"
    assert isinstance(done.interrupted_by, KeyboardInterrupt)
    assert hurried == [True]


@pytest.mark.usefixtures("listening")
def test_an_interruption_before_the_first_call_lets_none_begin() -> None:
    """Ctrl-C that came where it was only recorded is heeded as soon as calls would begin."""
    interrupts, service = Interrupts(), Service()
    with interrupts.installed():
        interrupts.defer()
        interrupt()
        done = CallRun(plan(call("a")), service.submit, width=1).run(interrupts)
    assert (statuses(done), service.sent) == ({"a": "not_attempted"}, [])
    assert isinstance(done.interrupted_by, KeyboardInterrupt)


def test_a_second_interruption_is_at_once() -> None:
    """Pressing Ctrl-C again waits for nothing, not even for what is under way: its result is told as not known."""
    done, service = carried_out(
        [call("a"), call("b")], {"a": lambda: (interrupt(), interrupt(), pytest.fail("unheard"))}
    )
    assert service.sent == ["a"]
    assert statuses(done) == {"a": "failed", "b": "not_attempted"}
    assert done.outcomes[0].unsure
    assert done.is_abandoned


@pytest.mark.usefixtures("listening")
def test_signals_that_another_thread_receives_are_noticed() -> None:
    """The kernel may give a signal to any thread; the one that waits for a call handles it all the same."""
    heard, ended = Event(), Event()
    future: Future[Learnt] = Future()

    def interrupt_twice() -> None:
        signal.pthread_kill(get_ident(), signal.SIGINT)
        heard.wait(HANGS)
        # Once more when the run waits again, so that nothing but the signal is there to end its waiting.
        Timer(0.02, lambda: signal.pthread_kill(get_ident(), signal.SIGINT)).start()
        if not ended.wait(HANGS):
            future.set_result({})

    def submit(one: Call, ids: Learnt) -> Future[Learnt]:
        Timer(0.02, interrupt_twice).start()
        return future

    done = CallRun(plan(call("a"), call("b")), submit, width=1, stop_waiting=heard.set).run(Interrupts())
    ended.set()
    assert statuses(done) == {"a": "failed", "b": "not_attempted"}
    assert done.is_abandoned


def test_an_error_of_the_program_ends_the_run_with_its_report() -> None:
    """What was done before is told, the call may have been done, nothing else is sent, and the cause is kept."""
    calls = [call("a"), call("b"), call("c", "b"), call("d")]
    done, service = carried_out(calls, {"b": ZeroDivisionError("by zero")})
    assert service.sent == ["a", "b"]
    assert statuses(done) == {"a": "done", "b": "failed", "c": "blocked", "d": "not_attempted"}
    assert done.outcomes[1].reason == "an unexpected ZeroDivisionError ended the call: by zero"
    assert done.outcomes[1].unsure
    assert done.may_have_written
    assert done.stopped_by is not None
    assert isinstance(done.stopped_by.__cause__, ZeroDivisionError)


def test_the_progress_of_calls_is_told() -> None:
    """After each call that was sent; a pause that the service asks for is told too, other news of requests are not."""
    told: list[RunProgress] = []
    counter = CallCounter(3, told.append)
    for status in (CallStatus.DONE, CallStatus.NOT_ATTEMPTED, CallStatus.FAILED):
        counter.count(CallOutcome(call="c", address=Address("toy", "a"), operation="toys.create", status=status))
    limit = RateLimit(at=0.0, rate=1.0, resumes_in=5.0, wall=0.0)
    for now in (None, limit):
        counter.report(RunProgress(done=7, total=9, is_final=False, limit=now))
    assert [(one.done, one.total, one.is_final, one.limit) for one in told] == [
        (1, 3, True, None),
        (1, 3, True, None),
        (2, 3, True, None),
        (2, 3, True, limit),
    ]


# The order of calls: the default where no dependency decides, and errors for a cycle or a missing id.


A, B, C, D = (Address.of("group", name) for name in "ABCD")
FIELD = Address.of("custom_field", "F")


@pytest.fixture
def planning() -> PlanContext:
    snapshot = Snapshot(workspace="here", url="sandbox:", taken_at="", people=None)
    policy = Policy(workspace="here", today=date(2026, 6, 1))
    return PlanContext(snapshot, policy, ApiSpec.default(), lambda address: True)


def step(id: str | Ref = "g-1", **more: object) -> Step:
    return Step(operation="manual-groups.delete", path={"groupId": id}, **more)


def on(calls: tuple[Call, ...]) -> list[Address]:
    return [call.address for call in calls]


def test_what_takes_away_goes_last_and_what_may_be_refused_first(planning: PlanContext) -> None:
    """Among calls that need nothing: refusals, then kind by kind what gives, then likewise what takes."""
    risky = step(may_be_refused=True)
    work = [(A, [step(revokes=True)]), (B, [step()]), (C, [risky]), (FIELD, [step(revokes=True), step()])]
    calls = order_calls(planning, work)
    assert on(calls) == [C, FIELD, B, FIELD, A]
    assert [call.id for call in calls] == ["c1", "c2", "c3", "c4", "c5"]
    assert [call.may_be_refused for call in calls] == [True, False, False, False, False]
    assert planning.problems == []


def test_an_id_to_come_has_to_come(planning: PlanContext) -> None:
    """A call of the plan makes it, or it is an error that names what to plan too; wherever it stands."""
    body = {"userIds": ["u", {Ref(D): [Ref(B)]}]}
    work = [(A, [step(Ref(B), body=body)]), (B, [Step(operation="manual-groups.create", makes=frozenset({Ref(B)}))])]
    order_calls(planning, work)
    [problem] = planning.problems
    assert (problem.code, problem.address) == ("reference/not-planned", "group/A")
    assert problem.message == "group/A: it needs group/D, which does not exist yet and is not part of this plan"
    assert "--only group/D" in (problem.hint or "")


def test_a_circle_is_one_problem_that_names_each_resource_once(planning: PlanContext) -> None:
    """Neither who waits for it nor who has nothing to do with it is named, and there are no calls."""
    a, b = frozenset({Ref(A)}), frozenset({Ref(B)})
    both = [step(makes=a, uses=b), step(uses=a)]
    assert order_calls(planning, [(A, both), (B, [step(makes=b, uses=a)]), (C, [step()])]) == ()
    [problem] = planning.problems
    assert problem.code == "plan/circle"
    assert problem.message == "the calls of group/A, group/B depend on each other in a cycle"
    assert problem.address is None


def test_what_would_better_wait_is_made_at_once_where_all_would_wait(planning: PlanContext) -> None:
    """It goes first, may be refused, and the problem names who is in the way; without a circle it waits."""
    a, b, c = (frozenset({Ref(one)}) for one in (A, B, C))
    field = step(makes=a, avoids=b)
    new, old = step(makes=c, uses=a), step(uses=c, releases=b)
    calls = order_calls(planning, [(FIELD, [field]), (C, [new]), (B, [old])])
    assert [(call.address, call.may_be_refused) for call in calls] == [(FIELD, True), (C, False), (B, False)]
    [problem] = planning.problems
    assert (problem.code, problem.is_error, problem.address) == ("refusal/in-use", False, str(FIELD))
    assert "it is named by group/B, and" in problem.message
    planning.problems.clear()
    assert on(order_calls(planning, [(FIELD, [field]), (B, [step(releases=b)])])) == [B, FIELD]
    assert planning.problems == []


def test_a_step_needs_who_makes_what_it_uses_and_who_leaves_what_it_ends() -> None:
    """All of them, wherever they stand; and never itself."""
    a, b, c = (frozenset({Ref(one)}) for one in (A, B, C))
    steps = [step(uses=a | b), step(makes=a), step(makes=b), step(makes=a, uses=a)]
    steps += [step(ends=c, releases=c), step(releases=c)]
    assert step_dependencies(steps) == [{1, 2, 3}, set(), set(), {1}, {5}, set()]
