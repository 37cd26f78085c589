"""Turns what a command does into the lines of its `--events` file. Imported only with `--events`."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from math import inf
from typing import Final, cast

from lmsconf.api.client import Exchange
from lmsconf.cli.events import CommandEvents
from lmsconf.cli.output_streams import mask_if_enabled
from lmsconf.errors import Problem
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
from lmsconf.support.line_stream import LineStream
from lmsconf.support.redaction import redact_registered_tokens, redact_secrets

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
    return [_redacted(item) for item in value] if isinstance(value, list | tuple) else value
