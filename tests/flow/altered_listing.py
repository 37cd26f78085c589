"""A plan where the service answers a request with other rows than the sandbox has."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
from laws.sandbox_project import TransportConnection

from lmsconf.model.plan import Plan
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .project import Project

Edit = Callable[[list[dict[str, object]]], None]


class AlteredListing(httpx.BaseTransport):
    """A service that lists people, or what is at another path, otherwise."""

    def __init__(self, sandbox: Sandbox, edit: Edit, request: tuple[str, str]) -> None:
        self._sandbox, self._edit, self._request = sandbox, edit, request

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._sandbox.handle_request(request)
        if (request.method, request.url.path.rstrip("/")) != self._request:
            return answer
        said = json.loads(answer.read())
        self._edit(next(rows for rows in said.values() if isinstance(rows, list)))
        return httpx.Response(answer.status_code, json=said)


def planned(it: Project, edit: Edit, request: tuple[str, str] = ("GET", "/users")) -> Plan:
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
