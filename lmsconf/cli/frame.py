"""Shared by all commands: context, output options, signals, and the mapping of errors to messages and exit codes.

A command returns an ExitCode (None: 0) or raises LmsconfError. `--help` imports this module too, so slow imports
(pathlib among them) are inside the functions.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TextIO

import click

from lmsconf.cli.output_streams import (
    is_unwritable,
    mask_if_enabled,
    mask_people,
    problems_document,
    redact_output,
    redact_problems,
    redirect_to_null,
    report_problems,
    stdout_error,
    supports_color,
    write_redacted,
    write_stderr,
)
from lmsconf.errors import ExitCode, LmsconfError, Problem, Terminated, UsageError
from lmsconf.support.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pathlib import Path

    from lmsconf.cli.command import GlobalOptions
    from lmsconf.render.size_limit import SizeLimit

P = ParamSpec("P")
_COMPLETE = "_LMSCONF_COMPLETE"
"""The environment variable by which the completion script of a shell asks."""


@dataclass(frozen=True, slots=True)
class CommandContext:
    """The project folder, workspace and environment variables of a command.

    directory: the argument of -C, or the working directory. named: -C was given, so parent folders are not searched.
    """

    directory: Path
    workspace: str | None
    environ: Mapping[str, str]
    named: bool = True

    @property
    def project(self) -> Path:
        """The project's folder. Raises UntrustedProjectFolder if it is found in a folder that is not trusted."""
        from pathlib import Path

        from lmsconf.project.discovery import find_project_folder

        return self.directory if self.named else find_project_folder(Path(), self.environ)

    @classmethod
    def of(cls, directory: str | None, workspace: str | None) -> CommandContext:
        """Return the context of this process. Raises UsageError if `directory` is not a folder."""
        from pathlib import Path

        folder = Path(directory or ".")
        if not folder.is_dir():
            hint = "Pass the folder that contains lmsconf.yaml."
            wrong = "that is a file" if folder.exists() else "there is no such folder"
            raise UsageError(f"-C {directory}: {wrong}", hint=hint)
        return cls(folder, workspace, dict(os.environ), named=directory is not None)


pass_context = click.make_pass_decorator(CommandContext)


def set_command_context(ctx: click.Context, options: GlobalOptions) -> None:
    """Give a click context the project folder and workspace of the global options.

    Raises UsageError if the folder of -C does not exist, unless the command line is parsed for shell completion.
    """
    try:
        ctx.obj = CommandContext.of(options.directory, options.workspace)
    except UsageError:
        if not ctx.resilient_parsing:
            raise


def interrupt_exit_code(error: BaseException) -> ExitCode:
    """Return the exit code for an interrupt: SIGTERM or Ctrl-C."""
    return ExitCode.TERMINATED if isinstance(error, Terminated) else ExitCode.INTERRUPTED


class Output:
    """The destination and format of a command's result. One document at most, problems included."""

    def __init__(
        self,
        format: str,
        path: str,
        limit: SizeLimit | None = None,
        problems: Sequence[str] = (),
        *,
        pages: bool = False,
    ) -> None:
        self.format = format
        self._pages = pages
        self._for_problems = ("json", *problems)
        self.path = path
        self._limit = limit
        self._tried = False
        self._stream: Callable[[], TextIO] = lambda: sys.stdout

    def leave_stdout(self) -> None:
        """Write a result for stdout to stderr instead: stdout has the events."""
        self.path = "-"
        self._stream = lambda: sys.stderr

    def check_writable(self) -> None:
        """Raise LmsconfError if the file is not writable, before any work whose result would be lost."""
        if self.path != "-":
            from pathlib import Path

            refuse_unwritable(Path(self.path), f"--output {self.path}")

    def show(self, views: Mapping[str, Callable[..., str]], value: object) -> None:
        """Render the value in the chosen format, within `--limit`, and write it."""
        self.write(self.render(views, value))

    def render(self, views: Mapping[str, Callable[..., str]], value: object) -> str:
        """Return the text that `show` writes."""
        view, value = views[self.format], mask_if_enabled(value)
        return view(value) if self._limit is None else view(value, limit=self._limit)

    def write(self, text: str) -> None:
        """Write the result to stdout, or atomically to the file. Raises LmsconfError if that fails."""
        self._tried = True
        if self.path == "-":
            person, stream = self.format == "text", self._stream()
            color = person and supports_color(stream)
            pages = self._pages and person and stream is sys.stdout
            write_redacted(text, stream, color=color, exact=not person, pages=pages)
        else:
            from pathlib import Path

            from lmsconf.support.atomic_files import write_atomically

            write_atomically(Path(self.path), redact_output(text))

    def write_problems(self, problems: Sequence[Problem]) -> None:
        """In a format that problems have too, write them in place of the result, unless a result was attempted."""
        if self.format in self._for_problems and not self._tried:
            from lmsconf.render import PROBLEMS_VIEWS

            try:
                self.show(PROBLEMS_VIEWS, redact_problems(problems))
            except LmsconfError as error:
                report_problems(error.problems)


def refuse_unwritable(path: Path, name: str) -> None:
    """Raise LmsconfError if a file is not writable, before any work whose result would be lost. name: for the error."""
    from lmsconf.support.atomic_files import is_writable

    if not is_writable(path):
        hint = "Its folder must exist and be writable; it must not be a folder itself."
        raise LmsconfError(f"{name} cannot be written", hint=hint)


def output_options(
    formats: Sequence[str], problems: Sequence[str] = (), *, pages: bool = False
) -> Callable[[Callable[P, ExitCode | None]], Callable[P, ExitCode | None]]:
    """Add `--format`, `--output` and, with markdown, `--limit`; the command receives them as `output: Output`.

    An LmsconfError of the command is written as the output's document: with `--format json`, and in the formats that
    `problems` names. pages: a text longer than the terminal goes through a pager.
    """

    def decorate(command: Callable[P, ExitCode | None]) -> Callable[P, ExitCode | None]:
        @click.option("--format", "format_", type=click.Choice(list(formats)), default=formats[0], show_default=True,
                      help="The format of the result.")  # fmt: skip
        @click.option("--output", "output_", metavar="FILE", default="-", show_default=True,
                      help="Write the result to this file; - is stdout.")  # fmt: skip
        @_limit_beside("markdown" in formats)
        @functools.wraps(command)
        def framed(*args: P.args, **kwargs: P.kwargs) -> ExitCode | None:
            format, path, limit = (kwargs.pop(key, None) for key in ("format_", "output_", "limit_"))
            output = Output(str(format), str(path), _budget(str(format), limit), problems, pages=pages)
            output.check_writable()
            kwargs["output"] = output
            try:
                return command(*args, **kwargs)
            except LmsconfError as error:
                report_problems(error.problems)
                output.write_problems(error.problems)
                return error.exit
            except KeyboardInterrupt:
                output.write_problems([Problem(code="interrupted", message="the command was interrupted")])
                raise

        return framed

    return decorate


def _limit_beside(markdown: bool) -> Callable[[Callable[P, ExitCode | None]], Callable[P, ExitCode | None]]:
    """Add `--limit` to a command with a markdown format."""
    if not markdown:
        return lambda command: command
    return click.option(
        "--limit",
        "limit_",
        metavar="PLACE",
        help="Shorten markdown to the size of a comment: github (the default), gitlab, azure, bitbucket, summary (a "
        "job's on GitHub), or a number of bytes; none does not shorten it.",
    )


def _budget(format: str, limit: object) -> SizeLimit | None:
    """Parse `--limit`; markdown defaults to `github`. Raises click.UsageError for a wrong value or another format."""
    if format != "markdown":
        if limit is not None:
            raise click.UsageError("--limit is for --format markdown")
        return None
    from lmsconf.render.size_limit import parse_size_limit

    try:
        return parse_size_limit("github" if limit is None else str(limit))
    except ValueError as error:
        raise click.UsageError(f"--limit: {error}") from error


def run_command_line(app: click.Command, arguments: list[str]) -> int:
    """Run the command line and return the exit code.

    LmsconfError, click errors, interrupts and an unwritable stdout are reported; any other exception propagates.
    """
    # Masked from the start where a word asks for it: a command line that cannot be parsed may name people too.
    mask_people("--mask-people" in arguments)
    if _COMPLETE in os.environ:
        from lmsconf.cli.completion_shells import register_shells

        register_shells()
    try:
        with _terminable():
            code = app.main(arguments, prog_name="lmsconf", standalone_mode=False)
    except click.UsageError as error:
        return _misused(arguments, error)
    except click.ClickException as error:
        return _failed(arguments, [Problem(code="error", message=error.format_message())], ExitCode.ERROR)
    except LmsconfError as error:
        return _failed(arguments, error.problems, error.exit)
    except (click.Abort, KeyboardInterrupt) as error:
        return _aborted(error)
    except BrokenPipeError:
        redirect_to_null(sys.stdout)
        return ExitCode.ERROR
    except OSError as error:
        # click writes help and version itself, and may fail on stdout. Any other OSError is a bug of lmsconf.
        if not is_unwritable(sys.stdout):
            raise
        return _failed(arguments, stdout_error(error).problems, ExitCode.ERROR)
    return int(code or 0)


@contextmanager
def _terminable() -> Iterator[None]:
    """Raise Terminated on SIGTERM inside the block, so that a terminated run can still report what it did."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _aborted(error: BaseException) -> int:
    """Report Ctrl-C, SIGTERM, or end of input at a prompt (which means no); return the exit code."""
    cause = abort_cause(error)
    if isinstance(cause, EOFError):
        write_stderr("Declined: no answer.")
        return ExitCode.ERROR
    return report_interrupt(cause)


def abort_cause(error: BaseException) -> BaseException:
    """Return what a click.Abort or KeyboardInterrupt stands for: an interrupt, or an EOFError at a prompt."""
    return error if isinstance(error, KeyboardInterrupt) else error.__context__ or error


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
    context = error.ctx.command_path if error.ctx else _command_path(arguments)
    problem = Problem(code="usage", message=_usage_message(error), hint=f"See: {context} --help")
    return _failed(arguments, [problem], ExitCode.USAGE)


def _command_path(arguments: Sequence[str]) -> str:
    """Return the program with the command of a command line that click could not parse."""
    from lmsconf.cli import COMMANDS

    return " ".join(["lmsconf", *[one for one in arguments if one in COMMANDS][:1]])


def _usage_message(error: click.UsageError) -> str:
    """Return what is wrong with a command line; of a missing choice in one line, where click has a list."""
    missing = error.param if isinstance(error, click.MissingParameter) else None
    if missing is None or not isinstance(missing.type, click.Choice):
        return error.format_message()
    *names, last = missing.type.choices
    return f"no {missing.name} is given. Choose {', '.join(names)} or {last}"


def _failed(arguments: Sequence[str], problems: Sequence[Problem], code: ExitCode) -> int:
    """Report an error raised outside a command's own handling of output options."""
    report_problems(problems)
    # The command line may not have been parsed, so look for --format json in the raw arguments.
    if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
        try:
            write_redacted(problems_document(problems), sys.stdout, exact=True)
        except LmsconfError as error:
            report_problems(error.problems)
    return code


def report_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """`sys.excepthook`: write the traceback of an unexpected exception, with secrets redacted."""
    from traceback import format_exception

    from lmsconf.support.redaction import redact_secrets

    sys.stderr.write(redact_output(redact_secrets("".join(format_exception(kind, error, trace)))))
