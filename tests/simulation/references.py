"""Six applies on one workspace, together more than three hundred calls.

What begins with "Foreign" is named by no manifest, and no schedule may touch it.
"""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from shutil import copy
from tempfile import TemporaryDirectory
from typing import Final

from laws.sandbox_project import TransportConnection

from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.apply.run_plan import execute
from lmsconf.model.declarations import Manifests
from lmsconf.model.plan import Plan
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

from .request_faults import BEGIN, CALM, Clock, Network, Script
from .workspace_state import TOKEN, Portrait, ids, portrait

PEOPLE: Final = [f"p{number:02}@x.example" for number in range(36)]
TEAMS: Final = [f"Team {number:02}" for number in range(12)]
RULES: Final = [f"Rule {number:02}" for number in range(12)]
COURSES: Final = [f"Course {number:02}" for number in range(14)]
_UNITS: Final = ["Sales", "Engineering", "Legal", "Support"]
_LANDS: Final = ["SE", "NO", "FI", "DK"]


def seed() -> Mapping[str, object]:
    """The workspace that all of them begin with."""
    return {
        "custom_fields": [
            {"name": "Unit", "type": "CHOICE", "choices": _UNITS, "description": "Where one works"},
            {"name": "Land", "type": "MULTI_SELECT", "choices": _LANDS},
            {"name": "Grade", "type": "CHOICE", "choices": ["Junior", "Senior"]},
            {"name": "Foreign field", "type": "CHOICE", "choices": ["Foreign yes", "Foreign no"]},
        ],
        "people": [
            {"id": f"u-{number}", "email": email, "first_name": "P", "last_name": str(number), "admin": number < 3}
            | {"answers": {"Unit": _UNITS[number % 4], "Land": [_LANDS[number % 4]], "Foreign field": "Foreign yes"}}
            for number, email in enumerate(PEOPLE)
        ],
        "groups": [
            {"id": f"g-{number + 100}", "name": name, "members": _some(number, 8), "managers": PEOPLE[:1]}
            for number, name in enumerate(TEAMS)
        ]
        + [{"id": "g-foreign", "name": "Foreign group", "members": PEOPLE[:5], "managers": PEOPLE[5:6]}],
        "smart_groups": [
            {"id": f"sg-{number + 100}", "name": name, "managers": PEOPLE[:1]}
            | {"conditions": [{"field": "Unit", "choices": [_UNITS[number % 4]]}]}
            for number, name in enumerate(RULES)
        ]
        + [{"name": "Foreign rule", "conditions": [{"field": "Foreign field", "choices": ["Foreign no"]}]}],
        "content": [{"name": name} for name in [*COURSES, "Foreign course"]],
        "content_targets": [
            *(
                {"content": COURSES[number], "assign_to": [{"group": name}], "mandatory": True}
                for number, name in enumerate(TEAMS)
            ),
            *({"content": COURSES[number], "assign_to": [{"smart_group": name}]} for number, name in enumerate(RULES)),
            {"content": "Foreign course", "assign_to": [{"group": "Foreign group"}, "everyone"]},
            {"content": COURSES[13], "assign_to": [{"group": "Foreign group"}]},
        ],
    }


MANIFESTS: Final = Path(__file__).parent / "manifests"
REFERENCES: Final = ("create", "mixed", "renames", "members", "targets", "delete")
"""Every reference apply by name, each of which has a manifest."""


def _some(begin: int, count: int) -> list[str]:
    """A few people, others for each number."""
    return [PEOPLE[(begin * 5 + step) % len(PEOPLE)] for step in range(count)]


# One reference apply on a stage of its own: its sandbox, its project, its plan, and how it ends undisturbed.


_PROJECT: Final = """
workspaces: {sandbox: {url: "sandbox:"}}
timezone: Europe/Stockholm
settle: 30s
guards: off
"""
_START: Final = "start"
_JITTER: Final = 0.7


@dataclass(frozen=True, slots=True)
class ReferenceApply:
    """Everything that a schedule needs. `calls`: how many writes the undisturbed run sends."""

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
    network.sandbox = sandbox
    sandbox.store.checkpoint(_START)
    with TemporaryDirectory() as folder:
        (Path(folder) / "lmsconf.yaml").write_text(_PROJECT, encoding="utf-8")
        (Path(folder) / "manifests").mkdir()
        copy(MANIFESTS / f"{name}.yaml", Path(folder) / "manifests")
        settings = load_settings(Path(folder), None, {}, today=datetime.fromtimestamp(BEGIN, UTC).date())
        manifests = load_manifests(settings)
    retry = RetryPolicy(sleep=clock.sleep, clock=clock.monotonic, wall_clock=clock.now, random_number=lambda: _JITTER)
    connection = TransportConnection(network, sandbox.spec, retry)
    connection.token = TOKEN
    workspace = WorkspaceReader(
        settings=settings,
        connection=connection,
        parallelism=1,
        clock=lambda: datetime.fromtimestamp(clock.now(), UTC),
        timing=WaitClock(now=clock.monotonic, sleep=lambda seconds, _: clock.sleep(seconds)),
        patience=settings.policy.settle,
    )
    network.reset(CALM)
    plan = workspace.plan(manifests, settings.policy)
    report = execute(workspace, plan, meta={})
    assert report.converged, report
    with sandbox.store.read_transaction() as repository:
        wanted = portrait(repository, old)
    return ReferenceApply(clock, network, sandbox, workspace, manifests, plan, network.writes, wanted, old)


@contextmanager
def alone() -> Iterator[None]:
    """Waits at its end until nobody who was at work inside is at work any more."""
    yield
    for thread in threading.enumerate():
        if thread.name.startswith("lmsconf-"):
            thread.join()
