"""The file or stream that `--events` names: opened before anything is sent, and checked at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

from lmsconf.cli.event_writer import EventWriter
from lmsconf.cli.output import Output
from lmsconf.cli.output_streams import redirect_to_null, report_problems
from lmsconf.errors import LmsconfError, Problem, Severity, UsageError
from lmsconf.support.atomic_files import leads_to_stdout, open_for_lines, os_error_message
from lmsconf.support.line_stream import LineStream, descriptor_writer

_PATIENCE: Final = 10.0
"""Seconds for which an apply waits for a reader that does not read."""
_STDOUT: Final = "-"


@contextmanager
def open_event_writer(path: str, command: str, arguments: Mapping[str, object]) -> Iterator[EventWriter]:
    """Open the file of `--events` and write the first event; at the end, report it if lines are missing.

    arguments: those of the command. Raises UsageError if one of them is the same file or also writes to stdout,
    LmsconfError if the file cannot be written.
    """
    output = cast("Output", arguments["output"])
    to_stdout = path == _STDOUT or leads_to_stdout(Path(path))
    if to_stdout:
        _leave_stdout(path, output)
    else:
        _refuse_same_file(Path(path), output, arguments)
    handle, write = (None, _write_stdout) if to_stdout else _opened(path)
    is_stuck = False
    try:
        # A reader that has stopped reading does not hold up an apply.
        patience = _PATIENCE if command == "apply" else None
        writer = EventWriter(command, lambda first: _begun(path, first, write, patience))
        try:
            yield writer
        finally:
            writer.stream.close()
            is_stuck = writer.stream.is_stuck
            if writer.stream.failure is not None:
                report_problems([_incomplete(path, writer.stream.failure)])
    finally:
        # The rest of a stuck write would go to whatever is opened next under the same number.
        if handle is not None and not is_stuck:
            os.close(handle)


def _opened(path: str) -> tuple[int, Callable[[bytes], None]]:
    try:
        handle = open_for_lines(Path(path))
    except OSError as error:
        raise _unwritable(path, error) from error
    return handle, descriptor_writer(handle)


def _begun(path: str, first: bytes, write: Callable[[bytes], None], patience: float | None) -> LineStream:
    try:
        return LineStream(first, write, patience=patience)
    except OSError as error:
        raise _unwritable(path, error) from error


def _write_stdout(data: bytes) -> None:
    """Write bytes to stdout. Raises OSError; stdout then leads to /dev/null, so that its flush at exit succeeds."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError:
        redirect_to_null(sys.stdout)
        raise


def _leave_stdout(path: str, output: Output) -> None:
    """Send the text of the result to stderr. Raises UsageError for another format, which is for a program."""
    if output.path == _STDOUT or leads_to_stdout(Path(output.path)):
        if output.format != "text":
            raise UsageError(
                f"--events {path} and --format {output.format} both write to stdout",
                hint="Write one of them to a file: --events FILE, or --output FILE.",
            )
        output.leave_stdout()


def _refuse_same_file(path: Path, output: Output, arguments: Mapping[str, object]) -> None:
    """Raise UsageError if the command reads or writes the same file."""
    others = [Path(output.path), *(value for value in arguments.values() if isinstance(value, Path))]
    if path.resolve() in [other.resolve() for other in others]:
        raise UsageError(f"--events {path}: the command uses that file already", hint="Name another file.")


def _unwritable(path: str, error: OSError) -> LmsconfError:
    hint = "Check that its folder exists and is writable, and that there is free space. Nothing was read or sent."
    return LmsconfError(f"--events {path} cannot be written: {os_error_message(error)}", hint=hint)


def _incomplete(path: str, failure: str) -> Problem:
    return Problem(
        code="events/incomplete",
        message=f"--events {path} is not complete: {failure}",
        hint="The command itself went on without it. Of an apply, `lmsconf runs latest` has every call.",
        severity=Severity.WARNING,
    )
