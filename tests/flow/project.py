"""A project in a folder with a sandbox behind it, used through the same door as the command line."""

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml
from manifest.cases import shown
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.apply.run_plan import execute
from lmsconf.documents.journal.journal_folder import runs_folder
from lmsconf.errors import ExitCode, Problem
from lmsconf.model.calls import Call
from lmsconf.model.guards import Consent
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import GuardResult, Plan
from lmsconf.project.settings import Settings, load_settings
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

TODAY = date(2026, 6, 1)
SPOKEN: Mapping[str, str | int] = {}
"""The dialect of the service behind a project, beside what its test says itself. The suite runs in two."""


RUNS = Path(".lmsconf", "runs")


def runs_of(root: Path, url: str = "sandbox:workspace.db") -> Path:
    """The folder with the journals of the workspace with that URL."""
    return root / RUNS / runs_folder(url)


def project_file(options: str) -> str:
    """A project file with more keys beside its workspace, and the spoken dialect. What a test says of a key holds."""
    workspace = "workspaces:\n  sandbox: {{url: 'sandbox:workspace.db', seed: workspace.yaml{more}}}\n"
    said = yaml.safe_load(workspace.format(more="") + options).get("dialect", {})
    spoken = json.dumps({key: value for key, value in SPOKEN.items() if key not in said})
    if not SPOKEN or not said:
        return workspace.format(more="") + options + (f"dialect: {spoken}\n" if SPOKEN else "")
    return workspace.format(more=f", dialect: {spoken}") + options


@dataclass
class Project:
    """One project. What it is asked is what a command would ask; `calls` is what the sandbox saw of it."""

    root: Path
    seed: str = ""
    options: str = ""

    def __post_init__(self) -> None:
        (self.root / "manifests").mkdir(parents=True, exist_ok=True)
        (self.root / "workspace.yaml").write_text(self.seed, encoding="utf-8")
        self.write_options(self.options)

    def write_options(self, options: str) -> None:
        """The project file, with more keys beside the workspace."""
        (self.root / "lmsconf.yaml").write_text(project_file(options), encoding="utf-8")

    def write(self, manifests: str, name: str = "all.yaml") -> None:
        """One manifest file."""
        (self.root / "manifests" / name).write_text(manifests, encoding="utf-8")

    @property
    def settings(self) -> Settings:
        return load_settings(self.root, None, {}, today=TODAY)

    @property
    def spec(self) -> ApiSpec:
        """The words of the dialect that this project speaks."""
        return ApiSpec(self.settings.dialect)

    @contextmanager
    def reader(
        self, *faults: Fault, connection: Connection | None = None, parallelism: int = 8
    ) -> Iterator[WorkspaceReader]:
        """The workspace as lmsconf reads it, with these mishaps; `calls` is then what it saw."""
        settings = self.settings
        with connection or Connection(settings) as opened, opened.worker_pool(1):
            reader = WorkspaceReader(settings=settings, connection=opened, parallelism=parallelism)
            sandbox_of(reader)._faults = FaultScript(*faults)
            try:
                yield reader
            finally:
                self.calls = list(sandbox_of(reader).log)

    def plan(self, manifests: str | None = None, **more: object) -> Plan:
        """The plan, and in `calls` what it asked."""
        if manifests is not None:
            self.write(manifests)
        with self.reader() as reader:
            return planned_by(reader, **more)

    def apply(
        self, manifests: str | None = None, allow: Sequence[Consent] = (), plan: Plan | None = None, **more: object
    ) -> ApplyReport:
        """Plans and applies; `calls` holds the writing requests only."""
        if manifests is not None:
            self.write(manifests)
        with self.reader() as reader:
            self.last = plan or planned_by(reader, consents=(*allow, *reader.settings.policy.consents), **more)
            assert not [guard for guard in self.last.guards if guard.tripped], self.last.guards
            report = execute(reader, self.last, meta={})
        self.calls = [call for call in self.calls if call.writes]
        return report

    def run(self, before_call: Callable[[Call], object] | None = None) -> tuple[Plan, ApplyReport]:
        """Plans and applies call by call, whatever guards say; `before_call` hears of each."""
        with self.reader(parallelism=1) as reader:
            plan = planned_by(reader)
            return plan, execute(reader, plan, meta={}, before_call=before_call)

    def settled(self, manifests: str, *consents: str) -> list[str]:
        """Applies, sees that nothing is left to do, and gives the writing calls as `METHOD operation`."""
        allow = [Consent(guard=name, number=int(number)) for name, number in (one.split("=") for one in consents)]
        report = self.apply(manifests, allow)
        assert report.exit == ExitCode.OK, report
        assert report.converged
        calls, made = [f"{call.operation}" for call in self.calls], self.last
        assert self.plan().changes == ()
        assert self.apply().outcomes == ()
        assert self.calls == []
        self.last = made
        return calls

    def ask(
        self, operation: str, path: Mapping[str, str] | None = None, query: Mapping[str, str] | None = None
    ) -> object:
        """One raw answer of the workspace."""
        with Connection(self.settings) as connection, connection.worker_pool(1) as pool:
            return connection.reader(pool).get(operation, path=path, query=query)

    def send(
        self, operation: str, path: Mapping[str, str] | None = None, body: Mapping[str, object] | None = None
    ) -> object:
        """One raw call, as somebody would make it by hand; the body in the names of the API description."""
        with Connection(self.settings) as connection, connection.worker_pool(1) as pool:
            body = None if body is None else connection.spec.body_to_wire(operation, **body)
            return pool.submit(lambda client: client.call(operation, path=path, body=body)).result()

    def rows(self) -> list[str]:
        """Every row of the workspace as it is stored."""
        with closing(sqlite3.connect(self.settings.workspace.database)) as connection:
            return list(connection.iterdump())

    def fields(self) -> dict[str, dict[str, object]]:
        """The live custom fields by name."""
        answer = json.loads(json.dumps(self.ask("custom-fields.list")))
        return {field["name"]: field for field in answer["customFields"]}


def planned_by(reader: WorkspaceReader, **more: object) -> Plan:
    """The plan of the manifests of its project."""
    return reader.plan(load_manifests(reader.settings), replace(reader.settings.policy, **more))


def sandbox_of(reader: WorkspaceReader) -> Sandbox:
    """The embedded workspace: its log is what it saw, and only a test makes things go wrong there."""
    sandbox = reader.connection._sandbox  # nothing else leads to it
    assert sandbox is not None
    return sandbox


def errors(plan: Plan) -> list[str]:
    """The codes of what keeps a plan from being applied."""
    return [problem.code for problem in plan.all_problems if problem.is_error]


def guard(plan: Plan, name: str) -> GuardResult:
    """How a plan stands to a guard."""
    (found,) = (one for one in plan.guards if one.name == name)
    return found


def told_problems(problems: Iterable[Problem]) -> str:
    """What is reported, in the form of tables of cases; lints go by the clock."""
    return shown(
        replace(one, message=f"{one.severity.value}: {one.message}")
        for one in problems
        if not one.code.startswith("lint/")
    )
