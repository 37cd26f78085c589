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

pytestmark = pytest.mark.sampled

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
SEED = {"people": [{"email": email} for email in PEOPLE]}


class Attempted(Fleet):
    """A fleet of one workspace with a plan of all kinds of changes, which an attempt elsewhere may have begun."""

    def prepare(self) -> None:
        self.write("lmsconf.yaml", "workspaces: {x: {url: 'sandbox:x.db', seed: seed.yaml}}\nguards: off\n")
        self.write("seed.yaml", json.dumps(SEED))
        self.write("manifests/a.yaml", BEFORE)
        self.apply_elsewhere()
        self.write("manifests/a.yaml", AFTER)
        assert self.plan()["workspaces"][0]["summary"]["calls"] == CALLS

    def apply_elsewhere(self, *arguments: str) -> None:
        """Apply the manifests at hand as another machine does, whose journal is not here."""
        self.run("apply", "--auto-approve", *arguments, code=0)

    def call(self, method: str, path: str, body: object) -> None:
        self.run("api", method, path, "--body", json.dumps(body), code=0)

    def attempt(self, number: int = 2) -> FleetEntry:
        """Apply the plan as a second attempt does."""
        digest = self.index()["workspaces"][0]["digest"]
        task = FleetTask(
            workspace="x",
            action=FleetAction.APPLY,
            url="sandbox:x.db",
            out=str(self.root / "out"),
            digest=digest,
            attempt=number,
        )
        return TaskRunner(self.root, os.environ).run(replace(task, has_journals=False))


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Attempted:
    fleet = Attempted(tmp_path, capsys)
    fleet.prepare()
    return fleet


@pytest.mark.parametrize(
    "done",
    [
        (),
        ("custom_field/Team",),
        ("group/Kept", "custom_field/Site"),
        ("group/First left", "group/Made"),
        ("*",),
    ],
)
def test_the_second_attempt_does_what_is_left(fleet: Attempted, done: Sequence[str]) -> None:
    """The result is that of one attempt, and only calls of the plan that were not carried out are sent."""
    if done:
        fleet.apply_elsewhere(*[word for address in done for word in ("--only", address)])
    entry = fleet.attempt()
    assert entry.exit is ExitCode.OK, entry.problems
    assert entry.summary == {"calls": CALLS, "done": CALLS}
    assert entry.digest == fleet.index()["workspaces"][0]["digest"]
    report = json.loads((fleet.root / "out" / "x.report.json").read_text())
    assert report["digest"] == entry.digest
    assert report["converged"] is True
    assert (len(report["outcomes"]) == CALLS) is (not done)
    assert (len(report["outcomes"]) == 0) is (done == ("*",))
    assert fleet.run("plan", "--detailed-exitcode")[0] == 0


def test_the_first_attempt_refuses_a_plan_that_is_partly_applied(fleet: Attempted) -> None:
    """Only after a machine has died is a part of the plan known to be that machine's."""
    fleet.apply_elsewhere("--only", "custom_field/Team")
    assert fleet.attempt(1).exit is ExitCode.STALE


def test_a_resource_that_was_begun_is_finished(fleet: Attempted) -> None:
    """A group that was created without its members gets them; a member that was added is not added twice."""
    fleet.call("POST", "/groups", {"name": "Made"})
    entry = fleet.attempt()
    assert entry.exit is ExitCode.OK, entry.problems
    assert fleet.run("plan", "--detailed-exitcode")[0] == 0


@pytest.mark.parametrize("edit", ["member", "description", "created", "renamed"])
def test_what_nobody_planned_is_stale(fleet: Attempted, edit: str) -> None:
    """A resource that is neither as it was reviewed nor as the plan makes it: the attempt sends no call."""
    if edit == "member":
        fleet.write("manifests/a.yaml", f"groups: [{{name: Kept, members: [{PEOPLE[0]}]}}]\n")
        fleet.apply_elsewhere()
    elif edit == "description":
        text = "{name: Site, type: CHOICE, choices: [North, South], description: Other}"
        fleet.write("manifests/a.yaml", f"custom_fields: [{text}]\n")
        fleet.apply_elsewhere()
    elif edit == "created":
        fleet.write("manifests/a.yaml", f"groups: [{{name: Made, members: [{PEOPLE[2]}]}}]\n")
        fleet.apply_elsewhere()
    else:
        fleet.write("manifests/a.yaml", "groups: [{name: Other, previously: [Kept]}]\n")
        fleet.apply_elsewhere()
    fleet.write("manifests/a.yaml", AFTER)
    entry = fleet.attempt()
    assert entry.exit is ExitCode.STALE, entry
    assert "Team" not in fleet.run("api", "GET", "/custom-fields")[1]


def test_guards_hold_for_every_attempt(fleet: Attempted) -> None:
    """A guard that was set since the plan stops the second attempt as the first."""
    text = "workspaces: {x: {url: 'sandbox:x.db', seed: seed.yaml}}\nguards: {deletes: {count: 1, share: off}}\n"
    fleet.write("lmsconf.yaml", text)
    assert fleet.attempt().exit is ExitCode.BLOCKED
