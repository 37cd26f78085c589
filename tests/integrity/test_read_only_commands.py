"""Commands that only look send no request that writes: what the workspace saw is the proof."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from lmsconf.cli import COMMANDS

from .served_project import ServedProject, staged
from .test_stale_plans import DIALECT, MANIFESTS, OPTIONS, SEED

READING: Mapping[str, Sequence[Sequence[str]]] = {
    "validate": [[], ["--format", "json"]],
    "plan": [
        [],
        ["--format", "json"],
        ["--detailed-exitcode"],
        ["--events", "{root}/events.jsonl"],
        ["--additive"],
        ["--only", "group/*"],
        ["--except", "group/*"],
        ["--out", "{root}/plan.json"],
        ["--base", "{root}/manifests", "--trust-project=url,token,dialect"],
        ["--snapshot", "{root}/snapshot.json", "--only", "group/*"],
    ],
    "show": [["{root}/plan.json"], ["{root}/plan.json", "--format", "json"], ["{root}/snapshot.json"]],
    "runs": [[]],
    "drift": [[], ["--format", "json"], ["--unmanaged"]],
    "export": [["{root}/exported"], ["--into"], ["{root}/exported", "--kind", "users"]],
    "snapshot": [["{root}/snapshot.json"], ["{root}/snapshot.json", "--redact"]],
    "doctor": [[], ["--format", "json"]],
    "fmt": [[], ["--check"], ["--diff"]],
    "graph": [[], ["--format", "dot"]],
    "explain": [["groups"], ["smart_groups.conditions"]],
    "init": [["{root}/new"]],
    "help": [[], ["effects"]],
    "access": [["bo@acme.example"]],
    "audience": [["group/Team"]],
    "test": [[], ["--live"]],
    "completion": [["bash"]],
    "history": [["group/Team"]],
}
"""Commands that change nothing in a workspace, each with ways to run it."""
WRITING = frozenset({"apply", "api", "sandbox", "unlock", "fleet"})
"""Commands that are there to change something, or have commands that do: they are no business of this test."""
OFFLINE = frozenset({"evidence"})
"""Commands that have no connection."""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A project with everything to do, its snapshot and its plan; only what no snapshot holds is left out."""
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as stage:
        stage.write(MANIFESTS.replace(" language: en, applications: [learn, create],", ""))
        assert stage("snapshot", str(tmp_path / "snapshot.json")).code == 0
        assert stage("plan", "--out", str(tmp_path / "plan.json")).code == 0
        yield stage


def test_every_command_is_said_to_read_or_to_write() -> None:
    """A new command must be put into one of the two lists."""
    assert COMMANDS.keys() <= READING.keys() | WRITING | OFFLINE
    assert not READING.keys() & WRITING


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "arguments"),
    [(command, arguments) for command, ways in READING.items() if command in COMMANDS for arguments in ways],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_it_sends_nothing_that_writes(stage: ServedProject, command: str, arguments: Sequence[str]) -> None:
    """With everything to create, change and delete, and a plan at hand: nothing is sent but reads that go well."""
    seen = len(stage.sandbox.log)
    ran = stage(command, *(one.format(root=stage.root) for one in arguments))
    assert ran.code in (0, 2), ran.err
    assert ran.writes == []
    reads = [call for call in stage.sandbox.log[seen:] if call.method == "GET" or call.path == "/analyse/results"]
    assert reads == stage.sandbox.log[seen:]
    assert all(call.status == 200 for call in reads)


@pytest.mark.parametrize("options", ["ownership: {groups: all, smart_groups: all, custom_fields: all}\n", ""])
def test_a_plan_of_deletions_sends_nothing_either(stage: ServedProject, options: str) -> None:
    """Nor where guards stop, or where the manifests have errors."""
    stage.options(options)
    stage.write("groups: [{name: Nothing else}]")
    assert stage("plan", "--detailed-exitcode").writes == []
    stage.write("groups: [{name: Team, members: [nobody@acme.example]}]")
    ran = stage("plan")
    assert (ran.code, ran.writes) == (1, [])


@pytest.mark.parametrize("arguments", [[], ["--auto-approve", "--expect-digest", "0" * 64]])
def test_an_apply_that_is_stopped_sends_nothing(stage: ServedProject, arguments: Sequence[str]) -> None:
    """Nobody was asked, or another plan was expected: no call is made that writes."""
    ran = stage("apply", *arguments)
    assert ran.code in (3, 64)
    assert ran.writes == []
