"""A project beside a served workspace: commands run in this process, and the workspace's log tells what they sent."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from waiting import served

from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec
from lmsconf.cli import app, run_command_line
from lmsconf.model.canonical_json import Json
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.service import LoggedRequest, Sandbox
from lmsconf.workspace.connection import fill_if_empty


class CommandResult(NamedTuple):
    """What a command came to, and what the workspace was asked to change meanwhile."""

    code: int
    out: str
    err: str
    writes: list[LoggedRequest]

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

    def __call__(self, *arguments: str, code: int | None = None) -> CommandResult:
        """Runs one command on the project. code: what it has to exit with."""
        seen = len(self.sandbox.log)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            ended = run_command_line(app, ["-C", str(self.root), *arguments])
        assert code in (None, ended), out.getvalue() + err.getvalue()
        writes = [call for call in self.sandbox.log[seen:] if call.writes]
        return CommandResult(ended, out.getvalue(), err.getvalue(), writes)

    def hand(self, operation: str, path: Mapping[str, str] | None = None, body: Json = None) -> Json:
        """One call as somebody makes it by hand."""
        with Client("http://sandbox", "sandbox", transport=self.sandbox) as client:
            return client.call(operation, path=path, body=body)


@contextmanager
def staged(
    root: Path,
    seed: str,
    patch: pytest.MonkeyPatch,
    options: str = "",
    dialect: Mapping[str, str | int] | None = None,
    on_log: Callable[[LoggedRequest], None] | None = None,
    faults: FaultScript | None = None,
) -> Iterator[ServedProject]:
    """A project in `root` and its workspace, for as long as the `with` lasts. on_log: hears of each request."""
    for name in ("LMSCONF_URL", "LMSCONF_WORKSPACE", "LMSCONF_PLAN_KEY"):
        patch.delenv(name, raising=False)
    patch.setenv("LMSCONF_TOKEN", "sandbox")
    (root / "seed.yaml").write_text(seed, encoding="utf-8")
    sandbox = fill_if_empty(Sandbox(spec=ApiSpec(dialect), on_log=on_log, faults=faults), root / "seed.yaml")
    try:
        with served(sandbox, patch) as server:
            stage = ServedProject(root, sandbox, server.url)
            stage.options(options)
            yield stage
    finally:
        sandbox.close_workspace()
