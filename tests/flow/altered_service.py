"""A workspace that answers otherwise than the sandbox does, and a project's plan of it."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from laws.sandbox_project import TransportConnection

from lmsconf.apply.run_plan import execute
from lmsconf.documents.snapshot_file import dumps, loads
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response
from lmsconf.workspace.connection import Connection, fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .project import Project

Edit = Callable[[dict[str, Any]], object]


class Altered(Sandbox):
    """A service whose answers to reads under some paths are other than the sandbox's."""

    edits: Mapping[str, Edit] = {}
    paths: Mapping[str, str] = {}

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        given = super().answer(method, self.paths.get(path, path), query, headers, body)
        edit = self.edits.get(path)
        reads = method == "GET" or path.startswith("/analyse/")
        if not reads or edit is None or given.status != 200:
            return given
        said = json.loads(given.body)
        edit(said)
        return json_response(200, said)


def plan_altered(
    it: Project, manifests: str, edits: Mapping[str, Edit], paths: Mapping[str, str] | None = None
) -> Plan:
    """The plan of the manifests for the seeded workspace, which answers as the edits say.

    paths: path of a request → that of the sandbox, of what the edits give another id.
    """
    it.write(manifests)
    with connected(it, edits, paths) as connection:
        return WorkspaceReader(settings=it.settings, connection=connection).plan(
            load_manifests(it.settings), it.settings.policy
        )


@contextmanager
def connected(it: Project, edits: Mapping[str, Edit], paths: Mapping[str, str] | None = None) -> Iterator[Connection]:
    """A connection to the seeded workspace, which answers as the edits say."""
    settings = it.settings
    service = fill_if_empty(Altered(spec=it.spec), settings.workspace.seed)
    service.edits, service.paths = edits, paths or {}
    try:
        with Connection(settings, service=service) as connection:
            yield connection
    finally:
        service.close_workspace()


# A plan where the service answers a request with other rows than the sandbox has.


EditRows = Callable[[list[dict[str, object]]], None]


class AlteredListing(httpx.BaseTransport):
    """A service that lists people, or what is at another path, otherwise."""

    def __init__(self, sandbox: Sandbox, edit: EditRows, request: tuple[str, str]) -> None:
        self._sandbox, self._edit, self._request = sandbox, edit, request

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._sandbox.handle_request(request)
        if (request.method, request.url.path.rstrip("/")) != self._request:
            return answer
        said = json.loads(answer.read())
        self._edit(next(rows for rows in said.values() if isinstance(rows, list)))
        return httpx.Response(answer.status_code, json=said)


def planned(it: Project, edit: EditRows, request: tuple[str, str] = ("GET", "/users")) -> Plan:
    """The plan of the manifests where the service answers a request with other rows, by default that for people."""
    it.plan()
    settings = it.settings
    sandbox = Sandbox(str(settings.workspace.database), spec=it.spec)
    try:
        seen = WorkspaceReader(
            settings=settings, connection=TransportConnection(AlteredListing(sandbox, edit, request), it.spec)
        )
        return seen.plan(load_manifests(settings), settings.policy)
    finally:
        sandbox.close_workspace()


# A plan against a workspace that is almost the live one: its snapshot is taken, edited, and planned against.


def plan_against(it: Project, manifests: str, edit: Edit) -> Plan:
    """The plan of the manifests against the edited snapshot."""
    it.write(manifests)
    settings = it.settings
    with Connection(settings) as connection:
        workspace = WorkspaceReader(settings=settings, connection=connection)
        snapshot = json.loads(dumps(workspace.snapshot()))
        edit(snapshot)
        return workspace.plan_offline(load_manifests(settings), settings.policy, loads(json.dumps(snapshot)))


def plan_under(it: Project, manifests: str, *faults: Fault) -> Plan:
    """The plan while the workspace has these mishaps; what it asked is in `it.calls`."""
    it.write(manifests)
    settings = it.settings
    with Connection(settings) as connection, connection.worker_pool(1):
        sandbox = connection._sandbox  # only a test makes things go wrong
        assert sandbox is not None
        sandbox._faults = FaultScript(*faults)
        try:
            workspace = WorkspaceReader(settings=settings, connection=connection)
            return workspace.plan(load_manifests(settings), settings.policy)
        finally:
            it.calls = list(sandbox.log)


def apply_under(it: Project, manifests: str, *faults: Fault) -> ApplyReport:
    """Plans in peace and applies while the workspace has these mishaps; `it.calls` is what it then saw."""
    it.write(manifests)
    settings = it.settings
    with Connection(settings) as connection:
        workspace = WorkspaceReader(settings=settings, connection=connection)
        plan = workspace.plan(load_manifests(settings), settings.policy)
        sandbox = connection._sandbox  # only a test makes things go wrong
        assert sandbox is not None
        sandbox._faults = FaultScript(*faults)
        before = len(sandbox.log)
        report = execute(workspace, plan, meta={})
        it.calls = list(sandbox.log)[before:]
    return report
