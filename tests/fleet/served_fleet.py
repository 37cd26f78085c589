"""A fleet whose workspaces are behind ports of this machine, with a token for each."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from waiting import HANGS

from fleet.fleet_project import Fleet
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import LoggedRequest, Sandbox

HEADER = "name,url,labels\n"
SERVED = 'workspaces: {file: workspaces.csv, token: {env: "LMSCONF_TOKEN_$(workspace)"}}\nsettle: 200ms\n'
_NUDGED = 0.05
CALLS = 3
"""Of a workspace without anything, to have what the manifests declare."""


class ServedFleet(Fleet):
    """A project folder, and servers that end with it."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, capsys)
        self.write("workspaces.csv", HEADER)
        self.write("lmsconf.yaml", SERVED)
        self.write(
            "manifests/a.yaml",
            "custom_fields: [{name: Department, type: CHOICE, choices: [Sales, Support]}]\n"
            "groups: [{name: Team}]\n"
            "smart_groups: [{name: Sellers, conditions: [{field: Department, choices: [Sales]}]}]\n",
        )
        self.services: dict[str, Sandbox] = {}
        self.out = str(root / "out")
        self._monkeypatch, self._servers = monkeypatch, ExitStack()

    def project(self, more: str) -> str:
        """The project file with more settings."""
        return SERVED + more

    def close(self) -> None:
        self._servers.close()

    def add(self, name: str, url: str, labels: str = "ring=main", token: str = "token") -> None:  # noqa: S107  no secret
        """A row of the table, and its token."""
        self._monkeypatch.setenv(f"LMSCONF_TOKEN_{name}", token)
        with (self.root / "workspaces.csv").open("a") as file:
            file.write(f'{name},{url},"{labels}"\n')

    def serve(
        self,
        name: str,
        labels: str = "ring=main",
        *,
        takes: str = "token",
        faults: FaultScript | None = None,
        on_log: Callable[[LoggedRequest], None] | None = None,
        latency: float = 0.0,
    ) -> Sandbox:
        """Serve an empty workspace, and add it to the table. takes: the only token that is accepted."""
        service = Sandbox(":memory:", token=takes, faults=faults, on_log=on_log)
        self._servers.callback(service.close_workspace)
        server = self._servers.enter_context(serve(service, latency=latency))
        self.services[name] = service
        self.add(name, server.url, labels)
        return service

    def hang(self, name: str) -> None:
        """Add a service that accepts connections and never answers."""
        listening = self._servers.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        self.add(name, f"http://127.0.0.1:{listening.getsockname()[1]}")

    def apply(self, *arguments: str) -> tuple[int, str]:
        """Apply the plans in `out` with two processes; return the exit code and stdout."""
        code, text, _ = self.run("fleet", "apply", self.out, "--auto-approve", "--processes", "2", *arguments)
        return code, text

    def plan_served(self, *arguments: str, out: str | None = None) -> int:
        """Save the plans of the fleet with two processes; return the exit code."""
        return self.run("fleet", "plan", "--out", out or self.out, "--processes", "2", *arguments)[0]

    def exits(self, name: str = "apply.json") -> dict[str, int]:
        """The exit code of each workspace in an index."""
        return {one["workspace"]: one["exit"] for one in self.index("out", name)["workspaces"]}

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
    try:
        yield fleet
    finally:
        fleet.close()


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


def kill(worker: int) -> None:
    """Kill a worker, as a machine without memory would."""
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)
