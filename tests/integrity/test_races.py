"""Commands that only look send no request that writes, and an apply sends none over what was changed meanwhile."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import lmsconf
from lmsconf.cli import run_command_line
from lmsconf.cli.command import COMMANDS, app
from lmsconf.errors import ExitCode, StalePlan
from lmsconf.model.plan import Plan
from lmsconf.sandbox.service import LoggedRequest

from .served_project import CommandResult, ServedProject, staged
from .test_stale_plans import ALL, DIALECT, MANIFESTS, OPTIONS, SEED, Hand, Screen

pytestmark = pytest.mark.sampled(day=8)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as stage:
        stage.write(MANIFESTS)
        yield stage


def raced(stage: ServedProject, hand: Hand, *words: str) -> CommandResult:
    """Applies, and does something by hand as soon as the plan is shown. Gives what was written after that."""

    def by_hand() -> None:
        hand(stage)
        stage.sandbox.log.clear()

    screen = Screen(by_hand)
    with redirect_stderr(screen), redirect_stdout(io.StringIO()):
        code = run_command_line(app, ["-C", str(stage.root), "apply", "--auto-approve", *words])
    assert screen.then is None, screen.getvalue()
    return CommandResult(code, "", screen.getvalue(), [one for one in stage.sandbox.log if one.writes])


@pytest.mark.sampled
@pytest.mark.parametrize("what", ALL)
def test_what_is_changed_meanwhile_is_refused(stage: ServedProject, what: str) -> None:
    """Every attribute of everything that the plan touches: exit 3, the resource is named, nothing is sent."""
    address, hand = ALL[what]
    ran = raced(stage, hand)
    assert (ran.code, ran.writes) == (3, []), ran.err
    assert address in ran.err.replace("assignment of Intro to ", "content_target/Intro -> ")


def test_the_workspace_is_compared_after_the_approval(stage: ServedProject) -> None:
    """While a plan waits for approval an audience gets another name: that makes the plan stale."""
    project = lmsconf.open(stage.root)

    def slowly(_: Plan) -> bool:
        ALL["audience to come, renamed"][1](stage)
        return True

    with pytest.raises(StalePlan):
        project.apply(project.plan(), approve=slowly)
    assert not any(one.writes for one in stage.sandbox.log if one.operation != "manual-groups.rename")


def test_a_saved_plan_is_compared_again_once_it_has_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another machine changes while a run waits for its lock makes a saved plan stale: only the lock is sent."""
    hands = [ALL["audience to come, renamed"][1]]

    def change_meanwhile(seen: LoggedRequest) -> None:
        if seen.operation == "manual-groups.create" and hands:
            hands.pop()(stage)

    options = f"{OPTIONS}lock: {{lease: 10m}}\n"
    with staged(tmp_path, SEED, monkeypatch, options, DIALECT, on_log=change_meanwhile) as stage:
        stage.write(MANIFESTS)
        assert stage("plan", "--out", str(tmp_path / "plan.json")).code == 0
        ran = stage("apply", str(tmp_path / "plan.json"))
        assert (ran.code, hands) == (ExitCode.STALE, []), ran.err
        assert [one.operation for one in ran.writes if one.operation != "manual-groups.rename"] == [
            "manual-groups.create",
            "manual-groups.delete",
        ]


# Commands that only look send no request that writes: what the workspace saw is the proof.


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
def planned_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A project with everything to do, its snapshot and its plan; only what no snapshot holds is left out."""
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as planned_stage:
        planned_stage.write(MANIFESTS.replace(" language: en, applications: [learn, create],", ""))
        assert planned_stage("snapshot", str(tmp_path / "snapshot.json")).code == 0
        assert planned_stage("plan", "--out", str(tmp_path / "plan.json")).code == 0
        yield planned_stage


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
def test_it_sends_nothing_that_writes(planned_stage: ServedProject, command: str, arguments: Sequence[str]) -> None:
    """With everything to create, change and delete, and a plan at hand: nothing is sent but reads that go well."""
    seen = len(planned_stage.sandbox.log)
    ran = planned_stage(command, *(one.format(root=planned_stage.root) for one in arguments))
    assert ran.code in (0, 2), ran.err
    assert ran.writes == []
    reads = [
        call for call in planned_stage.sandbox.log[seen:] if call.method == "GET" or call.path == "/analyse/results"
    ]
    assert reads == planned_stage.sandbox.log[seen:]
    assert all(call.status == 200 for call in reads)


@pytest.mark.parametrize("options", ["ownership: {groups: all, smart_groups: all, custom_fields: all}\n", ""])
def test_a_plan_of_deletions_sends_nothing_either(planned_stage: ServedProject, options: str) -> None:
    """Nor where guards stop, or where the manifests have errors."""
    planned_stage.options(options)
    planned_stage.write("groups: [{name: Nothing else}]")
    assert planned_stage("plan", "--detailed-exitcode").writes == []
    planned_stage.write("groups: [{name: Team, members: [nobody@acme.example]}]")
    assert planned_stage("plan", code=1).writes == []


@pytest.mark.parametrize("arguments", [[], ["--auto-approve", "--expect-digest", "0" * 64]])
def test_an_apply_that_is_stopped_sends_nothing(planned_stage: ServedProject, arguments: Sequence[str]) -> None:
    """Nobody was asked, or another plan was expected: no call is made that writes."""
    ran = planned_stage("apply", *arguments)
    assert ran.code in (3, 64)
    assert ran.writes == []
