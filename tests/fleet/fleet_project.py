"""A project with some workspaces in files of the embedded sandbox, and the command line on it."""

import json
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from flow.shell import Ran
from msgspec.structs import replace
from waiting import HANGS

from lmsconf.cli import app, run_command_line
from lmsconf.errors import ExitCode, Problem
from lmsconf.fleet.shards import group_changes
from lmsconf.model.address import Address
from lmsconf.model.fleet import STOPPED, FleetAction, FleetEntry, FleetIndex, FleetShard
from lmsconf.model.plan import Action, Change, FieldChange
from lmsconf.model.problem_codes import Blocker
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import LoggedRequest, Sandbox

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
    """A project folder. Commands put their results into its folder `out`, and use that many processes."""

    processes = 1

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.out = root, root / "out"
        self._capsys = capsys
        self.write("lmsconf.yaml", PROJECT)
        self.write("workspaces.csv", TABLE)
        self.write("manifests/a.yaml", BASE)

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: object, code: int | None = None) -> Ran:
        """Run a command; return its exit code and what it wrote to stdout and stderr. code: what it has to be."""
        ran = Ran(run_command_line(app, ["-C", str(self.root), *map(str, arguments)]), *self._capsys.readouterr())
        assert code in (None, ran.code), ran
        return ran

    def command(self, name: str, *arguments: object, code: int | None = None) -> Ran:
        """Run `lmsconf fleet` with a command that works on each workspace."""
        return self.run("fleet", name, "--processes", self.processes, *arguments, code=code)

    def index(self, folder: str = "out", name: str = "index.json") -> dict[str, Any]:
        """Return an index that a command has written."""
        document: dict[str, Any] = json.loads((self.root / folder / name).read_text())
        return document

    def plan(self, *arguments: object, out: str = "out", code: int = 0) -> Mapping[str, Any]:
        """Save the plans of the fleet; return their index."""
        self.command("plan", "--out", self.root / out, *arguments, code=code)
        return self.index(out)

    def show(self, view: str = "text", out: str = "out") -> str:
        """Show what a folder has, in one of the formats."""
        return self.run("fleet", "show", self.root / out, "--format", view, code=0).out

    def apply(self, *arguments: object, out: str = "out", code: int | None = None) -> Ran:
        """Apply the plans in a folder."""
        return self.command("apply", self.root / out, "--auto-approve", *arguments, code=code)

    def exits(self, name: str = "apply.json") -> dict[str, int]:
        """The exit code of each workspace in an index."""
        return {one["workspace"]: one["exit"] for one in self.index("out", name)["workspaces"]}


@pytest.fixture
def fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fleet:
    return Fleet(tmp_path, capsys)


# Results of fleets to look at: plans that mostly need the same changes, an apply that stopped, and a shard.


_TIME = "2026-06-01T00:00:00Z"


def _change(name: str, *, added: str, id: str) -> Change:
    return Change(
        address=Address.of("custom_field", name),
        action=Action.UPDATE,
        id=id,  # type: ignore[arg-type]  # a RemoteId is a text
        about=None,
        source=None,
        before={"name": name},
        after={"name": name},
        fields=(FieldChange(path="choices", added=(added,)),),
    )


def large_fleet(number: int = 500, alike: int = 412, own: int = 20, failed: int = 3) -> FleetIndex:
    """Return plans of which `alike` have the same three changes, `own` one of their own each, and the rest none."""
    names = [f"site-{place:03}" for place in range(number)]
    lost = names[alike + own : alike + own + failed]
    plans = {
        name: tuple(_change(f"Field {n}", added="A", id=f"{name}-{n}") for n in range(3)) for name in names[:alike]
    }
    plans |= {name: (_change(f"Field of {name}", added="B", id=name),) for name in names[alike : alike + own]}
    entries = tuple(_planned(name, len(plans.get(name, ())), lost=name in lost) for name in names)
    shared = group_changes(plans.items())
    return FleetIndex(action=FleetAction.PLAN, created_at=_TIME, entries=entries, shared=shared)


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


def _blocked(report: FleetIndex) -> FleetIndex:
    """Return a report in which a guard stops three plans alike, and another plan otherwise."""
    few = Blocker(type="guard", name="deletes", message="2 deletions, and the limit is 1", allow="deletes=2")
    many = replace(few, message="5 deletions, and the limit is 1", allow="deletes=5")
    first, second, *others = report.entries
    rest = [replace(entry, blocked=(few,)) for entry in others[:3]]
    entries = (replace(first, blocked=(many,)), second, *rest, *others[3:])
    return replace(report, entries=entries)


def _applied() -> FleetIndex:
    """Return an apply whose first wave failed in one workspace, so that the second was not begun."""
    reason = "not applied: 1 workspace of the wave ring=canary failed, and the limit is 0"
    stale = Problem(code="plan/stale", message="group/Nurses has changed since the plan", hint="Plan again.")
    stopped = Problem(code=STOPPED, message=reason, hint="Correct them, and apply again.")
    entries = []
    for entry in large_fleet(12, 12, 0, 0).entries:
        exit, problems, calls = ExitCode.PARTIAL, (stopped,), {"calls": 0, "done": 0}
        if entry.workspace == "site-000":
            exit, problems = ExitCode.STALE, (stale,)
        elif entry.labels["ring"] == "canary":
            exit, problems, calls = ExitCode.OK, (), {"calls": 3, "done": 3}
        unplanned = replace(entry, assumed_keys=(), assumed_calls=0)
        entries.append(replace(unplanned, exit=exit, problems=problems, summary=calls))
    return FleetIndex(action=FleetAction.APPLY, created_at=_TIME, entries=tuple(entries))


def _shard() -> FleetIndex:
    return replace(large_fleet(2, 1, 0, 0), shard=FleetShard(number=2, of=4, selection="5" * 64))


FLEETS = {"plan": _blocked(large_fleet(24, 16, 3, 2)), "apply": _applied(), "shard": _shard()}


# A fleet whose workspaces are behind ports of this machine, with a token for each.


SERVED = 'workspaces: {file: workspaces.csv, token: {env: "LMSCONF_TOKEN_$(workspace)"}}\nsettle: 200ms\n'
_NUDGED = 0.05
CALLS = 3
"""Of a workspace without anything, to have what the manifests declare."""


class ServedFleet(Fleet):
    """A project folder, and servers that end with it."""

    processes = 2

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, capsys)
        self.table = "name,url,labels\n"
        self.write("lmsconf.yaml", SERVED)
        self.write(
            "manifests/a.yaml",
            "custom_fields: [{name: Department, type: CHOICE, choices: [Sales, Support]}]\n"
            "groups: [{name: Team}]\n"
            "smart_groups: [{name: Sellers, conditions: [{field: Department, choices: [Sales]}]}]\n",
        )
        self.services: dict[str, Sandbox] = {}
        self.servers = ExitStack()
        self._monkeypatch = monkeypatch

    def project(self, more: str) -> str:
        """The project file with more settings."""
        return SERVED + more

    def add(self, name: str, url: str, labels: str = "ring=main", token: str = "token") -> None:  # noqa: S107  no secret
        """A row of the table, and its token."""
        self._monkeypatch.setenv(f"LMSCONF_TOKEN_{name}", token)
        self.table += f'{name},{url},"{labels}"\n'
        self.write("workspaces.csv", self.table)

    def serve(
        self,
        name: str,
        labels: str = "ring=main",
        *,
        token: str = "token",  # noqa: S107  no secret
        takes: str | None = None,
        faults: FaultScript | None = None,
        on_log: Callable[[LoggedRequest], None] | None = None,
        latency: float = 0.0,
    ) -> str:
        """Serve an empty workspace, and add it to the table. takes: the only token that it accepts, if not its own."""
        service = Sandbox(":memory:", token=takes or token, faults=faults, on_log=on_log)
        self.servers.callback(service.close_workspace)
        url = self.servers.enter_context(serve(service, latency=latency)).url
        self.services[name] = service
        self.add(name, url, labels, token)
        return url

    def hang(self, name: str) -> str:
        """Add a service that accepts connections and never answers; return its URL."""
        listening = self.servers.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.add(name, url)
        return url

    def names(self, workspace: str) -> Counter[str]:
        """How often each name is in a served workspace."""
        listings = (("/custom-fields", "customFields"), ("/groups", "groups"), ("/smart-groups", "smartGroups"))
        rows = [row for path, key in listings for row in self.ask(workspace, "GET", path)[key]]
        return Counter(str(row["name"]) for row in rows)

    def ask(self, workspace: str, method: str, path: str, body: object = None) -> Any:
        """Ask a served workspace, past its faults; return the body of the answer."""
        service = self.services[workspace]
        faults, service._faults = service._faults, None
        try:
            headers = {"authorization": "Bearer token", "content-type": "application/json"}
            content = b"" if body is None else json.dumps(body).encode()
            answer = service.answer(method, path, "", headers, content)
        finally:
            service._faults = faults
        assert answer.status < 300, answer.body
        return json.loads(answer.body or b"null")


@pytest.fixture
def served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ServedFleet]:
    fleet = ServedFleet(tmp_path, capsys, monkeypatch)
    with fleet.servers:
        yield fleet


def workers() -> list[int]:
    """The ids of the worker processes of this process."""
    children = [int(id) for task in Path("/proc/self/task").iterdir() for id in (task / "children").read_text().split()]
    return [id for id in children if b"lmsconf.fleet.worker" in _command(id)]


def wait_for_orphans(root: Path) -> None:
    """Wait until the workers of a coordinator that was killed have ended: each ends its task first."""
    for _ in range(int(HANGS / _NUDGED)):
        commands = [_command(int(path.name)) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        if not any(b"lmsconf.fleet.worker" in command and bytes(root) in command for command in commands):
            return
        time.sleep(_NUDGED)
    raise AssertionError("they never end")


def _command(id: int) -> bytes:
    with suppress(OSError):  # it has ended
        return Path(f"/proc/{id}/cmdline").read_bytes()
    return b""
