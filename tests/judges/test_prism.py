"""Client and sandbox with Prism between them: no request and no answer is other than schemas/openapi.json has it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import httpx
import pytest
from api.test_every_operation import CONTENT, DEFAULT, OTHER, RecordingClient
from api.test_every_operation import test_every_operation_in_one_life as whole_life
from texts import text_of

from lmsconf.api import Service
from lmsconf.api.spec import ApiSpec
from lmsconf.cli import app, run_command_line
from lmsconf.errors import ExitCode
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty
from lmsconf.workspace.fill_sandbox import fill_workspace

pytestmark = pytest.mark.slow
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
PEOPLE = text_of(__file__, "prism_people.yaml")
"""What the examples leave out: people, for the quickstart's workspace."""


def lived(log: Path, dialect: Mapping[str, str | int], *options: str) -> tuple[list[str], int, int]:
    """The client's whole journey in a dialect: Prism's violations, the requests it saw, and those that arrived."""
    spec = ApiSpec(dialect)
    sandbox = Sandbox(spec=spec)
    with sandbox.store.write_transaction() as repository:
        fill_workspace(repository, {"content": CONTENT}, source="here", spec=spec)
    with judged(sandbox, log, *options) as prism, Service(RecordingClient(spec, prism.url)) as service:
        whole_life(service)
        found = prism.findings()
    return found.violations, found.requests, len(sandbox.log)


@pytest.mark.parametrize("options", [(), ("--errors",)], ids=["all are told", "the first is refused"])
def test_all_operations_are_as_described(options: tuple[str, ...], tmp_path: Path) -> None:
    """The end-to-end journey through all 60 operations has no violation, in any of its requests and answers."""
    violations, seen, arrived = lived(tmp_path / "log", DEFAULT, *options)
    assert violations == []
    assert seen == arrived > 60


@pytest.mark.parametrize("name", ["acme", "quickstart"])
def test_plan_and_apply_are_as_described(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """An example is planned, applied, and planned empty without a violation."""
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns("*.db*"))
    if name == "quickstart":
        (folder / "manifests" / "people.yaml").write_text(PEOPLE, encoding="utf-8")
        with (folder / "lmsconf.yaml").open("a", encoding="utf-8") as options:
            options.write("\npeople: {create: true}\n")
    sandbox = fill_if_empty(Sandbox(), folder / "workspace.yaml")
    with judged(sandbox, tmp_path / "log") as prism:
        monkeypatch.setenv("LMSCONF_URL", prism.url)
        monkeypatch.setenv("LMSCONF_TOKEN", "sandbox")
        monkeypatch.delenv("LMSCONF_WORKSPACE", raising=False)
        allowed = ["--allow", "people=396", "--allow", "mandatory=396"] if name == "acme" else []
        for command, code in (
            (["plan", "--detailed-exitcode"], ExitCode.CHANGES),
            (["apply", "--auto-approve", *allowed], ExitCode.OK),
            (["plan", "--detailed-exitcode"], ExitCode.OK),
        ):
            assert run_command_line(app, ["-C", str(folder), *command]) == code, capfd.readouterr()
        found = prism.findings()
    assert found.violations == []
    assert found.requests == len(sandbox.log)
    assert {call.operation for call in sandbox.log if call.writes} > {"custom-fields.create", "content-targets.create"}


def test_other_names_are_violations(tmp_path: Path) -> None:
    """Prism sees through a client and a sandbox that agree with each other and not with the description."""
    violations, seen, arrived = lived(tmp_path / "log", OTHER)
    assert seen == arrived
    told = "\n".join(violations)
    for key in ("manual-groups.rename", "manual-groups.add-members", "users.search", "users.create"):
        names = [one for one in OTHER if one.startswith(f"{key}.")]
        assert any(str(OTHER[one]) in told for one in names), key


# Prism, a validating proxy: it stands between a client and a sandbox and holds both against schemas/openapi.json.


DESCRIPTION = Path(__file__).parent.parent.parent / "schemas" / "openapi.json"
MISSING = "no Prism: `npm install -g @stoplight/prism-cli@5.14.2`, or name its program in LMSCONF_PRISM"
CREDENTIAL = {"authorization": "Bearer sandbox"}
PATIENCE = 60.0
"""Seconds for Prism to write a line: a machine with much to do is slow, not broken."""

_LISTENING = "Prism is listening on "
_LINE = re.compile(r"\[[^]]+\] \S +\[(?P<part>[A-Z ]+)\](?: [a-z]+ /\S*)? +\S +(?P<level>[a-z]+) +(?P<text>.*)")


class Findings(NamedTuple):
    """How many requests Prism saw, and in its words what it has against them and their answers.

    Prism does not say whose violation it is; before each stands the answer that came last, which tells where calls go
    one by one.
    """

    requests: int
    violations: list[str]


class Prism(NamedTuple):
    """A proxy that listens at `url` and writes down what it sees."""

    url: str
    log: Path

    def findings(self) -> Findings:
        """Everything until now. Lines are written a moment late; one more request shows that all are there.

        A line that is not plain information speaks of a violation.
        """
        mark = f"filter=until-{token_hex(8)}"
        httpx.get(f"{self.url}/smart-groups?{mark}", headers=CREDENTIAL)
        requests, violations, answered = 0, [], "before any answer"
        for line in _awaited(self.log, mark).splitlines():
            known = _LINE.fullmatch(line)
            if known is None or known["level"] not in ("awaiting", "start", "info"):
                violations.append(f"{answered}: {known['text'] if known else line}")
            elif known["part"] == "HTTP SERVER":
                requests += known["text"] == "Request received"
            elif known["text"].startswith("The upstream call"):
                answered = known["text"]
        return Findings(requests, violations)


@contextmanager
def judged(sandbox: Sandbox, log: Path, *options: str) -> Iterator[Prism]:
    """That sandbox behind a port until it is closed, and Prism before it; skips the test where there is no Prism.

    With the option `--errors` Prism refuses what violates, and keeps the reason from its log. Without, it lets
    everything pass, so that one run shows every violation.
    """
    program = os.environ.get("LMSCONF_PRISM") or shutil.which("prism")
    if not program:
        pytest.skip(MISSING)
    with serve(sandbox) as server, log.open("wb") as out:
        command = [program, "proxy", str(DESCRIPTION), server.url, "--host", "127.0.0.1", "--port", "0", *options]
        with subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | {"NO_COLOR": "1"}) as process:
            try:
                started = _awaited(log, _LISTENING, process)
                yield Prism(started.rpartition(_LISTENING)[2].strip(), log)
            finally:
                process.terminate()
                sandbox.close_workspace()


def _awaited(log: Path, words: str, process: subprocess.Popen[bytes] | None = None) -> str:
    """The lines of the log down to the one with those words, once it is there."""
    until = time.monotonic() + PATIENCE
    while True:
        text = log.read_text(encoding="utf-8", errors="replace")
        before, found, after = text.partition(words)
        if found and "\n" in after:
            return before + found + after.partition("\n")[0]
        assert process is None or process.poll() is None, f"Prism has ended:\n{text}"
        assert time.monotonic() < until, f"Prism has not said {words!r}:\n{text[-2000:]}"
        time.sleep(0.02)
