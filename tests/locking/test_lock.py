"""The lock object: what it does and does not do, and two runs at once in thousands of orders of their requests."""

import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Event

import httpx
import pytest
from integrity.served_project import linked, staged
from laws.sandbox_project import TransportConnection
from msgspec.structs import replace
from sampling import GATE, WHOLE, of_today
from waiting import Interruptions, awaited

from lmsconf.api.concurrent_requests import WorkerPool
from lmsconf.apply.remote_lock import LockHeldElsewhere, LockLease, LockLost, LockManager, WorkspaceLock
from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.apply.run_plan import execute
from lmsconf.errors import ExitCode, LmsconfError, StalePlan, Unauthorized
from lmsconf.model.address import Address
from lmsconf.model.calls import Call, CallStatus, Report
from lmsconf.model.declarations import Manifests
from lmsconf.model.names import LOCK_PREFIX
from lmsconf.project.settings import LockSettings, Settings
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

TERMS = LockSettings(lease=900.0, owner="CI run 7")


class RequestScheduler:
    """Lets one request through at a time. Whose is next is drawn once both runs wait, or have ended."""

    def __init__(self, runs: int, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311  an order is no secret
        self._going, self._waiting = set(range(runs)), set[int]()
        self._next: int | None = None
        self._changed = threading.Condition()

    def await_turn(self, run: int) -> None:
        """Comes back when it is this run's turn."""
        with self._changed:
            self._waiting.add(run)
            self._draw()
            self._changed.wait_for(lambda: self._next == run)
            self._waiting.discard(run)
            self._next = None

    def leave(self, run: int) -> None:
        """This run asks for nothing more."""
        with self._changed:
            self._going.discard(run)
            self._draw()

    def _draw(self) -> None:
        if self._next is None and self._waiting and self._waiting == self._going:
            self._next = self._dice.choice(sorted(self._waiting))
            self._changed.notify_all()


class ScheduledTransport(httpx.BaseTransport):
    """A way to the sandbox on which every request waits for its turn."""

    def __init__(self, sandbox: Sandbox, turns: RequestScheduler, run: int) -> None:
        self._sandbox, self._turns, self._run = sandbox, turns, run

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self._turns.await_turn(self._run)
        return self._sandbox.handle_request(request)


class ScheduledConnection(TransportConnection):
    """A connection over a transport of the test's choosing, on which one request follows the other."""

    def worker_pool(self, parallelism: int, progress: Report | None = None) -> WorkerPool:
        return super().worker_pool(1, progress)


def live(sandbox: Sandbox) -> list[str]:
    """The names of the groups, in their order."""
    with sandbox.store.read_transaction() as repository:
        return [str(name) for name in repository.column("SELECT name FROM groups ORDER BY name")]


def race(settings: Settings, manifests: Manifests, seed: int, *, locked: bool) -> tuple[list[str], list[str]]:
    """How two runs end that plan, lock, look again, apply and unlock at once, and which groups are live then.

    Their requests come in the order of that seed.
    """
    sandbox = Sandbox()
    turns = RequestScheduler(2, seed)
    ends = ["", ""]

    def go(run: int) -> None:
        try:
            line = ScheduledConnection(ScheduledTransport(sandbox, turns, run), sandbox.spec)
            ends[run] = _run(settings, manifests, line, run, locked)
        finally:
            turns.leave(run)

    threads = [threading.Thread(target=go, args=(run,)) for run in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    names = live(sandbox)
    sandbox.close_workspace()
    return ends, names


def _run(settings: Settings, manifests: Manifests, line: ScheduledConnection, run: int, locked: bool) -> str:
    """One run as the command makes it; how it ended."""
    workspace = WorkspaceReader(settings=settings, connection=line, parallelism=1)
    try:
        plan = workspace.plan(manifests, settings.policy)
        if not plan.calls:
            return "nothing to do"
        smith = LockManager(line, timing=WaitClock(sleep=lambda *_: None), key=lambda: f"k{run}")
        with smith.hold(TERMS) if locked else nullcontext() as holding:
            refuse_stale_plan(workspace, plan)
            keep = holding.renew_before if holding is not None else None
            return "done" if execute(workspace, plan, meta={}, before_call=keep).converged else "not converged"
    except LockHeldElsewhere:
        return "held"
    except StalePlan:
        return "stale"
    except LmsconfError as error:
        return f"error: {error.problems[0].code}"


MANIFEST = "groups: [{name: Coaches}, {name: Mentors}]\n"
WANTED = ["Coaches", "Mentors"]
CHUNK, CHUNKS = 250, 20
"""5,000 orders in all, which SIMULATION=all plays."""
ENDS = {"done", "held", "stale", "nothing to do", "error: read/incomplete"}
"""The last one where the other's lock came or went between two pages of the same listing, and then again."""


@pytest.fixture
def wish(tmp_path: Path) -> Iterator[tuple[Settings, Manifests]]:
    with linked(tmp_path, "groups: []", MANIFEST) as project:
        yield project.settings, load_manifests(project.settings)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_with_the_lock_nothing_is_made_twice(wish: tuple[Settings, Manifests], chunk: int) -> None:
    """Whatever the order: what is live is there once, no lock is left, and each run ends in words of its own."""
    done = 0
    # An order takes a twentieth of a second: every day plays a tenth of a sixtieth, and .ci/run a twentieth.
    step = 1 if os.environ.get("SIMULATION") == "all" else 20 if WHOLE else 10
    seeds = of_today(range(chunk * CHUNK, (chunk + 1) * CHUNK))[(chunk + (GATE or 0)) % step :: step]
    for seed in seeds:
        ends, names = found = race(*wish, seed, locked=True)
        assert set(names) <= set(WANTED), (seed, found)
        assert len(names) == len(set(names)), (seed, found)
        assert set(ends) <= ENDS, (seed, found)
        assert (names == WANTED) == ("done" in ends), (seed, found)
        done += "done" in ends
    assert done > len(seeds) / 4 or len(seeds) < 10


@pytest.mark.sampled(daily=False)
def test_without_the_lock_there_are_duplicates(wish: tuple[Settings, Manifests]) -> None:
    """The same test can fail: without the lock, many orders leave something twice."""
    races = [race(*wish, seed, locked=False)[1] for seed in range(60)]
    assert sum(len(names) > len(set(names)) for names in races) > 60 / 10


# What the lock object does and does not do, one thing at a time.


CALL = Call(id="c1", address=Address("group", "x"), operation="", method="", path="", query={}, body=None)


class Day(httpx.BaseTransport):
    """A workspace on a clock that the test moves, and the way to it.

    late: seconds after which a new group shows in lists. asked: hears of each request before it is passed on.
    """

    def __init__(
        self, *script: Fault, late: float = 0.0, asked: Callable[[str, str], object] = lambda *_: None
    ) -> None:
        self.now, self.late, self.asked = 1_800_000_000.0, late, asked
        self.sandbox = Sandbox(clock=lambda: self.now, faults=FaultScript(*script))
        self.line = ScheduledConnection(self, self.sandbox.spec)
        self._shows: dict[str, float] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.asked(request.method, path)
        try:
            response = self.sandbox.handle_request(request)
        finally:
            if (request.method, path) == ("POST", "/groups"):
                for group in live(self.sandbox):
                    self._shows.setdefault(group, self.now + self.late)
        if (request.method, path) == ("GET", "/groups") and self.late:
            found = json.loads(response.read())
            found["groups"] = [row for row in found["groups"] if self._shows.get(row["name"], 0) <= self.now]
            return httpx.Response(200, json=found)
        return response

    def smith(self, key: str = "ours", settle: float = 30.0) -> LockManager:
        timing = WaitClock(now=lambda: self.now, sleep=lambda seconds, _: self.sleep(seconds))
        return LockManager(self.line, settle=settle, clock=lambda: self.now, timing=timing, key=lambda: key)

    def hold(self, key: str = "ours", settle: float = 30.0) -> AbstractContextManager[LockLease]:
        return self.smith(key, settle).hold(TERMS)

    def make(self, name: str) -> None:
        self._send("POST", "/groups", json.dumps({"name": name}))

    def unlock(self) -> None:
        """Somebody takes the lock away."""
        self._send("DELETE", f"/groups/{self.locks()[0].id}")

    def _send(self, method: str, path: str, body: str = "") -> None:
        headers = {"authorization": "Bearer sandbox", "content-type": "application/json"}
        assert self.sandbox.answer(method, path, "", headers, body.encode()).status < 300

    def locks(self) -> list[WorkspaceLock]:
        return self.smith().list_locks()

    def groups(self) -> list[str]:
        return live(self.sandbox)

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def refuses(self, error: type[BaseException], match: str | None = None, key: str = "ours") -> LockManager:
        """Whoever wants the lock is told so, and has not got it."""
        smith = self.smith(key)
        with pytest.raises(error, match=match), smith.hold(TERMS):
            pytest.fail("it is held")
        return smith


def is_lost(holding: LockLease, match: str = "the lock was deleted") -> None:
    """The next call is not sent."""
    with pytest.raises(LockLost, match=match):
        holding.renew_before(CALL)


def test_a_lock_says_who_has_it_and_goes_with_the_run() -> None:
    """While it is held others are refused before they write anything; the message names the holder and the time."""
    day = Day()
    with day.hold():
        assert [name.startswith(LOCK_PREFIX) for name in day.groups()] == [True]
        with (
            pytest.raises(LockHeldElsewhere, match=r"CI run 7, until 2027-01-15T08:15:00Z") as refused,
            day.hold("b"),
        ):
            pass
        assert refused.value.hint == "Wait until it ends. If it no longer runs: lmsconf unlock --id g-1"
        assert [one.operation for one in day.sandbox.log if one.writes] == ["manual-groups.create"]
    assert day.groups() == []


def test_a_lease_that_is_over_gives_way() -> None:
    """The lock of a run that died holds for its lease, and a minute for clocks that differ; then it is cleaned away."""
    day = Day()
    with day.hold():
        day.sandbox.store.checkpoint("died")
    day.sandbox.store.restore("died")
    day.now += 959
    day.refuses(LockHeldElsewhere, key="b")
    day.now += 1
    with day.hold("b"):
        assert len(day.groups()) == 1
    assert day.groups() == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("abc until 9999-12-31T23:59:59-14:00 held by far", "the end of time"),
        ("abc until 9999-12-31T00:00:00Z held by far", "the end of time"),
        ("abc until tomorrow held by far", "far, without an end"),
        ("by hand", "by hand, without an end"),
    ],
)
def test_a_lock_that_nobody_can_read_holds_until_it_is_taken_away(name: str, told: str) -> None:
    """Whatever somebody has written into a reserved name, in the form of ours or not, never ends by itself."""
    day = Day()
    day.make(f"{LOCK_PREFIX}{name}")
    day.now += 10**9
    day.refuses(LockHeldElsewhere, told)
    day.unlock()
    with day.hold():
        pass


@pytest.mark.parametrize("mishaps", [[], [Fault(operation="manual-groups.rename", cut=True)]], ids=["well", "lost"])
def test_the_lease_is_renewed_on_the_way(mishaps: list[Fault]) -> None:
    """After a third of it the next call renews it; the group is the same. Where the response is lost, one more does."""
    day = Day(*mishaps)
    with day.hold() as holding:
        [first] = day.locks()
        day.now += 299
        holding.renew_before(CALL)
        day.now += 2
        for _ in mishaps:
            holding.renew_before(CALL)
        assert day.locks() == [first]
        holding.renew_before(CALL)
        [renewed] = day.locks()
        assert (renewed.id, (renewed.until or 0) - (first.until or 0)) == (first.id, 301)


def test_a_run_that_slept_through_its_lease_sends_nothing_more() -> None:
    """Nobody can tell whether another run has the workspace by then."""
    day = Day()
    with day.hold() as holding:
        day.now += 811
        is_lost(holding, "c1 was not sent")


def test_a_run_whose_lock_was_taken_away_stops() -> None:
    """It finds out before a call as soon as its last look is five seconds old, long before the lease is renewed."""
    day = Day()
    with day.hold() as holding:
        asked = len(day.sandbox.log)
        day.now += 4
        holding.renew_before(CALL)
        assert len(day.sandbox.log) == asked
        day.now += 1
        holding.renew_before(CALL)
        holding.renew_before(CALL)
        assert len(day.sandbox.log) == asked + 1
        day.unlock()
        day.now += 5
        is_lost(holding)


def test_unlocking_ends_a_run_that_is_at_work(tmp_path: Path) -> None:
    """Calls of two seconds each: three are done, then somebody unlocks, and a few seconds later it is over."""
    day, made = Day(), 0

    def asked(method: str, path: str) -> None:
        nonlocal made
        day.now += 2
        if (method, path) == ("POST", "/groups"):
            made += 1
            if made == 4:
                day.sandbox.answer("DELETE", f"/groups/{lock.id}", "", {"authorization": "Bearer sandbox"}, b"")

    names = ", ".join(f"{{name: G{number:02}}}" for number in range(40))
    with linked(tmp_path, "groups: []", f"groups: [{names}]\n") as project, day.hold() as holding:
        [lock] = day.locks()
        workspace = WorkspaceReader(settings=project.settings, connection=day.line, parallelism=1)
        plan = project.plan(workspace)
        day.asked = asked
        report = execute(workspace, plan, meta={}, before_call=holding.renew_before)
    assert report.exit == ExitCode.PARTIAL
    assert made < 10
    left = [outcome for outcome in report.outcomes if outcome.status is CallStatus.NOT_ATTEMPTED]
    assert len(left) == 40 - made
    assert "the lock was deleted" in str(left[0].reason)


@pytest.mark.parametrize("status", [404, 410])
def test_a_lock_that_is_not_there_any_more_is_lost(status: int) -> None:
    """A service may say either of what it has deleted."""
    day = Day(Fault(operation="manual-groups.members", status=status))
    with day.hold() as holding:
        day.now += 5
        is_lost(holding)


def test_a_look_that_brings_nothing_is_repeated() -> None:
    """An answer that cannot be read says nothing about the lock: the run goes on, and looks again before the next."""
    day = Day(Fault(operation="manual-groups.members", spoil="html"))
    with day.hold() as holding:
        day.now += 5
        holding.renew_before(CALL)
        day.unlock()
        is_lost(holding)


def test_a_renewal_that_comes_too_late_is_none() -> None:
    """Renewed when others may have found the lease over, it does not count, and nothing more is sent."""
    day = Day(asked=lambda _, path: day.sleep(700 if path.endswith("/rename") else 0))
    with day.hold() as holding:
        day.now += 301
        is_lost(holding, "not renewed in time")
    assert day.groups() == []


def test_a_lease_is_renewed_while_the_run_reads() -> None:
    """What is read before the first call may take longer than the lease."""
    day, due, renewed = Day(), Event(), Event()

    def idle(seconds: float, over: Event) -> bool:
        if due.is_set():
            renewed.set()
            return over.wait()
        awaited(due)
        return False

    smith = LockManager(day.line, clock=lambda: day.now, idle=idle)
    with smith.hold(TERMS) as holding:
        day.now += 400
        due.set()
        awaited(renewed)
        day.now += 450
        holding.renew_before(CALL)


def test_a_thread_that_looks_at_the_lease_at_once_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be faster than the request for the lock, and must not find a lease that ended long ago."""
    day, looks = Day(), [True, False]
    lease = LockLease(day.smith(), TERMS, "ours", lambda: day.now, lambda *_: looks.pop())
    monkeypatch.setattr(lease._renewer, "start", lease._renewer.run)
    lease.create()
    assert looks == []


@pytest.mark.parametrize(("late", "settle"), [(10.0, 0.5), (25.0, 30.0), (110.0, 120.0), (60.0, 30.0)])
def test_a_lock_may_show_late(late: float, settle: float) -> None:
    """It is waited for as long as the project says that things settle, and ten seconds at least.

    Later than that: an error that says so. Nothing of it shows up afterwards.
    """
    day = Day(late=late)
    said = pytest.raises(LmsconfError, match="is not in the list of groups after 30 seconds")
    with nullcontext() if late <= max(settle, 10) else said, day.hold(settle=settle) as holding:
        holding.renew_before(CALL)
    assert day.groups() == []


def test_a_lock_goes_when_the_wait_for_it_is_cut_short() -> None:
    """Ctrl-C before the lock shows, and a list that cannot be read any more: both take it away."""
    day = Day(late=60)
    day.sleep = lambda _: os.kill(os.getpid(), signal.SIGINT)
    day.refuses(KeyboardInterrupt)
    assert day.groups() == []
    day = Day(Fault(operation="manual-groups.list", status=404, after=1, times=ALWAYS))
    day.refuses(LmsconfError, "cannot tell whether")
    assert day.groups() == []


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_an_interruption_while_the_lock_is_made_or_taken_away_leaves_none(method: str) -> None:
    """Ctrl-C waits for that one answer. When everything was done before, it changes nothing."""
    done = cut = False
    day = Day(asked=lambda sent, _: ctrl_c.send() if sent == method else None)
    with Interruptions() as ctrl_c:
        try:
            with day.hold():
                done = True
        except KeyboardInterrupt:
            cut = True
    assert (done, cut) == ((False, True) if method == "POST" else (True, False))
    assert day.groups() == []


def test_whoever_is_in_a_hurry_need_not_wait() -> None:
    """A second Ctrl-C ends the wait for the answer that makes the lock; what may be left is told."""
    day, ended = Day(), Event()

    def asked(method: str, _: str) -> None:
        if method == "POST":
            ctrl_c.send()
            ctrl_c.send()
            awaited(ended)

    day.asked = asked
    smith = day.smith()
    with Interruptions() as ctrl_c, pytest.raises(KeyboardInterrupt), smith.hold(TERMS):
        pytest.fail("it is held")
    ended.set()
    assert "may be left: run `lmsconf unlock`" in str(smith.left)


@pytest.mark.parametrize("mishap", [Fault(lose_answer=True), Fault(spoil="html")])
def test_a_lock_is_known_by_its_key_where_its_answer_is_lost(mishap: Fault) -> None:
    """It is held all the same, and taken away when the run ends."""
    day = Day(replace(mishap, operation="manual-groups.create"))
    with day.hold() as holding:
        day.now += 5
        holding.renew_before(CALL)
        assert len(day.groups()) == 1
    assert day.groups() == []


def test_no_other_lock_is_taken_away() -> None:
    """Where the answer to its creation was lost, a lock is looked for by its key: others of its owner stay."""
    day = Day(Fault(operation="manual-groups.create", lose_answer=True), late=60)
    theirs = f"{LOCK_PREFIX}theirs until 2099-01-01T00:00:00Z held by {TERMS.owner}"

    def sleep(_: float) -> None:
        day.now += 60
        day.make(theirs)
        raise KeyboardInterrupt

    day.sleep = sleep
    day.refuses(KeyboardInterrupt)
    assert day.groups() == [theirs]


def test_a_lock_that_may_be_left_is_told() -> None:
    """Its answer was lost and it does not show, or it cannot be deleted."""
    smith = Day(Fault(operation="manual-groups.create", cut=True)).refuses(LmsconfError, "is not in the list")
    assert "may be left: run `lmsconf unlock`" in str(smith.left)
    smith = Day(Fault(operation="manual-groups.delete", status=409)).smith()
    with smith.hold(TERMS):
        pass
    assert "could not be removed" in str(smith.left)


def test_a_credential_that_may_not_lock_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 403 to the lock is about the credential, as it is for other calls: exit 7 with a way out, nothing left."""
    day = Day(Fault(operation="manual-groups.create", status=403))
    assert day.refuses(Unauthorized).left is None
    # The first lock cannot be made; the second is made, and neither one that is over nor itself can be deleted.
    create = Fault(operation="manual-groups.create", status=403, after=1)
    faults = FaultScript(create, Fault(operation="manual-groups.delete", status=403, times=2))
    with staged(tmp_path, "groups: []", monkeypatch, "lock: true\n", faults=faults) as stage:
        stage.write(MANIFEST)
        stage.hand("manual-groups.create", body={"name": f"{LOCK_PREFIX}k until 2020-01-01T00:00:00Z held by CI"})
        for left in (False, True):
            refused = stage("apply", "--auto-approve", code=ExitCode.UNAUTHORIZED)
            assert "This token can read but has no permission to change groups" in refused.err
            assert ("could not be removed" in refused.err) == left


def test_the_reserved_name_is_no_resource(tmp_path: Path) -> None:
    """A lock is not listed, not owned, not in a snapshot; and no manifest can declare it."""
    day = Day()
    day.make("Coaches")
    options = "ownership: {groups: all}\nlock: true\n"
    with linked(tmp_path / "a", "groups: []", "groups: [{name: Coaches}]\n", options) as project, day.hold():
        settings = project.settings
        assert settings.lock is not None
        assert settings.lock.owner.startswith("anna on ")
        workspace = WorkspaceReader(settings=settings, connection=day.line)
        plan = project.plan(workspace)
        assert (plan.changes, plan.unmanaged) == ((), ())
        assert [row.name for row in workspace.snapshot().of("group").rows] == ["Coaches"]
        project.write(f'groups: [{{name: "{LOCK_PREFIX}x"}}]\n')
        assert [problem.code for problem in load_manifests(settings).problems] == ["manifest/reserved"]


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`apply` is refused while somebody else has the lock, `unlock` takes it away, and then it is done."""
    with staged(tmp_path, "groups: []", monkeypatch, "lock: true\n") as stage:
        stage.write(MANIFEST)
        assert stage("unlock").out == "Workspace here is not locked.\n"
        stage.hand("manual-groups.create", body={"name": f"{LOCK_PREFIX}k until 2099-01-01T00:00:00Z held by CI"})
        assert "CI, until 2099-01-01T00:00:00Z" in stage("apply", "--auto-approve", code=1).err
        asked = stage("unlock", code=64).err
        assert "error: there is no terminal to ask for approval [usage]\n  Pass --id g-1.\n" in asked
        stage("unlock", "--id", "g-9", code=1)
        assert stage("unlock", "--id", "g-1").out.startswith("Unlocked: CI")
        stage("apply", "--auto-approve", code=0)
        assert stage("unlock").out == "Workspace here is not locked.\n"
