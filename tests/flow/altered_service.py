"""A workspace that answers otherwise than the sandbox does, and a project's plan of it."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from operator import getitem
from typing import Any

from lmsconf.apply.run_plan import execute
from lmsconf.documents.snapshot_file import dumps, loads
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response
from lmsconf.workspace.connection import Connection, fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests

from .project import Project, planned_by, sandbox_of

Edit = Callable[[dict[str, Any]], object]
EditRows = Callable[[list[dict[str, Any]]], object]


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
    with connected(it, edits, paths) as connection, it.reader(connection=connection) as reader:
        return planned_by(reader)


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


def plan_of_rows(it: Project, manifests: str, edit: EditRows, path: str = "/users") -> Plan:
    """The plan where the listing at that path, by default that of people, has other rows."""
    return plan_altered(it, manifests, {path: lambda said: edit(next(v for v in said.values() if isinstance(v, list)))})


def put_at(document: Any, place: str, value: object) -> None:
    """Puts a value at a place such as `user.0.id`, or behind the end of a list; null takes out what is there."""
    *path, key = (int(part) if part.isdecimal() else part for part in place.split("."))
    holder = reduce(getitem, path, document)
    if value is None:
        del holder[key]
    elif isinstance(holder, list):
        holder[key : key + 1] = [value]
    else:
        holder[key] = value


# A plan against a workspace that is almost the live one: its snapshot is taken, edited, and planned against.


def plan_against(it: Project, manifests: str, edit: Edit) -> Plan:
    """The plan of the manifests against the edited snapshot."""
    it.write(manifests)
    with it.reader() as reader:
        snapshot = json.loads(dumps(reader.snapshot()))
        edit(snapshot)
        settings = reader.settings
        return reader.plan_offline(load_manifests(settings), settings.policy, loads(json.dumps(snapshot)))


def plan_under(it: Project, manifests: str, *faults: Fault) -> Plan:
    """The plan while the workspace has these mishaps; what it asked is in `it.calls`."""
    it.write(manifests)
    with it.reader(*faults) as reader:
        return planned_by(reader)


def apply_under(it: Project, manifests: str, *faults: Fault) -> ApplyReport:
    """Plans in peace and applies while the workspace has these mishaps; `it.calls` is what it then saw."""
    it.write(manifests)
    with it.reader() as reader:
        plan = planned_by(reader)
        sandbox = sandbox_of(reader)
        asked = len(sandbox.log)
        sandbox._faults = FaultScript(*faults)
        report = execute(reader, plan, meta={})
    it.calls = it.calls[asked:]
    return report
