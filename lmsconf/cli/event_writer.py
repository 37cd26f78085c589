"""The file or stream that `--events` names, and what is written to it: one JSON object a line for what a command does.

`schemas/events.schema.json` describes every event. The values are those of the plan's and the drift report's JSON.
Imported only with `--events`.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import singledispatchmethod
from math import inf
from pathlib import Path
from typing import Final, cast

import click

from lmsconf import __version__
from lmsconf.api.client import Exchange
from lmsconf.apply.scheduler import Waiting
from lmsconf.cli.output import INTERRUPTED, Output, mask_if_enabled, redirect_to_null, report_warning
from lmsconf.cli.terminal import LIMIT_EVERY, SAME_PAUSE
from lmsconf.documents.json_documents import change_json, escape_in_strings, object_json, to_json, without_keys
from lmsconf.documents.plan_file import plan_digest, summary_json
from lmsconf.documents.reports import drift_summary_json, finding_json
from lmsconf.errors import ExitCode, LmsconfError, Problem, Severity, interrupt_exit_code, refuse_if
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.calls import Call, CallStatus, RateLimit, Report, RunProgress
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftReport
from lmsconf.model.names import count_noun
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Action, Plan
from lmsconf.model.problem_codes import blockers
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.time_formats import duration_in_words, format_utc
from lmsconf.render.drift_report import drift_summary, finding_headline
from lmsconf.render.outcome_wording import apply_summary, verification_result
from lmsconf.render.plan_wording import plan_summary
from lmsconf.render.resource_wording import count_kind, count_text
from lmsconf.support.files import LineStream, descriptor_writer, leads_to_stdout, open_for_lines, os_errors_as
from lmsconf.support.secrets import redact_registered_tokens, redact_secrets
from lmsconf.support.strict_json import map_texts

FORMAT: Final = 1
"""The version of the events. Keys and types may be added to it; another number is for anything else."""


@contextmanager
def open_event_writer(path: str, command: str, arguments: Mapping[str, object]) -> Iterator[EventWriter]:
    """Open the file of `--events` and write the first event; also record an exception, and report missing lines.

    arguments: those of the command. Raises UsageError if one of them is the same file or also writes to stdout,
    LmsconfError if the file cannot be written.
    """
    output = cast("Output", arguments["output"])
    to_stdout = path == "-" or leads_to_stdout(Path(path))
    if to_stdout:
        _leave_stdout(path, output)
    else:
        _refuse_same_file(Path(path), output, arguments)
    # A reader that has stopped reading does not hold up an apply for more than ten seconds.
    patience = 10.0 if command == "apply" else None
    with ExitStack() as stack:
        with os_errors_as(
            f"--events {path} cannot be written",
            "Check that its folder exists and is writable, and that there is free space. Nothing was read or sent.",
        ):
            write: Callable[[bytes], None] = _write_stdout
            if not to_stdout:
                handle = open_for_lines(Path(path))
                stack.callback(os.close, handle)
                write = descriptor_writer(handle)
            writer = EventWriter(command, lambda first: LineStream(first, write, patience=patience))
        try:
            yield writer
        except BaseException as error:
            writer.end_with(error)
            raise
        finally:
            writer.stream.close()
            if writer.stream.is_stuck:
                # The rest of its write would go to whatever is opened next under the same number.
                stack.pop_all()
            if writer.stream.failure is not None:
                report_warning(
                    "events/incomplete",
                    f"--events {path} is not complete: {writer.stream.failure}",
                    "The command itself went on without it. Of an apply, `lmsconf runs latest` has every call.",
                )


def _write_stdout(data: bytes) -> None:
    """Write bytes to stdout. Raises OSError; stdout then leads to /dev/null, so that its flush at exit succeeds."""
    try:
        click.echo(data, sys.stdout, nl=False)
    except OSError:
        redirect_to_null(sys.stdout)
        raise


def _leave_stdout(path: str, output: Output) -> None:
    """Send the text of the result to stderr. Raises UsageError for another format, which is for a program."""
    if output.path == "-" or leads_to_stdout(Path(output.path)):
        refuse_if(
            (
                output.format != "text",
                f"--events {path} and --format {output.format} both write to stdout",
                "Write one of them to a file: --events FILE, or --output FILE.",
            )
        )
        output.leave_stdout()


def _refuse_same_file(path: Path, output: Output, arguments: Mapping[str, object]) -> None:
    """Raise UsageError if the command reads or writes the same file."""
    others = (Path(output.path), *(value for value in arguments.values() if isinstance(value, Path)))
    refuse_if(
        (
            path.resolve() in {other.resolve() for other in others},
            f"--events {path}: the command uses that file already",
            "Name another file.",
        )
    )


_EVERY: Final = 1.0
"""Seconds between two events of the progress of a phase, and of a wait for what does not show yet."""
_QUOTING: Final = frozenset({"problem", "note", "wait", "call_end", "blocked", "apply_summary"})
"""The types of events that may quote what the service answered."""


class EventWriter:
    """Writes events to a LineStream, redacted and, with `--mask-people`, masked. Thread-safe."""

    def __init__(self, command: str, open_stream: Callable[[bytes], LineStream]) -> None:
        start = {"lmsconf": __version__, "command": command}
        self.stream = open_stream(self._line("start", f"lmsconf {__version__} {command}", start, "info"))
        self._lock = threading.Lock()
        self._phase: Counter[str] = Counter()
        self._begun: dict[str, float] = {}
        self._answers: dict[str, tuple[int | None, ...]] = {}
        self._problems: set[str] = set()
        self._limit_at = self._resumes_at = -inf
        self._waited_at: dict[str, float] = {}

    @contextmanager
    def phase(self, label: str) -> Iterator[Report]:
        """A phase begins: Reading, Checking, Applying or Verifying. The context's value receives the progress."""
        with self._lock:
            operations = self._phase = Counter()
        begun = shown = time.monotonic()
        phase: dict[str, Json] = {"phase": label.lower()}
        self._emit("phase_start", f"{label}: begins", phase)

        def report(progress: RunProgress) -> None:
            nonlocal shown
            now = time.monotonic()
            if progress.limit is not None:
                self._limited(progress.limit)
            if now - shown >= _EVERY:
                shown = now
                counts = {"done": progress.done, "total": progress.total, "total_is_final": progress.is_final}
                self._emit("phase_progress", f"{label}: {count_text(progress)}", {**phase, **counts})

        status = "failed"
        try:
            yield report
            status = "done"
        finally:
            with self._lock:
                counts = cast("dict[str, Json]", dict(sorted(operations.items())))
            self._emit(
                "phase_end",
                f"{label}: ended",
                {**phase, "status": status, "seconds": round(time.monotonic() - begun, 3), "requests": counts},
            )

    @singledispatchmethod
    def record(self, event: object) -> None:
        """Record an event of a type below; of a KeyboardInterrupt nothing. Called by several threads."""

    @record.register
    def _exchanged(self, exchange: Exchange) -> None:
        with self._lock:
            self._phase[exchange.operation or exchange.method] += 1
            if exchange.label is not None:
                self._answers[exchange.label] = (*self._answers.get(exchange.label, ()), exchange.status)
        if exchange.retry_in is not None:
            why = f"answered {exchange.status}" if exchange.failure is None else exchange.failure
            self._wait(
                "retry",
                f"{exchange.operation or exchange.method} is sent again in {exchange.retry_in:.1f} s: {why}",
                exchange.retry_in,
                {
                    "operation": exchange.operation,
                    "call": exchange.label,
                    "attempt": exchange.attempt,
                    "http_status": exchange.status,
                    "failure": exchange.failure,
                },
            )

    def _limited(self, limit: RateLimit) -> None:
        """Record a rate limit: at once, when the service asks for a longer pause, and once a minute."""
        resumes_at = limit.at + limit.resumes_in
        if resumes_at <= self._resumes_at + SAME_PAUSE and limit.at - self._limit_at < LIMIT_EVERY:
            return
        self._limit_at, self._resumes_at = limit.at, resumes_at
        pause = f", which asks to wait {duration_in_words(limit.resumes_in)}" if limit.resumes_in > 0 else ""
        self._wait(
            "rate_limit",
            f"The service limits the rate of requests{pause}",
            limit.resumes_in or None,
            {"rate": limit.rate and round(limit.rate, 3)},
        )

    @record.register
    def _manifests_read(self, manifests: Manifests) -> None:
        self._emit(
            "manifests_read",
            f"Read {count_noun(len(manifests.files), 'file')} of manifests",
            {
                "files": len(manifests.files),
                "declared": len(manifests.declared),
                "absent": len(manifests.absent),
                "digest": manifests.digest,
            },
        )

    @record.register
    def _workspace_read(self, snapshot: Snapshot) -> None:
        listings = sorted(snapshot.listings.items())
        counts = ", ".join(count_kind(len(listing.rows), name) for name, listing in listings)
        self._emit(
            "workspace_read",
            f"Read from {snapshot.workspace}: {counts or 'nothing'}",
            {
                "workspace": {"name": snapshot.workspace, "url": snapshot.url},
                "people": snapshot.people,
                "rows": {name: len(listing.rows) for name, listing in listings},
                "incomplete": {name: listing.incomplete for name, listing in listings if listing.incomplete},
            },
        )

    @record.register
    def _planned(self, plan: Plan) -> None:
        """Record a plan's problems, changes, the reasons that would stop an apply, and its summary."""
        plan = mask_if_enabled(plan)
        self.failed(plan.all_problems)
        for change in plan.changes:
            verb = "change" if change.action is Action.UPDATE else change.action.value
            self._emit(
                "planned_change",
                f"{resource_title(change.address)}: plan to {verb}",
                without_keys(change_json(change), "problems"),
            )
        for blocker in blockers(plan):
            self._emit(
                "blocked",
                f"Apply would stop: {blocker}",
                {
                    "blocker": blocker.type,
                    "name": blocker.name,
                    "reason": blocker.message,
                    "allow": blocker.allow,
                    "hint": blocker.hint,
                },
                "error",
            )
        self._emit(
            "plan_summary",
            plan_summary(plan),
            {
                "workspace": {"name": plan.workspace, "url": plan.url},
                "digest": plan_digest(plan),
                "partial": plan.partial,
                "summary": summary_json(plan),
                "unmanaged": sum(len(group.addresses) + group.left_alone for group in plan.unmanaged),
                "effects": {"basis": plan.effects.basis.value, "people": object_json(plan.effects.people)},
            },
        )

    @record.register
    def _compared(self, report: DriftReport) -> None:
        report = mask_if_enabled(report)
        self.failed(report.problems)
        for finding in report.findings:
            self._emit("drift_finding", finding_headline(finding), finding_json(finding), "warning")
        self._emit(
            "drift_summary",
            drift_summary(report),
            {
                "workspace": {"name": report.workspace, "url": report.url},
                "summary": drift_summary_json(report),
            },
            "warning" if report.findings else "info",
        )

    @record.register
    def _call_started(self, call: Call) -> None:
        self._begun.setdefault(call.id, time.monotonic())
        call = mask_if_enabled(call)
        self._emit(
            "call_start",
            f"{resource_title(call.address)}: sending {call.operation}",
            {"id": call.id, "address": str(call.address), "operation": call.operation},
        )

    @record.register
    def _call_ended(self, outcome: CallOutcome) -> None:
        begun, answers = self._begun.get(outcome.call), self._answers.get(outcome.call, ())
        outcome = mask_if_enabled(outcome)
        self._emit(
            "call_end",
            f"{resource_title(outcome.address)}: {outcome.operation} {outcome.status.value.replace('_', ' ')}",
            {
                "id": outcome.call,
                "address": str(outcome.address),
                "operation": outcome.operation,
                "status": outcome.status.value,
                "seconds": None if begun is None else round(time.monotonic() - begun, 3),
                "retries": max(len(answers) - 1, 0),
                "http_status": answers[-1] if answers else None,
                "resource_id": outcome.id,
                "reason": outcome.reason,
                "hint": outcome.hint,
                "unsure": outcome.unsure,
            },
            "info" if outcome.status is CallStatus.DONE else "error",
        )

    @record.register
    def _waits(self, wait: Waiting) -> None:
        if time.monotonic() - self._waited_at.get(wait.reason, -inf) >= _EVERY:
            self._waited_at[wait.reason] = time.monotonic()
            self._wait(wait.reason, wait.message, wait.seconds, {})

    @record.register
    def _note(self, text: str) -> None:
        self._emit("note", text, {})

    @record.register
    def _applied(self, report: ApplyReport) -> None:
        """A run ended, before or after its first call."""
        report = mask_if_enabled(report)
        self.failed(report.problems)
        self._emit(
            "apply_summary",
            f"{apply_summary(report)} {verification_result(report)}",
            {
                "workspace": {"name": report.workspace, "url": report.url},
                "digest": report.plan_digest,
                "summary": {status.value: number for status, number in report.summary.items()},
                "verified": report.verified.scope.value,
                "converged": report.converged,
            },
            "error" if report.exit else "info",
        )

    def failed(self, problems: Sequence[Problem]) -> None:
        """The command ends with these problems."""
        for problem in mask_if_enabled(tuple(problems)):
            # A problem of a plan is also one of the error that stops its apply.
            values = {"problem": to_json(problem)}
            if str(values) not in self._problems:
                self._problems.add(str(values))
                level = "info" if problem.severity is Severity.NOTE else problem.severity.value
                self._emit("problem", problem.message, values, level)

    def end_with(self, error: BaseException) -> None:
        """The command ends with an exception."""
        match error:
            case LmsconfError():
                code, problems = error.exit, error.problems
            case KeyboardInterrupt():
                code, problems = interrupt_exit_code(error), (INTERRUPTED,)
            case _:
                crash = Problem(code="crash", message=f"lmsconf crashed: {type(error).__name__}")
                code, problems = ExitCode.ERROR, (crash,)
        self.failed(problems)
        self.end(code)

    def end(self, code: int) -> None:
        """The command ends with this exit code."""
        self._emit("end", f"Exit code {code}", {"exit": code}, "info" if code in (0, 2) else "error")

    def _wait(self, reason: str, message: str, seconds: float | None, more: Mapping[str, Json]) -> None:
        """Record a wait. reason: as in the schema. seconds: for at most how long; None if that is not known."""
        self._emit("wait", message, {"reason": reason, "seconds": seconds and round(seconds, 3), **more})

    def _emit(self, type: str, message: str, values: Mapping[str, Json], level: str = "info") -> None:
        """Record an event. values: the keys of its type. level: info, warning or error."""
        self.stream.put(self._line(type, message, values, level))

    def _line(self, type: str, message: str, values: Mapping[str, Json], level: str) -> bytes:
        """Return the line of an event, with its end."""
        said: Json = {"message": message, **values}
        if type in _QUOTING:
            said = map_texts(said, redact_secrets)
        common = {"format": FORMAT, "type": type, "at": format_utc(datetime.now(UTC), "milliseconds"), "level": level}
        text = json.dumps({**common, **cast("dict[str, Json]", mask_if_enabled(said))}, ensure_ascii=False)
        # A lone surrogate becomes an escape that JSON knows.
        return f"{redact_registered_tokens(escape_in_strings(text))}\n".encode("utf-8", "backslashreplace")
