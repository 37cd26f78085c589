"""Output of all commands: what may leave the process, how it is written, in what form and where; and questions.

`lmsconf --help` imports this module, so slow imports are inside the functions.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final, ParamSpec, TextIO, TypeAlias, TypeVar

import click
from msgspec.structs import replace

from lmsconf.cli.context import is_given, project_prefix
from lmsconf.errors import ExitCode, LmsconfError, Problem, Severity, refuse_if

if TYPE_CHECKING:
    from pathlib import Path

    from lmsconf.cli.people_masking import PeopleMask
    from lmsconf.model.calls import Report
    from lmsconf.render.escape import SizeLimit

Value = TypeVar("Value")
INTERRUPTED = Problem(code="interrupted", message="the command was interrupted")
_mask: list[PeopleMask] = []
"""The mask of this run (`--mask-people`), or empty."""


def mask_people(on: bool) -> None:
    """Turn the masking of people in all further output on or off. Labels stay while it is on."""
    if not on:
        _mask.clear()
    elif not _mask:
        from lmsconf.cli.people_masking import PeopleMask

        _mask.append(PeopleMask())


def masks_people() -> bool:
    """Whether people are masked in the output."""
    return bool(_mask)


def mask_if_enabled(value: Value) -> Value:
    """Return the value with people masked, if masking is on. Call it before any value is rendered."""
    return _mask[0].mask_value(value) if _mask else value


def redact_output(text: str) -> str:
    """Return output text without known tokens and, if masking is on, without people."""
    from lmsconf.support.secrets import redact_registered_tokens

    text = redact_registered_tokens(text)
    return _mask[0].mask_lines(text) if _mask else text


def report_problems(problems: Sequence[Problem]) -> None:
    """Write problems as text to stderr."""
    if problems:
        from lmsconf.render.text import problems_text

        write_redacted(problems_text(redact_problems(problems)), sys.stderr, color=supports_color(sys.stderr))


def report_warning(code: str, message: str, hint: str) -> None:
    """Write a warning to stderr."""
    report_problems([Problem(code=code, severity=Severity.WARNING, message=message, hint=hint)])


def redact_problems(problems: Sequence[Problem]) -> list[Problem]:
    """Redact secrets in messages and hints, since they may quote a response; mask people if masking is on."""
    from lmsconf.support.secrets import redact_secrets

    return [
        mask_if_enabled(replace(one, message=redact_secrets(one.message), hint=one.hint and redact_secrets(one.hint)))
        for one in problems
    ]


def write_stderr(text: str) -> None:
    """Write lines to stderr, each escaped by `escape_terminal`."""
    from lmsconf.render.escape import escape_terminal

    write_redacted("".join(f"{escape_terminal(line)}\n" for line in text.split("\n")), sys.stderr)


def write_redacted(
    text: str,
    stream: TextIO,
    *,
    color: bool = False,
    exact: bool = False,
    whole: bool = False,
    wraps: bool = True,
    pages: bool = False,
) -> None:
    """Write text to a stream, without known tokens and, if masking is on, without people.

    exact: for programs, so written as UTF-8 whatever the stream's encoding. whole: exact, and nothing is removed.
    wraps: on a terminal, prose is wrapped. pages: what is longer than the terminal goes through a pager. A closed pipe,
    as after `head`, is ignored. Raises LmsconfError if stdout cannot be written; errors of stderr are ignored.
    """
    if not whole:
        text = redact_output(text)
    if color:
        from lmsconf.render.text import colorize

        text = colorize(text)
    if wraps and not (exact or whole) and stream.isatty():
        from lmsconf.cli.terminal import wrap_prose

        text = wrap_prose(text, terminal_size(stream).columns)
    if pages and _is_paged(text, stream):
        return
    # A character that the encoding lacks is written as an escape. A stream in memory may take only text.
    encoding = "utf-8" if exact or whole else stream.encoding or "utf-8"
    content = text.encode(encoding, "backslashreplace") if hasattr(stream, "buffer") else text
    try:
        click.echo(content, stream, nl=False)
    except OSError as error:
        redirect_to_null(stream)
        if stream is not sys.stderr and not isinstance(error, BrokenPipeError):
            raise stdout_error(error) from error


def terminal_size(stream: TextIO) -> os.terminal_size:
    """Return the size of the terminal that a stream is; 80 columns and 24 lines where it is none."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        size = os.terminal_size((0, 0))
    columns = os.environ.get("COLUMNS", "")
    return os.terminal_size(((int(columns) if columns.isdecimal() else 0) or size.columns or 80, size.lines or 24))


def _is_paged(text: str, stream: TextIO) -> bool:
    """Show a text in the pager; False, with nothing shown, where none is wanted, needed or there."""
    if not (sys.stdin.isatty() and _is_screen(stream)) or is_given("no_pager"):
        return False
    from lmsconf.cli.terminal import page, rows_on_terminal

    size = terminal_size(stream)
    return rows_on_terminal(text, size.columns) >= size.lines and page(text, stream, os.environ)


def stdout_error(error: OSError) -> LmsconfError:
    from lmsconf.support.files import os_error_message

    return LmsconfError(
        f"stdout cannot be written: {os_error_message(error)}",
        hint="Check where stdout is redirected to, or write to a file with --output.",
    )


def redirect_to_null(stream: TextIO) -> None:
    """Redirect a stream to /dev/null, so that flushing it at exit cannot fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal that is not dumb."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def supports_color(stream: TextIO) -> bool:
    """Whether to colour a stream: a terminal that is not dumb, and NO_COLOR unset."""
    return _is_screen(stream) and not os.environ.get("NO_COLOR")


def can_ask() -> bool:
    """Whether questions are asked: answers are typed on a terminal, and stderr, where questions stand, is one too."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def show_progress(label: str) -> AbstractContextManager[Report]:
    """Return the context of a progress callback on stderr: a bar on a terminal, a few plain lines elsewhere.

    label: what is under way.
    """
    from lmsconf.cli.terminal import progress_bar, progress_lines

    # A bar is drawn over again and again, so the lines of --verbose would tear it.
    bar = _is_screen(sys.stderr) and not is_given("verbose")
    return (progress_bar if bar else progress_lines)(sys.stderr, mask_if_enabled(label))


def refuse_without_terminal(hint: str) -> None:
    """Raise UsageError where no question can be asked. hint: what to pass instead."""
    refuse_if((not can_ask(), "there is no terminal to ask for approval", hint))


def confirm(question: str, about: str = "") -> bool:
    """Ask on stderr; only the answer `yes` agrees. about: what the question is about, in the line above it."""
    from lmsconf.cli.terminal import without_progress_bar
    from lmsconf.render.escape import escape_terminal

    with without_progress_bar():
        if about:
            write_stderr(about)
        # In one line, also on a narrow terminal: a program that answers may wait for these words.
        write_redacted(escape_terminal(f"{question} Only 'yes' will be accepted: "), sys.stderr, wraps=False)
        return sys.stdin.readline().rstrip("\r\n") == "yes"


def require_consent(question: str) -> None:
    """Ask on stderr. Raises LmsconfError unless the answer is `yes`."""
    if not confirm(question):
        raise LmsconfError("declined: nothing was changed")


P = ParamSpec("P")
Command: TypeAlias = Callable[P, ExitCode | None]


def add_options(*options: Callable[[Command[P]], Command[P]]) -> Callable[[Command[P]], Command[P]]:
    """Return a decorator that adds options to a command, in this order."""
    return lambda command: functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


PLAN_FORMATS: Final = ("text", "json", "markdown", "html", "github", "sarif", "codequality")
"""The formats of a plan, and of the problems of manifests."""


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
        self.format, self.path = format, path
        self._limit, self._pages, self._for_problems = limit, pages, ("json", *problems)
        self._tried = False
        self._stream = sys.stdout

    def leave_stdout(self) -> None:
        """Write a result for stdout to stderr instead: stdout has the events."""
        self.path = "-"
        self._stream = sys.stderr

    @property
    def is_on_terminal(self) -> bool:
        """Whether the result is written to a terminal."""
        return self.path == "-" and self._stream.isatty()

    def show(self, views: Mapping[str, Callable[..., str]], value: object) -> None:
        """Render the value in the chosen format, within `--limit`, and write it."""
        options: dict[str, object] = {} if self._limit is None else {"limit": self._limit}
        # The readers of these look for files in the repository.
        if self.format in ("github", "sarif", "codequality"):
            options["prefix"] = project_prefix()
        self.write(views[self.format](mask_if_enabled(value), **options))

    def write(self, text: str) -> None:
        """Write the result to stdout, or atomically to the file. Raises LmsconfError if that fails."""
        self._tried = True
        if self.path == "-":
            person, stream = self.format == "text", self._stream
            pages = self._pages and person and stream is sys.stdout
            write_redacted(text, stream, color=person and supports_color(stream), exact=not person, pages=pages)
        else:
            from pathlib import Path

            from lmsconf.support.files import write_atomically

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
    """Raise LmsconfError if a file is not writable, before any work whose result would be lost. name: for the error.

    No result is YAML, so a YAML file in its place is a manifest, a project file or a seed file. A CSV file is replaced
    only by its header: manifests read lists of people from others.
    """
    from lmsconf.support.files import is_writable

    refuse_if(
        (
            path.suffix.lower() in (".yaml", ".yml") and path.exists(),
            f"{name} would overwrite a YAML file, and the result is not YAML",
            "Name another file, such as result.json.",
        ),
        (
            path.suffix.lower() == ".csv" and path.is_file() and not _is_empty_or_result(path),
            f"{name} would overwrite a CSV file that lmsconf did not write",
            "Name another file, or delete this one.",
        ),
        (
            not is_writable(path),
            f"{name} cannot be written",
            "Its folder must exist and be writable; it must not be a folder itself.",
        ),
        error=LmsconfError,
    )


def _is_empty_or_result(path: Path) -> bool:
    """Return whether a CSV file is empty, or begins with the header of a result. Raises LmsconfError if unreadable."""
    from lmsconf.render.people_reports import HEADERS
    from lmsconf.support.files import os_errors_as

    headers = {",".join(columns).encode() for columns in HEADERS}
    with os_errors_as(f"{path} cannot be read", "Name another file."), path.open("rb") as file:
        start = file.readline(max(map(len, headers)) + 2)
    return not start or start.rstrip(b"\r\n") in headers


_OPTIONS = (
    click.option(
        "--output",
        "output_",
        metavar="FILE",
        default="-",
        show_default=True,
        help="Write the result to this file; - is stdout.",
    ),
    click.option(
        "--limit",
        "limit_",
        metavar="PLACE",
        help="Shorten markdown to the size of a comment: github (the default), gitlab, azure, bitbucket, summary (a "
        "job's on GitHub), or a number of bytes; none does not shorten it.",
    ),
)
"""The second one is for commands with a markdown format."""


def output_options(
    formats: Sequence[str], problems: Sequence[str] = (), *, pages: bool = False
) -> Callable[[Command[P]], Command[P]]:
    """Add `--format`, `--output` and, with markdown, `--limit`; the command receives them as `output: Output`.

    An LmsconfError of the command is written as the output's document: with `--format json`, and in the formats that
    `problems` names. pages: a text longer than the terminal goes through a pager.
    """
    options = [
        click.option(
            "--format",
            "format_",
            type=click.Choice(list(formats)),
            default=formats[0],
            show_default=True,
            help="The format of the result.",
        ),
        *_OPTIONS[: 2 if "markdown" in formats else 1],
    ]

    def decorate(command: Command[P]) -> Command[P]:
        @functools.wraps(command)
        def framed(*args: P.args, **kwargs: P.kwargs) -> ExitCode | None:
            format, path, limit = (kwargs.pop(key, None) for key in ("format_", "output_", "limit_"))
            output = Output(str(format), str(path), _budget(str(format), limit), problems, pages=pages)
            if output.path != "-":
                from pathlib import Path

                refuse_unwritable(Path(output.path), f"--output {output.path}")
            kwargs["output"] = output
            try:
                return command(*args, **kwargs)
            except LmsconfError as error:
                report_problems(error.problems)
                output.write_problems(error.problems)
                return error.exit
            except KeyboardInterrupt:
                output.write_problems([INTERRUPTED])
                raise

        return add_options(*options)(framed)

    return decorate


def _budget(format: str, limit: object) -> SizeLimit | None:
    """Parse `--limit`; for markdown the default is `github`. Raises UsageError, also for another format."""
    if format != "markdown":
        refuse_if((limit is not None, "--limit is for --format markdown", "Add --format markdown, or remove --limit."))
        return None
    from lmsconf.render.escape import parse_size_limit

    return parse_size_limit("github" if limit is None else str(limit))
