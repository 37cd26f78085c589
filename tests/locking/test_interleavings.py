"""Two runs of the same manifests at once, in thousands of orders of their requests."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from sampling import WHOLE, of_today
from waiting import retry_in_virtual_time

from lmsconf.api.client import Client
from lmsconf.api.worker_pool import WorkerPool
from lmsconf.apply.remote_lock import LockHeldElsewhere, LockManager
from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.apply.run import execute
from lmsconf.errors import LmsconfError, StalePlan
from lmsconf.model.declarations import Manifests
from lmsconf.model.progress import Report
from lmsconf.project.settings import LockSettings, Settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
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


class ScheduledConnection(Connection):
    """A connection over a transport of the test's choosing."""

    def __init__(self, sandbox: Sandbox, transport: httpx.BaseTransport) -> None:
        self.name, self.url, self.spec, self._way = "sandbox", "sandbox:", sandbox.spec, transport

    def worker_pool(self, parallelism: int, progress: Report | None = None) -> WorkerPool:
        retry = retry_in_virtual_time()
        client: Callable[[], Client] = lambda: Client(  # noqa: E731  one line says it
            "http://sandbox", "sandbox", spec=self.spec, transport=self._way, retry=retry
        )
        return WorkerPool(client, parallelism=1, progress=progress)


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceOutcome:
    """How two runs at once ended: what became of each, and which names are live how often."""

    ends: list[str]
    names: list[str]


def project(root: Path, manifests: str) -> Settings:
    """The settings of a project of one manifest, on a sandbox."""
    from lmsconf.project.settings import load_settings

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
            ends[run] = _run(
                settings, manifests, ScheduledConnection(sandbox, ScheduledTransport(sandbox, turns, run)), run, locked
            )
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
            return "done" if execute(workspace, plan, meta={}, keep=keep).converged else "not converged"
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


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_with_the_lock_nothing_is_made_twice(tmp_path: Path, chunk: int) -> None:
    """Whatever the order: what is live is there once, no lock is left, and each run ends in words of its own."""
    settings = project(tmp_path, MANIFEST)
    manifests = load_manifests(settings)
    done = 0
    # An order takes a twentieth of a second: every day plays a twentieth of this commit's tenth, and the gate a tenth.
    step = 1 if os.environ.get("SIMULATION") == "all" else 10 if WHOLE else 20
    seeds = of_today(range(chunk * CHUNK, (chunk + 1) * CHUNK))[chunk % step :: step]
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
