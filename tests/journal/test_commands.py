"""`lmsconf apply` with its lock and journal, and `lmsconf runs`, as they are typed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from journals import runs_of
from json_schemas import schema_validator

from journal.journal_project import CALLS, MANIFEST
from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode
from lmsconf.journal.journal_folder import encode_line
from lmsconf.journal.local_lock import hold_lock
from lmsconf.sandbox.serve import Server, serve
from lmsconf.sandbox.service import Sandbox


@pytest.fixture
def served() -> Iterator[tuple[Server, Sandbox]]:
    """A workspace behind a loopback port."""
    service = Sandbox()
    with serve(service) as server:
        yield server, service
    service.close_workspace()


@pytest.fixture
def lmsconf(tmp_path: Path, served: tuple[Server, Sandbox], monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command in a project for a workspace over HTTP and one that is embedded."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "lmsconf.yaml").write_text(
        f'workspaces: {{web: {{url: "{served[0].url}", token: {{env: LMSCONF_K}}}}, box: {{url: "sandbox:box.db"}}}}\n'
        "default_workspace: web\nsettle: 1s\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("LMSCONF_K", "sandbox")
    return lambda *arguments: run_command_line(app, ["-C", str(tmp_path), *arguments])


def crash(root: Path, url: str, began: datetime) -> None:
    """Leaves the journal of a run that was killed with a call in flight."""
    folder = runs_of(root, url)
    folder.mkdir(parents=True)
    said = {"format": "lmsconf.journal/1", "digest": "ab" * 32, "workspace": "web", "url": url, "tool": "0", "meta": {}}
    call = {"call": "c1", "address": "group/Coaches", "operation": "manual-groups.create", "people": []}
    lines = [{"event": "run", "calls": 1, **said}, {"event": "intent", **call}]
    content = b"".join(encode_line({"at": began.isoformat(), **line}) for line in lines)
    (folder / f"{began:%Y%m%dT%H%M%SZ}-abababababab.jsonl").write_bytes(content)


def writes(service: Sandbox) -> int:
    return sum(logged.writes for logged in service.log)


def test_an_apply_is_listed_and_shown(lmsconf: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """After an apply, `runs` lists it, `runs latest` shows its calls, and both are documents of their schema."""
    assert lmsconf("apply", "--auto-approve", "--meta", "commit=9f3c") == ExitCode.OK
    validator = schema_validator("runs")
    capsys.readouterr()
    shown = []
    for arguments in (["runs"], ["runs", "latest"]):
        assert lmsconf(*arguments, "--format", "json") == ExitCode.OK
        document = json.loads(capsys.readouterr().out)
        assert [error.message for error in validator.iter_errors(document)] == []
        shown.append(document["runs"][0])
    listed, one = shown
    assert {**listed, "calls": one["calls"]} == one
    assert (one["summary"]["done"], len(one["calls"]), one["meta"]) == (CALLS, CALLS, {"commit": "9f3c"})
    assert lmsconf("runs") == ExitCode.OK
    assert one["run"] in capsys.readouterr().out


def test_nothing_to_do_leaves_no_journal(lmsconf: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """A plan without calls is no run; nor is a plan that is only made."""
    assert lmsconf("plan") == ExitCode.OK
    assert lmsconf("runs") == ExitCode.OK
    assert capsys.readouterr().out.endswith("No runs recorded.\n")
    for _ in range(2):
        assert lmsconf("apply", "--auto-approve") == ExitCode.OK
    capsys.readouterr()
    lmsconf("runs", "--format", "json")
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 1


@pytest.mark.parametrize(("workspace", "synced"), [("web", True), ("box", False)])
def test_calls_over_a_network_are_synced_to_the_disk(
    lmsconf: Callable[..., int], monkeypatch: pytest.MonkeyPatch, workspace: str, synced: bool
) -> None:
    """Each is on the disk before it is sent; an embedded workspace does not flush its own commits either."""
    begun: set[int] = set()

    def sync(descriptor: int, real: Callable[[int], None] = os.fsync) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").resolve()
        if file.suffix == ".jsonl":
            begun.add(file.read_text(encoding="utf-8").count('"event":"intent"'))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    assert lmsconf("--workspace", workspace, "apply", "--auto-approve", "--parallelism", "1") == ExitCode.OK
    assert begun == (set(range(CALLS + 1)) if synced else set())


def test_runs_of_one_workspace(lmsconf: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    """`--workspace` lists the runs on that workspace only."""
    lmsconf("apply", "--auto-approve")
    lmsconf("--workspace", "box", "apply", "--auto-approve")
    capsys.readouterr()
    lmsconf("--workspace", "box", "runs", "--format", "json")
    assert [one["workspace"]["name"] for one in json.loads(capsys.readouterr().out)["runs"]] == ["box"]


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_held_lock_stops_apply(
    lmsconf: Callable[..., int], format: str, served: tuple[Server, Sandbox], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """While another run is applying, apply sends nothing and exits 1; plan does not care."""
    with hold_lock(tmp_path, "web"):
        assert lmsconf("apply", "--auto-approve", "--format", format) == ExitCode.ERROR
        assert served[1].log == []
        assert "another run is applying to the workspace web: process " in capsys.readouterr().err
        assert lmsconf("plan") == ExitCode.OK
        assert lmsconf("--workspace", "box", "apply", "--auto-approve") == ExitCode.OK
    assert lmsconf("apply", "--auto-approve") == ExitCode.OK


@pytest.mark.parametrize("format", ["text", "json"])
def test_no_journal_stops_apply(
    lmsconf: Callable[..., int], format: str, served: tuple[Server, Sandbox], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Where the run cannot be written down, nothing is sent; as JSON, the report lists every call as not attempted."""
    (tmp_path / ".lmsconf").mkdir()
    (tmp_path / ".lmsconf" / "runs").write_text("in the way", encoding="utf-8")
    assert lmsconf("apply", "--auto-approve", "--format", format) == ExitCode.ERROR
    assert writes(served[1]) == 0
    shown = capsys.readouterr()
    assert "runs cannot be written" in shown.err
    if format == "json":
        assert json.loads(shown.out)["summary"]["not_attempted"] == CALLS


def test_a_rerun_waits_for_what_was_in_flight(
    lmsconf: Callable[..., int],
    served: tuple[Server, Sandbox],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first request goes out only when what was in flight a moment ago has settled; the next run need not wait."""
    began = datetime.now(UTC)
    crash(tmp_path, served[0].url, began)
    assert lmsconf("apply", "--auto-approve") == ExitCode.OK
    assert (datetime.now(UTC) - began).total_seconds() >= 1
    assert "ended with 1 call in flight. Waiting 1 s" in capsys.readouterr().err
    assert lmsconf("apply", "--auto-approve") == ExitCode.OK
    assert "cut short" not in capsys.readouterr().err


def test_the_embedded_workspace_needs_no_wait(
    lmsconf: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What another process was doing with the embedded workspace has ended with that process."""
    crash(tmp_path, "sandbox:box.db", datetime.now(UTC))
    assert lmsconf("--workspace", "box", "apply", "--auto-approve") == ExitCode.OK
    assert "cut short" not in capsys.readouterr().err
