"""`--format`, `--output` and `--limit`: where the result of a command goes, and in what form.

`--help` imports no command, and so not this module either; slow imports are inside the functions all the same.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, ParamSpec, TextIO

import click

from lmsconf.cli import INTERRUPTED
from lmsconf.cli.output_streams import (
    mask_if_enabled,
    redact_output,
    redact_problems,
    report_problems,
    supports_color,
    write_redacted,
)
from lmsconf.errors import ExitCode, LmsconfError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from lmsconf.render.escape import SizeLimit

P = ParamSpec("P")
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
        self._stream: Callable[[], TextIO] = lambda: sys.stdout

    def leave_stdout(self) -> None:
        """Write a result for stdout to stderr instead: stdout has the events."""
        self.path = "-"
        self._stream = lambda: sys.stderr

    @property
    def is_on_terminal(self) -> bool:
        """Whether the result is written to a terminal."""
        return self.path == "-" and self._stream().isatty()

    def show(self, views: Mapping[str, Callable[..., str]], value: object) -> None:
        """Render the value in the chosen format, within `--limit`, and write it."""
        limit = {} if self._limit is None else {"limit": self._limit}
        self.write(views[self.format](mask_if_enabled(value), **limit))

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

    if path.suffix.lower() in (".yaml", ".yml") and path.exists():
        raise LmsconfError(
            f"{name} would overwrite a YAML file, and the result is not YAML",
            hint="Name another file, such as result.json.",
        )
    if path.suffix.lower() == ".csv" and path.is_file() and not _is_empty_or_result(path):
        raise LmsconfError(
            f"{name} would overwrite a CSV file that lmsconf did not write",
            hint="Name another file, or delete this one.",
        )
    if not is_writable(path):
        hint = "Its folder must exist and be writable; it must not be a folder itself."
        raise LmsconfError(f"{name} cannot be written", hint=hint)


def _is_empty_or_result(path: Path) -> bool:
    """Return whether a CSV file is empty, or begins with the header of a result. Raises LmsconfError if unreadable."""
    from lmsconf.render.other_tools import HEADERS
    from lmsconf.support.files import os_errors_as

    headers = {",".join(columns).encode() for columns in HEADERS}
    with os_errors_as(f"{path} cannot be read", "Name another file."), path.open("rb") as file:
        start = file.readline(max(map(len, headers)) + 2)
    return not start or start.rstrip(b"\r\n") in headers


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
    from lmsconf.render.escape import parse_size_limit

    try:
        return parse_size_limit("github" if limit is None else str(limit))
    except ValueError as error:
        raise click.UsageError(f"--limit: {error}") from error
