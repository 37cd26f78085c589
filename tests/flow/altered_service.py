"""A workspace that answers otherwise than the sandbox does, and a project's plan of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lmsconf.model.plan import Plan
from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response
from lmsconf.workspace.connection import Connection
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
    service = Altered(":memory:", spec=it.spec, seed=settings.workspace.seed)
    service.edits, service.paths = edits, paths or {}
    try:
        with Connection(settings, service=service) as connection:
            yield connection
    finally:
        service.close_workspace()
