"""Commands that only look send no request that writes, and an apply sends none over what was changed meanwhile."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from waiting import VirtualClock, nobody_waits

import lmsconf
from lmsconf.cli.commands import COMMANDS, app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode, StalePlan
from lmsconf.model.plan import Plan
from lmsconf.workspace.reader import WaitClock

from .served_project import CommandResult, ServedProject, staged
from .test_stale_plans import ALL, DIALECT, MANIFESTS, OPTIONS, SEED, Hand, Screen

ONLY_GROWS = (
    MANIFESTS.partition("absent:")[0]
    .replace(", admin: false", "")
    .replace("  - {email: di@acme.example, custom_archive_date: 2027-01-01T00:00:00Z}\n", "")
)
"""Changes that few requests by id show to be still as planned: none deletes or revokes."""
WHOLE = {"person, admin", "person, archive date", *(what for what in ALL if " to delete" in what)}
"""What no change of these manifests is about."""
ELSEWHERE = {what for what in ALL if " to come, " in what}
"""What somebody does to a resource that a change only refers to."""
LISTED = {*ELSEWHERE, "group, name"}
"""What only a listing shows."""
TOUCHED = sorted({*ALL} - WHOLE - ELSEWHERE)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as stage:
        stage.write(ONLY_GROWS)
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


def test_few_requests_show_that_nobody_did_anything(stage: ServedProject) -> None:
    """No person and no content is listed again before the first call, and the run ends as planned."""
    ran = raced(stage, lambda _: None)
    assert ran.code == 0, ran.err
    before = [one.operation for one in stage.sandbox.log[: stage.sandbox.log.index(ran.writes[0])]]
    assert "users.get" in before
    assert not {"users.list", "content.list"} & {*before}


@pytest.mark.sampled
@pytest.mark.parametrize("what", TOUCHED)
def test_what_is_changed_meanwhile_is_refused(stage: ServedProject, what: str) -> None:
    """Every attribute of everything that the plan touches: exit 3, the resource is named, nothing is sent."""
    address, hand = ALL[what]
    ran = raced(stage, hand)
    assert (ran.code, ran.writes) == (3, []), ran.err
    assert address in ran.err.replace("assignment of Intro to ", "content_target/Intro -> ")


@pytest.mark.parametrize(
    ("what", "absent"),
    [
        ("group to delete, assigned", "groups: [Going]"),
        ("smart group to delete, assigned", "smart_groups: [Going smart]"),
    ],
)
def test_a_deletion_is_compared_with_everything(stage: ServedProject, what: str, absent: str) -> None:
    """Content is assigned to a group that is about to go: it would be deleted, too, and nobody has reviewed that."""
    address, hand = ALL[what]
    stage.write(f"absent: {{{absent}}}")
    ran = raced(stage, hand)
    assert (ran.code, ran.writes) == (3, []), ran.err
    assert address in ran.err.replace("assignment of Other to ", "content_target/Other -> ")


TEAM = "groups: [{name: Team, members: [bo@acme.example, cy@acme.example]}]"
REFERRING = {
    "member": TEAM,
    "group,": TEAM,
    "audience": "content_targets: [{content: Intro, assign_to: [{group: Audience}]}]",
}
"""Manifests whose calls name a resource by its id."""


@pytest.mark.sampled
@pytest.mark.parametrize("what", sorted(LISTED))
def test_a_lost_race_is_reported(stage: ServedProject, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """What has the id that a call names has another name meanwhile: the service or the verification says so."""
    nobody_waits(monkeypatch)
    address, hand = ALL[what]
    stage.write(REFERRING[what.partition(" ")[0]])
    ran = raced(stage, hand)
    assert ran.code in (1, 5, 6), ran.err
    assert address in ran.err.replace("assignment of Intro to ", "content_target/Intro -> ")
    assert [one.operation for one in ran.writes] in (["manual-groups.add-members"], ["content-targets.create"])


@pytest.mark.parametrize(("seconds", "stale"), [(59, False), (61, True)])
def test_what_was_read_is_kept_for_a_minute(
    stage: ServedProject, monkeypatch: pytest.MonkeyPatch, seconds: float, stale: bool
) -> None:
    """While a plan waits for approval an audience gets another name: after a minute that makes the plan stale."""
    clock = VirtualClock()
    monkeypatch.setattr("lmsconf.apply.apply.WaitClock", lambda tell: WaitClock(now=clock.now, tell=tell))
    stage.options(OPTIONS + "settle: 0s\n")
    stage.write(REFERRING["audience"])
    project = lmsconf.open(stage.root)

    def slowly(plan: Plan) -> bool:
        ALL["audience to come, renamed"][1](stage)
        clock.sleep(seconds)
        return True

    plan = project.plan()
    if stale:
        with pytest.raises(StalePlan):
            project.apply(plan, approve=slowly)
    else:
        assert project.apply(plan, approve=slowly).exit == ExitCode.NOT_CONVERGED


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
    ran = planned_stage("plan")
    assert (ran.code, ran.writes) == (1, [])


@pytest.mark.parametrize("arguments", [[], ["--auto-approve", "--expect-digest", "0" * 64]])
def test_an_apply_that_is_stopped_sends_nothing(planned_stage: ServedProject, arguments: Sequence[str]) -> None:
    """Nobody was asked, or another plan was expected: no call is made that writes."""
    ran = planned_stage("apply", *arguments)
    assert ran.code in (3, 64)
    assert ran.writes == []
