"""Fifty real processes that are killed in the middle of an apply, against a sandbox behind a port."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Final

import pytest

from lmsconf.apply.run import execute
from lmsconf.journal.journal_reader import wait_for_pending_writes
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.seed import fill_workspace
from lmsconf.sandbox.serve import Server
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .references import COURSES, PEOPLE, TEAMS, Document, seed, yaml_lines
from .workspace_state import Portrait, compare, ids, portrait

pytestmark = [pytest.mark.slow, pytest.mark.sampled(gate=5)]
KILLS: Final = 50
_BATCHES: Final = 5
_LATENCY: Final = 0.005
_ENVIRONMENT: Final = {"LMSCONF_TOKEN": "sandbox"}
_PROJECT: Final = """
workspaces: {{served: {{url: "{url}", token: {{env: LMSCONF_TOKEN}}}}}}
settle: 100ms
guards: off
"""
_MANIFEST: Final[Document] = {
    "custom_fields": [{"name": "Site", "type": "CHOICE", "choices": ["North", "South"]}],
    "groups": [
        *({"name": f"New {number}", "members": PEOPLE[number : number + 4]} for number in range(4)),
        {"name": "Team zero", "previously": [TEAMS[0]], "members": PEOPLE[2:6]},
    ],
    "smart_groups": [{"name": "North", "conditions": [{"field": "Site", "choices": ["North"]}]}],
    "content_targets": [{"content": COURSES[1], "assign_to": [{"group": "New 1"}, {"smart_group": "North"}]}],
    "absent": {"groups": [TEAMS[11]]},
}


@dataclass(frozen=True, slots=True)
class ServedWorkspace:
    """A served workspace with a project that wants something of it."""

    root: Path
    service: Sandbox
    calls: int
    wanted: Portrait
    old: frozenset[str]

    def portrait(self) -> Portrait:
        with self.service.store.read_transaction() as repository:
            return portrait(repository, self.old)

    def writes(self) -> int:
        return sum(one.writes for one in self.service.log)

    def killed(self, dice: Random) -> bool:
        """Applies in a process of its own, and kills it somewhere around a call. Whether it had not ended by then."""
        self.service.store.restore("start")
        self.service.log.clear()
        after = dice.randint(1, self.calls - 1)
        with subprocess.Popen(
            [sys.executable, "-m", "lmsconf", "apply", "--auto-approve", "--parallelism", "2"],
            cwd=self.root,
            env={**os.environ, **_ENVIRONMENT},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            until = time.monotonic() + 30
            while self.writes() < after and process.poll() is None and time.monotonic() < until:
                time.sleep(0.001)
            time.sleep(dice.uniform(0, 1.5 * _LATENCY))
            process.kill()
        return process.returncode == -signal.SIGKILL and self.writes() < self.calls

    def converges(self) -> bool:
        """One more run, as anybody would start it; whether there is nothing left to do then."""
        settings = load_settings(self.root, None, _ENVIRONMENT, today=date(2026, 1, 1))
        wait_for_pending_writes(self.root, settings.workspace.url, settings.settle, notify=lambda text: None)
        with Connection(settings) as connection:
            workspace = WorkspaceReader(settings=settings, connection=connection)
            manifests = load_manifests(settings)
            execute(workspace, workspace.plan(manifests, settings.policy), meta={})
            return not workspace.plan(manifests, settings.policy).calls


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWorkspace]:
    """The workspace, which has been through the whole apply once and is as it was before."""
    root = tmp_path_factory.mktemp("sigkill")
    service = Sandbox()
    with service.store.write_transaction() as repository:
        fill_workspace(repository, seed())
        old = ids(repository)
    service.store.checkpoint("start")
    with Server(service, latency=_LATENCY) as server:
        (root / "lmsconf.yaml").write_text(_PROJECT.format(url=server.url), encoding="utf-8")
        (root / "manifests").mkdir()
        (root / "manifests" / "all.yaml").write_text("\n".join(yaml_lines(_MANIFEST)), encoding="utf-8")
        undisturbed = ServedWorkspace(root, service, 0, Portrait(), old)
        assert undisturbed.converges()
        yield ServedWorkspace(root, service, undisturbed.writes(), undisturbed.portrait(), old)
    service.close_workspace()


@pytest.mark.parametrize("batch", range(_BATCHES))
def test_a_killed_process_leaves_nothing_that_the_next_run_cannot_finish(site: ServedWorkspace, batch: int) -> None:
    """Killed around whatever call, with its journal or without: the next run ends where one run would have."""
    dice = Random(batch)  # noqa: S311  the same moments each time, as far as a real process allows
    killed = 0
    for attempt in range(3 * KILLS):
        if killed == KILLS // _BATCHES:
            break
        killed += site.killed(dice)
        if attempt % 3 == 0:
            rmtree(site.root / ".lmsconf", ignore_errors=True)
            time.sleep(10 * _LATENCY)  # less than it takes to start a process again
        assert site.converges(), f"batch {batch}, attempt {attempt}"
        assert not compare(site.wanted, site.portrait()), f"batch {batch}, attempt {attempt}"
    assert killed == KILLS // _BATCHES
