"""The command line: its entry points, signals, and the mapping of errors to messages and exit codes.

A command returns an ExitCode (None: 0) or raises LmsconfError. Each command is imported only where it runs.
`--help` imports this module too, so slow imports (pathlib among them) are inside the functions.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, TextIO

import click

from lmsconf.cli.command import COMMANDS, app
from lmsconf.cli.context import COMPLETION_VARIABLE
from lmsconf.cli.output import (
    Output,
    mask_people,
    redact_output,
    redirect_to_null,
    report_problems,
    stdout_error,
    write_stderr,
)
from lmsconf.errors import ExitCode, LmsconfError, interrupt_exit_code
from lmsconf.support.interrupts import handle_signal, raise_terminated

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["app", "console_script", "main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its exit code."""
    secure_standard_streams()
    sys.excepthook = report_crash
    code = run_command_line(app, list(sys.argv[1:] if arguments is None else arguments))
    gc.freeze()  # no collection at exit: the process's memory is freed anyway
    sys.exit(code)


def console_script() -> NoReturn:
    """Run one command, and end the process without freeing each module and object: a twelfth of a small plan's time.

    Exit handlers run and output is flushed first. While another thread is at work, or when output cannot be flushed,
    the process ends in the ordinary way. Requests of an interrupted run are not waited for.
    """
    try:
        main()
    except SystemExit as ended:
        if not isinstance(ended.code, int) or any(
            not thread.daemon and not thread.name.startswith("lmsconf-")
            for thread in threading.enumerate()
            if thread is not threading.main_thread()
        ):
            raise
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            raise ended from None
        os._exit(ended.code)


def secure_standard_streams() -> None:
    """Make stdin, stdout and stderr safe to use. Call it before anything opens a file.

    A closed descriptor is opened on /dev/null: otherwise the next opened file would get its number, and output would
    be written into that file. Write errors on stderr are ignored; the exit code still reports the outcome.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free descriptor is assigned, which is this one; child processes inherit it.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # A stream that is not the interpreter's own was replaced on purpose (tests capture it): keep it.
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # it stays until the end
    if sys.stdout is sys.__stdout__:
        sys.stdout = _buffered(sys.stdout, io.FileIO(1, "w", closefd=False))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _buffered(sys.stderr, _Forgiving(2, "w", closefd=False))


def _buffered(before: TextIO | None, raw: io.FileIO) -> TextIO:
    """Return a stream with the encoding of `before`, always buffered: a non-empty buffer shows unwritten output."""
    encoding, errors = (before.encoding, before.errors) if before else ("utf-8", None)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=True)


class _Forgiving(io.FileIO):
    """A file that ignores write errors, such as a full disk."""

    def write(self, data: ReadableBuffer, /) -> int:
        with suppress(OSError):
            return super().write(data) or memoryview(data).nbytes
        return memoryview(data).nbytes


def run_command_line(app: click.Command, arguments: list[str]) -> int:
    """Run the command line and return the exit code.

    LmsconfError, click errors, interrupts and an unwritable stdout are reported; any other exception propagates.
    """
    # Masked from the start where a word asks for it: a command line that cannot be parsed may name people too.
    mask_people(False)  # an earlier run of this process has labels of its own
    mask_people("--mask-people" in arguments)
    if os.environ.get(COMPLETION_VARIABLE):
        complete(app)
    try:
        with handle_signal(signal.SIGTERM, raise_terminated):
            code = app.main(arguments, prog_name="lmsconf", standalone_mode=False)
    except click.UsageError as error:
        return _misused(arguments, error)
    except click.ClickException as error:
        return _failed(arguments, LmsconfError(error.format_message()))
    except LmsconfError as error:
        return _failed(arguments, error)
    except (click.Abort, KeyboardInterrupt) as error:
        return _aborted(arguments, error)
    except BrokenPipeError:
        redirect_to_null(sys.stdout)
        return ExitCode.ERROR
    except OSError as error:
        # click writes help and version itself, and may fail on stdout. Any other OSError is a bug of lmsconf.
        try:
            sys.stdout.flush()
        except OSError:
            redirect_to_null(sys.stdout)
            return _failed(arguments, stdout_error(error))
        raise
    return int(code or 0)


def complete(app: click.Command) -> NoReturn:
    """Answer a shell that completes a command line, and exit; with nothing where that fails.

    Whatever is written would appear in the prompt, and the command itself says what is wrong.
    """
    import lmsconf.cli.completion  # noqa: F401  # its shells answer in place of click's

    with suppress(Exception, KeyboardInterrupt):
        app.main(prog_name="lmsconf")
    sys.exit(0)


def _aborted(arguments: Sequence[str], error: BaseException) -> int:
    """Report Ctrl-C, SIGTERM, or the end of input at a question of `init`; return the exit code."""
    cause = error if isinstance(error, KeyboardInterrupt) else error.__context__ or error
    if isinstance(cause, EOFError):
        write_stderr("")
        return _failed(
            arguments,
            LmsconfError(
                "the input ended before all questions were answered, so nothing was written",
                hint="Run it again, or pass the answers as options: see lmsconf init --help.",
            ),
        )
    return report_interrupt(cause)


def report_interrupt(error: BaseException) -> ExitCode:
    """Report an interrupt on stderr and return its exit code."""
    code = interrupt_exit_code(error)
    write_stderr("\nTerminated." if code is ExitCode.TERMINATED else "\nInterrupted.")
    return code


def _misused(arguments: Sequence[str], error: click.UsageError) -> int:
    """Report a wrong command line; without any command print the help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        write_stderr(error.format_message())
        return ExitCode.USAGE
    from lmsconf.cli.usage import advised_error

    words = ["lmsconf", *[argument for argument in arguments if argument in COMMANDS][:1]]
    return _failed(arguments, advised_error(error, arguments, " ".join(words)))


def _failed(arguments: Sequence[str], error: LmsconfError) -> int:
    """Report an error raised outside a command's own handling of output options; return the exit code."""
    report_problems(error.problems)
    # The command line may not have been parsed, so look for --format json in the raw arguments.
    if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
        Output("json", "-").write_problems(error.problems)
    return error.exit


def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """`sys.excepthook`: write the traceback of an unexpected exception, with secrets redacted."""
    from traceback import format_exception

    from lmsconf.support.secrets import redact_secrets

    sys.stderr.write(redact_output(redact_secrets("".join(format_exception(kind, error, trace)))))
