"""The output streams of all commands: what may leave the process, and how it is written; and questions."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar

from msgspec.structs import replace

from lmsconf.cli.context import is_given, refuse_options
from lmsconf.errors import LmsconfError, Problem

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from lmsconf.cli.people_masking import PeopleMask
    from lmsconf.cli.terminal import Tell


Value = TypeVar("Value")


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
        sys.stdout = _stream(sys.stdout, io.FileIO(1, "w", closefd=False))
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(sys.stderr, _Forgiving(2, "w", closefd=False))


def _stream(before: TextIO | None, raw: io.FileIO) -> TextIO:
    """Return a stream with the encoding of `before`, always buffered: a non-empty buffer shows unwritten output."""
    encoding, errors = (before.encoding, before.errors) if before else ("utf-8", None)
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding, errors, line_buffering=True)


class _Forgiving(io.FileIO):
    """A file that ignores write errors, such as a full disk."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            written = super().write(data)
        except OSError:
            written = None
        return memoryview(data).nbytes if written is None else written


def report_problems(problems: Sequence[Problem]) -> None:
    """Write problems as text to stderr."""
    if not problems:
        return
    from lmsconf.render.text import problems_text

    write_redacted(problems_text(redact_problems(problems)), sys.stderr, color=supports_color(sys.stderr))


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


def write_template(template: str, **values: object) -> None:
    """Write the text of a template to stderr."""
    from lmsconf.render.jinja import terminal_text

    write_stderr(terminal_text(template, **values).removesuffix("\n"))


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
        text = _wrapped(text, stream)
    if pages and _is_paged(text, stream):
        return
    try:
        _put(text, stream, exact=exact or whole)
    except BrokenPipeError:
        redirect_to_null(stream)
    except OSError as error:
        redirect_to_null(stream)
        if stream is not sys.stderr:
            raise stdout_error(error) from error


def terminal_size(stream: TextIO) -> os.terminal_size:
    """Return the size of the terminal that a stream is; 80 columns and 24 lines where it is none."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        size = os.terminal_size((0, 0))
    columns = os.environ.get("COLUMNS", "")
    return os.terminal_size((int(columns) if columns.isdecimal() else size.columns or 80, size.lines or 24))


def _wrapped(text: str, stream: TextIO) -> str:
    columns = terminal_size(stream).columns
    if not any(len(line) > columns or not line.isascii() for line in text.split("\n")):
        return text
    from lmsconf.render.text import wrap_prose

    return wrap_prose(text, columns)


def _is_paged(text: str, stream: TextIO) -> bool:
    """Show a text in the pager; False, with nothing shown, where none is wanted, needed or there."""
    seen = sys.stdin.isatty() and stream.isatty() and os.environ.get("TERM") != "dumb"
    if not seen or is_given("no_pager"):
        return False
    from lmsconf.cli.terminal import page, pager_command
    from lmsconf.render.text import rows_on_terminal

    size, command = terminal_size(stream), pager_command(os.environ)
    if command is None or rows_on_terminal(text, size.columns) < size.lines:
        return False
    return page(text, command, stream, os.environ)


def _put(text: str, stream: TextIO, *, exact: bool) -> None:
    # Flush the text layer before writing bytes to the buffer below it, to keep the order.
    stream.flush()
    if exact and hasattr(stream, "buffer"):
        stream.buffer.write(text.encode("utf-8", "backslashreplace"))
    else:
        # Characters that the stream's encoding lacks are written as backslash escapes.
        encoding = stream.encoding or "utf-8"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def is_unwritable(stream: TextIO) -> bool:
    """Whether a stream's buffered output cannot be written; if so, redirect the stream to /dev/null."""
    try:
        stream.flush()
    except OSError:
        redirect_to_null(stream)
        return True
    return False


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


def supports_color(stream: TextIO) -> bool:
    """Whether to colour a stream: a terminal that is not dumb, and NO_COLOR unset."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def can_ask() -> bool:
    """Whether questions are asked: answers are typed on a terminal, and stderr, where questions stand, is one too."""
    return sys.stdin.isatty() and sys.stderr.isatty()


@contextmanager
def show_progress(stream: TextIO | None = None, *, label: str = "", quiet: bool = False) -> Iterator[Tell]:
    """Yield a progress callback: a bar on a terminal, a few plain lines elsewhere, nothing if quiet.

    label: what is under way, until the callback is called.
    """
    if quiet:
        yield lambda progress, label: None
        return
    from lmsconf.cli.terminal import progress_bar, progress_lines

    where = sys.stderr if stream is None else stream
    # A bar is drawn over again and again, so the lines of --verbose would tear it.
    bar = where.isatty() and os.environ.get("TERM") != "dumb" and not is_given("verbose")
    with progress_bar(where, label) if bar else progress_lines(where) as tell:
        yield lambda progress, label: tell(progress, mask_if_enabled(label))


def refuse_without_terminal(hint: str) -> None:
    """Raise UsageError where no question can be asked. hint: what to pass instead."""
    refuse_options((not can_ask(), "there is no terminal to ask for approval", hint))


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
