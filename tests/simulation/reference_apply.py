"""One reference apply on a stage of its own: its sandbox, its project, its plan, and how it ends undisturbed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from lmsconf.api.client import Client
from lmsconf.api.retry import RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.api.worker_pool import ConcurrentReader, WorkerPool
from lmsconf.apply.run import execute
from lmsconf.model.declarations import Manifests
from lmsconf.model.plan import Plan
from lmsconf.model.progress import Report
from lmsconf.project.settings import Settings, load_settings
from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock as RunClock
from lmsconf.workspace.reader import WorkspaceReader

from .network import BEGIN, Clock, Network
from .references import REFERENCES, seed, yaml_lines
from .request_faults import Calm, Script
from .workspace_state import TOKEN, Portrait, ids, portrait

_PROJECT: Final = """
workspaces: {sandbox: {url: "sandbox:"}}
timezone: Europe/Stockholm
settle: 30s
guards: off
"""
_START: Final = "start"
_JITTER: Final = 0.7


class VirtualTimeConnection(Connection):
    """A connection over a network of our own, whose clients wait in its time."""

    def __init__(self, network: Network, clock: Clock) -> None:
        self.name, self.url, self.spec = "sandbox", "sandbox:", ApiSpec.default()
        self._network = network
        self._retry = RetryPolicy(
            sleep=clock.sleep, clock=clock.monotonic, wall_clock=clock.now, random_number=lambda: _JITTER
        )

    def worker_pool(self, parallelism: int, progress: Report | None = None) -> WorkerPool:
        return WorkerPool(self._client, parallelism=parallelism, progress=progress)

    def reader(self, pool: WorkerPool, *, everything: bool = False) -> ConcurrentReader:
        return ConcurrentReader(pool, self.spec, whole_rows=everything)

    def _client(self) -> Client:
        return Client("http://sandbox", TOKEN, spec=self.spec, transport=self._network, retry=self._retry)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceApply:
    """Everything that a schedule needs. `calls`: how many writes the undisturbed run sends."""

    name: str
    clock: Clock
    network: Network
    sandbox: Sandbox
    workspace: WorkspaceReader
    manifests: Manifests
    plan: Plan
    calls: int
    wanted: Portrait
    old: frozenset[str]

    def reset(self, script: Script) -> None:
        """As it was before the apply, with what is to go wrong."""
        self.sandbox.store.restore(_START)
        self.sandbox.log.clear()
        self.clock.reset()
        self.network.reset(script)

    def fresh_plan(self) -> Plan:
        """What the manifests want of the workspace as it is now."""
        return self.workspace.plan(self.manifests, self.workspace.settings.policy)

    def carried_out(self) -> int:
        """How many writes the service has carried out since the beginning."""
        return sum(one.writes and one.status < 300 for one in self.sandbox.log)

    def portrait(self) -> Portrait:
        """What the workspace holds now."""
        with self.sandbox.store.read_transaction() as repository:
            return portrait(repository, self.old)


@cache
def scene(name: str) -> ReferenceApply:
    """The scene of one reference, set once for each process."""
    clock = Clock()
    network = Network(clock)
    sandbox = Sandbox(token=TOKEN, clock=clock.now, faults=network.past)
    with sandbox.store.write_transaction() as repository:
        fill_workspace(repository, seed())
        old = ids(repository)
    network.lead_to(sandbox)
    sandbox.store.checkpoint(_START)
    with TemporaryDirectory() as folder:
        settings = _project(Path(folder), name)
        manifests = load_manifests(settings)
    workspace = WorkspaceReader(
        settings=settings,
        connection=VirtualTimeConnection(network, clock),
        parallelism=1,
        clock=lambda: datetime.fromtimestamp(clock.now(), UTC),
        timing=RunClock(now=clock.monotonic, sleep=lambda seconds, _: clock.sleep(seconds)),
        patience=settings.settle,
    )
    network.reset(Calm())
    plan = workspace.plan(manifests, settings.policy)
    report = execute(workspace, plan, meta={})
    assert report.converged, report
    calls = network.writes
    with sandbox.store.read_transaction() as repository:
        wanted = portrait(repository, old)
    return ReferenceApply(
        name=name,
        clock=clock,
        network=network,
        sandbox=sandbox,
        workspace=workspace,
        manifests=manifests,
        plan=plan,
        calls=calls,
        wanted=wanted,
        old=old,
    )


def _project(folder: Path, name: str) -> Settings:
    (folder / "lmsconf.yaml").write_text(_PROJECT, encoding="utf-8")
    (folder / "manifests").mkdir()
    text = "\n".join(yaml_lines(REFERENCES[name]()))
    (folder / "manifests" / "all.yaml").write_text(text, encoding="utf-8")
    return load_settings(folder, None, {}, today=datetime.fromtimestamp(BEGIN, UTC).date())


@contextmanager
def alone() -> Iterator[None]:
    """Waits at its end until nobody who was at work inside is at work any more."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("lmsconf-"):
            thread.join()
