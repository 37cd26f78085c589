"""The file or stream that `--events` names, and what is written to it. Imported only with `--events`."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import Final, cast

from lmsconf.api.client import Exchange
from lmsconf.cli.events import CommandEvents
from lmsconf.cli.output import Output
from lmsconf.cli.output_streams import mask_if_enabled, redirect_to_null, report_problems
from lmsconf.errors import LmsconfError, Problem, Severity, UsageError
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftReport
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Plan
from lmsconf.model.progress import RateLimit, Report, RunProgress
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.time_formats import duration_in_words, format_utc
from lmsconf.render import events
from lmsconf.render.events import Event, WaitReason
from lmsconf.support.atomic_files import leads_to_stdout, open_for_lines, os_error_message
from lmsconf.support.line_stream import LineStream, descriptor_writer
from lmsconf.support.redaction import redact_registered_tokens, redact_secrets

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


_EVERY: Final = 1.0
"""Seconds between two events of the progress of a phase, and of a wait for what does not show yet."""
_LIMIT_EVERY: Final = 60.0
"""Seconds between two events of the same rate limit."""
_SAME: Final = 2.0
"""Seconds by which the end of one pause may differ from request to request."""
_QUOTING: Final = frozenset({"problem", "note", "wait", "call_end", "blocked", "apply_summary"})
"""The types of events that may quote what the service answered."""


class EventWriter(CommandEvents):
    """Writes events to a LineStream, redacted and, with `--mask-people`, masked. Thread-safe."""

    def __init__(self, command: str, open_stream: Callable[[bytes], LineStream]) -> None:
        self.stream = open_stream(self._line(events.start_event(command)))
        self._lock = threading.Lock()
        self._phase: Counter[str] = Counter()
        self._begun: dict[str, float] = {}
        self._requests: Counter[str] = Counter()
        self._statuses: dict[str, int | None] = {}
        self._problems: set[str] = set()
        self._limit_at = self._resumes_at = -inf
        self._waited_at: dict[str, float] = {}

    @contextmanager
    def phase(self, label: str) -> Iterator[Report]:
        with self._lock:
            operations = self._phase = Counter()
        begun = shown = time.monotonic()
        self._emit(events.phase_event("start", label, None, {}))

        def report(progress: RunProgress) -> None:
            nonlocal shown
            now = time.monotonic()
            if progress.limit is not None:
                self._limited(progress.limit)
            if now - shown >= _EVERY:
                shown = now
                self._emit(events.phase_event("progress", label, progress, {}))

        status = "failed"
        try:
            yield report
            status = "done"
        finally:
            with self._lock:
                counts = cast("dict[str, Json]", dict(sorted(operations.items())))
            seconds = round(time.monotonic() - begun, 3)
            values: dict[str, Json] = {"status": status, "seconds": seconds, "requests": counts}
            self._emit(events.phase_event("end", label, None, values))

    def exchanged(self, exchange: Exchange) -> None:
        with self._lock:
            self._phase[exchange.operation or exchange.method] += 1
            if exchange.label is not None:
                self._requests[exchange.label] += 1
                self._statuses[exchange.label] = exchange.status
        if exchange.retry_in is not None:
            more: dict[str, Json] = {
                "operation": exchange.operation,
                "call": exchange.label,
                "attempt": exchange.attempt,
                "http_status": exchange.status,
                "failure": exchange.failure,
            }
            why = f"answered {exchange.status}" if exchange.failure is None else exchange.failure
            message = f"{exchange.operation or exchange.method} is sent again in {exchange.retry_in:.1f} s: {why}"
            self._emit(events.wait_event(WaitReason.RETRY, message, exchange.retry_in, more))

    def _limited(self, limit: RateLimit) -> None:
        """Record a rate limit: at once, when the service asks for a longer pause, and once a minute."""
        resumes_at = limit.at + limit.resumes_in
        if resumes_at <= self._resumes_at + _SAME and limit.at - self._limit_at < _LIMIT_EVERY:
            return
        self._limit_at, self._resumes_at = limit.at, resumes_at
        pause = f", which asks to wait {duration_in_words(limit.resumes_in)}" if limit.resumes_in > 0 else ""
        rate = None if limit.rate is None else round(limit.rate, 3)
        message = f"The service limits the rate of requests{pause}"
        self._emit(events.wait_event(WaitReason.RATE_LIMIT, message, limit.resumes_in or None, {"rate": rate}))

    def manifests_read(self, manifests: Manifests) -> None:
        self._emit(events.manifests_event(manifests))

    def workspace_read(self, snapshot: Snapshot) -> None:
        self._emit(events.snapshot_event(snapshot))

    def planned(self, plan: Plan) -> None:
        self._emit_all(events.plan_events(mask_if_enabled(plan)))

    def compared(self, report: DriftReport) -> None:
        self._emit_all(events.drift_events(mask_if_enabled(report)))

    def approval_asked(self) -> None:
        self._emit(events.wait_event(WaitReason.APPROVAL, "Waiting for approval", None, {}))

    def call_started(self, call: Call) -> None:
        with self._lock:
            self._begun.setdefault(call.id, time.monotonic())
        self._emit(events.call_start_event(mask_if_enabled(call)))

    def call_ended(self, outcome: CallOutcome) -> None:
        with self._lock:
            begun = self._begun.get(outcome.call)
            requests, status = self._requests[outcome.call], self._statuses.get(outcome.call)
        seconds = None if begun is None else time.monotonic() - begun
        masked = mask_if_enabled(outcome)
        self._emit(events.call_end_event(masked, seconds=seconds, requests=requests, http_status=status))

    def waiting(self, reason: str, message: str, seconds: float) -> None:
        if time.monotonic() - self._waited_at.get(reason, -inf) >= _EVERY:
            self._waited_at[reason] = time.monotonic()
            self._emit(events.wait_event(WaitReason(reason), message, seconds, {}))

    def note(self, text: str) -> None:
        self._emit(events.note_event(text))

    def applied(self, report: ApplyReport) -> None:
        self._emit_all(events.apply_events(mask_if_enabled(report)))

    def failed(self, problems: Sequence[Problem]) -> None:
        self._emit_all(map(events.problem_event, mask_if_enabled(tuple(problems))))

    def end(self, code: int) -> None:
        self._emit(events.end_event(code))

    def _emit_all(self, several: Iterable[Event]) -> None:
        for event in several:
            self._emit(event)

    def _emit(self, event: Event) -> None:
        if event.type == "problem":
            # A problem of a plan is also one of the error that stops its apply.
            key = str(event.values)
            if key in self._problems:
                return
            self._problems.add(key)
        self.stream.put(self._line(event))

    def _line(self, event: Event) -> bytes:
        at = format_utc(datetime.now(UTC), "milliseconds")
        if event.type in _QUOTING:
            values = cast("dict[str, Json]", _redacted(dict(event.values)))
            event = event._replace(message=redact_secrets(event.message), values=values)
        line = redact_registered_tokens(events.event_line(mask_if_enabled(event), at))
        # A lone surrogate becomes an escape that JSON knows.
        return line.encode("utf-8", "backslashreplace")


def _redacted(value: Json) -> Json:
    """Return a value with the secrets in its strings redacted."""
    if isinstance(value, str):
        return redact_secrets(value)
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    return [_redacted(item) for item in value] if isinstance(value, list) else value
