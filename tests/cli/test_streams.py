"""Streams that are closed, full, no terminal's or no files, and runs that end between plan and first call."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cli.served import quickstart, served
from flow.project import Project
from flow.shell import Ran, lmsconf
from json_schemas import schema_validator
from on_terminal import on_terminal
from texts import listed_cases
from waiting import HANGS, HeldResponse

from lmsconf.errors import ExitCode
from lmsconf.sandbox.service import LoggedRequest

pytestmark = pytest.mark.sampled(day=8)

CUT = [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)]
LATIN = [{"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that wants two groups."""
    Project(tmp_path, "groups: []\n").write("groups: [{name: Søndag}, {name: Mandag}]\n")
    return tmp_path


def environ(more: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without settings of lmsconf and of Python's streams."""
    left_out = ("LMSCONF_", "PYTHONIOENCODING", "PYTHONUTF8", "LC_", "LANG")
    return {**{key: value for key, value in os.environ.items() if not key.startswith(left_out)}, **more}


def shell(folder: Path, line: str, code: int | None = None, **more: str) -> subprocess.CompletedProcess[bytes]:
    """What a line of the shell comes to, in which `lmsconf` is ours. code: what it has to exit with."""
    program = f'lmsconf() {{ {shlex.quote(sys.executable)} -m lmsconf "$@"; }}; {line}'
    ran = subprocess.run(
        ["/bin/bash", "-c", program],
        cwd=folder,
        env=environ(more),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert code in (None, ran.returncode), ran
    assert b"Traceback" not in ran.stderr
    return ran


def wanted(folder: Path) -> int:
    """How many changes the workspace still needs."""
    return len(json.loads(shell(folder, "lmsconf plan --format json").stdout)["changes"])


@pytest.mark.sampled(daily=False)
def test_closed_streams(project: Path) -> None:
    """Without stdin nobody can be asked: exit 64. What goes to a closed stream is lost, and nothing else."""
    assert b"there is no terminal to ask for approval" in shell(project, "lmsconf apply <&-", ExitCode.USAGE).stderr
    assert wanted(project) == 2
    assert json.loads(shell(project, "lmsconf plan --format json 2>&-", ExitCode.OK).stdout)["summary"]["create"] == 2
    shell(project, "lmsconf apply --auto-approve >&-", ExitCode.OK)
    assert wanted(project) == 0
    shell(project, "lmsconf plan --detailed-exitcode <&- >&- 2>&-", ExitCode.OK)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    "command", ["plan", "plan --format json", "--help", "--version", "explain", "completion bash", "runs"]
)
def test_a_full_stdout_is_an_error(project: Path, command: str, unbuffered: str) -> None:
    """A result that cannot be written is a message and exit 1, also where click prints by itself."""
    ran = shell(project, f"lmsconf {command} > /dev/full", ExitCode.ERROR, PYTHONUNBUFFERED=unbuffered)
    assert b"stdout cannot be written: No space left on device" in ran.stderr
    assert b"Exception ignored" not in ran.stderr


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("command", ["plan --bogus", "plan --only nothing/x", "-C missing plan"])
def test_an_error_that_cannot_be_written_either(project: Path, command: str) -> None:
    """Both errors are told, and the exit code is of the first in order."""
    code = shell(project, f"lmsconf {command}").returncode
    assert shell(project, f"lmsconf {command} --format json > /dev/full", code).stderr.count(b"error: ") == 2


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("to", ["> /dev/full", "--output full"])
def test_an_apply_whose_report_is_lost_says_how_it_ended(project: Path, to: str) -> None:
    """The workspace is changed, so the message says that, and where it can be read."""
    (project / "full").symlink_to("/dev/full")
    said = shell(project, f"lmsconf apply --auto-approve --format json {to}", ExitCode.ERROR).stderr.decode()
    assert "cannot be written: No space left on device. The run itself ended with exit code 0: Apply complete!" in said
    assert "lmsconf runs latest" in said
    assert wanted(project) == 0
    assert b"group/Mandag" in shell(project, "lmsconf runs latest").stdout


@pytest.mark.sampled(day=1)
def test_a_lost_report_of_an_interrupted_run_exits_as_that_does(project: Path) -> None:
    """Who looks only at the code would take it for a run that came to its own end."""
    (project / "full").symlink_to("/dev/full")
    apply = ("apply", "--auto-approve", "--parallelism", "1", "--format", "json", "--output", "full")
    interrupts = iter([lambda: os.kill(os.getpid(), signal.SIGINT)])

    def interrupt(entry: LoggedRequest) -> None:
        if entry.writes:
            next(interrupts, int)()

    with served(project, on_log=interrupt) as (_, env):
        ran = lmsconf(project, *apply, env=env, code=ExitCode.INTERRUPTED)
    assert "full cannot be written: No space left on device. The run itself ended with exit code 130: " in ran.err


@pytest.mark.sampled(daily=False)
def test_a_full_stderr_loses_only_what_it_would_say(project: Path) -> None:
    """Results, work and exit codes are as ever, also of an error and of a wrong command line."""
    shell(project, "lmsconf apply 2> /dev/full", ExitCode.USAGE)
    shell(project, "lmsconf plan --only nothing/x 2> /dev/full", ExitCode.ERROR)
    shell(project, "lmsconf plan > /dev/full 2>&1", ExitCode.ERROR)
    assert b"Apply complete!" in shell(project, "lmsconf apply --auto-approve 2> /dev/full", ExitCode.OK).stdout


@pytest.mark.sampled(gate=3)
@pytest.mark.parametrize("more", LATIN, ids=["latin-1", "C"])
@listed_cases("command")
def test_documents_are_utf_8_whatever_the_terminal_is(project: Path, command: str, more: Mapping[str, str]) -> None:
    """On stdout stands byte for byte what `--output` writes to a file."""
    piped = shell(project, f"lmsconf {command}", **more).stdout
    shell(project, f"lmsconf {command} --output result", **more)
    written = (project / "result").read_bytes()
    assert "Søndag".encode() in written
    assert _timeless(piped) == _timeless(written)


def _timeless(text: bytes) -> bytes:
    """The text without its times, and the sums that hold one."""
    return re.sub(rb"\d\d:\d\d:\d\d[.\d]*|[0-9a-f]{64}", b"", text)


@pytest.mark.sampled(daily=False)
def test_text_is_for_the_terminal(project: Path) -> None:
    """What a person's terminal lacks is written as an escape."""
    for more, escaped in zip(LATIN, (b"S\xf8ndag", b"S\\xf8ndag"), strict=True):
        assert escaped in shell(project, "lmsconf plan", **more).stdout


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("to", ["| cat", "> result; cat result", ">> result; cat result"])
def test_a_name_of_stdout_is_stdout(project: Path, to: str) -> None:
    """A link like /dev/stdout goes where stdout goes, behind what is there already, and stays."""
    link = project / "stdout"
    link.symlink_to("/proc/self/fd/1")
    ran = shell(project, f"echo before > result; (echo first; lmsconf plan --output stdout) {to}")
    lines = ran.stdout.decode().splitlines()
    assert "first" in lines[:2]
    assert any(line.startswith("Plan: 2 to create") for line in lines)
    assert link.is_symlink()


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("number", "code"), CUT)
@pytest.mark.parametrize("format_", ["text", "json"])
def test_a_run_cut_short_at_the_question_changes_nothing(
    project: Path, number: signal.Signals, code: int, format_: str
) -> None:
    """Nothing was changed, and says so; for a program, a report has every call as not attempted."""
    with on_terminal(streams=("stdin", "stderr")) as screen:

        def cut() -> None:
            screen.wait_for("Only 'yes' will be accepted")
            os.kill(os.getpid(), number)

        threading.Thread(target=cut, daemon=True).start()
        ran = lmsconf(project, "apply", "--format", format_, env={"TERM": "dumb"}, streams=("stdout",), code=code)
    _check(ran, screen.text, format_)
    assert wanted(project) == 2


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("number", "code"), CUT)
def test_a_run_cut_short_while_it_checks_lists_what_was_not_done(
    project: Path, number: signal.Signals, code: int
) -> None:
    """So it does between the plan and the first call, whatever it is at."""
    planned: list[bool] = []
    held = HeldResponse(lambda _: bool(planned))
    with served(project, on_log=held) as (sandbox, env):
        lmsconf(project, "plan", "--out", "plan.json", env=env, code=ExitCode.OK)
        planned.append(True)
        command = [sys.executable, "-m", "lmsconf", "apply", "plan.json", "--format", "json"]
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running = subprocess.Popen(command, cwd=project, env=environ(env), text=True, **pipes)
        with held:
            running.send_signal(number)
        ran = Ran(running.wait(HANGS), *running.communicate())
    assert ran.code == code
    _check(ran, ran.err, "json")
    assert not any(call.writes for call in sandbox.log)


def _check(ran: Ran, err: str, format_: str) -> None:
    """It says that it was cut short before any change; a document lists what was not attempted."""
    assert ("Terminated." if ran.code == ExitCode.TERMINATED else "Interrupted.") in err
    if format_ == "text":
        assert "the run was interrupted before its first call" in err
        assert "Nothing was changed." in err
        assert ran.out == ""
        return
    report: Any = ran.document
    schema_validator("apply").validate(report)
    assert [outcome["status"] for outcome in report["outcomes"]] == ["not_attempted"] * 2
    assert (report["exit"], report["problems"][0]["code"]) == (ran.code, "interrupted")


# Files that cannot be written are errors before anything is read, and what a full disk leaves is repaired.


@listed_cases("arguments", "message")
def test_a_result_that_cannot_be_kept_is_not_read_for(project: Path, arguments: str, message: str) -> None:
    """Exit 1 with the option's name, and not one request."""
    (project / "people.csv").write_text("email\nanna@acme.example\n")
    with served(project) as (sandbox, env):
        ran = lmsconf(project, *arguments.split(), env=env)
    assert not sandbox.log
    assert (ran.code, ran.out) == (ExitCode.ERROR, "")
    assert f"error: {message}" in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--people", "result.csv"),
        ("access", "anna.berg@acme.example", "--format", "csv", "--output", "result.csv"),
        ("audience", "everyone", "--format", "csv", "--output", "result.csv"),
        ("audience", "everyone", "--members", "--format", "csv", "--output", "result.csv"),
        ("audience", "everyone", "--by", "Country", "--format", "csv", "--output", "result.csv"),
    ],
)
def test_a_result_replaces_the_result_of_an_earlier_run(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A CSV of people is written again over an empty file and over one of lmsconf."""
    root = quickstart(tmp_path)
    result = root / "result.csv"
    result.touch()
    for _ in range(2):
        lmsconf(root, *arguments, code=ExitCode.OK)
        assert result.stat().st_size


def test_git_ignores_journals_also_after_a_full_disk(project: Path) -> None:
    """A `.gitignore` that a full disk left empty is written again; one with rules of the user stays."""
    (project / ".lmsconf").mkdir(mode=0o700)
    ignored = project / ".lmsconf" / ".gitignore"
    for before, after in (("", "*\n"), ("runs/\n", "runs/\n")):
        ignored.write_text(before)
        lmsconf(project, "apply", "--auto-approve", code=ExitCode.OK)
        assert ignored.read_text() == after


def test_an_embedded_workspace_that_cannot_be_written(project: Path) -> None:
    """The folder is the matter, so nothing suggests a reset; of a damaged file it does."""
    (project / "lmsconf.yaml").write_text("workspaces: {sandbox: {url: 'sandbox:none/workspace.db'}}\n")
    ran = lmsconf(project, "plan", code=ExitCode.ERROR)
    assert "Make the folder writable, or name a file elsewhere in `url:`" in ran.err
    assert "reset" not in ran.err
    (project / "none").mkdir()
    (project / "none" / "workspace.db").write_text("not a database, and long enough to be taken for one\n" * 50)
    assert "reset it with: lmsconf sandbox reset" in lmsconf(project, "plan").err


@pytest.mark.parametrize(
    "options",
    [
        ("--out", "x.json", "--people", "x.json"),
        ("--out", "x.json", "--format", "json", "--output", "./x.json"),
        ("--people", "x.json", "--format", "json", "--output", "x.json"),
        pytest.param(("--snapshot", "x.json", "--out", "x.json"), marks=pytest.mark.sampled(day=1)),
    ],
)
def test_no_result_of_a_plan_is_written_over_another(project: Path, options: tuple[str, ...]) -> None:
    """Two options that name one file are a mistake of the command line: only --output gets the problem."""
    lmsconf(project, "snapshot", "x.json", code=ExitCode.OK)
    before = (project / "x.json").read_bytes()
    assert "two options name the file x.json" in lmsconf(project, "plan", *options, code=ExitCode.USAGE).err
    assert ((project / "x.json").read_bytes() == before) is ("--output" not in options)
