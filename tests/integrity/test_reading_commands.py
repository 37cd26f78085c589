"""Commands that only look send no request that writes: what the workspace saw is the proof."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from lmsconf.cli.command import COMMANDS

from .served_project import ServedProject, staged
from .test_stale_plans import DIALECT, MANIFESTS, OPTIONS, SEED

pytestmark = pytest.mark.sampled(day=8)

READING: Mapping[str, str] = {
    "validate": "| --format json",
    "plan": "| --format json | --detailed-exitcode | --events {root}/events.jsonl | --additive | --only group/* |"
    "--except group/* | --out {root}/plan.json | --base {root}/manifests --trust-project=url,token,dialect |"
    "--snapshot {root}/snapshot.json --only group/*",
    "show": "{root}/plan.json | {root}/plan.json --format json | {root}/snapshot.json",
    "runs": "",
    "drift": "| --format json | --unmanaged",
    "export": "{root}/exported | --into | {root}/exported --kind users",
    "snapshot": "{root}/snapshot.json | {root}/snapshot.json --redact",
    "doctor": "| --format json",
    "fmt": "| --check | --diff",
    "graph": "| --format dot",
    "explain": "groups | smart_groups.conditions",
    "init": "{root}/new",
    "help": "| effects",
    "access": "bo@acme.example",
    "audience": "group/Team",
    "test": "| --live",
    "completion": "bash",
    "history": "group/Team",
}
"""Commands that change nothing in a workspace, each with ways to run it, between strokes."""
WRITING = frozenset({"apply", "api", "sandbox", "unlock", "fleet"})
"""Commands that are there to change something, or have commands that do: they are no business of this test."""
OFFLINE = frozenset({"evidence"})
"""Commands that have no connection."""


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A project with everything to do, its snapshot and its plan; only what no snapshot holds is left out."""
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as stage:
        stage.write(MANIFESTS.replace(" language: en, applications: [learn, create],", ""))
        stage("snapshot", str(tmp_path / "snapshot.json"), code=0)
        stage.saved()
        yield stage


def test_every_command_is_said_to_read_or_to_write() -> None:
    """A new command must be put into one of the lists."""
    assert COMMANDS.keys() <= READING.keys() | WRITING | OFFLINE
    assert not READING.keys() & WRITING


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    "words", [f"{name} {way}".strip() for name, ways in READING.items() if name in COMMANDS for way in ways.split("|")]
)
def test_it_sends_nothing_that_writes(stage: ServedProject, words: str) -> None:
    """With everything to create, change and delete, and a plan at hand: nothing is sent but reads that go well."""
    seen = len(stage.sandbox.log)
    ran = stage(*words.format(root=stage.root).split())
    assert ran.code in (0, 2), ran.err
    assert ran.writes == []
    calls = stage.sandbox.log[seen:]
    assert [call for call in calls if call.method != "GET" and call.path != "/analyse/results"] == []
    assert all(call.status == 200 for call in calls)


@pytest.mark.parametrize("options", ["ownership: {groups: all, smart_groups: all, custom_fields: all}\n", ""])
def test_a_plan_of_deletions_sends_nothing_either(stage: ServedProject, options: str) -> None:
    """Nor where guards stop, or where the manifests have errors."""
    stage.options(options)
    stage.write("groups: [{name: Nothing else}]")
    assert stage("plan", "--detailed-exitcode").writes == []
    stage.write("groups: [{name: Team, members: [nobody@acme.example]}]")
    assert stage("plan", code=1).writes == []


@pytest.mark.parametrize(("words", "code"), [("", 64), (f"--auto-approve --expect-digest {'0' * 64}", 3)])
def test_an_apply_that_is_stopped_sends_nothing(stage: ServedProject, words: str, code: int) -> None:
    """Nobody was asked, or another plan was expected: no call is made that writes."""
    assert stage("apply", *words.split(), code=code).writes == []
