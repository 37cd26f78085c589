"""The frame of every command: exit codes, streams, formats, progress, and a help that imports no command."""

import importlib
import inspect
import io
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from lmsconf.cli import run_command_line
from lmsconf.cli.command import COMMANDS
from lmsconf.cli.output import Output, output_options
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

RAISED: dict[str, Callable[[], BaseException]] = {
    "kind": lambda: StalePlan("too many deletes", hint="lmsconf apply --allow deletes=9"),
    "gathered": lambda: ProblemsFound(
        [
            Problem(
                code="a/b", message="one", hint="do this", source=SourceLocation("g.yaml", 3, 5), address="group/A"
            ),
            Problem(code="a/c", message="two", severity=Severity.WARNING),
        ]
    ),
    "click": lambda: click.ClickException("cannot"),
    "usage": lambda: click.UsageError("wrong"),
    "interrupt": KeyboardInterrupt,
    "terminate": Terminated,
    "eof": EOFError,
    "ours": lambda: UsageError("makes no sense"),
}


@click.group()
def tool() -> None:
    """A program of commands that end in every way."""


@tool.command()
@click.argument("how")
@output_options(["text", "json"])
def fail(how: str, output: Output) -> ExitCode:
    """Ends badly."""
    raise RAISED[how]()


@tool.command()
@click.option("--then-fail", is_flag=True)
@output_options(["text", "json"])
def work(then_fail: bool, output: Output) -> ExitCode:
    """Writes its result."""
    output.write('{"format": "mine"}\n')
    if then_fail:
        raise StalePlan("after the result")
    return ExitCode.CHANGES


@tool.command()
@output_options(["text", "json"])
def wait(output: Output) -> None:
    """Is terminated while it works."""
    signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("kind", 3),
        ("gathered", 1),
        ("click", 1),
        ("usage", 64),
        ("interrupt", 130),
        ("terminate", 143),
        ("eof", 1),
        ("ours", 64),
    ],
)
def test_every_way_to_fail_has_its_exit_code(how: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code says what kind of failure it was, stderr says it in words, stdout stays empty."""
    assert run_command_line(tool, ["fail", how]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.strip()
    assert "Traceback" not in shown.err


def test_a_result_is_not_followed_by_another(capsys: pytest.CaptureFixture[str]) -> None:
    """A command that fails after its result adds no second document."""
    assert run_command_line(tool, ["work", "--then-fail", "--format", "json"]) == ExitCode.STALE
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"format": "mine"}
    assert "after the result" in shown.err


def test_sigterm_ends_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """SIGTERM takes the same way out as Ctrl-C, with its own code; afterwards the old handler is back."""
    before = signal.SIG_DFL
    signal.signal(signal.SIGTERM, before)
    assert run_command_line(tool, ["wait", "--format", "json"]) == ExitCode.TERMINATED
    assert signal.getsignal(signal.SIGTERM) is before
    shown = capsys.readouterr()
    assert "Terminated." in shown.err
    assert json.loads(shown.out)["problems"][0]["code"] == "interrupted"


def test_a_reader_that_went_away_does_not_end_the_run() -> None:
    """`lmsconf … | head -0` ends with the command's own code and without a traceback."""
    program = (
        "import sys; from test_all_commands import tool; from lmsconf.cli import run_command_line; "
        "sys.exit(run_command_line(tool, ['work']))"
    )
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parent, stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (ExitCode.CHANGES, b"")


def terminal(environ: dict[str, str], program: str) -> str:
    """What a program writes to a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **environ},
        cwd=Path(__file__).parent,
    ) as process:
        process.wait(timeout=60)
    os.close(theirs)
    text = b""
    while True:
        try:
            more = os.read(ours, 65536)
        except OSError:  # the terminal's end
            break
        if not more:
            break
        text += more
    os.close(ours)
    return text.decode()


FAILING = (
    "from test_all_commands import tool; from lmsconf.cli import run_command_line; "
    "run_command_line(tool, ['fail', 'kind'])"
)


def test_color_is_for_terminals_that_want_it() -> None:
    """A terminal gets colour, unless NO_COLOR is set."""
    program = f"import os; {FAILING}; print('then'); os.environ['NO_COLOR'] = '1'; {FAILING}"
    colored, then, plain = terminal({"NO_COLOR": ""}, program).partition("then")
    assert then
    assert "\x1b[31merror" in colored
    assert "error" in plain
    assert "\x1b[" not in plain


def test_progress_on_a_terminal_is_a_bar() -> None:
    """Where a person watches, progress is drawn with rich."""
    program = (
        "import sys; from lmsconf.cli.output import show_progress\n"
        "from lmsconf.model.calls import RunProgress\n"
        "with show_progress('Reading groups') as tell: tell(RunProgress(done=1, total=2, is_final=True))\n"
        "assert 'rich' in sys.modules"
    )
    shown = terminal({}, program)
    assert "Reading groups" in shown
    assert "1 of 2" in shown
    assert "Error" not in shown


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


def test_help_lists_every_command_and_imports_none() -> None:
    """`lmsconf --help` is fast: it loads no command and no heavy library."""
    program = (
        "import sys; sys.argv = ['lmsconf', '--help']\n"
        "import lmsconf.cli\n"
        "try: lmsconf.cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = {'httpx', 'jsonschema', 'deepdiff', 'rich', 'yaml', 'pathlib', 'lmsconf.render', 'lmsconf.planner'}\n"
        "loaded = heavy & set(sys.modules) | {name for name in sys.modules if name.startswith('lmsconf.cli.')}\n"
        "print(sorted(loaded), file=sys.stderr)"
    )
    shown = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _with_path(program)], capture_output=True, text=True, check=True
    )
    expected = [f"lmsconf.cli.{name}" for name in ("command", "context", "output", "usage")]
    assert shown.stderr == f"{expected}\n"
    assert all(f"  {name} " in shown.stdout for name, entry in COMMANDS.items())


def _with_path(program: str) -> str:
    """The program with this process's module path; -S keeps what .pth files import out of the measurement."""
    return f"import sys; sys.path[:] = {sys.path!r}\n{program}"


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
    kinds = [LmsconfError, *LmsconfError.__subclasses__()]
    assert all(kind.exit is not ExitCode.OK for kind in kinds)


def test_commands_of_other_tools_are_none_of_ours() -> None:
    """A word that is a command, or becomes one, needs no hint what to run in its place."""
    assert not COMMANDS.keys() & COMMANDS_ELSEWHERE.keys()
    for name, hint in COMMANDS_ELSEWHERE.items():
        named = set(re.findall(r"\blmsconf ([a-z]+)", hint))
        assert named <= COMMANDS.keys(), name


# A command starts quickly: it imports no library and no package that it does not use.


ROOT = Path(__file__).parent.parent.parent
NEVER = {"httpcore", "h11", "anyio", "asyncio", "jsonschema", "deepdiff", "jinja2", "rich"}
OF_OTHERS = {
    *("lmsconf.doctor", "lmsconf.apply", "lmsconf.api.sdk", "lmsconf.render.html", "lmsconf.render.markdown"),
    *("lmsconf.render.ci_formats", "lmsconf.render.people_reports", "lmsconf.support.git"),
    *("lmsconf.planner.drift", "lmsconf.workspace.plan_with_base", "lmsconf.manifest.schema_messages"),
}
OF_PLANS = {"lmsconf.planner.plan", "lmsconf.api.client", "lmsconf.sandbox", "lmsconf.render", "sqlite3", "httpx"}


@pytest.mark.sampled(day=6)
@pytest.mark.parametrize(
    ("command", "unused"), [("plan", NEVER | OF_OTHERS), ("validate", NEVER | OF_OTHERS | OF_PLANS)]
)
def test_the_quickstart_imports_only_what_it_uses(command: str, unused: set[str], tmp_path: Path) -> None:
    """A plan on the embedded workspace opens no connection; checking manifests needs no plan."""
    project = tmp_path / "quickstart"
    shutil.copytree(ROOT / "examples" / "quickstart", project, ignore=shutil.ignore_patterns("*.db*", ".lmsconf"))
    _ran(project, "apply", "--auto-approve")
    ran = _ran(project, command)
    assert unused & set(ran.stderr.splitlines()[-1].split()) == set()
    assert ran.stdout


def _ran(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command, which tells last on stderr which modules are imported."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "import lmsconf.__main__\n"
        "from lmsconf.cli import main\n"
        f"try: main(['-C', {str(project)!r}, *{arguments!r}])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    return subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True)
