"""What all commands share: their context, where results go, and how an error becomes a message and an exit code.

A command returns its Exit (None is 0) and raises LmsconfError; everything about streams and signals is here. `--help`
imports this module too, so what is slow (pathlib among it) is imported where it is used.
"""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, NoReturn, ParamSpec, TextIO, TypeVar

import click

from lmsconf.errors import ExitCode, LmsconfError, Problem, Terminated, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import ReadableBuffer

    from lmsconf.cli.masking import Mask
    from lmsconf.cli.progress import Tell
    from lmsconf.render.size_budget import SizeLimit

P = ParamSpec("P")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Context:
    """Which project and which workspace a command is about, and the environment it runs in.

    directory: where we are, or what -C names. named: it was -C, so that no other folder is looked at.
    """

    directory: Path
    workspace: str | None
    environ: Mapping[str, str]
    named: bool = True

    @property
    def project(self) -> Path:
        """The folder of the project. Raises ForeignProject where only others may have put one."""
        from pathlib import Path

        from lmsconf.project.discovery import project_folder

        return self.directory if self.named else project_folder(Path(), self.environ)

    @classmethod
    def of(cls, directory: str | None, workspace: str | None) -> Context:
        """The context of this process. Raises UsageError for a folder that is none."""
        from pathlib import Path

        folder = Path(directory or ".")
        if not folder.is_dir():
            hint = "Name the folder that holds lmsconf.yaml."
            raise UsageError(f"-C {directory}: there is no such folder", hint=hint)
        return cls(folder, workspace, dict(os.environ), named=directory is not None)


_mask: list[Mask] = []
"""What hides people from all that this run shows; empty where nothing does."""


def mask_people(on: bool) -> None:
    """Whether people are hidden from all that is shown from now on."""
    _mask.clear()
    if on:
        from lmsconf.cli.masking import Mask

        _mask.append(Mask())


def masks_people() -> bool:
    """Whether people are hidden."""
    return bool(_mask)


def masked(value: Value) -> Value:
    """A value as it may be shown. Whatever is worded goes through here first."""
    return _mask[0].value(value) if _mask else value


def _leaving(text: str) -> str:
    """A text as it may leave: without the tokens that are known and, where they are hidden, without people."""
    from lmsconf.support.redaction import without_tokens

    text = without_tokens(text)
    return _mask[0].lines(text) if _mask else text


pass_context = click.make_pass_decorator(Context)


def interrupted(error: BaseException) -> ExitCode:
    """The exit code of a run that was cut short."""
    return ExitCode.TERMINATED if isinstance(error, Terminated) else ExitCode.INTERRUPTED


class Output:
    """Where a command's result goes, and in which format. There is one result, so what comes after it goes nowhere."""

    def __init__(self, format: str, path: str, limit: SizeLimit | None = None) -> None:
        self.format = format
        self.path = path
        self._limit = limit
        self._tried = False

    def check(self) -> None:
        """Raises LmsconfError for a file that could not be written, before there is a result that would be lost."""
        from pathlib import Path

        from lmsconf.support.atomic_files import writable

        if self.path != "-" and not writable(Path(self.path)):
            hint = "Its folder must exist and be writable; it must not be a folder itself."
            raise LmsconfError(f"--output {self.path} cannot be written", hint=hint)

    def show(self, views: Mapping[str, Callable[..., str]], value: object) -> None:
        """The value as its format words it, as long as the place that it goes to allows."""
        self.write(self.worded(views, value))

    def worded(self, views: Mapping[str, Callable[..., str]], value: object) -> str:
        """The text that `show` would write."""
        view, value = views[self.format], masked(value)
        return view(value) if self._limit is None else view(value, limit=self._limit)

    def write(self, text: str) -> None:
        """The result, whole: to the file atomically, or to stdout. Raises LmsconfError where it cannot be written."""
        self._tried = True
        if self.path == "-":
            person = self.format == "text"
            emit(text, sys.stdout, color=person and colored(sys.stdout), exact=not person)
        else:
            from pathlib import Path

            from lmsconf.support.atomic_files import write_atomically

            write_atomically(Path(self.path), _leaving(text))

    def fail(self, problems: Sequence[Problem]) -> None:
        """The problems as the document that a script waits for, unless the result went there, or could not."""
        if self.format == "json" and not self._tried:
            try:
                self.write(_document(problems))
            except LmsconfError as error:
                report(error.problems)


def output_options(formats: Sequence[str]) -> Callable[[Callable[P, ExitCode | None]], Callable[P, ExitCode | None]]:
    """Adds `--format` and `--output`, and `--limit` beside markdown; the command gets them as `output: Output`.

    With `--format json` an error that the command raises becomes the one document of the output.
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
            output = Output(str(format), str(path), _budget(str(format), limit))
            output.check()
            kwargs["output"] = output
            try:
                return command(*args, **kwargs)
            except LmsconfError as error:
                report(error.problems)
                output.fail(error.problems)
                return error.exit
            except KeyboardInterrupt:
                output.fail([Problem(code="interrupted", message="the command was interrupted")])
                raise

        return framed

    return decorate


def _limit_beside(markdown: bool) -> Callable[[Callable[P, ExitCode | None]], Callable[P, ExitCode | None]]:
    """Adds `--limit` to a command that can write markdown."""
    if not markdown:
        return lambda command: command
    return click.option(
        "--limit",
        "limit_",
        metavar="PLACE",
        help="Shorten markdown to what a comment holds: github (the default), gitlab, azure, bitbucket, summary (a "
        "job's on GitHub), or a number of bytes; none leaves it whole.",
    )


def _budget(format: str, limit: object) -> SizeLimit | None:
    """What `--limit` names; markdown is for a comment on GitHub unless it says otherwise. Raises click's UsageError."""
    if format != "markdown":
        if limit is not None:
            raise click.UsageError("--limit is for --format markdown")
        return None
    from lmsconf.render.size_budget import budget

    try:
        return budget("github" if limit is None else str(limit))
    except ValueError as error:
        raise click.UsageError(f"--limit: {error}") from error


def run(app: click.Command, arguments: list[str]) -> int:
    """Runs the command line and gives its exit code. Errors of ours, of the command line and of pipes are messages."""
    mask_people(False)
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
        _forget(sys.stdout)
        return ExitCode.ERROR
    except OSError as error:
        # click prints help and version by itself. Anything else is a mistake of ours, not of whoever reads stdout.
        if not _stuck(sys.stdout):
            raise
        return _failed(arguments, _lost(error).problems, ExitCode.ERROR)
    return int(code or 0)


def standard_streams() -> None:
    """Makes stdin, stdout and stderr safe to use. It comes before anything that opens a file.

    One that is closed leads nowhere; else the next file to be opened would get its number, and what is told would go
    into that file. What stderr cannot take is lost, and nothing else: the exit code still tells.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is given, which is this one; programs that are started inherit it.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # What is not Python's own was put in place by somebody who wants to read it.
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # it stays until the end
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(sys.stdout, io.FileIO(1, "w", closefd=False))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(sys.stderr, _Forgiving(2, "w", closefd=False))


def _stream(before: TextIO | None, raw: io.FileIO) -> TextIO:
    """A stream like the one before, but never without a buffer: what that still holds was not written."""
    encoding, errors = (before.encoding, before.errors) if before else ("utf-8", None)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=True)


class _Forgiving(io.FileIO):
    """A file that takes whatever is written to it, whether or not there is room."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            written = super().write(data)
        except OSError:
            written = None
        return memoryview(data).nbytes if written is None else written


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM raises Terminated inside, so that a run that is cut short can still say what it did."""
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise Terminated


def _aborted(error: BaseException) -> int:
    """The exit code of Ctrl-C, SIGTERM, or an end of input where a question was asked, which is a no."""
    cause = error if isinstance(error, KeyboardInterrupt) else error.__context__
    if isinstance(cause, EOFError):
        say("Declined: no answer.")
        return ExitCode.ERROR
    return cut_short(cause or error)


def cut_short(error: BaseException) -> ExitCode:
    """Tells that a run was cut short, and gives its exit code."""
    code = interrupted(error)
    say("\nTerminated." if code is ExitCode.TERMINATED else "\nInterrupted.")
    return code


def _misused(arguments: Sequence[str], error: click.UsageError) -> int:
    """Tells of a wrong command line. No command at all gets the help."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        say(error.format_message())
        return ExitCode.USAGE
    context = error.ctx.command_path if error.ctx else "lmsconf"
    problem = Problem(code="usage", message=error.format_message(), hint=f"See: {context} --help")
    return _failed(arguments, [problem], ExitCode.USAGE)


def _failed(arguments: Sequence[str], problems: Sequence[Problem], code: ExitCode) -> int:
    """Tells of an error that came before a command knew its own output options."""
    report(problems)
    # The command line could not be read as a whole, so what it asks for is looked up in its words.
    if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
        try:
            emit(_document(problems), sys.stdout, exact=True)
        except LmsconfError as error:
            report(error.problems)
    return code


def _document(problems: Sequence[Problem]) -> str:
    from lmsconf.render.json import problems_json

    return problems_json([_clean(problem) for problem in problems])


def report(problems: Sequence[Problem]) -> None:
    """Problems, for a person, on stderr."""
    from lmsconf.render.text.plan import problems_text

    emit(problems_text([_clean(problem) for problem in problems]), sys.stderr, color=colored(sys.stderr))


def _clean(problem: Problem) -> Problem:
    """The problem without keys: whatever it quotes, a service may have said it."""
    from lmsconf.support.redaction import redacted

    hint = None if problem.hint is None else redacted(problem.hint)
    return masked(replace(problem, message=redacted(problem.message), hint=hint))


def crashed(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Tells of a mistake of lmsconf's own, for whoever mends it, without the keys that its words may hold."""
    from traceback import format_exception

    from lmsconf.support.redaction import redacted

    sys.stderr.write(_leaving(redacted("".join(format_exception(kind, error, trace)))))


def say(text: str) -> None:
    """Lines for a person, on stderr."""
    from lmsconf.render.escape import safe

    emit("".join(f"{safe(line)}\n" for line in text.split("\n")), sys.stderr)


def emit(text: str, stream: TextIO, *, color: bool = False, exact: bool = False, whole: bool = False) -> None:
    """The text on a stream, without the tokens that are known.

    exact: it is for a program, and goes out as the UTF-8 that a file would hold. whole: exact, and with its tokens.
    A reader that went away, as `head` does, does not end the run. Raises LmsconfError for a stdout that cannot be
    written; there is nobody to tell it of stderr.
    """
    if not whole:
        text = _leaving(text)
    if color:
        from lmsconf.render.color import paint

        text = paint(text)
    try:
        _put(text, stream, exact=exact or whole)
    except BrokenPipeError:
        _forget(stream)
    except OSError as error:
        _forget(stream)
        if stream is not sys.stderr:
            raise _lost(error) from error


def _put(text: str, stream: TextIO, *, exact: bool) -> None:
    # Before the bytes go past it, the stream must have let go of all that came before them.
    stream.flush()
    if exact and hasattr(stream, "buffer"):
        stream.buffer.write(text.encode("utf-8", "backslashreplace"))
    else:
        # What the stream's encoding lacks, as on a terminal that is not UTF-8, is written as an escape.
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _stuck(stream: TextIO) -> bool:
    """Whether a stream holds what cannot be written. It is forgotten then, with all that comes after it."""
    try:
        stream.flush()
    except OSError:
        _forget(stream)
        return True
    return False


def _lost(error: OSError) -> LmsconfError:
    from lmsconf.support.atomic_files import why

    hint = "Check what stdout leads to, or write to a file with --output."
    return LmsconfError(f"stdout cannot be written: {why(error)}", hint=hint)


def _forget(stream: TextIO) -> None:
    """Sends the rest of a stream nowhere, so that closing it at exit cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def colored(stream: TextIO) -> bool:
    """Whether a stream wants colour: a terminal that can, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


@contextmanager
def progress(stream: TextIO | None = None, *, quiet: bool = False) -> Iterator[Tell]:
    """Shows how far something is: a bar on a terminal, a few plain lines in a log, nothing when quiet."""
    if quiet:
        yield lambda done, total, label: None
        return
    from lmsconf.cli.progress import bar, lines

    where = sys.stderr if stream is None else stream
    with bar(where) if where.isatty() and os.environ.get("TERM") != "dumb" else lines(where) as tell:
        yield lambda done, total, label: tell(done, total, masked(label))
