"""What the lock object does and does not do, one thing at a time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flow.shell import lmsconf

from lmsconf.core.address import Address
from lmsconf.core.values import Call
from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.kinds.names import RESERVED
from lmsconf.locking import LockHeld, LockLost, Locksmith
from lmsconf.sandbox.transport import Sandbox
from lmsconf.seeing import read_manifests
from lmsconf.settings import LockTerms, load
from lmsconf.settling import Timing
from lmsconf.workspace import Workspace

from .turns import Line, project

TERMS = LockTerms(lease=900.0, owner="CI run 7")
CALL = Call(id="c1", address=Address("group", "x"), operation="", method="", path="", query={}, body=None)


class Day:
    """A workspace on a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0
        self.sandbox = Sandbox(clock=lambda: self.now)
        self.line = Line(self.sandbox, self.sandbox)

    def smith(self, key: str = "ours") -> Locksmith:
        timing = Timing(now=lambda: self.now, sleep=self._sleep)
        return Locksmith(self.line, clock=lambda: self.now, timing=timing, key=lambda: key)

    def make(self, name: str) -> None:
        with self.line.crew(1) as crew:
            crew.submit(lambda client: client.call("manual-groups.create", body={"name": name})).result()

    def groups(self) -> list[str]:
        with self.sandbox.store.reading() as ledger:
            return [str(name) for name in ledger.column("SELECT name FROM groups ORDER BY name")]

    def _sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_lock_says_who_has_it_and_goes_with_the_run() -> None:
    """While it is held others are refused, told by whom and until when; afterwards nothing is left."""
    day = Day()
    with day.smith().held(TERMS):
        assert [name.startswith(RESERVED) for name in day.groups()] == [True]
        with (
            pytest.raises(LockHeld, match=r"CI run 7, until 2027-01-15T08:15:00Z") as refused,
            day.smith("b").held(TERMS),
        ):
            pass
        assert refused.value.hint == "Wait for it. If it is dead: lmsconf unlock --id g-1"
    assert day.groups() == []


def test_a_lease_that_is_over_gives_way() -> None:
    """The lock of a run that died holds for its lease, and a minute for clocks that differ; then it is cleaned away."""
    day = Day()
    with day.smith().held(TERMS):
        day.sandbox.store.checkpoint("died")
    day.sandbox.store.restore("died")
    day.now += 959
    with pytest.raises(LockHeld), day.smith("b").held(TERMS):
        pass
    day.now += 1
    with day.smith("b").held(TERMS):
        assert len(day.groups()) == 1
    assert day.groups() == []


def test_a_lock_that_nobody_can_read_holds_until_it_is_taken_away() -> None:
    """A reserved name that is not as ours are never ends by itself."""
    day = Day()
    day.make(f"{RESERVED}by hand")
    day.now += 10**9
    with pytest.raises(LockHeld, match="by hand, for ever"), day.smith().held(TERMS):
        pass
    day.smith().remove(day.smith().locks()[0])
    with day.smith().held(TERMS):
        pass


def test_the_lease_is_renewed_on_the_way() -> None:
    """After a third of it the next call renews it; the group is the same."""
    day = Day()
    with day.smith().held(TERMS) as holding:
        first = day.smith().locks()
        holding.keep(CALL)
        assert day.smith().locks() == first
        day.now += 301
        holding.keep(CALL)
        renewed = day.smith().locks()
        assert [lock.id for lock in renewed] == [lock.id for lock in first]
        assert (renewed[0].until or 0) - (first[0].until or 0) == 301


def test_a_run_that_slept_through_its_lease_sends_nothing_more() -> None:
    """Nobody can tell whether another run has the workspace by then."""
    day = Day()
    with day.smith().held(TERMS) as holding:
        day.now += 811
        with pytest.raises(LockLost, match="c1 was not sent"):
            holding.keep(CALL)


def test_a_run_whose_lock_was_taken_away_stops() -> None:
    """It finds out when it renews the lease."""
    day = Day()
    with day.smith().held(TERMS) as holding:
        day.smith().remove(day.smith().locks()[0])
        day.now += 301
        with pytest.raises(LockLost, match="the lock is gone"):
            holding.keep(CALL)


def test_the_reserved_name_is_no_resource(tmp_path: Path) -> None:
    """A lock is not listed, not owned, not in a snapshot; and no manifest can declare it."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text("groups: [{name: Coaches}]\n")
    (tmp_path / "lmsconf.yaml").write_text(
        'workspaces: {sandbox: {url: "sandbox:"}}\nownership: {groups: all}\nlock: true\n'
    )
    settings = load(tmp_path, None, {"USER": "anna"})
    assert settings.lock is not None
    assert settings.lock.owner.startswith("anna on ")
    day = Day()
    day.make("Coaches")
    with day.smith().held(TERMS):
        workspace = Workspace(settings=settings, connection=day.line)
        plan = workspace.plan(read_manifests(settings), settings.policy)
        assert (plan.changes, plan.unmanaged) == ((), ())
        assert [row.name for row in workspace.snapshot().of("group").rows] == ["Coaches"]
    refused = project(tmp_path / "other", f'groups: [{{name: "{RESERVED}x"}}]\n')
    problems = read_manifests(refused).problems
    assert [problem.code for problem in problems] == ["manifest/reserved"]


def test_locks_that_cannot_be_read_whole_stop_the_run() -> None:
    """A list of groups that may lack a lock is not believed."""
    from lmsconf.sandbox.faults import Fault, Faults

    day, fault = Day(), Fault(operation="manual-groups.list", status=404, times=9)
    day.sandbox = Sandbox(clock=lambda: day.now, faults=Faults(fault))
    day.line = Line(day.sandbox, day.sandbox)
    with pytest.raises(LmsconfError, match="is not known"), day.smith().held(TERMS):
        pass
    assert day.groups() == []


def test_a_lock_is_only_taken_where_it_is_asked_for(tmp_path: Path) -> None:
    """Without `lock:` there is none."""
    assert project(tmp_path, "groups: []\n").lock is None


def test_a_lease_is_a_time(tmp_path: Path) -> None:
    """Anything else is an error of the project file."""
    project(tmp_path, "groups: []\n")
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:"}}\nlock: {lease: soon}\n')
    with pytest.raises(ProblemsFound):
        load(tmp_path, None, {})


def test_the_commands(tmp_path: Path) -> None:
    """`apply` is refused while somebody else has the lock, `unlock` takes it away, and then it is done."""
    project(tmp_path, "groups: [{name: Coaches}]\n")
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {sandbox: {url: "sandbox:w.db"}}\nlock: true\n')
    assert lmsconf(tmp_path, "unlock").out == "Workspace sandbox is not locked.\n"
    name = f"{RESERVED}k until 2099-01-01T00:00:00Z held by CI"
    body = json.dumps({"name": name})
    assert lmsconf(tmp_path, "api", "POST", "/groups", "--body", body).code == 0
    refused = lmsconf(tmp_path, "apply", "--auto-approve")
    assert refused.code == 1
    assert "CI, until 2099-01-01T00:00:00Z" in refused.err
    assert lmsconf(tmp_path, "unlock").code == 64
    assert lmsconf(tmp_path, "unlock", "--id", "g-9").code == 1
    assert lmsconf(tmp_path, "unlock", "--id", "g-1").out.startswith("Unlocked: CI")
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == 0
    assert lmsconf(tmp_path, "unlock").out == "Workspace sandbox is not locked.\n"
