"""A project beside a workspace: commands run in this process on a served one, or its plans over any transport."""

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from laws.sandbox_project import TransportConnection
from waiting import served

from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec
from lmsconf.apply.run_plan import execute
from lmsconf.cli import app, run_command_line
from lmsconf.documents.plan_file import dumps, loads
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.project.settings import Settings, load_settings
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.service import LoggedRequest, Sandbox
from lmsconf.workspace.connection import fill_if_empty
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader


def numbered(section: str, numbers: Iterable[int], line: str) -> str:
    """A section with an entry for each number: `n` in the line, and `m` what a division by three leaves of it."""
    return f"{section}:\n" + "".join(f"  - {line.format(n=n, m=n % 3)}\n" for n in numbers)


class CommandResult(NamedTuple):
    """What a command came to, and what the workspace was asked to change meanwhile."""

    code: int
    out: str
    err: str
    writes: list[LoggedRequest]

    @property
    def told(self) -> str:
        """All that it says."""
        return self.out + self.err

    @property
    def document(self) -> dict[str, Json]:
        """The one JSON document on stdout."""
        found: dict[str, Json] = json.loads(self.out)
        return found


class Screen(io.StringIO):
    """A stream that does something once, as soon as a plan was written to it."""

    def __init__(self, then: Callable[[], object]) -> None:
        super().__init__()
        self.then: Callable[[], object] | None = then

    def write(self, text: str) -> int:
        if "\nPlan: " in text and self.then is not None:
            then, self.then = self.then, None
            then()
        return super().write(text)


@dataclass(frozen=True, slots=True)
class ServedProject:
    """One project and its workspace. `sandbox` is the workspace itself."""

    root: Path
    sandbox: Sandbox
    url: str

    def options(self, text: str = "") -> None:
        """The project file: one workspace, served, and what else it says."""
        said = f"workspaces: {{here: {{url: '{self.url}', token: {{env: LMSCONF_TOKEN}}}}}}\n{text}"
        (self.root / "lmsconf.yaml").write_text(said, encoding="utf-8")

    def write(self, manifests: str) -> None:
        """The only manifest."""
        (self.root / "manifests").mkdir(exist_ok=True)
        (self.root / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")

    def __call__(
        self, *arguments: str, code: int | None = None, meanwhile: Callable[[], object] | None = None
    ) -> CommandResult:
        """Runs one command on the project.

        code: what it has to exit with. meanwhile: done as soon as a plan is shown; `writes` are those after that.
        """
        seen = len(self.sandbox.log)

        def planned() -> None:
            nonlocal seen
            if meanwhile is not None:
                meanwhile()
                seen = len(self.sandbox.log)

        out, err = io.StringIO(), Screen(planned)
        with redirect_stdout(out), redirect_stderr(err):
            ended = run_command_line(app, ["-C", str(self.root), *arguments])
        assert code in (None, ended), out.getvalue() + err.getvalue()
        assert meanwhile is None or err.then is None
        writes = [call for call in self.sandbox.log[seen:] if call.writes]
        return CommandResult(ended, out.getvalue(), err.getvalue(), writes)

    def saved(self, *arguments: str) -> str:
        """The path of a plan file, which is made now."""
        path = str(self.root / "plan.json")
        self("plan", "--out", path, *arguments, code=0)
        return path

    def hand(self, operation: str, path: Mapping[str, str] | None = None, body: Json = None) -> Json:
        """One call as somebody makes it by hand."""
        with Client("http://sandbox", "sandbox", transport=self.sandbox) as client:
            return client.call(operation, path=path, body=body)

    def edited(self, calls: list[list[Any]]) -> None:
        """Calls as somebody makes them by hand: operation, path, body. What one of a field omits stays as it is."""
        for operation, *rest in calls:
            path, body = [*rest, None, None][:2]
            if operation == "custom-fields.replace":
                listed: Any = self.hand("custom-fields.list")
                [live] = [one for one in listed["customFields"] if one["customFieldId"] == path["customFieldId"]]
                body = {key: live[key] for key in ("name", "type", "choices", "description") if key in live} | body
            self.hand(operation, path, body)


@contextmanager
def staged(
    root: Path,
    seed: str,
    patch: pytest.MonkeyPatch,
    options: str = "",
    dialect: Mapping[str, str | int] | None = None,
    on_log: Callable[[LoggedRequest], None] | None = None,
    faults: FaultScript | None = None,
    made: type[Sandbox] = Sandbox,
) -> Iterator[ServedProject]:
    """A project in `root` and its workspace, for as long as the `with` lasts.

    on_log: hears of each request. made: a service with habits of its own.
    """
    for name in ("LMSCONF_URL", "LMSCONF_WORKSPACE", "LMSCONF_PLAN_KEY"):
        patch.delenv(name, raising=False)
    patch.setenv("LMSCONF_TOKEN", "sandbox")
    (root / "seed.yaml").write_text(seed, encoding="utf-8")
    sandbox = fill_if_empty(made(spec=ApiSpec(dialect), on_log=on_log, faults=faults), root / "seed.yaml")
    try:
        with served(sandbox, patch) as server:
            stage = ServedProject(root, sandbox, server.url)
            stage.options(options)
            yield stage
    finally:
        sandbox.close_workspace()


@dataclass
class OtherAnswers(httpx.BaseTransport):
    """A way to a workspace that answers some requests otherwise: `answer` gives None for those that it answers."""

    sandbox: Sandbox
    answer: Callable[[httpx.Request], httpx.Response | None]

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.answer(request) or self.sandbox.handle_request(request)


@dataclass(frozen=True, slots=True)
class LinkedProject:
    """One project, and a workspace that it reaches over a transport of the test's choosing.

    url: that of the workspace in the project file; what a service has accepted may show late, other than in a sandbox.
    """

    root: Path
    sandbox: Sandbox
    url: str

    @property
    def settings(self) -> Settings:
        return load_settings(self.root, None, {"USER": "anna", "LMSCONF_TOKEN": "sandbox"})

    def options(self, text: str) -> None:
        """The project file: a workspace that no command reaches, and what else it says."""
        (self.root / "lmsconf.yaml").write_text(f"workspaces: {{sandbox: {{url: '{self.url}'}}}}\n{text}")

    def write(self, manifests: str) -> None:
        """The only manifest."""
        (self.root / "manifests" / "all.yaml").write_text(manifests, encoding="utf-8")

    def reader(
        self, transport: httpx.BaseTransport | None = None, spec: ApiSpec | None = None, **more: Any
    ) -> WorkspaceReader:
        """What reads and plans over that transport, in words of that specification."""
        link = TransportConnection(transport or self.sandbox, spec or self.sandbox.spec)
        return WorkspaceReader(settings=self.settings, connection=link, **more)

    def plan(self, reader: WorkspaceReader | httpx.BaseTransport | None = None) -> Plan:
        """The plan of the manifest, over a transport, or of a reader that there is."""
        reader = reader if isinstance(reader, WorkspaceReader) else self.reader(reader)
        return reader.plan(load_manifests(reader.settings), reader.settings.policy)

    def apply(
        self, reader: WorkspaceReader | httpx.BaseTransport, manifests: str | None = None, *, from_file: bool = False
    ) -> ApplyReport:
        """The report of an apply of the manifest, or of another one, which is written. from_file: of a plan file."""
        if manifests is not None:
            self.write(manifests)
        reader = reader if isinstance(reader, WorkspaceReader) else self.reader(reader)
        plan = self.plan(reader)
        return execute(reader, loads(dumps(plan)) if from_file else plan, meta={})


@contextmanager
def linked(
    root: Path, seed: str = "", manifests: str = "", options: str = "", url: str = "sandbox:"
) -> Iterator[LinkedProject]:
    """Such a project in `root`, whose workspace is open for as long as the `with` lasts."""
    (root / "manifests").mkdir(parents=True)
    (root / "seed.yaml").write_text(seed, encoding="utf-8")
    project = LinkedProject(root, fill_if_empty(Sandbox(), root / "seed.yaml"), url)
    project.options(options)
    project.write(manifests)
    try:
        yield project
    finally:
        project.sandbox.close_workspace()
