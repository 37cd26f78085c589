"""An apply that is attempted again, where a machine without its journal may have carried out a part of the plan."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from fleet.fleet_project import Fleet
from msgspec.structs import replace

from lmsconf.errors import ExitCode
from lmsconf.fleet.tasks import FleetTask, TaskRunner
from lmsconf.model.fleet import FleetAction, FleetEntry

pytestmark = pytest.mark.sampled(daily=False)

PEOPLE = ["anna@acme.example", "bo@acme.example", "cy@acme.example"]
BEFORE = f"""\
custom_fields:
  - {{name: Site, type: CHOICE, choices: [North, South], description: Old}}
groups:
  - {{name: Kept, members: [{PEOPLE[0]}, {PEOPLE[1]}]}}
  - {{name: First left}}
  - {{name: Last left}}
"""
AFTER = f"""\
custom_fields:
  - {{name: Site, type: CHOICE, choices: [North, South], description: New}}
  - {{name: Team, type: TEXT}}
groups:
  - {{name: Kept, members: [{PEOPLE[1]}, {PEOPLE[2]}]}}
  - {{name: Made, members: [{PEOPLE[0]}]}}
absent: {{groups: [First left, Last left]}}
"""
CALLS = 8
ONE = "workspaces: {x: {url: 'sandbox:x.db', seed: seed.yaml}}\n"


class Attempted(Fleet):
    """A fleet of one workspace with a plan of all kinds of changes, which an attempt elsewhere may have begun."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(root, capsys)
        self.write("lmsconf.yaml", ONE + "guards: off\n")
        self.write("seed.yaml", json.dumps({"people": [{"email": email} for email in PEOPLE]}))
        self.apply_elsewhere(BEFORE)
        self.write("manifests/a.yaml", AFTER)
        assert self.plan()["workspaces"][0]["summary"]["calls"] == CALLS

    def apply_elsewhere(self, manifests: str, *arguments: str) -> None:
        """Apply manifests as another machine does, whose journal is not here."""
        self.write("manifests/a.yaml", manifests)
        self.run("apply", "--auto-approve", *arguments, code=0)

    def attempt(self, number: int = 2) -> FleetEntry:
        """Apply the plan as a second attempt does."""
        self.write("manifests/a.yaml", AFTER)
        task = FleetTask(
            workspace="x",
            action=FleetAction.APPLY,
            url="sandbox:x.db",
            out=str(self.out),
            digest=self.index()["workspaces"][0]["digest"],
            attempt=number,
        )
        return TaskRunner(self.root, os.environ).run(replace(task, has_journals=False))


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Attempted:
    return Attempted(tmp_path, capsys)


@pytest.mark.parametrize(
    "done",
    [(), ("custom_field/Team",), ("group/Kept", "custom_field/Site"), ("group/First left", "group/Made"), ("*",)],
)
def test_the_second_attempt_does_what_is_left(fleet: Attempted, done: Sequence[str]) -> None:
    """The result is that of one attempt, and only calls of the plan that were not carried out are sent."""
    if done:
        fleet.apply_elsewhere(AFTER, *[word for address in done for word in ("--only", address)])
    entry = fleet.attempt()
    assert entry.exit is ExitCode.OK, entry.problems
    assert entry.summary == {"calls": CALLS, "done": CALLS}
    report = fleet.index(name="x.report.json")
    assert report["digest"] == entry.digest == fleet.index()["workspaces"][0]["digest"]
    assert report["converged"] is True
    assert (len(report["outcomes"]) == CALLS) is (not done)
    assert (len(report["outcomes"]) == 0) is (done == ("*",))
    fleet.run("plan", "--detailed-exitcode", code=0)


def test_the_first_attempt_refuses_a_plan_that_is_partly_applied(fleet: Attempted) -> None:
    """Only after a machine has died is a part of the plan known to be that machine's."""
    fleet.apply_elsewhere(AFTER, "--only", "custom_field/Team")
    assert fleet.attempt(1).exit is ExitCode.STALE


def test_a_resource_that_was_begun_is_finished(fleet: Attempted) -> None:
    """A group that was created without its members gets them; a member that was added is not added twice."""
    fleet.run("api", "POST", "/groups", "--body", '{"name": "Made"}', code=0)
    entry = fleet.attempt()
    assert entry.exit is ExitCode.OK, entry.problems
    fleet.run("plan", "--detailed-exitcode", code=0)


@pytest.mark.parametrize(
    "edit",
    [
        f"groups: [{{name: Kept, members: [{PEOPLE[0]}]}}]\n",
        "custom_fields: [{name: Site, type: CHOICE, choices: [North, South], description: Other}]\n",
        f"groups: [{{name: Made, members: [{PEOPLE[2]}]}}]\n",
        "groups: [{name: Other, previously: [Kept]}]\n",
    ],
    ids=["member", "description", "created", "renamed"],
)
def test_what_nobody_planned_is_stale(fleet: Attempted, edit: str) -> None:
    """A resource that is neither as it was reviewed nor as the plan makes it: the attempt sends no call."""
    fleet.apply_elsewhere(edit)
    entry = fleet.attempt()
    assert entry.exit is ExitCode.STALE, entry
    assert "Team" not in fleet.run("api", "GET", "/custom-fields").out


def test_guards_hold_for_every_attempt(fleet: Attempted) -> None:
    """A guard that was set since the plan stops the second attempt as the first."""
    fleet.write("lmsconf.yaml", ONE + "guards: {deletes: {count: 1, share: off}}\n")
    assert fleet.attempt().exit is ExitCode.BLOCKED
