"""Long output on a terminal goes through a pager, as git's does; exit codes are those of the command."""

import json
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from cli.served import quickstart
from flow.project import Project
from flow.shell import lmsconf, run
from on_terminal import at_terminal
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled(day=8, daily=False)

SEEN = "cat > seen.txt"
TERM = {"TERM": "xterm", "NO_COLOR": ""}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The quickstart: its plan has more lines than 24."""
    root = quickstart(tmp_path_factory.mktemp("pager"))
    lmsconf(root, "plan", "--out", "plan.json", "--format", "json", "--output", os.devnull, code=ExitCode.OK)
    return root


def paged(
    project: Path, *words: str, pager: str = SEEN, env: Mapping[str, str] | None = None, **options: Any
) -> tuple[int, str, str | None]:
    """A command at a terminal: its exit code, the screen, and what its pager wrote to seen.txt; None if nothing."""
    file = project / "seen.txt"
    file.unlink(missing_ok=True)
    ran, shown = at_terminal(project, *words, env={**TERM, "PAGER": pager, **(env or {})}, **options)
    return ran.code, shown, file.read_text(encoding="utf-8") if file.exists() else None


@listed_cases("words")
def test_long_output_is_paged(project: Path, words: str) -> None:
    """The pager gets all of it, and the terminal nothing else."""
    usual = lmsconf(project, *words.split(), env={"COLUMNS": "200"})
    at = {"columns": 200, "rows": 5, "streams": ("stdin", "stdout")}
    code, shown, text = paged(project, *words.split(), env={"NO_COLOR": "1"}, **at)
    assert (code, shown) == (usual.code, "")
    assert text is not None
    assert text.splitlines()[-1] == usual.out.splitlines()[-1]


def test_which_pager_runs(project: Path) -> None:
    """LMSCONF_PAGER before PAGER; LESS is as git sets it, unless the user did; no secret variable goes on."""
    held = dict.fromkeys(("LMSCONF_TOKEN", "LMSCONF_PLAN_KEY", "VAULT_KEY"), "secret-of-mine")
    other = {"LMSCONF_PAGER": "env > seen.txt; cat > /dev/null", "LMSCONF_TOKEN_ENVS": "VAULT_KEY", **held}
    _, _, text = paged(project, "help", "drift", pager="false", env=other)
    lines = (text or "").splitlines()
    assert {"LESS=FRX", "LV=-c"} <= {*lines}
    assert not [line for line in lines if line.startswith("LMSCONF_") or "secret-of-mine" in line]
    _, _, text = paged(project, "help", "drift", pager="false", env={**other, "LESS": "-S"})
    assert "LESS=-S" in (text or "").splitlines()


@listed_cases("words", "more", "streams")
def test_what_is_not_paged(project: Path, words: str, more: dict[str, str], streams: Sequence[str]) -> None:
    """Whatever is no text for a person in front of a terminal, or fits it, or is not wanted in a pager."""
    code, _, text = paged(project, *words.split(), env=more, streams=streams)
    assert (code, text) == (ExitCode.OK, None)


def test_the_question_of_apply_is_not_paged(project: Path) -> None:
    """The plan and its question are both on the terminal."""
    code, shown, text = paged(project, "apply", typed="no\n", rows=5)
    assert (code, text) == (ExitCode.ERROR, None)
    assert "Plan: " in shown
    assert "Only 'yes' will be accepted" in shown


@pytest.mark.parametrize(
    ("pager", "printed"),
    [
        *((pager, False) for pager in ("true", "head -n 1 > seen.txt", "exit 3", "kill -9 $$")),
        *((pager, True) for pager in ("no-such-pager", "/etc/passwd")),
    ],
)
def test_a_pager_that_ends_early_changes_no_exit_code(project: Path, pager: str, printed: bool) -> None:
    """Who leaves a pager has seen enough, however it ends; without one that can be run, the text is printed."""
    code, shown, _ = paged(project, "plan", "--detailed-exitcode", pager=pager)
    assert (code, "Plan: " in shown) == (ExitCode.CHANGES, printed)
    assert "Error" not in shown


def test_prose_is_wrapped_at_words(project: Path) -> None:
    """No sentence is broken within a word, what a key means once; addresses and commands keep their lines."""
    env = {**TERM, "NO_COLOR": "1"}
    wide = lmsconf(project, "plan").out
    narrow = at_terminal(project, "plan", "--no-pager", columns=40, streams=("stdin", "stdout"), env=env)[1]
    assert narrow.split() == wide.split()
    sentence = next(line for line in wide.splitlines() if line.startswith("Effects on people:"))
    assert sentence not in narrow
    assert "Effects on people: nobody loses content," in narrow.splitlines()
    address = next(line for line in wide.splitlines() if line.strip().startswith("+ ") and len(line) > 40)
    assert address in narrow.splitlines()
    _, shown = at_terminal(project, "explain", "smart_group.conditions", "--no-pager", columns=70, env=env)
    first, second = "All choices except these. The field must be", "declared with the whole list of its choices."
    assert f"{' ' * 20}{first}\n{' ' * 20}{second}\n" in shown


def test_colours_outlast_the_wrapping(project: Path) -> None:
    """Each line of a bold sentence is bold, as pagers want it; a severity is coloured though its line is wrapped."""
    shown = at_terminal(project, "plan", "--no-pager", columns=40, streams=("stdin", "stdout"), env=TERM)[1]
    first, second = "Effects on people: nobody loses content,", "  11 must take what was optional, 3 gain"
    assert f"\x1b[1m{first}\x1b[0m\n\x1b[1m{second}\x1b[0m\n" in shown
    _, shown = at_terminal(project, "show", "a file that is not there.json", columns=40, env=TERM)
    assert "\x1b[31merror\x1b[0m: " in shown
    assert max(len(line) for line in shown.splitlines() if "error" in line) <= 40 + len("\x1b[31m\x1b[0m")


def test_an_error_is_wrapped_and_its_command_is_not(project: Path) -> None:
    """A line to paste stays one line."""
    env = {**TERM, "NO_COLOR": "1"}
    _, shown = at_terminal(project, "pln", "--workspace", "nowhere", columns=40, env=env)
    assert "  See: lmsconf --help" in shown.splitlines()
    assert all(len(line) <= 40 for line in shown.splitlines())
    saved = json.loads((project / "plan.json").read_text())
    (project / "cut.json").write_text(json.dumps({**saved, "digest": "0" * 64}))
    _, shown = at_terminal(project, "show", "cut.json", columns=40, env=env)
    assert max(len(line) for line in shown.splitlines()) <= 80


@pytest.mark.parametrize(("name", "code"), [("INT", ExitCode.CHANGES), ("TERM", ExitCode.TERMINATED)])
def test_signals_while_the_pager_runs(project: Path, name: str, code: ExitCode) -> None:
    """Ctrl-C is the pager's, and lmsconf waits for it; SIGTERM ends both."""
    rest = "sleep 0.2" if name == "INT" else "sleep 20 > /dev/null 2>&1"
    pager = f"cat > /dev/null; kill -{name} $PPID; {rest}; echo ended > seen.txt"
    ended, _, text = paged(project, "plan", "--detailed-exitcode", pager=pager)
    assert (ended, text) == (code, "ended\n" if name == "INT" else None)


def test_a_signal_while_the_pager_is_fed(tmp_path: Path) -> None:
    """SIGTERM ends a pager that has not read all of the output too."""
    project = quickstart(tmp_path)
    groups = [{"name": f"{number} {'long ' * 40}name"} for number in range(400)]
    (project / "manifests" / "more.yaml").write_text(json.dumps({"groups": groups}), encoding="utf-8")
    pager = "head -c 1 > /dev/null; kill -TERM $PPID; sleep 20 > /dev/null 2>&1; echo ended > seen.txt"
    code, _, text = paged(project, "plan", pager=pager)
    assert (code, text) == (ExitCode.TERMINATED, None)


def test_a_signal_while_the_pager_is_started(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGTERM that arrives before the process is known ends the pager too."""
    made: list[subprocess.Popen[bytes]] = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            made.append(self)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    code, shown, _ = paged(project, "plan", pager="sleep 20 > /dev/null 2>&1")
    assert code == ExitCode.TERMINATED
    assert "Traceback" not in shown
    assert [one.returncode for one in made] == [-signal.SIGTERM]


def test_a_pager_that_ignores_sigterm_is_killed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminated lmsconf exits as one, without a traceback."""
    monkeypatch.setattr("lmsconf.cli.terminal._SECONDS", 0.2)
    command = "trap '' TERM; cat > /dev/null; kill -TERM $PPID; sleep 3 > /dev/null 2>&1; echo ended > seen.txt"
    code, shown, text = paged(project, "plan", pager=command)
    assert (code, text) == (ExitCode.TERMINATED, None)
    assert "Traceback" not in shown


# Lines to paste do what they say: in this project, on this workspace, to what was chosen.


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


def offered(text: str) -> list[str]:
    """The line that is offered first, as a shell takes it apart, without the program."""
    line = next(one for one in text.splitlines() if " apply " in one and "--allow" in one)
    return shlex.split(line[line.index("lmsconf ") :])[1:]


@pytest.mark.parametrize(("chosen", "left"), [([], 0), (["--only", "group/A"], 1), (["--except", "group/B"], 1)])
def test_the_line_that_allows_a_guard(root: Path, chosen: list[str], left: int) -> None:
    """It names project, workspace and choice, and so it applies the plan that was shown, and nothing else."""
    at = ["-C", str(root), "--workspace", "staging"]
    pasted = offered(run(*at, "plan", *chosen, code=ExitCode.OK).out)
    assert pasted[:5] == [*at, "apply"]
    run(*pasted, "--auto-approve", code=ExitCode.OK)
    run(*at, "plan", *chosen, "--detailed-exitcode", code=ExitCode.OK)
    run("-C", str(root), "plan", *chosen, "--detailed-exitcode", code=ExitCode.CHANGES)
    assert json.loads(run(*at, "plan", "--format", "json").out)["summary"]["update"] == left


def test_the_lines_of_a_drift_report(root: Path) -> None:
    """Both ways out are for the workspace that was looked at."""
    at = ["-C", str(root), "--workspace", "staging"]
    told = run(*at, "drift", code=ExitCode.CHANGES).out
    words = shlex.join(["lmsconf", *at])
    assert f"to revert: {words} apply --only group/A\n" in told
    assert f"to keep: {words} drift --accept group/A\n" in told


def test_the_line_that_is_reviewed(root: Path) -> None:
    """A comment shows the line of the project file, too: with reason and date it allows the same."""
    at = ["-C", str(root), "plan", "--format", "markdown"]
    comment = run(*at, code=ExitCode.OK).out
    assert "Apply would stop here" in comment
    reviewed = re.search(r"```yaml\n(allow: .*)\n```", comment)
    assert reviewed is not None
    assert reviewed[1] == "allow: [{removals: 2, reason: …, until: YYYY-MM-DD}]"
    (root / "lmsconf.yaml").write_text(f"{PROJECT}{reviewed[1]}\n")
    assert 'allow.until cannot be "YYYY-MM-DD"' in run(*at, code=ExitCode.ERROR).err
    (root / "lmsconf.yaml").write_text(f"{PROJECT}{reviewed[1].replace('YYYY-MM-DD', '9999-12-31')}\n")
    comment = run(*at, code=ExitCode.OK).out
    assert "Apply would stop here" not in comment
    assert "allow: [" not in comment


# The line that allows what a guard stops leads on when it is pasted, and never in a circle.


GUARDS = "guards: {removals: {count: 0}, deletes: {count: 0}}\n"
GUARDED_SEED = text_of(__file__, "guarded_seed.yaml")


@pytest.fixture
def guarded_root(tmp_path: Path) -> Path:
    Project(tmp_path, GUARDED_SEED, GUARDS).write(text_of(__file__, "guarded_manifests.yaml"))
    return tmp_path


@pytest.mark.parametrize("saved", [False, True], ids=["manifests", "plan-file"])
def test_pasting_the_line_leads_on(guarded_root: Path, saved: bool) -> None:
    """Whatever of it was allowed before, the line holds all that is needed: it is never stopped again."""
    file = str(guarded_root / "plan.json")
    command = ["-C", str(guarded_root), "apply", file if saved else "--auto-approve"]
    run("-C", str(guarded_root), "plan", "--out", file)
    whole = offered(run(*command, code=ExitCode.BLOCKED).err)
    consents = whole[whole.index("--allow") :]
    assert consents[0::2] == ["--allow"] * 4
    for first in range(0, len(consents), 2):
        assert offered(run(*command, *consents[first : first + 2], code=ExitCode.BLOCKED).err) == whole
    assert run(*whole, *([] if saved else ["--auto-approve"])).code not in (ExitCode.BLOCKED, ExitCode.USAGE)


def test_what_the_project_allows_is_not_repeated(guarded_root: Path) -> None:
    """A consent of the project file holds for every command, so no line carries it."""
    allowed = "allow: [{deletes: 1, until: 2099-01-01, reason: B was a trial}]\n"
    Project(guarded_root, GUARDED_SEED, GUARDS + allowed)
    whole = offered(run("-C", str(guarded_root), "apply", "--auto-approve", code=ExitCode.BLOCKED).err)
    assert "deletes=1" not in whole
    assert run(*whole, "--auto-approve").code not in (ExitCode.BLOCKED, ExitCode.USAGE)
