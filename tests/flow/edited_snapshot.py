"""A plan against a workspace that is almost the live one: its snapshot is taken, edited, and planned against."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from lmsconf.apply.run import execute
from lmsconf.documents.snapshot_file import dumps, loads
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .project import Project

Edit = Callable[[dict[str, Any]], object]


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
