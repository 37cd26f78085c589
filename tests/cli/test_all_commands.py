"""The frame of every command: exit codes, streams, formats, progress, and a help that imports no command."""

import importlib
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from cli.served import quickstart
from flow.project import Project
from on_terminal import at_terminal, on_terminal

from lmsconf.cli import run_command_line
from lmsconf.cli.command import COMMANDS
from lmsconf.cli.output import Output, output_options, show_progress
from lmsconf.cli.terminal import progress_lines
from lmsconf.cli.usage import COMMANDS_ELSEWHERE
from lmsconf.errors import (
    ExitCode,
    LmsconfError,
    Problem,
    ProblemsFound,
    Severity,
    SourceLocation,
    StalePlan,
    Terminated,
    UsageError,
)
from lmsconf.model.calls import RunProgress

PROBLEMS = [
    Problem(code="a/b", message="one", hint="do this", source=SourceLocation("g.yaml", 3, 5), address="group/A"),
    Problem(code="a/c", message="two", severity=Severity.WARNING),
]


def ended(act: Callable[[Output], ExitCode | None], *arguments: str) -> int:
    """The exit code of a command that does that."""

    @click.command()
    @output_options(["text", "json"])
    def command(output: Output) -> ExitCode | None:
        return act(output)

    return run_command_line(command, [*arguments])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StalePlan("too many deletes", hint="lmsconf apply --allow deletes=9"), 3),
        (ProblemsFound(PROBLEMS), 1),
        (click.ClickException("cannot"), 1),
        (click.UsageError("wrong"), 64),
        (KeyboardInterrupt(), 130),
        (Terminated(), 143),
        (EOFError(), 1),
        (UsageError("makes no sense"), 64),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_way_to_fail_has_its_exit_code(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code says what kind of failure it was, stderr says it in words, stdout stays empty."""

    def fail(output: Output) -> None:
        raise error

    assert ended(fail) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.strip()
    assert "Traceback" not in shown.err


def test_a_result_is_not_followed_by_another(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that fails after its result adds no second document."""

    def work(output: Output) -> None:
        output.write('{"format": "mine"}\n')
        raise StalePlan("after the result")

    assert ended(work, "--format", "json") == ExitCode.STALE
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"format": "mine"}
    assert "after the result" in shown.err


def test_sigterm_ends_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """SIGTERM takes the same way out as Ctrl-C, with its own code; afterwards the old handler is back."""
    before = signal.SIG_DFL
    signal.signal(signal.SIGTERM, before)
    assert ended(lambda output: signal.raise_signal(signal.SIGTERM), "--format", "json") == ExitCode.TERMINATED
    assert signal.getsignal(signal.SIGTERM) is before
    shown = capsys.readouterr()
    assert "Terminated." in shown.err
    assert json.loads(shown.out)["problems"][0]["code"] == "interrupted"


def test_a_reader_that_went_away_does_not_end_the_run(tmp_path: Path) -> None:
    """`lmsconf … | head -0` ends with the command's own code and without a traceback."""
    Project(tmp_path).write("groups: [{name: B}, {name: A}]\n")
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "lmsconf", "fmt", "--check"]
    ran = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (ExitCode.CHANGES, b"")


@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_color_is_for_terminals_that_want_it(tmp_path: Path, no_color: str, colored: bool) -> None:
    """A terminal gets colour, unless NO_COLOR is set."""
    _, shown = at_terminal(tmp_path, "show", "none.json", env={"TERM": "xterm", "NO_COLOR": no_color})
    assert "error" in shown
    assert ("\x1b[31merror" in shown, "\x1b[" in shown) == (colored, colored)


def test_progress_on_a_terminal_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a person watches, progress is drawn."""
    monkeypatch.setenv("TERM", "xterm")
    with on_terminal() as screen, show_progress("Reading \x1b[2Jgroups") as tell:
        tell(RunProgress(done=1, total=2, is_final=True))
    assert "Reading \\x1b[2Jgroups" in screen.text
    assert "1 of 2" in screen.text
    assert "━" in screen.text


def test_progress_in_a_log_is_sparse_lines() -> None:
    """Without a terminal, a thousand steps are a handful of lines, the end among them; a few steps are none."""
    stream = io.StringIO()
    with progress_lines(stream, "Reading") as tell:
        tell(RunProgress(done=1, total=5, is_final=True))
    with progress_lines(stream, "Applying\x1b[2J") as tell:
        for done in range(1, 1001):
            tell(RunProgress(done=done, total=1000, is_final=True))
    lines = stream.getvalue().splitlines()
    assert lines[0] == "Applying\\x1b[2J: 1 of 1,000"
    assert lines[-1] == "Applying\\x1b[2J: 1,000 of 1,000"
    assert 10 <= len(lines) <= 13


@pytest.mark.parametrize("name", COMMANDS)
def test_the_table_says_what_the_commands_say(name: str) -> None:
    """The help in the table is the first line of the command's own help."""
    entry = COMMANDS[name]
    command = getattr(importlib.import_module(f"lmsconf.cli.{entry.module}"), name)
    assert isinstance(command, click.Command)
    assert inspect.cleandoc(command.help or "").splitlines()[0] == entry.help
    assert command.name == name


def test_every_error_of_ours_has_an_exit_code() -> None:
    """No class of errors gives 0."""
    assert all(kind.exit is not ExitCode.OK for kind in [LmsconfError, *LmsconfError.__subclasses__()])


def test_commands_of_other_tools_are_none_of_ours() -> None:
    """A word that is a command, or becomes one, needs no hint what to run in its place."""
    assert not COMMANDS.keys() & COMMANDS_ELSEWHERE.keys()
    for name, hint in COMMANDS_ELSEWHERE.items():
        assert set(re.findall(r"\blmsconf ([a-z]+)", hint)) <= COMMANDS.keys(), name


# A command starts quickly: it imports no library and no package that it does not use.


NEVER = {"httpcore", "h11", "anyio", "asyncio", "jsonschema", "deepdiff", "jinja2", "rich"}
OF_OTHERS = {
    *("lmsconf.doctor", "lmsconf.apply", "lmsconf.api.sdk", "lmsconf.render.html", "lmsconf.render.markdown"),
    *("lmsconf.render.ci_formats", "lmsconf.render.people_reports", "lmsconf.support.git"),
    *("lmsconf.planner.drift", "lmsconf.workspace.plan_with_base", "lmsconf.manifest.schema_messages"),
}
OF_PLANS = {"lmsconf.planner.plan", "lmsconf.api.client", "lmsconf.sandbox", "lmsconf.render", "sqlite3", "httpx"}


def imports(*arguments: str) -> tuple[str, set[str]]:
    """What a command prints, and which modules it imports; -S keeps out what .pth files import."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import lmsconf.__main__\n"
        f"try: lmsconf.cli.main({arguments!r})\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout, {*ran.stderr.splitlines()[-1].split()}


def test_help_lists_every_command_and_imports_none() -> None:
    """`lmsconf --help` is fast: it loads no command and no heavy library."""
    shown, imported = imports("--help")
    heavy = {"httpx", "jsonschema", "deepdiff", "rich", "yaml", "pathlib", "lmsconf.render", "lmsconf.planner"}
    assert heavy & imported == set()
    commands = {name.removeprefix("lmsconf.cli.") for name in imported if name.startswith("lmsconf.cli.")}
    assert commands == {"command", "context", "output", "usage"}
    assert all(f"  {name} " in shown for name in COMMANDS)


@pytest.mark.sampled(day=6, daily=False)
@pytest.mark.parametrize(
    ("command", "unused"), [("plan", NEVER | OF_OTHERS), ("validate", NEVER | OF_OTHERS | OF_PLANS)]
)
def test_the_quickstart_imports_only_what_it_uses(command: str, unused: set[str], tmp_path: Path) -> None:
    """A plan on the embedded workspace opens no connection; checking manifests needs no plan."""
    project = str(quickstart(tmp_path))
    imports("-C", project, "apply", "--auto-approve")
    shown, imported = imports("-C", project, command)
    assert unused & imported == set()
    assert shown
