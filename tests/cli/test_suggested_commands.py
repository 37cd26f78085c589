"""Lines to paste do what they say: in this project, on this workspace, to what was chosen."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from texts import text_of

from lmsconf.cli import app, run_command_line
from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled(day=8)

PROJECT = text_of(__file__, "suggested_commands_project.yaml")
SEED = text_of(__file__, "suggested_commands_seed.yaml")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "my project"
    (root / "manifests").mkdir(parents=True)
    (root / "lmsconf.yaml").write_text(PROJECT)
    (root / "seed.yaml").write_text(SEED)
    (root / "manifests" / "all.yaml").write_text("groups: [{name: A, members: []}, {name: B, members: []}]\n")
    return root


def line(text: str, begins: str) -> list[str]:
    """The first line that begins so, as a shell takes it apart, without the program."""
    return shlex.split(next(one.strip() for one in text.splitlines() if one.strip().startswith(begins)))[1:]


@pytest.mark.parametrize(("chosen", "left"), [([], 0), (["--only", "group/A"], 1), (["--except", "group/B"], 1)])
def test_the_line_that_allows_a_guard(
    root: Path, capsys: pytest.CaptureFixture[str], chosen: list[str], left: int
) -> None:
    """It names project, workspace and choice, and so it applies the plan that was shown, and nothing else."""
    at = ["-C", str(root), "--workspace", "staging"]
    assert run_command_line(app, [*at, "plan", *chosen]) == ExitCode.OK
    pasted = line(capsys.readouterr().out, "lmsconf ")
    assert pasted[:5] == [*at, "apply"]
    assert run_command_line(app, [*pasted, "--auto-approve"]) == ExitCode.OK
    assert (
        run_command_line(app, ["-C", str(root), "--workspace", "staging", "plan", *chosen, "--detailed-exitcode"])
        == ExitCode.OK
    )
    assert run_command_line(app, ["-C", str(root), "plan", *chosen, "--detailed-exitcode"]) == ExitCode.CHANGES
    capsys.readouterr()
    run_command_line(app, [*at, "plan", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["summary"]["update"] == left


def test_the_line_of_a_plan_file_names_the_file(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a guard stops there is allowed for that file."""
    at, file = ["-C", str(root)], str(root / "plan.json")
    assert run_command_line(app, [*at, "plan", "--out", file]) == ExitCode.OK
    capsys.readouterr()
    assert run_command_line(app, [*at, "apply", file]) == ExitCode.BLOCKED
    told = capsys.readouterr().err
    pasted = line(told[told.index("lmsconf ") :], "lmsconf ")
    assert pasted == [*at, "apply", file, "--allow", "removals=2"]
    assert run_command_line(app, pasted) == ExitCode.OK


def test_the_lines_of_a_drift_report(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both ways out are for the workspace that was looked at."""
    at = ["-C", str(root), "--workspace", "staging"]
    assert run_command_line(app, [*at, "drift"]) == ExitCode.CHANGES
    told = capsys.readouterr().out
    words = shlex.join(["lmsconf", *at])
    assert f"to revert: {words} apply --only group/A\n" in told
    assert f"to keep: {words} drift --accept group/A\n" in told


def test_what_goes_along_cannot_be_left_out(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A group takes its assignments with it; who leaves one of those out is told to leave the group out too."""
    (root / "manifests" / "all.yaml").write_text("absent: {groups: [A]}\n")
    at = ["-C", str(root)]
    assert run_command_line(app, [*at, "plan", "--except", "content_target/*"]) == ExitCode.ERROR
    told = capsys.readouterr().err
    assert (
        "group/A: content_target/K -> group/A is deleted with it, but --except excludes that [select/goes-along]"
        in told
    )
    assert "Exclude both: --except group/A." in told
    assert run_command_line(app, [*at, "plan", "--except", "content_target/*", "--except", "group/A"]) == ExitCode.OK
    assert "No changes." in capsys.readouterr().out


@pytest.mark.parametrize("address", ["group/Book club", "group/UI scratch", "content_target/K -> everyone", "group/?"])
@pytest.mark.parametrize("option", ["--only", "--except"])
def test_what_is_live_can_be_named(root: Path, capsys: pytest.CaptureFixture[str], option: str, address: str) -> None:
    """An address that no manifest declares is known where it is live; only one that is nowhere is an error."""
    (root / "manifests" / "all.yaml").write_text("custom_fields: [{name: F, type: TEXT}]\n")
    assert run_command_line(app, ["-C", str(root), "plan", option, address]) == ExitCode.OK
    assert run_command_line(app, ["-C", str(root), "plan", option, f"{address} 2"]) == ExitCode.ERROR
    assert "no resource matches" in capsys.readouterr().err


def test_the_line_that_is_reviewed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A comment shows the line of the project file, too: with reason and date it allows the same."""
    at = ["-C", str(root), "plan", "--format", "markdown"]
    assert run_command_line(app, at) == ExitCode.OK
    comment = capsys.readouterr().out
    assert "Apply would stop here" in comment
    reviewed = re.search(r"```yaml\n(allow: .*)\n```", comment)
    assert reviewed is not None
    assert reviewed[1] == "allow: [{removals: 2, reason: …, until: YYYY-MM-DD}]"
    (root / "lmsconf.yaml").write_text(f"{PROJECT}{reviewed[1]}\n")
    assert run_command_line(app, at) == ExitCode.ERROR
    assert 'allow.until cannot be "YYYY-MM-DD"' in capsys.readouterr().err
    (root / "lmsconf.yaml").write_text(f"{PROJECT}{reviewed[1].replace('YYYY-MM-DD', '9999-12-31')}\n")
    assert run_command_line(app, at) == ExitCode.OK
    comment = capsys.readouterr().out
    assert "Apply would stop here" not in comment
    assert "allow: [" not in comment


@pytest.mark.parametrize(
    ("typed", "audience"),
    [
        ("assignment of K to group/A", "group/A"),
        ("assignment of K to everyone", "everyone"),
        ("content_target/K -> group/A", "group/A"),
        ("groups/A", "group/A"),
    ],
)
def test_the_audience_of_an_assignment_as_a_plan_prints_it(
    root: Path, capsys: pytest.CaptureFixture[str], typed: str, audience: str
) -> None:
    """Pasted after `lmsconf audience`, it shows who is in the audience that it names."""
    assert run_command_line(app, ["-C", str(root), "audience", typed, "--format", "json"]) == ExitCode.OK
    assert json.loads(capsys.readouterr().out)["address"] == audience


# Every sentence by which a plan, a run or a report says how workspace and manifests stand, with what it rests on.


# The line that allows what a guard stops leads on when it is pasted, and never in a circle.


GUARDED_PROJECT = """
workspaces: {production: {url: 'sandbox:production.db', seed: seed.yaml}}
guards: {removals: {count: 0}, deletes: {count: 0}}
"""
GUARDED_SEED = """
people: [{email: anna@acme.example, answers: {Country: SE}}]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, "NO"]}]
groups: [{name: A, members: [anna@acme.example]}, {name: B}]
smart_groups: [{name: Norwegians, conditions: [{field: Country, choices: ["NO"]}]}]
"""
MANIFEST = """
custom_fields: [{name: Country, choices: ["NO"]}]
groups: [{name: A, members: []}]
absent: {groups: [B]}
"""


@pytest.fixture
def guarded_root(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(GUARDED_PROJECT)
    (tmp_path / "seed.yaml").write_text(GUARDED_SEED)
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFEST)
    return tmp_path


def offered(text: str) -> list[str]:
    """The line that is offered first, as a shell takes it apart, without the program."""
    line = next(one for one in text.splitlines() if " apply " in one and "--allow" in one)
    return shlex.split(line[line.index("lmsconf ") :])[1:]


@pytest.mark.parametrize("saved", [False, True], ids=["manifests", "plan-file"])
def test_pasting_the_line_leads_on(guarded_root: Path, capsys: pytest.CaptureFixture[str], saved: bool) -> None:
    """Whatever of it was allowed before, the line holds all that is needed: it is never stopped again."""
    command = [
        "-C",
        str(guarded_root),
        "apply",
        str(guarded_root / "plan.json") if saved else "--auto-approve",
    ]
    run_command_line(app, ["-C", str(guarded_root), "plan", "--out", str(guarded_root / "plan.json")])
    capsys.readouterr()
    assert run_command_line(app, command) == ExitCode.BLOCKED
    whole = offered(capsys.readouterr().err)
    consents = whole[whole.index("--allow") :]
    assert consents[0::2] == ["--allow"] * 4
    for first in range(0, len(consents), 2):
        assert run_command_line(app, [*command, *consents[first : first + 2]]) == ExitCode.BLOCKED
        assert offered(capsys.readouterr().err) == whole
    assert run_command_line(app, [*whole, *([] if saved else ["--auto-approve"])]) not in (
        ExitCode.BLOCKED,
        ExitCode.USAGE,
    )


def test_what_the_project_allows_is_not_repeated(guarded_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A consent of the project file holds for every command, so no line carries it."""
    with (guarded_root / "lmsconf.yaml").open("a") as project:
        project.write("allow: [{deletes: 1, until: 2099-01-01, reason: B was a trial}]\n")
    assert run_command_line(app, ["-C", str(guarded_root), "apply", "--auto-approve"]) == ExitCode.BLOCKED
    whole = offered(capsys.readouterr().err)
    assert "deletes=1" not in whole
    assert run_command_line(app, [*whole, "--auto-approve"]) not in (ExitCode.BLOCKED, ExitCode.USAGE)
