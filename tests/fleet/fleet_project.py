"""A project with some workspaces in files of the embedded sandbox, and the command line on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode, Problem
from lmsconf.fleet.collect import group_changes
from lmsconf.model.address import Address
from lmsconf.model.blockers import Blocker, BlockerType
from lmsconf.model.fleet import STOPPED, FleetAction, FleetEntry, FleetIndex, FleetReport, FleetShard
from lmsconf.model.plan import Action, Change, FieldChange

BASE = """\
custom_fields:
  - {name: Department, type: CHOICE, choices: [Sales, Support]}
groups:
  - {name: "Team $(region)", members: []}
"""
TABLE = """\
name,url,labels
alpha,sandbox:alpha.db,"ring=canary, region=eu"
beta,sandbox:beta.db,"ring=main, region=eu"
gamma,sandbox:gamma.db,"ring=main, region=us"
"""
PROJECT = "workspaces: {file: workspaces.csv}\n"


class Fleet:
    """A project folder."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys
        self.write("lmsconf.yaml", PROJECT)
        self.write("workspaces.csv", TABLE)
        self.write("manifests/a.yaml", BASE)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run a command; return its exit code and what it wrote to stdout and stderr."""
        code = run_command_line(app, ["-C", str(self.root), *arguments])
        out, err = self._capsys.readouterr()
        return code, out, err

    def index(self, folder: str = "out", name: str = "index.json") -> dict[str, Any]:
        """Return an index that a command has written."""
        document: dict[str, Any] = json.loads((self.root / folder / name).read_text())
        return document

    def plan(self, *arguments: str) -> Mapping[str, Any]:
        """Save the plans of the fleet; return their index."""
        code, _, err = self.run("fleet", "plan", "--out", str(self.root / "out"), "--processes", "1", *arguments)
        assert code == 0, err
        return self.index()


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fleet:
    return Fleet(tmp_path, capsys)


# Results of fleets to look at: plans that mostly need the same changes, an apply that stopped, and a shard.


_TIME = "2026-06-01T00:00:00Z"


def _change(name: str, *, added: str, id: str) -> Change:
    field = FieldChange(path="choices", added=(added,))
    address = Address.of("custom_field", name)
    return Change(
        address=address,
        action=Action.UPDATE,
        id=id,  # type: ignore[arg-type]  # a RemoteId is a text
        about=None,
        source=None,
        before={"name": name},
        after={"name": name},
        fields=(field,),
    )


def large_fleet(number: int = 500, alike: int = 412, own: int = 20, failed: int = 3) -> FleetReport:
    """Return plans of which `alike` have the same three changes, `own` one of their own each, and the rest none."""
    names = [f"site-{place:03}" for place in range(number)]
    lost = names[alike + own : alike + own + failed]
    plans = {
        name: tuple(_change(f"Field {n}", added="A", id=f"{name}-{n}") for n in range(3)) for name in names[:alike]
    }
    plans |= {name: (_change(f"Field of {name}", added="B", id=name),) for name in names[alike : alike + own]}
    entries = tuple(_planned(name, len(plans.get(name, ())), lost=name in lost) for name in names)
    index = FleetIndex(action=FleetAction.PLAN, created_at=_TIME, entries=entries)
    return FleetReport(index=index, shared=group_changes(plans.items()))


def _planned(name: str, changes: int, *, lost: bool) -> FleetEntry:
    problem = Problem(code="api/unreachable", message=f"https://{name}.example/api cannot be reached")
    return FleetEntry(
        workspace=name,
        url=f"https://{name}.example/api",
        labels={"ring": "canary" if name.endswith("0") else "main"},
        exit=ExitCode.UNREACHABLE if lost else ExitCode.CHANGES if changes else ExitCode.OK,
        summary={"update": changes},
        problems=(problem,) if lost else (),
        assumed_keys=("custom-fields.clear-description", "custom-fields.in-use")[-changes:] if changes else (),
        assumed_calls=changes,
    )


def _blocked(report: FleetReport) -> FleetReport:
    """Return a report in which a guard stops three plans alike, and another plan otherwise."""
    few = Blocker(type=BlockerType.GUARD, name="deletes", message="2 deletions, and the limit is 1", allow="deletes=2")
    many = replace(few, message="5 deletions, and the limit is 1", allow="deletes=5")
    first, second, *others = report.index.entries
    rest = [replace(entry, blocked=(few,)) for entry in others[:3]]
    entries = (replace(first, blocked=(many,)), second, *rest, *others[3:])
    return replace(report, index=replace(report.index, entries=entries))


def _applied() -> FleetReport:
    """Return an apply whose first wave failed in one workspace, so that the second was not begun."""
    reason = "not applied: 1 workspace of the wave ring=canary failed, and the limit is 0"
    stale = Problem(code="plan/stale", message="group/Nurses has changed since the plan", hint="Plan again.")
    stopped = Problem(code=STOPPED, message=reason, hint="Correct them, and apply again.")
    entries = []
    for entry in large_fleet(12, 12, 0, 0).index.entries:
        exit, problems, calls = ExitCode.PARTIAL, (stopped,), {"calls": 0, "done": 0}
        if entry.workspace == "site-000":
            exit, problems = ExitCode.STALE, (stale,)
        elif entry.labels["ring"] == "canary":
            exit, problems, calls = ExitCode.OK, (), {"calls": 3, "done": 3}
        unplanned = replace(entry, assumed_keys=(), assumed_calls=0)
        entries.append(replace(unplanned, exit=exit, problems=problems, summary=calls))
    return FleetReport(index=FleetIndex(action=FleetAction.APPLY, created_at=_TIME, entries=tuple(entries)))


def _shard() -> FleetReport:
    report = large_fleet(2, 1, 0, 0)
    return replace(report, index=replace(report.index, shard=FleetShard(number=2, of=4, selection="5" * 64)))


FLEETS = {"plan": _blocked(large_fleet(24, 16, 3, 2)), "apply": _applied(), "shard": _shard()}
