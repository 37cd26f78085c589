"""The lock object: what it does and does not do, and two runs at once in thousands of orders of their requests."""

import json
import os
import random
import signal
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import httpx
import pytest
from flow.shell import lmsconf
from laws.sandbox_project import TransportConnection
from msgspec.structs import replace
from sampling import GATE, WHOLE, of_today
from waiting import Interruptions, awaited

from lmsconf.api.concurrent_requests import WorkerPool
from lmsconf.apply.remote_lock import LockHeldElsewhere, LockLease, LockLost, LockManager
from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.apply.run_plan import execute
from lmsconf.errors import ExitCode, LmsconfError, StalePlan, Unauthorized
from lmsconf.model.address import Address
from lmsconf.model.calls import Call, CallStatus, Report
from lmsconf.model.declarations import Manifests
from lmsconf.model.names import LOCK_PREFIX
from lmsconf.project.settings import LockSettings, Settings, load_settings
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

TERMS = LockSettings(lease=900.0, owner="a run")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceOutcome:
    """How two runs at once ended: what became of each, and which names are live how often."""

    ends: list[str]
    names: list[str]


def project(root: Path, manifests: str) -> Settings:
    """The settings of a project of one manifest, on a sandbox."""
    (root / "manifests").mkdir(parents=True)
    (root / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")
    (root / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:"}}\n', encoding="utf-8")
    return load_settings(root, None, {})


def race(settings: Settings, manifests: Manifests, seed: int, *, locked: bool, runs: int = 2) -> RaceOutcome:
    """Both runs plan, lock, look again, apply and unlock, their requests in the order of that seed."""
    sandbox = Sandbox()
    turns = RequestScheduler(runs, seed)
    ends = [""] * runs

    def go(run: int) -> None:
        try:
            line = ScheduledConnection(ScheduledTransport(sandbox, turns, run), sandbox.spec)
            ends[run] = _run(settings, manifests, line, run, locked)
        finally:
            turns.leave(run)

    threads = [threading.Thread(target=go, args=(run,)) for run in range(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    with sandbox.store.read_transaction() as repository:
        names = [str(name) for name in repository.column("SELECT name FROM groups ORDER BY name")]
    sandbox.close_workspace()
    return RaceOutcome(ends=ends, names=names)


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


@pytest.mark.sampled
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_with_the_lock_nothing_is_made_twice(tmp_path: Path, chunk: int) -> None:
    """Whatever the order: what is live is there once, no lock is left, and each run ends in words of its own."""
    settings = project(tmp_path, MANIFEST)
    manifests = load_manifests(settings)
    done = 0
    # An order takes a twentieth of a second: every day plays a tenth of a sixtieth, and .ci/run a twentieth.
    step = 1 if os.environ.get("SIMULATION") == "all" else 20 if WHOLE else 10
    seeds = of_today(range(chunk * CHUNK, (chunk + 1) * CHUNK))[(chunk + (GATE or 0)) % step :: step]
    for seed in seeds:
        found = race(settings, manifests, seed, locked=True)
        assert set(found.names) <= set(WANTED), (seed, found)
        assert len(found.names) == len(set(found.names)), (seed, found)
        assert set(found.ends) <= ENDS, (seed, found)
        assert (found.names == WANTED) == ("done" in found.ends), (seed, found)
        done += "done" in found.ends
    assert done > len(seeds) / 4 or len(seeds) < 10


@pytest.mark.sampled
def test_without_the_lock_there_are_duplicates(tmp_path: Path) -> None:
    """The same test can fail: without the lock, many orders leave something twice."""
    settings = project(tmp_path, MANIFEST)
    manifests = load_manifests(settings)
    races = [race(settings, manifests, seed, locked=False).names for seed in range(60)]
    doubled = sum(len(names) > len(set(names)) for names in races)
    assert doubled > 60 / 10


# What the lock object does and does not do, one thing at a time.


LOCK_TERMS = LockSettings(lease=900.0, owner="CI run 7")
CALL = Call(id="c1", address=Address("group", "x"), operation="", method="", path="", query={}, body=None)


class ClockedWorkspace:
    """A workspace on a clock that the test moves."""

    def __init__(self, *script: Fault) -> None:
        self.now = 1_800_000_000.0
        self.sandbox = Sandbox(clock=lambda: self.now, faults=FaultScript(*script))
        self.line = ScheduledConnection(self.sandbox, self.sandbox.spec)

    def smith(self, key: str = "ours", settle: float = 30.0) -> LockManager:
        timing = WaitClock(now=lambda: self.now, sleep=lambda seconds, _: self.sleep(seconds))
        return LockManager(self.line, settle=settle, clock=lambda: self.now, timing=timing, key=lambda: key)

    def make(self, name: str) -> None:
        with self.line.worker_pool(1) as pool:
            pool.submit(lambda client: client.call("manual-groups.create", body={"name": name})).result()

    def groups(self) -> list[str]:
        with self.sandbox.store.read_transaction() as repository:
            return [str(name) for name in repository.column("SELECT name FROM groups ORDER BY name")]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def refuses(self, error: type[BaseException], match: str | None = None, key: str = "ours") -> LockManager:
        """Whoever wants the lock is told so, and has not got it."""
        smith = self.smith(key)
        with pytest.raises(error, match=match), smith.hold(LOCK_TERMS):
            pytest.fail("it is held")
        return smith


class Slow(httpx.BaseTransport):
    """A service that shows a new group late in lists. `asked` hears of each request before it is passed on."""

    def __init__(
        self, day: ClockedWorkspace, seconds: float = 0.0, asked: Callable[[str, str], None] = lambda *_: None
    ) -> None:
        self._day, self._seconds, self._asked = day, seconds, asked
        self._shows: dict[str, float] = {}
        day.line = ScheduledConnection(self, day.sandbox.spec)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self._asked(request.method, path)
        try:
            response = self._day.sandbox.handle_request(request)
        finally:
            if (request.method, path) == ("POST", "/groups"):
                for group in self._day.groups():
                    self._shows.setdefault(group, self._day.now + self._seconds)
        if (request.method, path) == ("GET", "/groups"):
            found = json.loads(response.read())
            found["groups"] = [row for row in found["groups"] if self._shows.get(row["name"], 0) <= self._day.now]
            return httpx.Response(200, json=found)
        return response


def test_a_lock_says_who_has_it_and_goes_with_the_run() -> None:
    """While it is held others are refused before they write anything; the message names the holder and the time."""
    day = ClockedWorkspace()
    with day.smith().hold(LOCK_TERMS):
        assert [name.startswith(LOCK_PREFIX) for name in day.groups()] == [True]
        with (
            pytest.raises(LockHeldElsewhere, match=r"CI run 7, until 2027-01-15T08:15:00Z") as refused,
            day.smith("b").hold(LOCK_TERMS),
        ):
            pass
        assert refused.value.hint == "Wait until it ends. If it no longer runs: lmsconf unlock --id g-1"
        assert [one.operation for one in day.sandbox.log if one.writes] == ["manual-groups.create"]
    assert day.groups() == []


def test_a_lease_that_is_over_gives_way() -> None:
    """The lock of a run that died holds for its lease, and a minute for clocks that differ; then it is cleaned away."""
    day = ClockedWorkspace()
    with day.smith().hold(LOCK_TERMS):
        day.sandbox.store.checkpoint("died")
    day.sandbox.store.restore("died")
    day.now += 959
    day.refuses(LockHeldElsewhere, key="b")
    day.now += 1
    with day.smith("b").hold(LOCK_TERMS):
        assert len(day.groups()) == 1
    assert day.groups() == []


@pytest.mark.parametrize(
    ("until", "told"),
    [
        ("9999-12-31T23:59:59-14:00", "the end of time"),
        ("9999-12-31T00:00:00Z", "the end of time"),
        ("tomorrow", "far, without an end"),
    ],
)
def test_a_lock_until_the_end_of_time_or_no_time_is_only_a_lock(until: str, told: str) -> None:
    """Whatever somebody has written into its name, in the form of ours: it stops the run, and is told."""
    day = ClockedWorkspace()
    day.make(f"{LOCK_PREFIX}abc until {until} held by far")
    day.now += 10**9
    day.refuses(LockHeldElsewhere, told)


def test_a_lock_that_nobody_can_read_holds_until_it_is_taken_away() -> None:
    """A reserved name that is not as ours are never ends by itself."""
    day = ClockedWorkspace()
    day.make(f"{LOCK_PREFIX}by hand")
    day.now += 10**9
    day.refuses(LockHeldElsewhere, "by hand, without an end")
    day.smith().delete(day.smith().list_locks()[0])
    with day.smith().hold(LOCK_TERMS):
        pass


def test_the_lease_is_renewed_on_the_way() -> None:
    """After a third of it the next call renews it; the group is the same."""
    day = ClockedWorkspace()
    with day.smith().hold(LOCK_TERMS) as holding:
        first = day.smith().list_locks()
        holding.renew_before(CALL)
        day.now += 299
        holding.renew_before(CALL)
        assert day.smith().list_locks() == first
        day.now += 2
        holding.renew_before(CALL)
        renewed = day.smith().list_locks()
        assert [lock.id for lock in renewed] == [lock.id for lock in first]
        assert (renewed[0].until or 0) - (first[0].until or 0) == 301


def test_a_run_that_slept_through_its_lease_sends_nothing_more() -> None:
    """Nobody can tell whether another run has the workspace by then."""
    day = ClockedWorkspace()
    with day.smith().hold(LOCK_TERMS) as holding:
        day.now += 811
        with pytest.raises(LockLost, match="c1 was not sent"):
            holding.renew_before(CALL)


def test_a_run_whose_lock_was_taken_away_stops() -> None:
    """It finds out before a call as soon as its last look is five seconds old, long before the lease is renewed."""
    day = ClockedWorkspace()
    with day.smith().hold(LOCK_TERMS) as holding:
        asked = len(day.sandbox.log)
        day.now += 4
        holding.renew_before(CALL)
        assert len(day.sandbox.log) == asked
        day.now += 1
        holding.renew_before(CALL)
        holding.renew_before(CALL)
        assert len(day.sandbox.log) == asked + 1
        day.smith().delete(day.smith().list_locks()[0])
        day.now += 5
        with pytest.raises(LockLost, match="the lock was deleted"):
            holding.renew_before(CALL)


def test_unlocking_ends_a_run_that_is_at_work(tmp_path: Path) -> None:
    """Calls of two seconds each: three are done, then somebody unlocks, and a few seconds later it is over."""
    names = ", ".join(f"{{name: G{number:02}}}" for number in range(40))
    settings = project(tmp_path, f"groups: [{names}]\n")
    day, made = ClockedWorkspace(), 0

    def asked(method: str, path: str) -> None:
        nonlocal made
        day.now += 2
        if (method, path) == ("POST", "/groups"):
            made += 1
            if made == 4:
                day.sandbox.answer("DELETE", f"/groups/{lock.id}", "", {"authorization": "Bearer sandbox"}, b"")

    workspace = WorkspaceReader(
        settings=settings, connection=day.line, parallelism=1
    )  # calls in flight are not stopped
    plan = workspace.plan(load_manifests(settings), settings.policy)
    with day.smith().hold(LOCK_TERMS) as holding:
        lock = day.smith().list_locks()[0]
        Slow(day, asked=asked)
        workspace = replace(workspace, connection=day.line)
        report = execute(workspace, plan, meta={}, before_call=holding.renew_before)
    assert report.exit == ExitCode.PARTIAL
    assert made < 10
    left = [outcome for outcome in report.outcomes if outcome.status is CallStatus.NOT_ATTEMPTED]
    assert len(left) == 40 - made
    assert "the lock was deleted" in str(left[0].reason)


@pytest.mark.parametrize("status", [404, 410])
def test_a_lock_that_is_not_there_any_more_is_lost(status: int) -> None:
    """A service may say either of what it has deleted."""
    day = ClockedWorkspace(Fault(operation="manual-groups.members", status=status))
    with day.smith().hold(LOCK_TERMS) as holding:
        day.now += 5
        with pytest.raises(LockLost, match="the lock was deleted"):
            holding.renew_before(CALL)


def test_a_look_that_brings_nothing_is_repeated() -> None:
    """An answer that cannot be read says nothing about the lock: the run goes on, and looks again before the next."""
    day = ClockedWorkspace(Fault(operation="manual-groups.members", spoil="html"))
    with day.smith().hold(LOCK_TERMS) as holding:
        day.now += 5
        holding.renew_before(CALL)
        day.smith().delete(day.smith().list_locks()[0])
        with pytest.raises(LockLost, match="the lock was deleted"):
            holding.renew_before(CALL)


def test_a_renewal_whose_answer_is_lost_is_repeated() -> None:
    """The lease that is there holds; the next call renews it."""
    day = ClockedWorkspace(Fault(operation="manual-groups.rename", cut=True))
    with day.smith().hold(LOCK_TERMS) as holding:
        first = day.smith().list_locks()
        day.now += 301
        holding.renew_before(CALL)
        assert day.smith().list_locks() == first
        holding.renew_before(CALL)
        assert (day.smith().list_locks()[0].until or 0) - (first[0].until or 0) == 301


def test_a_renewal_that_comes_too_late_is_none() -> None:
    """Renewed when others may have found the lease over, it does not count, and nothing more is sent."""
    day = ClockedWorkspace()

    def asked(_: str, path: str) -> None:
        day.now += 700 if path.endswith("/rename") else 0

    Slow(day, asked=asked)
    with day.smith().hold(LOCK_TERMS) as holding:
        day.now += 301
        with pytest.raises(LockLost, match="not renewed in time"):
            holding.renew_before(CALL)
    assert day.groups() == []


def test_a_lease_is_renewed_while_the_run_reads() -> None:
    """What is read before the first call may take longer than the lease."""
    day, due, renewed = ClockedWorkspace(), Event(), Event()

    def idle(seconds: float, over: Event) -> bool:
        if due.is_set():
            renewed.set()
            return over.wait()
        awaited(due)
        return False

    smith = LockManager(day.line, clock=lambda: day.now, idle=idle)
    with smith.hold(LOCK_TERMS) as holding:
        day.now += 400
        due.set()
        awaited(renewed)
        day.now += 450
        holding.renew_before(CALL)


def test_a_thread_that_looks_at_the_lease_at_once_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be faster than the request for the lock, and must not find a lease that ended long ago."""
    day, looks = ClockedWorkspace(), [True, False]
    lease = LockLease(day.smith(), LOCK_TERMS, "ours", lambda: day.now, lambda *_: looks.pop())
    monkeypatch.setattr(lease._renewer, "start", lease._renewer.run)
    lease.create()
    assert looks == []


@pytest.mark.sampled
@pytest.mark.parametrize(("late", "settle"), [(10.0, 0.5), (25.0, 30.0), (110.0, 120.0)])
def test_a_lock_may_show_late(late: float, settle: float) -> None:
    """It is waited for as long as the project says that things settle, and ten seconds at least."""
    day = ClockedWorkspace()
    Slow(day, late)
    with day.smith(settle=settle).hold(LOCK_TERMS) as holding:
        holding.renew_before(CALL)
    assert day.groups() == []


def test_a_lock_that_does_not_show_is_taken_away_again() -> None:
    """Later than the settling time: an error that says so, and nothing that shows up afterwards."""
    day = ClockedWorkspace()
    Slow(day, 60)
    with pytest.raises(LmsconfError, match="is not in the list of groups after 30 seconds"):
        day.smith().hold(LOCK_TERMS).__enter__()
    assert day.groups() == []


def test_a_lock_goes_when_the_wait_for_it_is_cut_short() -> None:
    """Ctrl-C before the lock shows, and a list that cannot be read any more: both take it away."""
    day = ClockedWorkspace()
    Slow(day, 60)
    day.sleep = lambda _: os.kill(os.getpid(), signal.SIGINT)
    day.refuses(KeyboardInterrupt)
    assert day.groups() == []
    day = ClockedWorkspace(Fault(operation="manual-groups.list", status=404, after=1, times=ALWAYS))
    day.refuses(LmsconfError, "cannot tell whether")
    assert day.groups() == []


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_an_interruption_while_the_lock_is_made_or_taken_away_leaves_none(method: str) -> None:
    """Ctrl-C waits for that one answer. When everything was done before, it changes nothing."""
    day, done = ClockedWorkspace(), False

    def asked(sent: str, _: str) -> None:
        if sent == method:
            ctrl_c.send()

    Slow(day, asked=asked)
    cut = False
    with Interruptions() as ctrl_c:
        try:
            with day.smith().hold(LOCK_TERMS):
                done = True
        except KeyboardInterrupt:
            cut = True
    assert (done, cut) == ((False, True) if method == "POST" else (True, False))
    assert day.groups() == []


def test_whoever_is_in_a_hurry_need_not_wait() -> None:
    """A second Ctrl-C ends the wait for the answer that makes the lock; what may be left is told."""
    day, ended = ClockedWorkspace(), Event()

    def asked(method: str, _: str) -> None:
        if method == "POST":
            ctrl_c.send()
            ctrl_c.send()
            awaited(ended)

    Slow(day, asked=asked)
    smith = day.smith()
    with Interruptions() as ctrl_c, pytest.raises(KeyboardInterrupt), smith.hold(LOCK_TERMS):
        pytest.fail("it is held")
    ended.set()
    assert "may be left: run `lmsconf unlock`" in str(smith.left)


@pytest.mark.parametrize("mishap", [Fault(lose_answer=True), Fault(spoil="html")])
def test_a_lock_is_known_by_its_key_where_its_answer_is_lost(mishap: Fault) -> None:
    """It is held all the same, and taken away when the run ends."""
    day = ClockedWorkspace(replace(mishap, operation="manual-groups.create"))
    with day.smith().hold(LOCK_TERMS) as holding:
        day.now += 5
        holding.renew_before(CALL)
        assert len(day.groups()) == 1
    assert day.groups() == []


def test_no_other_lock_is_taken_away() -> None:
    """Where the answer to its creation was lost, a lock is looked for by its key, and others stay."""
    day = ClockedWorkspace(Fault(operation="manual-groups.create", lose_answer=True))
    Slow(day, 60)
    theirs = f"{LOCK_PREFIX}theirs until 2099-01-01T00:00:00Z held by another"

    def sleep(_: float) -> None:
        day.now += 60
        day.make(theirs)
        raise KeyboardInterrupt

    day.sleep = sleep
    day.refuses(KeyboardInterrupt)
    assert day.groups() == [theirs]


def test_a_lock_that_may_be_left_is_told() -> None:
    """Its answer was lost and it does not show, or it cannot be deleted."""
    smith = ClockedWorkspace(Fault(operation="manual-groups.create", cut=True)).refuses(
        LmsconfError, "is not in the list"
    )
    assert "may be left: run `lmsconf unlock`" in str(smith.left)
    smith = ClockedWorkspace(Fault(operation="manual-groups.delete", status=409)).smith()
    with smith.hold(LOCK_TERMS):
        pass
    assert "could not be removed" in str(smith.left)


def test_a_credential_that_may_not_lock_is_named(tmp_path: Path) -> None:
    """A 403 to the lock is about the credential, as it is for other calls: exit 7 with a way out, nothing left."""
    day = ClockedWorkspace(Fault(operation="manual-groups.create", status=403))
    assert day.refuses(Unauthorized).left is None
    project(tmp_path, "groups: [{name: Coaches}]\n")
    # The first lock cannot be made; the second is made, and neither one that is over nor itself can be deleted.
    create = Fault(operation="manual-groups.create", status=403, after=1)
    delete = Fault(operation="manual-groups.delete", status=403, times=2)
    with serve(Sandbox(faults=FaultScript(create, delete))) as server:
        file = f"workspaces: {{sandbox: {{url: '{server.url}', token: {{env: LMSCONF_KEY}}}}}}\nlock: true\n"
        (tmp_path / "lmsconf.yaml").write_text(file)
        key = {"LMSCONF_KEY": "sandbox"}
        body = json.dumps({"name": f"{LOCK_PREFIX}k until 2020-01-01T00:00:00Z held by CI"})
        assert lmsconf(tmp_path, "api", "POST", "/groups", "--body", body, env=key).code == 0
        for left in (False, True):
            refused = lmsconf(tmp_path, "apply", "--auto-approve", env=key, code=ExitCode.UNAUTHORIZED)
            assert "This token can read but has no permission to change groups" in refused.err
            assert ("could not be removed" in refused.err) == left
        assert lmsconf(tmp_path, "unlock", "--id", "g-2", env=key).code == 0
        assert lmsconf(tmp_path, "apply", "--auto-approve", env=key).code == 0
        assert lmsconf(tmp_path, "unlock", env=key).out == "Workspace sandbox is not locked.\n"


def test_the_reserved_name_is_no_resource(tmp_path: Path) -> None:
    """A lock is not listed, not owned, not in a snapshot; and no manifest can declare it."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text("groups: [{name: Coaches}]\n")
    (tmp_path / "lmsconf.yaml").write_text(
        'workspaces: {sandbox: {url: "sandbox:"}}\nownership: {groups: all}\nlock: true\n'
    )
    settings = load_settings(tmp_path, None, {"USER": "anna"})
    assert settings.lock is not None
    assert settings.lock.owner.startswith("anna on ")
    day = ClockedWorkspace()
    day.make("Coaches")
    with day.smith().hold(LOCK_TERMS):
        workspace = WorkspaceReader(settings=settings, connection=day.line)
        plan = workspace.plan(load_manifests(settings), settings.policy)
        assert (plan.changes, plan.unmanaged) == ((), ())
        assert [row.name for row in workspace.snapshot().of("group").rows] == ["Coaches"]
    refused = project(tmp_path / "other", f'groups: [{{name: "{LOCK_PREFIX}x"}}]\n')
    problems = load_manifests(refused).problems
    assert [problem.code for problem in problems] == ["manifest/reserved"]


def test_the_commands(tmp_path: Path) -> None:
    """`apply` is refused while somebody else has the lock, `unlock` takes it away, and then it is done."""
    project(tmp_path, "groups: [{name: Coaches}]\n")
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:w.db"}}\nlock: true\n')
    assert lmsconf(tmp_path, "unlock").out == "Workspace sandbox is not locked.\n"
    name = f"{LOCK_PREFIX}k until 2099-01-01T00:00:00Z held by CI"
    body = json.dumps({"name": name})
    assert lmsconf(tmp_path, "api", "POST", "/groups", "--body", body).code == 0
    assert "CI, until 2099-01-01T00:00:00Z" in lmsconf(tmp_path, "apply", "--auto-approve", code=1).err
    asked = lmsconf(tmp_path, "unlock", code=64)
    assert "error: there is no terminal to ask for approval [usage]\n  Pass --id g-1.\n" in asked.err
    assert lmsconf(tmp_path, "unlock", "--id", "g-9").code == 1
    assert lmsconf(tmp_path, "unlock", "--id", "g-1").out.startswith("Unlocked: CI")
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == 0
    assert lmsconf(tmp_path, "unlock").out == "Workspace sandbox is not locked.\n"
