"""Six applies on one workspace, together more than three hundred calls.

What begins with "Foreign" is named by no manifest, and no schedule may touch it.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from laws.sandbox_project import TransportConnection, yaml_text

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

Entry = dict[str, object]
Document = Mapping[str, object]

PEOPLE: Final = [f"p{number:02}@acme.example" for number in range(36)]
TEAMS: Final = [f"Team {number:02}" for number in range(12)]
RULES: Final = [f"Rule {number:02}" for number in range(12)]
COURSES: Final = [f"Course {number:02}" for number in range(14)]
_UNITS: Final = ["Sales", "Engineering", "Legal", "Support"]
_LANDS: Final = ["SE", "NO", "FI", "DK"]


def seed() -> Document:
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
            *(
                {"id": _team(number), "name": name, "members": _some(number, 8), "managers": PEOPLE[:1]}
                for number, name in enumerate(TEAMS)
            ),
            {"id": "g-foreign", "name": "Foreign group", "members": PEOPLE[:5], "managers": PEOPLE[5:6]},
        ],
        "smart_groups": [
            *(
                {"id": _rule(number), "name": name, "conditions": [_in_unit(number)], "managers": PEOPLE[:1]}
                for number, name in enumerate(RULES)
            ),
            {"id": "sg-foreign", "name": "Foreign rule"}
            | {"conditions": [{"field": "Foreign field", "choices": ["Foreign no"]}]},
        ],
        "content": [{"name": name} for name in [*COURSES, "Foreign course"]],
        "content_targets": [
            *(_gives(COURSES[number], {"group": name}, mandatory=True) for number, name in enumerate(TEAMS)),
            *(_gives(COURSES[number], {"smart_group": name}) for number, name in enumerate(RULES)),
            _gives("Foreign course", {"group": "Foreign group"}, "everyone"),
            _gives(COURSES[13], {"group": "Foreign group"}),
        ],
    }


def _create() -> Document:
    """Everything new, from fields to assignments that need all the rest."""
    return {
        "custom_fields": [
            {"name": "Badge", "type": "TEXT", "description": "On the door"},
            {"name": "Skill", "type": "MULTI_SELECT", "choices": ["Python", "SQL", "Welding"]},
            {"name": "Site", "type": "CHOICE", "choices": ["North", "South"], "hidden": True},
            {"name": "Land", "type": "MULTI_SELECT", "choices": [*_LANDS, "IS"]},
        ],
        "groups": [
            {"name": f"New team {number}", "members": _some(number, 6), "managers": _some(number + 1, 2)}
            for number in range(9)
        ],
        "smart_groups": [
            {
                "name": f"New rule {number}",
                "conditions": [{"field": "Skill", "choices": [skill]}, {"field": "Site", "choices": [site]}],
                "managers": PEOPLE[2:3],
            }
            for number, (skill, site) in enumerate([(s, t) for s in ("Python", "SQL") for t in ("North", "South")])
        ]
        + [{"name": "New islanders", "conditions": [{"field": "Land", "choices": ["IS", "SE"]}]}],
        "content_targets": [
            *(_gives(COURSES[number], {"group": f"New team {number}"}, mandatory=True) for number in range(9)),
            *(_gives(COURSES[number], {"smart_group": f"New rule {number}"}) for number in range(4)),
            _gives(COURSES[12], {"smart_group": "New islanders"}, {"user": PEOPLE[4]}, "everyone"),
        ],
    }


def _mixed() -> Document:
    """A bit of everything: what a month of changes looks like."""
    return {
        "custom_fields": [
            {"name": "Land", "choices": [*_LANDS[:3], {"name": "DA", "previously": ["DK"]}, "IS"]},
            {"name": "Seniority", "previously": ["Grade"], "choices": ["Senior", "Lead"], "description": "How long"},
            {"name": "Shift", "type": "CHOICE", "choices": ["Day", "Night"]},
        ],
        "groups": [
            *({"name": TEAMS[number], "members": _some(number + 1, 8)} for number in range(4)),
            {"name": "Team four", "previously": [TEAMS[4]], "managers": PEOPLE[3:5]},
            {"name": TEAMS[5], "members": {"include": PEOPLE[30:33], "exclude": _some(5, 3)}, "managers": []},
            {"name": "Night watch", "members": _some(6, 3), "managers": PEOPLE[:1]},
        ],
        "smart_groups": [
            *(
                {"name": RULES[number], "conditions": [{"field": "Land", "choices": ["IS", "DA"]}]}
                for number in range(3)
            ),
            {"name": RULES[3], "managers": PEOPLE[1:3]},
            {"name": "Night rule", "conditions": [{"field": "Shift", "choices": ["Night"]}], "managers": PEOPLE[:1]},
        ],
        "content_targets": [
            *(_gives(COURSES[number], {"group": TEAMS[number]}, mandatory=False) for number in range(4)),
            _gives(COURSES[5], {"group": "Night watch"}, {"smart_group": "Night rule"}, mandatory=True),
            _gives(COURSES[6], {"group": TEAMS[6]}, mandatory=True, visible_until="2026-12-31"),
        ],
        "absent": {
            "groups": [TEAMS[10], TEAMS[11]],
            "smart_groups": [RULES[11]],
            "content_targets": [{"content": COURSES[7], "assign_to": [{"group": TEAMS[7]}]}],
        },
    }


def _renames() -> Document:
    """Names: plain, in a chain, swapped and in a circle by id, and those of fields and choices."""
    circle = [*range(6, 12)]
    return {
        "custom_fields": [
            {
                "name": "Country",
                "previously": ["Land"],
                "choices": [{"name": f"Land of {name}", "previously": [name]} for name in _LANDS],
            },
            {"name": "Level", "previously": ["Grade"]},
        ],
        "groups": [
            {"name": TEAMS[1], "id": _team(0)},
            {"name": TEAMS[0], "id": _team(1)},
            {"name": "Team new", "id": _team(5)},
            *({"name": TEAMS[number + 1], "id": _team(number)} for number in range(2, 5)),
            *({"name": TEAMS[6 + (place + 1) % 6], "id": _team(at)} for place, at in enumerate(circle)),
            *({"name": f"Crew {number}", "members": _some(number, 2)} for number in range(4)),
        ],
        "smart_groups": [
            {"name": RULES[1], "id": _rule(0)},
            {"name": RULES[0], "id": _rule(1)},
            *({"name": f"Policy {number:02}", "previously": [RULES[number]]} for number in range(2, 8)),
            *({"name": RULES[8 + (place + 1) % 4], "id": _rule(at)} for place, at in enumerate(range(8, 12))),
        ],
        "content_targets": [
            *(_gives(COURSES[13], {"smart_group": f"Policy {number:02}"}) for number in range(2, 6)),
            *(_gives(COURSES[12], {"group": f"Crew {number}"}) for number in range(4)),
        ],
    }


def _members() -> Document:
    """People, in and out and from one group to another."""
    return {
        "groups": [
            {"name": TEAMS[0], "members": PEOPLE[20:36]},
            {"name": TEAMS[1], "members": []},
            {"name": TEAMS[2], "members": _some(3, 8), "managers": PEOPLE[1:4]},
            {"name": TEAMS[3], "members": _some(2, 8), "managers": []},
            {"name": TEAMS[4], "members": {"include": PEOPLE[:4], "exclude": _some(4, 4)}},
            {"name": TEAMS[5], "members": PEOPLE, "managers": PEOPLE[6:9]},
            {"name": TEAMS[6], "members": _some(6, 1)},
            {"name": "Everybody", "members": PEOPLE, "managers": PEOPLE[:3]},
        ],
        "smart_groups": [
            {"name": RULES[0], "managers": PEOPLE[8:14]},
            {"name": RULES[1], "managers": []},
            {"name": RULES[2], "managers": {"include": PEOPLE[5:7], "exclude": PEOPLE[:1]}},
        ],
    }


def _targets() -> Document:
    """Assignments made, changed and taken away."""
    return {
        "content_targets": [
            *(_gives(COURSES[at], {"group": TEAMS[at]}, mandatory=False) for at in range(8)),
            *(
                _gives(COURSES[at], {"smart_group": RULES[at]}, visible_from="2026-02-01", visible_until="2026-11-30")
                for at in range(8)
            ),
            *(_gives(COURSES[12], {"group": name}, mandatory=True) for name in TEAMS),
            *(_gives(COURSES[13], {"smart_group": name}, visible_from="2026-03-01") for name in RULES[:8]),
            *(_gives(COURSES[at], {"user": PEOPLE[at]}) for at in range(6)),
            _gives(COURSES[12], "everyone"),
        ],
        "absent": {
            "content_targets": [
                *({"content": COURSES[at], "assign_to": [{"group": TEAMS[at]}]} for at in range(8, 12)),
                *({"content": COURSES[at], "assign_to": [{"smart_group": RULES[at]}]} for at in range(8, 12)),
            ]
        },
    }


def _delete() -> Document:
    """All that is ours goes, with every assignment to it."""
    return {"absent": {"groups": TEAMS, "smart_groups": RULES, "custom_fields": ["Unit", "Land", "Grade"]}}


REFERENCES: Final[Mapping[str, Callable[[], Document]]] = {
    "create": _create,
    "mixed": _mixed,
    "renames": _renames,
    "members": _members,
    "targets": _targets,
    "delete": _delete,
}
"""Every reference apply by name: what its manifests say."""


def _team(number: int) -> str:
    return f"g-{number + 100}"


def _rule(number: int) -> str:
    return f"sg-{number + 100}"


def _some(begin: int, count: int) -> list[str]:
    """A few people, others for each number."""
    return [PEOPLE[(begin * 5 + step) % len(PEOPLE)] for step in range(count)]


def _in_unit(number: int) -> Entry:
    return {"field": "Unit", "choices": [_UNITS[number % 4]]}


def _gives(content: str, *to: object, **said: object) -> Entry:
    """One content for some audiences."""
    return {"content": content, "assign_to": [*to], **said}


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
        (Path(folder) / "manifests" / "all.yaml").write_text(yaml_text(REFERENCES[name]()), encoding="utf-8")
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
