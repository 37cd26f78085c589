"""One small project with a workspace that tells when something is about to be written to it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from laws.sandbox_project import TransportConnection
from texts import text_of

from lmsconf.apply.run_plan import execute
from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

BEGAN = datetime(2026, 6, 1, 8, 0, tzinfo=UTC)
PROJECT = 'workspaces: {sandbox: {url: "sandbox:"}}\n'
MANIFEST = text_of(__file__, "conftest_manifest.yaml")
CALLS = 5

KEEP_ALL = {"keep": 1000, "keep_seconds": 30.0}


class ObservedSandbox(Sandbox):
    """A workspace in memory. `arrives` hears of each writing operation before it is done."""

    arrives: Callable[[str], None] = staticmethod(lambda operation: None)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        operation, _ = self.spec.match_route(request.method, request.url.path) or (None, {})
        if operation is not None and operation.writes:
            self.arrives(operation.id)
        return super().handle_request(request)


@dataclass
class JournalProject:
    """The project, its workspace, and what was seen of it."""

    root: Path
    sandbox: ObservedSandbox = field(default_factory=ObservedSandbox)

    def __post_init__(self) -> None:
        (self.root / "manifests").mkdir()
        (self.root / "lmsconf.yaml").write_text(PROJECT, encoding="utf-8")
        (self.root / "manifests" / "all.yaml").write_text(MANIFEST, encoding="utf-8")
        settings = load_settings(self.root, None, {}, today=date(2026, 6, 1))
        self.workspace = WorkspaceReader(
            settings=settings, connection=TransportConnection(self.sandbox, self.sandbox.spec)
        )

    def plan(self) -> Plan:
        return self.workspace.plan(load_manifests(self.workspace.settings), self.workspace.settings.policy)

    def begin(self, plan: Plan, **more: Callable[[int], None]) -> Journal:
        """A journal of the plan, by a clock that goes on by a second each time somebody looks."""
        ticks = (BEGAN + timedelta(seconds=seconds) for seconds in count(1))
        return Journal.begin(self.root, plan, meta={"commit": "9f3c"}, clock=lambda: next(ticks), **KEEP_ALL, **more)

    def applied(
        self, plan: Plan, apply: Mapping[str, Any] = MappingProxyType({}), **more: Callable[[int], None]
    ) -> tuple[ApplyReport, Path]:
        """The report of the plan, carried out, and where its journal is. apply: what else an apply is given."""
        with self.begin(plan, **more) as journal:
            report = execute(self.workspace, plan, meta={}, journal=journal, **apply)
        return report, journal.path

    @property
    def writes(self) -> list[str]:
        """The writing operations that the workspace saw."""
        return [logged.operation for logged in self.sandbox.log if logged.writes and logged.operation]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[JournalProject]:
    made = JournalProject(tmp_path)
    yield made
    made.sandbox.close_workspace()
